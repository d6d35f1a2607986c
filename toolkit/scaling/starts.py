"""Starting points that fill a box evenly, the same every time."""

from collections.abc import Sequence

from scipy.stats import qmc

from toolkit.numerics.compiling import FloatArray

__all__ = ["spread"]


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
    >>> from toolkit.scaling.starts import spread
    >>> spread([(0.0, 1.0), (0.0, 3.0)], 2).round(3).tolist()
    [[0.5, 1.0], [0.25, 2.0]]
    """
    lowest, highest = zip(*ranges, strict=True)
    points: FloatArray = qmc.Halton(len(ranges), scramble=False).random(count + 1)[1:]
    return qmc.scale(points, lowest, highest)
