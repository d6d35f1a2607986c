"""The registered and bundled datasets, as data: one TOML file for each part of the field.

An entry names its files with commit, sha256 and size, says how they become one table (`read`),
and carries the text of its card. Files without an upstream `path` cannot be downloaded.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from toolkit.datasets.cards import Card, Kind
from toolkit.tables import COLUMNS

__all__ = ["Entry", "File", "Recipe", "entries"]

PARTS = ("bundled", "scaling", "observational", "variance")


@dataclass(frozen=True, slots=True)
class File:
    """One file of a dataset.

    Attributes
    ----------
    local : str
        Place below `TOOLKIT_DATA_DIR`, and below the cache; for bundled data, file name.
    sha256 : str
        Digest of the pinned version; empty for bundled data.
    bytes : int
        Size of the pinned version; 0 for bundled data.
    repo, commit, path : str
        Where it lies upstream; `path` is empty for a file that exists locally only.
    labels : mapping
        Columns that tell this file's rows from those of the dataset's other files.
    options : mapping
        What the shape needs to know about this file.
    """

    local: str
    sha256: str = ""
    bytes: int = 0
    repo: str = ""
    commit: str = ""
    path: str = ""
    labels: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the files of a dataset become one table.

    Attributes
    ----------
    shape : str
        Function of `toolkit.datasets.shapes` that reads the files; "stack" puts them one below
        the other with their labels.
    rename : mapping of str to str
        Our name to the source's name.
    factor : mapping of str to float
        Column (our name) to the factor that turns it into counts, FLOPs or fractions.
    drop : sequence of str
        Columns (source's names) without information: row numbers, empty columns.
    melt : mapping
        For shape "melt": `keep` (columns that stay), `variable` and `value` (names of the two
        new columns), `strip` (ending taken off the old column names).
    """

    shape: str = "stack"
    rename: Mapping[str, str] = field(default_factory=dict)
    factor: Mapping[str, float] = field(default_factory=dict)
    drop: Sequence[str] = ()
    melt: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Entry:
    """A dataset: its card, its files and how to read them."""

    card: Card
    files: tuple[File, ...]
    recipe: Recipe


@cache
def entries() -> Mapping[str, Entry]:
    """Return every dataset that lies in files, by name."""
    found: dict[str, Entry] = {}
    for part in PARTS:
        text = resources.files(__name__).joinpath(f"{part}.toml").read_text(encoding="utf-8")
        for name, raw in tomllib.loads(text).items():
            found[name] = _entry(name, raw)
    return found


def _entry(name: str, raw: Mapping[str, Any]) -> Entry:
    shared = {key: raw[key] for key in ("repo", "commit") if key in raw}
    files = tuple(File(**{**shared, **file}) for file in raw["files"])
    columns = {
        column: text or f"{COLUMNS[column].meaning} ({COLUMNS[column].unit})".removesuffix(" ()")
        for column, text in raw["columns"].items()
    }
    card = Card(
        name=name,
        kind=_kind(raw, files),
        what=raw["what"],
        good_for=raw["good_for"],
        rows=raw["rows"],
        width=raw["width"],
        columns=columns,
        source=raw.get("source") or f"https://github.com/{raw['repo']} at {raw['commit'][:7]}",
        licence=raw["licence"],
        notes=tuple(raw.get("notes", ())),
    )
    return Entry(card, files, Recipe(**raw.get("read", {})))


def _kind(raw: Mapping[str, Any], files: tuple[File, ...]) -> Kind:
    if raw.get("bundled", False):
        return "bundled"
    return "registered" if all(file.path for file in files) else "local"
