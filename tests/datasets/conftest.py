"""A folder, a cache and a source of registered files, all on this machine and for one test."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from toolkit.datasets import store
from toolkit.datasets.registry import File

# Training is tested where the extra `suite` is installed; elsewhere there is nothing to skip.
collect_ignore = [] if find_spec("torch") else ["test_pocket_suite_training.py"]

CONTENT = b"N,D,loss\n1e8,2e9,3.5\n2e8,4e9,3.1\n"


@pytest.fixture
def registered() -> File:
    return File(
        local="owner+name/two runs.csv",
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        bytes=len(CONTENT),
        repo="owner/name",
        commit="0123456789abcdef0123456789abcdef01234567",
        path="data/two runs.csv",
    )


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set an empty cache and no TOOLKIT_DATA_DIR."""
    monkeypatch.delenv(store.DATA_DIR, raising=False)
    monkeypatch.setattr(store, "_cache_dir", lambda: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def folder(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set a TOOLKIT_DATA_DIR with the folder owner+name, still empty."""
    place = tmp_path / "data"
    (place / "owner+name").mkdir(parents=True)
    monkeypatch.setenv(store.DATA_DIR, str(place))
    return place


@pytest.fixture
def source(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """Run a server on loopback that the downloads go to; `send` says what it does wrong."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(301)
            self.end_headers()

        def do_GET(self) -> None:
            found.asked.append(self.path)
            if found.send == "missing":
                self.send_error(404)
                return
            body = b"<html>moved</html>" if found.send == "other bytes" else CONTENT
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[:10] if found.send == "half" else body)

        def log_message(self, format: str, *args: object) -> None:
            """Keep the test output quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    address = f"http://127.0.0.1:{server.server_port}"
    found = SimpleNamespace(address=address, send="content", asked=[], content=CONTENT)
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    serving.start()
    monkeypatch.setattr(store, "_HOST", found.address)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield found
    server.shutdown()
    serving.join()
    server.server_close()
