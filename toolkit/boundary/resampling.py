"""The bootstrap of a boundary: rows, base models or families drawn with replacement."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from toolkit.errors import DataError, SmallSampleWarning
from toolkit.numerics.compiling import FloatArray, IntArray
from toolkit.numerics.counting import count_draws

__all__ = ["Resampling"]

FEW_UNITS = 10  # below this the draws of a bootstrap are mostly an opinion
BLOCK_VALUES = 100_000  # weights held at a time: in the cache of a processor


@dataclass(frozen=True, slots=True)
class Resampling:
    """Units to draw, as many as there are.

    Attributes
    ----------
    unit : str
        What is drawn: "row", or the name of the cluster column.
    units, resamples : int
        Number of units, and of draws.
    unit_of : array of int, shape (n,)
        Unit of every row.
    """

    unit: str
    units: int
    unit_of: IntArray
    resamples: int

    @classmethod
    def plan(cls, resamples: int, clusters: pd.Series | None, rows: int) -> Self:
        """Check what to draw.

        Raises
        ------
        DataError
            If there is one unit only, or fewer than 2 resamples.
        """
        if not isinstance(resamples, (int, np.integer)) or resamples < 2:
            raise DataError(f"bootstrap must be 0 or at least 2 resamples; got {resamples!r}.")
        if clusters is None:
            return cls("row", rows, np.arange(rows), int(resamples))
        unit_of, labels = pd.factorize(clusters, sort=True)
        unit = str(clusters.name)
        if len(labels) < 2:
            raise DataError(
                f"A bootstrap over {unit!r} needs at least 2 different units; there is "
                f"{len(labels)}. Fit without bootstrap, or resample a finer unit."
            )
        if len(labels) < FEW_UNITS:
            warnings.warn(
                f"Only {len(labels)} independent units ({unit}): bootstrap intervals are "
                "unreliable.",
                SmallSampleWarning,
                stacklevel=4,
            )
        return cls(unit, len(labels), unit_of.astype(np.int64), int(resamples))

    def blocks(
        self, row_weights: FloatArray, rng: np.random.Generator | int | None
    ) -> Iterator[FloatArray]:
        """Yield weights of the rows, shape (some resamples, n), in order.

        The draws do not depend on the size of the blocks.
        """
        source = np.random.default_rng(rng)
        height = max(1, BLOCK_VALUES // max(self.units, len(row_weights)))
        for begin in range(0, self.resamples, height):
            count = min(height, self.resamples - begin)
            drawn = source.integers(0, self.units, (count, self.units), np.int32)
            counts = count_draws(drawn, self.units)
            yield (counts if self.unit == "row" else counts[:, self.unit_of]) * row_weights
