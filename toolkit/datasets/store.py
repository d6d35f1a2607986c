"""Where the bytes of a registered file come from: `TOOLKIT_DATA_DIR`, the cache, the source.

A file counts only when its sha256 is the pinned one. Downloads go to a temporary file that is
checked before it takes its name, so nothing half-written is ever seen, also by parallel runs.
"""

import hashlib
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from urllib.parse import quote

import pooch
import requests

from toolkit.datasets.registry import File
from toolkit.errors import DownloadError

__all__ = ["DATA_DIR", "fetch", "url", "where"]

DATA_DIR = "TOOLKIT_DATA_DIR"
_HOST = "https://raw.githubusercontent.com"
_PATIENCE = 5.0  # seconds until a host that does not answer counts as out of reach
_TIMEOUT = (5.0, 10.0)  # seconds to connect, and between two pieces of the answer


def url(file: File) -> str:
    """Address of a file at its pinned commit."""
    return f"{_HOST}/{file.repo}/{file.commit}/{quote(file.path)}"


def where(file: File) -> Path | None:
    """Find a file in `TOOLKIT_DATA_DIR` or the cache, without reading or downloading it."""
    folder = _data_dir()
    places = [folder / file.local] if folder else []
    if file.path:
        places.append(_cache_dir() / file.local)
    return next((place for place in places if place.is_file()), None)


def fetch(file: File) -> Path:
    """Return the path of a file with the pinned content, downloading it when it must be.

    Parameters
    ----------
    file : File
        An entry's file.

    Returns
    -------
    Path
        In `TOOLKIT_DATA_DIR` or in the user's cache.

    Raises
    ------
    DownloadError
        If the local copy is another version or corrupt, the file is nowhere local and has no
        upstream, the source cannot be reached, or what arrives is not the pinned version.
    """
    folder = _data_dir()
    if folder and (folder / file.local).is_file():
        _check_copy(folder / file.local, file)
        return folder / file.local
    if not file.path:
        place = f"{folder} has no file {file.local}" if folder else f"{DATA_DIR} is not set"
        raise DownloadError(
            f"{file.local} was made from other files and cannot be downloaded, and {place}: "
            f"set {DATA_DIR} to a folder that holds it."
        )
    return _download(file)


def _data_dir() -> Path | None:
    named = os.environ.get(DATA_DIR)
    if not named:
        return None
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise DownloadError(f"{DATA_DIR} is {named!r}, which is not a folder: correct or unset it.")
    return folder


def _cache_dir() -> Path:
    return Path(pooch.os_cache("capability-scaling-toolkit"))


def _check_copy(path: Path, file: File) -> None:
    """Refuse a local copy that is not the pinned version."""
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() == file.sha256:
        return
    size = "is empty" if not content else f"has {len(content)} bytes"
    raise DownloadError(
        f"{path} {size} and another sha256 than the pinned version ({file.bytes} bytes, "
        f"sha256 {file.sha256[:12]}...): replace it by that version, or remove it."
    )


def _download(file: File) -> Path:
    place = _cache_dir() / file.local
    if place.is_file() and pooch.file_hash(str(place)) == file.sha256:
        return place
    address = url(file)
    mend = f"or put the file at {file.local} in a folder named by {DATA_DIR}"
    if not _answers(_HOST):
        raise DownloadError(
            f"Neither {DATA_DIR} nor the cache holds a good copy of {file.local}, and {_HOST} "
            f"cannot be reached: connect to the network and restart, {mend}."
        )
    try:
        with _quiet():
            pooch.retrieve(
                address,
                known_hash=f"sha256:{file.sha256}",
                fname=place.name,
                path=place.parent,
                downloader=_get,
            )
    except requests.HTTPError as error:
        status = "an error" if error.response is None else error.response.status_code
        raise DownloadError(
            f"{address} answers with HTTP {status}: the source moved or removed it; find "
            f"sha256 {file.sha256[:12]}... elsewhere, {mend}."
        ) from error
    except requests.RequestException as error:
        raise DownloadError(
            f"The download of {address} broke off ({type(error).__name__}): try again, {mend}."
        ) from error
    except ValueError as error:  # pooch: the sha256 differs
        raise DownloadError(
            f"{address} sent other bytes than the pinned version (sha256 {file.sha256[:12]}...): "
            f"nothing was kept; try again, {mend}."
        ) from error
    except OSError as error:
        raise DownloadError(
            f"{file.local} cannot be written to the cache {_cache_dir()} ({error}): make the "
            f"folder writable, {mend}."
        ) from error
    return place


def _get(address: str, place: str, _: object) -> None:
    """Download without a progress bar and, unlike pooch's own, close what breaks off."""
    with requests.get(address, stream=True, timeout=_TIMEOUT) as answer, open(place, "wb") as out:
        answer.raise_for_status()
        for piece in answer.iter_content(1 << 16):
            out.write(piece)


@cache
def _answers(host: str) -> bool:
    """Whether a host answers at all; asked once per process, in a thread of its own.

    A blocked network may leave even the look-up of the name hanging, which no timeout of the
    request covers: the thread is left behind then.
    """
    answered = threading.Event()

    def ask() -> None:
        try:
            requests.head(host, timeout=_PATIENCE, allow_redirects=False)
        except requests.RequestException:
            return
        answered.set()

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_PATIENCE)
    return answered.is_set()


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence pooch, which reports every download on stderr."""
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
