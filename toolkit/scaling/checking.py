"""Whether a table of runs can support the fit of a law."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from toolkit import tables
from toolkit.errors import DataError
from toolkit.scaling.law import Law

__all__ = ["check_runs"]

SMALLEST_STUDY = {"params": 1e5, "tokens": 1e6}  # a study whose largest run is smaller: wrong unit


def check_runs(
    law: Law, runs: Any, target: str, weights: str | None, cluster: str | None, free: int
) -> pd.DataFrame:
    """Check runs, and that they can determine a law with so many free parameters.

    Raises
    ------
    DataError
        If a value makes no sense, rows are repeated without `cluster`, a column never changes or
        is in another unit, or there are too few different points.
    """
    needed = [*law.columns, target]
    extra = [name for name in (weights, cluster) if name is not None]
    table = tables.check(runs, list(dict.fromkeys([*needed, *extra])))
    for name in table.columns:
        known = name in tables.COLUMNS and name not in (target, weights)
        if not known and name not in ("loss", cluster):
            table[name] = tables.check_positive(table[name], name)
    _check_spread(law, table, free)
    if cluster is None:
        _check_repeats(table, needed)
    return table


def _check_repeats(table: pd.DataFrame, columns: list[str]) -> None:
    if _different(table, columns) < len(table):
        tables.check_keys(
            table,
            columns,
            "Name the run of each row in a column and pass cluster='run' (repeats of one run are "
            "not independent), or keep one row of each with a column of weights.",
        )


def _check_spread(law: Law, table: pd.DataFrame, free: int) -> None:
    """Refuse columns that never change or are in another unit, and too few points."""
    for column in law.columns:
        values = table[column].to_numpy()
        if np.all(values == values[0]):
            raise DataError(
                f"Column {column!r} has the same value ({values[0]:g}) in every row, so its "
                f"terms cannot be told from the others. Add runs that vary it, or fit a law "
                f"without it."
            )
        if values.max() < SMALLEST_STUDY.get(column, 0.0):
            raise DataError(
                f"Column {column!r}: the largest value is {values.max():g}. Counts are "
                f"absolute; if these are millions or billions, use "
                f"tables.to_counts(table, {column}='millions')."
            )
    different = _different(table, law.columns)
    if different <= free:
        raise DataError(
            f"The {law.title} has {free} parameters to fit; {different} different points "
            f"({', '.join(law.columns)}) cannot determine them. At least {free + 1} are needed."
        )


def _different(table: pd.DataFrame, columns: Sequence[str]) -> int:
    """Count different rows; hashing bytes is much quicker than pandas on a small table."""
    rows = np.column_stack([table[name].to_numpy(dtype=np.float64) for name in columns])
    return len({row.tobytes() for row in rows})
