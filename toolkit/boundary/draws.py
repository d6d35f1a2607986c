"""What resampled curves are turned into: levels that do not cross, percentile bounds."""

import numpy as np

from toolkit.numerics.compiling import FloatArray
from toolkit.results import check_level

__all__ = ["quantile_bounds", "sorted_levels"]


def sorted_levels(values: FloatArray) -> FloatArray:
    """Sort the levels of each draw at each point; levels that were not drawn stay NaN."""
    drawn = ~np.isnan(values[0]).all(axis=-1)
    arranged = values.copy()
    arranged[:, drawn] = np.sort(values[:, drawn], axis=1)
    return arranged


def quantile_bounds(draws: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Percentile bounds over the first axis; NaN where fewer than two draws have a value."""
    check_level(level)
    tails = [(1 - level) / 2, (1 + level) / 2]
    enough = (~np.isnan(draws)).sum(axis=0) >= 2
    usable = np.where(enough, draws, 0.0)
    # Not interpolated: between a finite number and infinity there is nothing.
    low, high = np.nanquantile(usable, tails, axis=0, method="inverted_cdf")
    return np.where(enough, low, np.nan), np.where(enough, high, np.nan)
