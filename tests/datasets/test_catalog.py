from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import toolkit.datasets as datasets
from toolkit.datasets import catalog
from toolkit.datasets.cards import Card
from toolkit.datasets.registry import Entry, File, Recipe
from toolkit.errors import DataError, DownloadError


def described(name: str, kind: str, **more: object) -> Card:
    facts = {
        "what": "runs",
        "good_for": "fits",
        "rows": 2,
        "width": 3,
        "columns": {"params": "count", "tokens": "count", "loss": "nats per token"},
        "source": "somewhere",
        "licence": "MIT",
    }
    return Card(name=name, kind=kind, **(facts | more))  # type: ignore[arg-type]


@pytest.fixture
def two_runs(registered: File, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Entry:
    """Set a registry that holds one dataset of one small file."""
    rename = {"params": "N", "tokens": "D"}
    entry = Entry(described("two_runs", "registered"), (registered,), Recipe(rename=rename))
    monkeypatch.setattr(catalog, "entries", lambda: {"two_runs": entry})
    return entry


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    def make() -> pd.DataFrame:
        loss = 2.0 + np.random.default_rng(7).normal(scale=0.01, size=2)
        return pd.DataFrame({"params": [1e8, 2e8], "tokens": [2e9, 4e9], "loss": loss})

    card = described("toy_runs", "simulated", truth={"E": 1.7, "alpha": 0.34})
    monkeypatch.setitem(catalog.SIMULATED, "toy_runs", catalog.Simulated(make, card))


def listed_as_here(name: str) -> bool:
    return bool(datasets.list().set_index("name").loc[name, "here"])


def test_a_registered_table_is_downloaded_and_renamed(
    two_runs: Entry, source: SimpleNamespace
) -> None:
    assert not listed_as_here("two_runs")
    assert datasets.available("two_runs")
    assert listed_as_here("two_runs")
    table = datasets.load("two_runs")
    assert list(table) == ["params", "tokens", "loss"]
    assert table["params"].tolist() == [1e8, 2e8]
    assert table.dtypes.map(str).tolist() == ["float64"] * 3
    assert table.attrs == {"dataset": "two_runs"}
    assert len(source.asked) == 1


def test_what_cannot_be_had_is_not_available_and_load_says_why(
    two_runs: Entry, source: SimpleNamespace
) -> None:
    source.send = "missing"
    assert not datasets.available("two_runs")
    with pytest.raises(DownloadError, match="HTTP 404"):
        datasets.load("two_runs")


def test_a_folder_that_is_not_there_makes_nothing_available(
    two_runs: Entry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLKIT_DATA_DIR", "/no/such/folder")
    assert not datasets.available("two_runs")
    assert not listed_as_here("two_runs")
    with pytest.raises(DownloadError, match="not a folder"):
        datasets.load("two_runs")


def test_numbers_that_break_the_rules_are_refused(
    registered: File, two_runs: Entry, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A registry that says millions where the file has counts must not pass."""
    recipe = Recipe(rename={"params": "N"}, factor={"params": 1e-8})
    entry = Entry(two_runs.card, two_runs.files, recipe)
    monkeypatch.setattr(catalog, "entries", lambda: {"two_runs": entry})
    (folder / registered.local).write_bytes(b"N,D,loss\n1e8,2e9,3.5\n2e8,4e9,3.1\n")
    with pytest.raises(DataError, match=r"'params': 2 of 2 rows .*outside 100"):
        datasets.load("two_runs")


def test_a_simulated_table_is_fixed_and_carries_its_truth(simulated: None) -> None:
    first, second = datasets.load("toy_runs"), datasets.load("toy_runs")
    pd.testing.assert_frame_equal(first, second)
    assert first.attrs == {"dataset": "toy_runs", "truth": {"E": 1.7, "alpha": 0.34}}
    assert datasets.available("toy_runs")
    assert "E = 1.7, alpha = 0.34" in repr(datasets.card("toy_runs"))
    shown = datasets.list().set_index("name").loc["toy_runs"]
    assert (shown["kind"], bool(shown["here"])) == ("simulated", True)


@pytest.mark.parametrize("ask", [datasets.load, datasets.card, datasets.available])
def test_an_unknown_name_suggests_close_ones(ask: object) -> None:
    with pytest.raises(
        DataError, match=r"No dataset 'public_model'\. Did you mean 'public_models'"
    ):
        ask("public_model")  # type: ignore[operator]
    with pytest.raises(DataError, match=r"No dataset 'xyz'\. datasets\.list\(\) shows all \d+"):
        ask("xyz")  # type: ignore[operator]
    with pytest.raises(DataError, match="No dataset None"):
        ask(None)  # type: ignore[operator]


def test_the_list_shows_every_kind_without_reading_a_file(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "build", None)
    table = datasets.list()
    assert list(table) == ["name", "kind", "rows", "licence", "here", "good_for"]
    assert table["name"].is_unique
    assert {"bundled", "registered", "local"} <= set(table["kind"])
    here = table.set_index("name")["here"]
    assert here["public_models"]
    assert not here["chinchilla_points"]


def test_a_card_reads_as_text_and_html() -> None:
    card = described("a<b", "registered", notes=("mind 1 < 2",), width=5)
    text, page = repr(card), card._repr_html_()
    assert text.splitlines()[:2] == ["a<b: runs", "========="]
    assert "rows x columns  2 x 5" in text
    assert "  tokens  count" in text
    assert "- mind 1 < 2\n- 2 more columns, under the names of the source." in text
    assert "truth" not in text
    assert "a&lt;b" in page
    assert "mind 1 &lt; 2" in page
    assert "<script" not in page
