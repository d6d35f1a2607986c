"""Signs of residuals: whether runs of a group lie on one side of a law."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray, IntArray

__all__ = ["correlation_table", "log_bins", "sign_correlation"]

PERMUTATIONS = 2000


def log_bins(values: npt.ArrayLike, width: float) -> IntArray:
    """Return the bins of the logarithm of positive values, shape (n,).

    Bins are centred on whole multiples of the width (natural logarithm), whatever the values.

    Examples
    --------
    >>> from toolkit.scaling import log_bins
    >>> log_bins([1.0, 1.1, 1.4], 0.25).tolist()
    [0, 0, 1]
    """
    if not 0 < width < np.inf:
        raise DataError(f"width must be a positive number of natural logarithms; got {width!r}.")
    numbers = np.asarray(values, dtype=np.float64)
    if not (np.isfinite(numbers).all() and (numbers > 0).all()):
        raise DataError("log_bins needs positive, finite values.")
    return np.round(np.log(numbers) / width).astype(np.int64)


def sign_correlation(residuals: npt.ArrayLike, groups: npt.ArrayLike) -> float:
    """Return the intraclass correlation of signs: whether groups lie on one side of a law.

    The mean product of two different residuals of one group, over all such pairs, divided by the
    variance; signs are taken about the median residual.

    Parameters
    ----------
    residuals : array_like, shape (n,)
    groups : array_like, shape (n,)
        Label of the group of each.

    Returns
    -------
    float
        1 where each group lies on one side, 0 without structure; NaN if no group has two members.

    Examples
    --------
    >>> from toolkit.scaling import sign_correlation
    >>> sign_correlation([0.1, 0.2, -0.1, -0.3], ["a", "a", "b", "b"])
    1.0
    """
    numbers = np.asarray(residuals, dtype=np.float64)
    return _sign_correlation(_signs(numbers), pd.factorize(np.asarray(groups))[0])


def _signs(residuals: FloatArray) -> FloatArray:
    signs = np.sign(residuals - np.median(residuals))
    centred: FloatArray = signs - signs.mean()
    return centred


def _sign_correlation(signs: FloatArray, group: IntArray) -> float:
    sizes = np.bincount(group)
    pairs = float((sizes * (sizes - 1)).sum())
    variance = float(np.mean(signs**2))
    if pairs == 0 or variance == 0:
        return np.nan
    products = np.bincount(group, weights=signs) ** 2 - np.bincount(group, weights=signs**2)
    return float(products.sum()) / pairs / variance


def correlation_table(
    residuals: FloatArray, groups: Mapping[str, IntArray], generator: np.random.Generator
) -> pd.DataFrame:
    """Correlate signs inside each grouping, with the reference of permuted residuals."""
    signs = _signs(residuals)
    shuffled = [generator.permutation(signs) for _ in range(PERMUTATIONS)]
    rows = {}
    for name, group in groups.items():
        found = _sign_correlation(signs, group)
        reference = np.array([_sign_correlation(other, group) for other in shuffled])
        reached = (1 + int((reference >= found).sum())) / (1 + PERMUTATIONS)
        rows[name] = {
            "groups": len(np.unique(group)),
            "correlation": found,
            "reference": float(np.quantile(reference, 0.95)),
            "p": reached if np.isfinite(found) else np.nan,
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("equal")
