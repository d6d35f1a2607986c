"""Bootstrap weights: which units are drawn, how often, and how many draws are distinct."""

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd

from toolkit.errors import DataError, SmallSampleWarning
from toolkit.numerics.compiling import FloatArray, IntArray

__all__ = ["Resamples", "draw_resamples"]

FEW_UNITS = 10  # below this a bootstrap interval is mostly an opinion


@dataclass(frozen=True, slots=True)
class Resamples:
    """Counts of a bootstrap.

    Attributes
    ----------
    weights : array, shape (resamples, n)
        How often each row is drawn, times its own weight.
    unit : str
        What was drawn: "row", or the name of the cluster column.
    units : int
        Number of units.
    distinct : int
        Number of different resamples.
    """

    weights: FloatArray
    unit: str
    units: int
    distinct: int


def draw_resamples(
    bootstrap: int | IntArray,
    clusters: pd.Series | None,
    row_weights: FloatArray,
    rng: np.random.Generator | int | None,
) -> Resamples:
    """Draw units with replacement, or use the draws given.

    Parameters
    ----------
    bootstrap : int or array of int, shape (resamples, units)
        Number of resamples, or the positions of the drawn units of each.
    clusters : Series, optional
        The unit of every row; rows are the units when missing.
    row_weights : array, shape (n,)
        Weights of the rows.
    rng : Generator, int or None
        Source of the draws when their number is given.

    Returns
    -------
    Resamples

    Raises
    ------
    DataError
        If there is one unit only, fewer than 2 resamples, or given positions do not fit the units.
    """
    if clusters is None:
        unit_of, units, unit = np.arange(row_weights.size), row_weights.size, "row"
    else:
        unit_of, labels = pd.factorize(clusters)
        units, unit = len(labels), str(clusters.name)
    if units < 2:
        raise DataError(
            f"A bootstrap over {unit!r} needs at least 2 different units; there is {units}. "
            "Fit without bootstrap, or resample a finer unit."
        )
    if units < FEW_UNITS:
        warnings.warn(
            f"Only {units} independent units ({unit}): bootstrap intervals are unreliable.",
            SmallSampleWarning,
            stacklevel=3,
        )
    positions = _positions(bootstrap, units, rng)
    row_start = units * np.arange(len(positions))[:, None]
    counts = np.bincount((positions + row_start).ravel(), minlength=units * len(positions))
    counts = counts.reshape(len(positions), units)
    distinct = len({row.tobytes() for row in counts.astype(np.uint16)})
    return Resamples(counts[:, unit_of] * row_weights, unit, units, distinct)


def _positions(
    bootstrap: int | IntArray, units: int, rng: np.random.Generator | int | None
) -> IntArray:
    if isinstance(bootstrap, (int, np.integer)) and not isinstance(bootstrap, bool):
        if bootstrap < 2:
            raise DataError(f"bootstrap must be 0 or at least 2 resamples; got {bootstrap}.")
        generator = np.random.default_rng(rng)
        return generator.integers(0, units, size=(int(bootstrap), units))
    positions = np.asarray(bootstrap)
    if positions.ndim != 2 or not np.issubdtype(positions.dtype, np.integer):
        raise DataError(
            "bootstrap is a number of resamples or integer positions (resamples, units)."
        )
    if len(positions) < 2 or positions.shape[1] != units:
        raise DataError(
            f"bootstrap positions have the shape {positions.shape}; needed are at least 2 "
            f"resamples of {units} units each, as many as there are."
        )
    if not (positions.min() >= 0 and positions.max() < units):
        raise DataError(f"Resample positions must lie from 0 to {units - 1}.")
    return positions
