"""Starting points that fill a box evenly, the same every time."""

from collections.abc import Sequence

import numpy as np
from scipy.stats import qmc

from toolkit.numerics.compiling import FloatArray

__all__ = ["floor_and_rest", "spread"]


def spread(ranges: Sequence[tuple[float, float]], count: int) -> FloatArray:
    """Return points of a Halton sequence, without its first, the corner, shape (count, k).

    Parameters
    ----------
    ranges : sequence of (lowest, highest)
        One for each of the k coordinates.
    count : int
        Number of points.

    Examples
    --------
    >>> from toolkit.scaling.laws.starts import spread
    >>> spread([(0.0, 1.0), (0.0, 3.0)], 2).round(3).tolist()
    [[0.5, 1.0], [0.25, 2.0]]
    """
    lowest, highest = zip(*ranges, strict=True)
    points: FloatArray = qmc.Halton(len(ranges), scramble=False).random(count + 1)[1:]
    return qmc.scale(points, lowest, highest)


def floor_and_rest(y: FloatArray, share: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log of a floor that is a share of the lowest loss, and what the mean loss has above it.

    Parameters
    ----------
    y : array, shape (n,)
        Log losses.
    share : array, shape (k,)
        Shares, in (0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> from toolkit.scaling.laws.starts import floor_and_rest
    >>> floor, rest = floor_and_rest(np.log([2.0, 2.0]), np.array([0.5]))
    >>> np.exp(floor).round(6).tolist(), rest.round(6).tolist()
    ([1.0], [1.0])
    """
    log_floor: FloatArray = np.min(y) + np.log(share)
    return log_floor, np.exp(np.mean(y)) - np.exp(log_floor)
