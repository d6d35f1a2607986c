import dataclasses
import logging.handlers
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pooch
import pytest

from toolkit.datasets import store
from toolkit.datasets.registry import File
from toolkit.errors import DownloadError


def files_below(folder: Path) -> list[str]:
    """List every file, to see that nothing half-written stays."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_the_address_names_commit_and_path(registered: File) -> None:
    assert store.url(registered) == (
        "https://raw.githubusercontent.com/owner/name/"
        "0123456789abcdef0123456789abcdef01234567/data/two%20runs.csv"
    )


def test_the_folder_comes_before_the_source(
    registered: File, source: SimpleNamespace, folder: Path
) -> None:
    copy = folder / registered.local
    copy.write_bytes(source.content)
    assert store.where(registered) == copy
    assert store.fetch(registered) == copy
    assert source.asked == []


def test_a_download_is_kept_in_the_cache(
    registered: File, source: SimpleNamespace, cache: Path
) -> None:
    assert store.where(registered) is None
    path = store.fetch(registered)
    assert path.read_bytes() == source.content
    assert source.asked == [f"/owner/name/{registered.commit}/data/two%20runs.csv"]
    assert store.fetch(registered) == path == store.where(registered)
    assert len(source.asked) == 1
    assert files_below(cache) == [registered.local]


def test_a_download_says_nothing(registered: File, source: SimpleNamespace) -> None:
    said = logging.handlers.BufferingHandler(100)
    logger = pooch.get_logger()  # has no parent, so that caplog does not see it
    level = logger.level
    logger.addHandler(said)
    store.fetch(registered)
    logger.removeHandler(said)
    assert said.buffer == []
    assert logger.level == level


def test_a_folder_without_the_file_does_not_stop_the_download(
    registered: File, source: SimpleNamespace, folder: Path
) -> None:
    assert store.fetch(registered).read_bytes() == source.content
    assert files_below(folder) == []


def test_a_corrupt_cache_is_downloaded_again(
    registered: File, source: SimpleNamespace, cache: Path
) -> None:
    store.fetch(registered).write_bytes(source.content[:-3])
    assert store.fetch(registered).read_bytes() == source.content
    assert len(source.asked) == 2


@pytest.mark.parametrize(
    ("send", "said"),
    [
        ("missing", r"answers with HTTP 404: the source moved or removed it"),
        ("other bytes", r"sent other bytes than the pinned version .*nothing was kept"),
        ("half", r"broke off \(\w+\): try again"),
    ],
)
def test_a_failed_download_leaves_nothing_and_says_why(
    registered: File, source: SimpleNamespace, cache: Path, send: str, said: str
) -> None:
    source.send = send
    with pytest.raises(DownloadError, match=said) as raised:
        store.fetch(registered)
    assert "TOOLKIT_DATA_DIR" in str(raised.value)
    assert files_below(cache) == []
    source.send = "content"
    assert store.fetch(registered).read_bytes() == source.content


def test_a_failed_download_does_not_spoil_a_corrupt_copy_further(
    registered: File, source: SimpleNamespace, cache: Path
) -> None:
    store.fetch(registered).write_bytes(b"old")
    source.send = "other bytes"
    with pytest.raises(DownloadError, match="other bytes"):
        store.fetch(registered)
    assert (cache / registered.local).read_bytes() == b"old"


def test_many_at_once_get_the_whole_file(
    registered: File, source: SimpleNamespace, cache: Path
) -> None:
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda _: store.fetch(registered), range(16)))
    assert {path.read_bytes() for path in paths} == {source.content}
    assert files_below(cache) == [registered.local]


def test_a_closed_port_is_said_at_once_and_remembered(
    registered: File, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:  # bound but not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setattr(store, "_HOST", f"http://127.0.0.1:{taken.getsockname()[1]}")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        for _ in range(2):
            with pytest.raises(DownloadError, match="cannot be reached: connect to the network"):
                store.fetch(registered)
    assert files_below(cache) == []


def test_a_host_that_never_answers_costs_its_patience_once(
    registered: File, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as silent:  # takes connections, sends nothing
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        monkeypatch.setattr(store, "_HOST", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setattr(store, "_PATIENCE", 0.2)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        start = time.monotonic()
        for _ in range(20):
            with pytest.raises(DownloadError, match="cannot be reached"):
                store.fetch(registered)
        assert time.monotonic() - start < 2.0


def test_a_cache_that_cannot_be_written_is_named(
    registered: File, source: SimpleNamespace, cache: Path
) -> None:
    cache.write_text("a file where the folder should be")
    with pytest.raises(DownloadError, match="cannot be written to the cache"):
        store.fetch(registered)


@pytest.mark.parametrize(("content", "said"), [(b"", "is empty"), (b"N,D,loss", "has 8 bytes")])
def test_another_version_in_the_folder_is_refused(
    registered: File, source: SimpleNamespace, folder: Path, content: bytes, said: str
) -> None:
    (folder / registered.local).write_bytes(content)
    with pytest.raises(DownloadError, match=rf"{said} and another sha256 than the pinned") as error:
        store.fetch(registered)
    assert str(folder / registered.local) in str(error.value)
    assert source.asked == []


def test_a_folder_that_is_not_there_is_named(
    registered: File, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(store.DATA_DIR, "/no/such/folder")
    with pytest.raises(DownloadError, match="'/no/such/folder', which is not a folder"):
        store.fetch(registered)


@pytest.mark.parametrize("set_folder", [True, False])
def test_a_local_file_is_never_downloaded(
    registered: File,
    source: SimpleNamespace,
    folder: Path,
    set_folder: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not set_folder:
        monkeypatch.delenv(store.DATA_DIR)
    local = dataclasses.replace(registered, path="")
    said = "has no file" if set_folder else "TOOLKIT_DATA_DIR is not set"
    with pytest.raises(DownloadError, match=f"cannot be downloaded, and .*{said}"):
        store.fetch(local)
    assert store.where(local) is None
    assert source.asked == []
