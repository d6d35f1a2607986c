"""The runs behind a picture: their compute, and the isoFLOP groups they form."""

import numpy as np
import pandas as pd

from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray, IntArray
from toolkit.scaling.allocation import FLOPS_PER_PARAM_TOKEN
from toolkit.scaling.result import ScalingFit

__all__ = ["OTHER", "SAME_BUDGET", "group_budgets", "isoflop_groups", "training_compute"]

SAME_BUDGET = 1.02  # highest over lowest compute of runs that count as one budget
FEWEST_SIZES = 3  # sizes from which a budget shows where its optimum lies
MOSTLY = 0.8  # share of runs in such groups from which a table is an isoFLOP design
OTHER = -1  # group of the runs that share their budget with too few others


def training_compute(fit: ScalingFit) -> FloatArray:
    """Return the compute ``6 N D`` of the fitted runs in FLOPs, shape (n,).

    Raises
    ------
    DataError
        If the law is not one of ``params`` and ``tokens``.
    """
    if not {"params", "tokens"} <= set(fit.runs.columns):
        raise DataError(
            f"The {fit.law.title} is a law of {', '.join(fit.law.columns)}; this picture needs "
            "the columns 'params' and 'tokens' of a law of size and data."
        )
    compute = FLOPS_PER_PARAM_TOKEN * fit.runs["params"] * fit.runs["tokens"]
    return compute.to_numpy(dtype=np.float64)


def isoflop_groups(flops: FloatArray, params: FloatArray) -> IntArray | None:
    """Return the number of each run's budget, lowest first, shape (n,).

    `OTHER` marks runs that share their budget with too few others. None when there are fewer
    than two budgets of three sizes, or they hold less than 80 % of the runs.
    """
    order = np.argsort(flops)
    group = np.empty(len(flops), dtype=np.int64)
    start, number = flops[order[0]], 0
    for row in order:
        if flops[row] > SAME_BUDGET * start:
            start, number = flops[row], number + 1
        group[row] = number
    sizes = pd.Series(params).groupby(group).nunique().to_numpy()
    large = sizes >= FEWEST_SIZES
    if large.sum() < 2 or large[group].mean() < MOSTLY:
        return None
    return np.where(large, np.cumsum(large) - 1, OTHER)[group]


def group_budgets(flops: FloatArray, groups: IntArray) -> FloatArray:
    """Return the geometric mean of the compute of each group, in FLOPs."""
    means = [np.log(flops[groups == k]).mean() for k in range(groups.max() + 1)]
    return np.exp(np.array(means, dtype=np.float64))
