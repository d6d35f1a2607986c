"""A samples file is read line by line: memory follows the answers, never the lines."""

import gc
import json
import sys
import tracemalloc
from types import SimpleNamespace

import pytest

from toolkit.readers import collector, files, lm_eval


def write(path, lines, doc_bytes):
    rest = {"doc": {"question": "x" * doc_bytes}, "resps": [["a"]], "filter": "none"}
    with path.open("w") as file:
        for number in range(lines):
            line = {"doc_id": number, **rest, "metrics": ["acc"], "acc": number % 2}
            file.write(json.dumps(line) + "\n")
    return path


def peak(path):
    """Return the most memory, in bytes, that Python objects and arrays held at one time."""
    gc.collect()
    tracemalloc.start()
    try:
        assert lm_eval(path).table["score"].mean() == pytest.approx(0.5, abs=0.01)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(collector, "CHUNK_ROWS", 500)
    short = write(tmp_path / "samples_short.jsonl", 1000, doc_bytes=2000)
    long = write(tmp_path / "samples_long.jsonl", 5000, doc_bytes=2000)
    peak(short)  # what is imported on first use stays
    grown = (peak(long) - peak(short)) / 4000
    assert grown < 300  # bytes per line of 2 kB: the arrays of the table and of its checks


def test_chunks_make_one_table(tmp_path, monkeypatch):
    path = write(tmp_path / "samples_task.jsonl", 101, doc_bytes=10)
    whole = lm_eval(path).table
    monkeypatch.setattr(collector, "CHUNK_ROWS", 10)
    assert lm_eval(path).table.equals(whole)
    assert whole["item"].tolist() == [str(n) for n in range(101)]


@pytest.mark.parametrize(
    ("terminal", "shell", "hidden"),
    [
        (False, None, True),
        (True, None, False),
        (False, SimpleNamespace(), True),
        (False, SimpleNamespace(kernel="notebook"), False),
    ],
)
def test_a_bar_counts_the_bytes_for_who_watches(tmp_path, monkeypatch, terminal, shell, hidden):
    made = []

    class Bar(files.tqdm):
        def __init__(self, **options):
            super().__init__(**options | {"disable": True})
            made.append((options["total"], options["disable"], self))
            self.seen = 0

        def update(self, n=1):
            self.seen += n

    monkeypatch.setattr(files, "tqdm", Bar)
    monkeypatch.setattr(files.sys.stderr, "isatty", lambda: terminal, raising=False)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    path = write(tmp_path / "samples_task.jsonl", 10, doc_bytes=10)
    lm_eval(path)
    [(total, disabled, bar)] = made
    assert total == bar.seen == path.stat().st_size
    assert disabled == hidden
