"""What samples can show: the smallest visible pass rate, and how many samples show a rate."""

import numpy as np
import numpy.typing as npt

from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray
from toolkit.results import check_level

__all__ = ["pass_rate_until", "samples_needed", "smallest_visible"]


def smallest_visible(samples: npt.ArrayLike, *, confidence: float = 0.95) -> FloatArray:
    """Smallest pass rate that shows at least one pass with some confidence.

    It is also the upper confidence bound of the rate when no sample passes: about
    ``3 / samples`` at 95 %.

    Parameters
    ----------
    samples : array_like
        Numbers of independent samples, or of items of a benchmark, at least 1.
    confidence : float
        Probability of at least one pass, in (0, 1).

    Returns
    -------
    array
        ``1 - (1 - confidence) ** (1 / samples)``, of the shape of `samples`.

    Examples
    --------
    >>> from toolkit.scaling.downstream import smallest_visible
    >>> smallest_visible([100, 100_000]).round(6).tolist()
    [0.029513, 3e-05]
    """
    check_level(confidence)
    counts = np.asarray(samples, dtype=np.float64)
    if not np.all(counts >= 1):
        raise DataError(f"samples must be at least 1; got {samples!r}.")
    rate: FloatArray = -np.expm1(np.log1p(-confidence) / counts)
    return rate


def samples_needed(pass_rate: npt.ArrayLike, *, confidence: float = 0.95) -> FloatArray:
    """Return how many samples show at least one pass with some confidence.

    The inverse of `smallest_visible`.

    Parameters
    ----------
    pass_rate : array_like
        Rates in (0, 1).
    confidence : float
        Probability of at least one pass, in (0, 1).

    Returns
    -------
    array
        Whole numbers, of the shape of `pass_rate`.

    Examples
    --------
    >>> from toolkit.scaling.downstream import samples_needed
    >>> samples_needed(1e-4).tolist()
    29956.0
    """
    check_level(confidence)
    rates = np.asarray(pass_rate, dtype=np.float64)
    if not np.all((rates > 0) & (rates < 1)):
        raise DataError(f"pass_rate must lie between 0 and 1; got {pass_rate!r}.")
    needed: FloatArray = np.ceil(np.log1p(-confidence) / np.log1p(-rates))
    return needed


def pass_rate_until(passes: npt.ArrayLike, samples: npt.ArrayLike) -> FloatArray:
    """Unbiased pass rate where sampling went on until a number of passes was reached.

    ``passes / samples`` is too high under this rule, by up to a factor of many for one pass:
    the last sample is a pass by design. Without it the estimate is unbiased (Haldane 1945).

    Parameters
    ----------
    passes : array_like
        Passes at which sampling stopped, at least 2.
    samples : array_like
        Samples that it took.

    Returns
    -------
    array
        ``(passes - 1) / (samples - 1)``.

    Examples
    --------
    >>> from toolkit.scaling.downstream import pass_rate_until
    >>> pass_rate_until(2, 101).tolist()
    0.01
    """
    reached, drawn = np.asarray(passes, float), np.asarray(samples, float)
    if not (np.all(reached >= 2) and np.all(drawn >= reached)):
        raise DataError("passes must be at least 2, and samples at least as many as passes.")
    rate: FloatArray = (reached - 1) / (drawn - 1)
    return rate
