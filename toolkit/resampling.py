"""The bootstrap of pairs: which units are drawn and how often."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import pandas as pd

from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray, IntArray
from toolkit.numerics.counting import count_draws

__all__ = ["FEW_UNITS", "Resampling", "block_height", "check_resamples"]

FEW_UNITS = 10  # below this the draws of a bootstrap are mostly an opinion
BLOCK_VALUES = 500_000  # numbers held at a time: in the cache of a processor, whatever the table


@dataclass(frozen=True, slots=True)
class Resampling:
    """A bootstrap plan: units drawn with replacement, as many as there are.

    Attributes
    ----------
    unit : str
        What is drawn: "row", or the name of the cluster column.
    units : int
        Number of units.
    unit_of : array of int, shape (n,)
        Unit of every row.
    row_weights : array, shape (n,)
        Weights of the rows.
    resamples : int
        Number of resamples.
    drawn : array of int, shape (resamples, units), or Generator
        Positions of the drawn units, or the source to draw them from.
    """

    unit: str
    units: int
    unit_of: IntArray
    row_weights: FloatArray
    resamples: int
    drawn: IntArray | np.random.Generator

    @property
    def scheme(self) -> Literal["pairs"]:
        """What is drawn: units with all that belongs to them."""
        return "pairs"

    @classmethod
    def plan(
        cls,
        bootstrap: int | IntArray,
        clusters: pd.Series | None,
        row_weights: FloatArray,
        rng: np.random.Generator | int | None,
    ) -> Self:
        """Check what to draw.

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

        Raises
        ------
        DataError
            If there is one unit only, fewer than 2 resamples, or given positions do not fit.
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
        if isinstance(bootstrap, (int, np.integer)) and not isinstance(bootstrap, bool):
            source = np.random.default_rng(rng)
            return cls(unit, units, unit_of, row_weights, check_resamples(bootstrap), source)
        positions = _check_positions(bootstrap, units)
        return cls(unit, units, unit_of, row_weights, len(positions), positions)

    def blocks(self) -> Iterator[IntArray]:
        """Yield how often each unit is drawn, shape (some resamples, units), in order.

        The draws do not depend on the size of the blocks. A plan that draws can be run once.
        """
        height = block_height(max(self.units, self.row_weights.size))
        for first in range(0, self.resamples, height):
            count = min(height, self.resamples - first)
            if isinstance(self.drawn, np.random.Generator):
                positions = self.drawn.integers(0, self.units, (count, self.units), np.int32)
            else:
                positions = self.drawn[first : first + count]
            yield count_draws(positions, self.units)

    def weights(self, counts: IntArray) -> FloatArray:
        """Turn counts of units into weights of rows, shape (some resamples, n)."""
        if self.unit == "row":
            return counts * self.row_weights
        return counts[:, self.unit_of] * self.row_weights

    def samples(self) -> Iterator[tuple[FloatArray, FloatArray | None]]:
        """Yield the row weights of some resamples; the targets stay as they are (None)."""
        for counts in self.blocks():
            yield self.weights(counts), None


def block_height(width: int) -> int:
    """Rows of a table that is so wide to work on at a time."""
    return max(1, BLOCK_VALUES // width)


def check_resamples(number: object) -> int:
    """Return a number of resamples, at least 2; raise `DataError` for anything else."""
    if not isinstance(number, (int, np.integer)) or isinstance(number, bool) or number < 2:
        raise DataError(f"bootstrap must be 0 or at least 2 resamples; got {number!r}.")
    return int(number)


def _check_positions(given: object, units: int) -> IntArray:
    positions = np.asarray(given)
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
