import hashlib
import os
import re
from pathlib import Path

import pytest

import toolkit.datasets as datasets
from toolkit.datasets.registry import Entry, entries
from toolkit.tables import COLUMNS

FOLDER = os.environ.get("TOOLKIT_DATA_DIR")
with_data = pytest.mark.skipif(not FOLDER, reason="TOOLKIT_DATA_DIR is not set")
ALL = entries()
LYING = [name for name, entry in ALL.items() if entry.card.kind != "bundled"]


@pytest.mark.parametrize("name", ALL)
def test_an_entry_is_complete(name: str) -> None:
    entry = ALL[name]
    card = entry.card
    assert re.fullmatch(r"[a-z][a-z0-9_]{3,31}", name)
    assert card.rows > 0
    assert 0 < len(card.columns) <= card.width
    assert all(card.columns.values()), "every named column has a meaning"
    for text in (card.what, card.good_for, card.source, card.licence):
        assert text.strip() == text != ""
    assert all(note.endswith(".") for note in card.notes)
    if card.kind == "local":
        assert card.notes, "the card says what the file was made from"
    assert set(entry.recipe.factor) <= set(entry.recipe.rename) | set(COLUMNS)


@pytest.mark.parametrize("name", LYING)
def test_files_are_pinned(name: str) -> None:
    for file in ALL[name].files:
        assert re.fullmatch(r"[0-9a-f]{64}", file.sha256)
        assert file.bytes > 0
        assert not Path(file.local).is_absolute()
        assert ".." not in Path(file.local).parts
        if file.path:
            assert re.fullmatch(r"[\w.-]+/[\w.-]+", file.repo)
            assert re.fullmatch(r"[0-9a-f]{7,40}", file.commit)


def test_no_file_belongs_to_two_datasets() -> None:
    places = [file.local for entry in ALL.values() for file in entry.files]
    assert len(places) == len(set(places))


def test_labels_tell_the_files_of_a_dataset_apart() -> None:
    for name, entry in ALL.items():
        labels = [tuple(file.labels.items()) for file in entry.files]
        assert len(labels) == len(set(labels)), name


@with_data
def test_every_file_in_the_folder_is_registered() -> None:
    """Asked by content: the folder holds one file under two names."""
    pinned = {file.sha256 for entry in ALL.values() for file in entry.files}
    strays = [
        str(path)
        for path in Path(FOLDER or "").rglob("*")
        if path.is_file()
        and not path.name.startswith(("SOURCES", "LICENSE"))
        and hashlib.sha256(path.read_bytes()).hexdigest() not in pinned
    ]
    assert strays == []


@with_data
@pytest.mark.parametrize("name", LYING)
def test_files_have_the_size_and_the_table_the_shape_of_the_card(name: str) -> None:
    entry: Entry = ALL[name]
    for file in entry.files:
        assert (Path(FOLDER or "") / file.local).stat().st_size == file.bytes
    table = datasets.load(name)
    assert table.shape == (entry.card.rows, entry.card.width)
    assert table.columns.is_unique
    assert set(entry.card.columns) <= set(table.columns)
    assert list(table.index) == list(range(len(table)))
