"""How often each unit was drawn, and how many of many rows differ."""

import numpy as np
import numpy.typing as npt
from numba import int32, int64, void

from toolkit.numerics.compiling import FloatArray, IntArray, compile_once, kernel

__all__ = ["count_draws", "fingerprints"]

_SIGNATURE = void(int32[:, ::1], int64[:, ::1])


@kernel
def _count(drawn: npt.NDArray[np.int32], counts: IntArray) -> None:
    for k in range(len(drawn)):
        for at in drawn[k]:
            counts[k, at] += 1


def count_draws(drawn: npt.NDArray[np.integer], units: int) -> IntArray:
    """Count how often each unit stands in each row.

    Parameters
    ----------
    drawn : array of int, shape (m, draws)
        Positions of the drawn units, from 0 to ``units - 1``.
    units : int
        Number of units, below 2**31.

    Returns
    -------
    array of int, shape (m, units)

    Examples
    --------
    >>> import numpy as np
    >>> count_draws(np.array([[0, 2, 2], [1, 1, 1]]), 3).tolist()
    [[1, 0, 2], [0, 3, 0]]
    """
    if drawn.size and not (drawn.min() >= 0 and drawn.max() < units):
        raise ValueError(f"Positions must lie from 0 to {units - 1}.")
    compile_once(_count, _SIGNATURE)
    counts = np.zeros((len(drawn), units), dtype=np.int64)
    _count(np.require(drawn, np.int32, ["C", "W"]), counts)
    return counts


def fingerprints(rows: FloatArray) -> npt.NDArray[np.uint64]:
    """Return one number per row: equal for equal rows, else equal with a chance near 2**-60.

    A weighted sum of the bits with fixed random weights; much quicker than to compare rows.

    Examples
    --------
    >>> import numpy as np
    >>> keys = fingerprints(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]]))
    >>> bool(keys[0] == keys[2]), bool(keys[0] == keys[1])
    (True, False)
    """
    bits = np.ascontiguousarray(rows).view(np.uint64)
    mixed = bits ^ (bits >> np.uint64(29))  # small whole numbers differ in their high bits only
    factors = np.random.default_rng(0).integers(0, 2**64, rows.shape[1], np.uint64)
    keys: npt.NDArray[np.uint64] = mixed @ (factors | np.uint64(1))
    return keys
