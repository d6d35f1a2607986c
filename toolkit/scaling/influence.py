"""Leave one unit out: how much a single run, or group of runs, decides."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from toolkit.numerics.compiling import FloatArray, IntArray
from toolkit.scaling.allocation import size_exponent
from toolkit.scaling.resampling import block_height

if TYPE_CHECKING:
    from toolkit.scaling.result import ScalingFit

__all__ = ["leave_one_out"]


def leave_one_out(fit: "ScalingFit") -> pd.DataFrame:
    """Refit without each unit, from the full optimum; see `ScalingFit.influence`."""
    units = pd.Series(np.arange(len(fit.runs)), name="row")
    if fit.cluster is not None:
        units = fit.runs[fit.cluster]
    unit_of, labels = pd.factorize(units)
    problem, law = fit.problem, fit.law
    left = [
        problem.minimise(weights, fit.theta[None, :], near=fit.theta).theta
        for weights in _without_each(unit_of, len(labels), problem.weights)
    ]
    values = law.from_working(np.concatenate(left), problem.centre)
    table = pd.DataFrame(
        values - fit.values, columns=law.parameter_names, index=pd.Index(labels, name=units.name)
    )
    table.insert(0, "rows", np.bincount(unit_of))
    table.insert(1, "residual", fit.residuals.groupby(unit_of).mean().to_numpy())
    order = [name for name in law.parameter_names if name not in fit.fixed][-1]
    if law.allocate is not None:
        order = "params_exponent"
        table[order] = size_exponent(law, values) - size_exponent(law, fit.values)
    return table.sort_values(order, key=np.abs, ascending=False, kind="stable")


def _without_each(unit_of: IntArray, units: int, weights: FloatArray) -> Iterator[FloatArray]:
    """Yield row weights with one unit at zero, some units at a time."""
    height = block_height(weights.size)
    for first in range(0, units, height):
        left_out = np.arange(first, min(first + height, units))
        yield np.where(unit_of == left_out[:, None], 0.0, weights)
