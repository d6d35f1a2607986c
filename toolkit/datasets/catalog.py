"""List, describe and load datasets of every kind by name."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from toolkit import tables
from toolkit.datasets import store
from toolkit.datasets.cards import Card
from toolkit.datasets.registry import Entry, entries
from toolkit.datasets.shapes import build
from toolkit.errors import DataError, DownloadError

__all__ = ["SIMULATED", "Simulated", "available", "card", "listing", "load"]

BUNDLED = Path(__file__).parent / "bundled"


@dataclass(frozen=True, slots=True)
class Simulated:
    """A fixed example table with known truth: how it is made, and its card."""

    make: Callable[[], pd.DataFrame]
    card: Card


# Filled where the simulators are: name -> Simulated.
SIMULATED: dict[str, Simulated] = {}


def listing() -> pd.DataFrame:
    """List every dataset.

    Returns
    -------
    DataFrame
        One row per dataset: name, kind, rows, licence, here (whether `load` needs no
        download), good_for. Nothing is downloaded.

    Examples
    --------
    >>> from toolkit import datasets
    >>> table = datasets.list()
    >>> table.loc[table["name"] == "public_models", "here"].item()
    True
    """
    return pd.DataFrame(
        {
            "name": described.name,
            "kind": described.kind,
            "rows": described.rows,
            "licence": described.licence,
            "here": _here(described.name),
            "good_for": described.good_for,
        }
        for described in _cards().values()
    )


def card(name: str) -> Card:
    """Describe a dataset.

    Parameters
    ----------
    name : str
        A name that `datasets.list()` shows.

    Returns
    -------
    Card

    Raises
    ------
    DataError
        If there is no such dataset; close names are suggested.

    Examples
    --------
    >>> from toolkit import datasets
    >>> datasets.card("chinchilla_points").rows
    245
    """
    return _cards()[_known(name)]


def load(name: str) -> pd.DataFrame:
    """Load a dataset as a table.

    Parameters
    ----------
    name : str
        A name that `datasets.list()` shows.

    Returns
    -------
    DataFrame
        The columns and units are on the card. `attrs["dataset"]` holds the name, and
        `attrs["truth"]` the parameters that a simulated table was made from.

    Raises
    ------
    DataError
        If there is no such dataset; close names are suggested.
    DownloadError
        If a registered file is missing, out of reach, corrupt or not the pinned version.

    Examples
    --------
    >>> from toolkit import datasets
    >>> models = datasets.load("public_models")
    >>> {"model", "params", "tokens", "flops", "mmlu"} <= set(models)
    True
    """
    if _known(name) in SIMULATED:
        table = SIMULATED[name].make()
        table.attrs["truth"] = dict(SIMULATED[name].card.truth)
    else:
        entry = entries()[name]
        bundled = entry.card.kind == "bundled"
        paths = [BUNDLED / f.local if bundled else store.fetch(f) for f in entry.files]
        table = build(entry, paths)
    _check_numbers(table)
    table.attrs["dataset"] = name
    return table


def available(name: str) -> bool:
    """Tell whether `load` will work, downloading what is missing.

    Parameters
    ----------
    name : str
        A name that `datasets.list()` shows.

    Returns
    -------
    bool
        True for bundled and simulated data, for local data that `TOOLKIT_DATA_DIR` holds, and
        for registered data that is there, cached, or could be downloaded just now. A host out
        of reach is asked once per process.

    Raises
    ------
    DataError
        If there is no such dataset; close names are suggested.

    Examples
    --------
    >>> from toolkit import datasets
    >>> datasets.available("public_models")
    True
    """
    if _known(name) in SIMULATED or entries()[name].card.kind == "bundled":
        return True
    try:
        for file in entries()[name].files:
            store.fetch(file)
    except DownloadError:
        return False
    return True


def _check_numbers(table: pd.DataFrame) -> None:
    """Hold every count, loss and score that is there to the rules of the shared vocabulary."""
    for name in table.columns:
        column = tables.COLUMNS.get(name)
        if column and column.kind != "label" and table[name].notna().any():
            tables.check(table[[name]].dropna(), [name])


def _cards() -> Mapping[str, Card]:
    found = {name: entry.card for name, entry in entries().items()}
    return found | {name: simulated.card for name, simulated in SIMULATED.items()}


def _known(name: str) -> str:
    names = _cards()
    if name in names:
        return name
    close = difflib.get_close_matches(str(name), names, n=3, cutoff=0.5)
    meant = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    raise DataError(f"No dataset {name!r}.{meant} datasets.list() shows all {len(names)}.")


def _here(name: str) -> bool:
    entry: Entry | None = entries().get(name)
    if entry is None or entry.card.kind == "bundled":
        return True
    try:
        return all(store.where(file) is not None for file in entry.files)
    except DownloadError:
        return False
