"""Ways to part runs into training and test runs so that no independent unit is in both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit import tables
from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray, IntArray
from toolkit.scaling.allocation import FLOPS_PER_PARAM_TOKEN

__all__ = ["ROW", "Runs", "Split", "group_splits", "largest_split", "rolling_splits"]

ROW = "row"  # the unit where rows are independent
TIED = 1 + 1e-6  # positions within this factor are equal: budgets differ in their last digits
STEP = 0.5  # powers of ten between the levels of a rolling split

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Split:
    """A parting of rows.

    Attributes
    ----------
    name : str
        What sets the test rows apart.
    train, test : array of bool, shape (n,)
        Rows to fit and rows to predict. Rows in neither belong to a unit that straddles.
    """

    name: str
    train: BoolArray
    test: BoolArray


@dataclass(frozen=True, slots=True)
class Runs:
    """A table of runs with the position and the independent unit of every row.

    Attributes
    ----------
    table : DataFrame
        All columns given, rows numbered from 0; with ``flops`` when positions are ``6 N D``.
    target, by : str
        Columns that are predicted and that say how large a run is.
    observed, position : array, shape (n,)
        Values of the two.
    unit : str
        Column of the independent unit, or "row".
    unit_of : array of int, shape (n,)
        Number of the unit of every row.
    units : Index
        Labels of the units.
    """

    table: pd.DataFrame
    target: str
    by: str
    observed: FloatArray
    position: FloatArray
    unit: str
    unit_of: IntArray
    units: pd.Index

    @classmethod
    def read(
        cls,
        runs: pd.DataFrame | Mapping[str, npt.ArrayLike],
        by: str,
        target: str,
        cluster: str | None,
        group: str | None = None,
    ) -> Self:
        """Check target, positions, units and groups; the laws check their own columns later.

        Without `cluster`, the column ``run`` names the unit where some run has several rows:
        its checkpoints must not be in both parts of a split.
        """
        frame = _with_compute(runs) if by == "flops" else _frame(runs)
        named = [name for name in (by, target, cluster, group) if name is not None]
        checked = tables.check(frame, list(dict.fromkeys(named)))
        for name in (by, target):
            checked[name] = tables.check_positive(checked[name], name)
        if cluster is None and "run" in frame and frame["run"].duplicated().any():
            cluster = "run"
            tables.check(frame, [cluster])
        labels = pd.Series(frame.index) if cluster is None else frame[cluster]
        unit_of, units = pd.factorize(labels)
        return cls(
            table=frame,
            target=target,
            by=by,
            observed=checked[target].to_numpy(),
            position=checked[by].to_numpy(),
            unit=ROW if cluster is None else cluster,
            unit_of=unit_of,
            units=pd.Index(units),
        )

    @property
    def cluster(self) -> str | None:
        """Column of the unit, as `fit` takes it."""
        return None if self.unit == ROW else self.unit

    @property
    def largest(self) -> FloatArray:
        """Largest position of each unit, shape (units,)."""
        largest = np.zeros(len(self.units))
        np.maximum.at(largest, self.unit_of, self.position)
        return largest


def _frame(runs: pd.DataFrame | Mapping[str, npt.ArrayLike]) -> pd.DataFrame:
    """Return all columns of a table, rows numbered from 0; each law checks what it needs."""
    if isinstance(runs, pd.DataFrame):
        return runs.reset_index(drop=True)
    tables.check(runs, [])  # refuses what is no table, and columns of unequal length
    return pd.DataFrame(
        {name: pd.Series(values).reset_index(drop=True) for name, values in runs.items()}
    )


def _with_compute(runs: pd.DataFrame | Mapping[str, npt.ArrayLike]) -> pd.DataFrame:
    """Add ``6 N D`` where the table does not give its compute."""
    frame = _frame(runs)
    if "flops" in frame or not {"params", "tokens"} <= set(frame):
        return frame
    counts = tables.check(frame, ["params", "tokens"])  # as float64: 6 N D overflows integers
    return frame.assign(flops=FLOPS_PER_PARAM_TOKEN * counts["params"] * counts["tokens"])


def largest_split(runs: Runs, share: float | None, above: float | None) -> Split:
    """Hold out what lies above a position, or the share of the units that reach furthest."""
    if share is not None and above is not None:
        raise DataError("Give share or above, not both: each says which runs are held out.")
    if above is None:
        above = _cut(runs.largest, 0.2 if share is None else share)
    elif not np.isfinite(above):
        raise DataError(f"above must be a value of {runs.by!r}; got {above!r}.")
    split = _at(runs, above, None)
    low, high = runs.position.min(), runs.position.max()
    if not split.test.any() or not split.train.any():
        raise DataError(
            f"Nothing is left to {'fit' if split.test.any() else 'predict'} with the cut at "
            f"{runs.by} = {above:.4g}; the runs span {low:.4g} to {high:.4g}, and no unit "
            f"({runs.unit}) may be on both sides."
        )
    return split


def _cut(largest: FloatArray, share: float) -> float:
    """Position above which a share of the units ends; units that tie stay together."""
    if not 0 < share < 1:
        raise DataError(f"share must lie between 0 and 1, for example 0.2; got {share!r}.")
    ordered = np.sort(largest)
    between = np.flatnonzero(ordered[1:] > ordered[:-1] * TIED)
    if not between.size:
        raise DataError("All runs are equally large; there is no larger run to hold out.")
    held_out = ordered.size - 1 - between
    return float(ordered[between[np.argmin(np.abs(held_out - share * ordered.size))]])


def group_splits(runs: Runs, group: str) -> list[Split]:
    """Hold out each value of a column in turn; units that lie in several groups never straddle."""
    labels = runs.table[group]
    groups = pd.unique(labels)
    if len(groups) < 2:
        raise DataError(f"Column {group!r} holds one group; at least 2 are needed.")
    splits = []
    for label in groups:
        test = (labels == label).to_numpy(dtype=bool)
        touched = np.bincount(runs.unit_of, weights=test) > 0
        splits.append(Split(f"{group} {label}", ~touched[runs.unit_of], test))
    return splits


def rolling_splits(
    runs: Runs, levels: npt.ArrayLike | None, horizon: float | None = None
) -> list[Split]:
    """Train on all units that end at or below a level, predict the runs above it.

    Parameters
    ----------
    runs : Runs
    levels : array_like, optional
        Levels of the position; every half power of ten by default.
    horizon : float, optional
        Powers of ten above the level that are predicted; all by default.
    """
    if horizon is not None and not 0 < horizon < np.inf:
        raise DataError(f"horizon must be a positive number of powers of ten; got {horizon!r}.")
    splits: list[Split] = []
    for level in _levels(runs.position, levels):
        split = _at(runs, level, horizon)
        same = splits and (splits[-1].train == split.train).all()
        if split.train.any() and split.test.any() and not same:
            splits.append(split)
    if not splits:
        low, high = runs.position.min(), runs.position.max()
        raise DataError(
            f"No level of {runs.by} leaves runs to fit at or below it and runs to predict above; "
            f"the runs span {low:.4g} to {high:.4g}, and no unit ({runs.unit}) may be on both "
            "sides. Give levels, or a longer horizon."
        )
    return splits


def _levels(position: FloatArray, levels: Any) -> Sequence[float]:
    if levels is None:
        low, high = np.log10(position.min()), np.log10(position.max())
        steps = np.arange(np.floor(low / STEP), np.ceil(high / STEP) + 1)
        return list(10.0 ** (STEP * steps))
    given = np.unique(np.atleast_1d(np.asarray(levels, dtype=np.float64)))
    if not (given.size and np.isfinite(given).all() and (given > 0).all()):
        raise DataError("levels must be positive numbers, at least one.")
    return list(given)


def _at(runs: Runs, level: float, horizon: float | None) -> Split:
    within = TIED * level
    reach = np.inf if horizon is None else within * 10.0**horizon
    train = (runs.largest <= within)[runs.unit_of]
    test = (runs.position > within) & (runs.position <= reach)
    return Split(f"{runs.by} above {level:.3g}", train, test)
