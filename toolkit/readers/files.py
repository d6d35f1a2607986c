"""Open files, and say where one is damaged: file, line, byte or member."""

import codecs
import json
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from tqdm.auto import tqdm

from toolkit.errors import DataError
from toolkit.readers.records import Json, as_object

__all__ = [
    "Progress",
    "existing",
    "json_file",
    "json_lines",
    "parse_json",
    "progress",
    "zip_archive",
    "zip_member",
]

ZSTANDARD = 93  # zipfile cannot unpack this method before Python 3.14
PATIENCE = 2.0  # seconds before a bar appears: short reads show none


class Progress(Protocol):
    """A bar that counts bytes."""

    def update(self, n: float, /) -> object:
        """Move on by some bytes."""


def existing(path: str | Path) -> Path:
    """Return the path, or raise `DataError` when nothing is there."""
    found = Path(path)
    if not found.exists():
        raise DataError(f"{found}: there is no such file or folder.")
    return found


@contextmanager
def progress(paths: Iterable[Path]) -> Iterator[Progress]:
    """Show a bar over the bytes of all files, if reading takes long and somebody is watching."""
    total = sum(path.stat().st_size for path in paths)
    with tqdm(
        total=total,
        unit="B",
        unit_scale=True,
        delay=PATIENCE,
        leave=False,
        disable=not (sys.stderr.isatty() or _in_notebook()),
    ) as bar:
        yield bar


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def parse_json(data: bytes, where: str, first_byte: int = 0) -> Any:
    """Parse JSON; NaN and Infinity count as numbers, as Python writes them.

    Raises
    ------
    DataError
        Naming the line and the byte at which the text stops being JSON.
    """
    if not data.strip():
        raise DataError(f"{where}: empty. Write or copy the file again.")
    try:
        text = data.removeprefix(codecs.BOM_UTF8).decode()
        return json.loads(text)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{where}: not UTF-8 text at byte {first_byte + error.start}; "
            f"a JSON file is expected. Choose the reader for this kind of file."
        ) from error
    except json.JSONDecodeError as error:
        byte = first_byte + len(text[: error.pos].encode())
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        ended = not text[error.pos :].strip() or error.msg.startswith("Unterminated")
        cut = " The end is missing: the file was cut off." if ended else ""
        raise DataError(
            f"{where}: not valid JSON at {line}byte {byte} ({error.msg}).{cut} "
            f"Write or copy the file again."
        ) from error
    except (RecursionError, ValueError) as error:  # nested too deeply, a number of 5000 digits
        raise DataError(f"{where}: JSON that no evaluation tool writes ({error}).") from error


def json_file(path: Path) -> Json:
    """Read a JSON file that holds one object."""
    return as_object(parse_json(path.read_bytes(), path.name), path.name)


def json_lines(path: Path, bar: Progress) -> Iterator[tuple[int, Json]]:
    """Read a file of one JSON object per line, line by line, with line numbers from 1.

    Raises
    ------
    DataError
        Naming the line and the byte in the file.
    """
    start, found = 0, False
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                found = True
                where = f"{path.name}, line {number}"
                yield number, as_object(parse_json(line, where, start), where)
            start += len(line)
            bar.update(len(line))
    if not found:
        raise DataError(f"{path.name}: empty. Write or copy the file again.")


@contextmanager
def zip_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive.

    Raises
    ------
    DataError
        If the file is empty, no archive, or cut off.
    """
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        size = path.stat().st_size
        raise DataError(
            f"{path.name}: not a zip archive, or one whose end is missing ({size} bytes). "
            f"Write or copy the file again."
        ) from error
    with archive:
        yield archive


def zip_member(archive: zipfile.ZipFile, name: str) -> Any:
    """Read one JSON member of an archive, Zstandard included.

    Raises
    ------
    DataError
        Naming the archive and the member that is damaged.
    """
    where = f"{Path(archive.filename or '').name}, member {name}"
    try:
        info = archive.getinfo(name)
        data = _zstandard(archive, info) if info.compress_type == ZSTANDARD else archive.read(info)
    except (
        KeyError,
        OSError,
        ValueError,
        EOFError,
        NotImplementedError,
        RuntimeError,
        zipfile.BadZipFile,
        zlib.error,
        pa.ArrowException,
    ) as error:
        raise DataError(f"{where}: damaged ({error}). Write or copy the file again.") from error
    return parse_json(data, where)


def _zstandard(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Unpack a member by hand: find its bytes behind the local header (APPNOTE 4.3.7)."""
    assert archive.filename is not None
    with Path(archive.filename).open("rb") as raw:
        raw.seek(info.header_offset)
        header = raw.read(30)
        if header[:4] != b"PK\x03\x04" or len(header) < 30:
            raise zipfile.BadZipFile("no local header")
        raw.seek(int.from_bytes(header[26:28], "little"), 1)
        raw.seek(int.from_bytes(header[28:30], "little"), 1)
        packed = raw.read(info.compress_size)
    data = pa.decompress(packed, info.file_size, codec="zstd", asbytes=True)
    if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
        raise zipfile.BadZipFile("checksum differs")
    return bytes(data)
