"""The best split of a compute budget, for one set of parameter values or for many draws."""

import numpy as np

from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray
from toolkit.scaling.law import Law

__all__ = [
    "FLOPS_PER_PARAM_TOKEN",
    "allocation_parameters",
    "best_split",
    "log_or_nan",
    "size_exponent",
]

FLOPS_PER_PARAM_TOKEN = 6.0  # forward and backward pass of a dense model: C = 6 N D


def allocation_parameters(law: Law) -> list[str]:
    """Names of the parameters on which the split of a budget rests.

    The exponents with which the terms of the loss fall; every parameter of a law that is no sum of
    such terms.
    """
    exponents = [p.scales[1] for p in law.parameters if p.scales is not None]
    return list(dict.fromkeys(exponents)) or law.parameter_names


def best_split(law: Law, values: FloatArray, budgets: FloatArray) -> dict[str, FloatArray]:
    """Size, tokens, their ratio and the loss at the optimum of each budget.

    Parameters
    ----------
    law : Law
        With a rule for allocation.
    values : array, shape (draws, p)
        Parameter values.
    budgets : array, shape (m,)
        Training compute in FLOPs.

    Returns
    -------
    dict of arrays, shape (draws, m)
    """
    if law.allocate is None:
        raise DataError(f"The {law.title} does not say how to split a budget.")
    size, data = law.allocate(values[:, None, :], budgets / FLOPS_PER_PARAM_TOKEN)
    with np.errstate(all="ignore"):
        ratio = data / size
    x = log_or_nan(np.stack([size, data], axis=-1))
    theta = law.to_working(values, np.zeros(2))
    log_loss = [law.evaluate_working(t, at)[0] for t, at in zip(theta, x, strict=True)]
    return {"params": size, "tokens": data, "tokens_per_param": ratio, "loss": np.exp(log_loss)}


def size_exponent(law: Law, values: FloatArray) -> FloatArray:
    """Power of compute in the best size: the slope between two budgets a decade apart."""
    if law.allocate is None:
        raise DataError(f"The {law.title} does not say how to split a budget.")
    low, high = (law.allocate(values, np.array(budget))[0] for budget in (1e20, 1e21))
    slope: FloatArray = (log_or_nan(high) - log_or_nan(low)) / np.log(10.0)
    return slope


def log_or_nan(positive: FloatArray) -> FloatArray:
    """Logarithm; a draw that overflowed or vanished becomes NaN, which intervals leave out."""
    with np.errstate(all="ignore"):
        logs = np.log(positive)
    return np.where(np.isfinite(logs), logs, np.nan)
