"""Leave one unit out: how much a single run, or group of runs, decides."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from toolkit.numerics.compiling import FloatArray, IntArray
from toolkit.resampling import block_height
from toolkit.scaling.allocation import size_exponent

if TYPE_CHECKING:
    from toolkit.scaling.result import ScalingFit

__all__ = ["leave_one_out", "without_each"]

MOST_GROUPS = 500  # refits of a jackknife; more units are left out in groups


def leave_one_out(fit: "ScalingFit") -> pd.DataFrame:
    """Refit without each unit, from the full optimum; see `ScalingFit.influence`."""
    unit_of, labels = _units(fit)
    law = fit.law
    values = fit.problem.values_of(_refits(fit, unit_of))
    table = pd.DataFrame(values - fit.values, columns=law.parameter_names, index=labels)
    table.insert(0, "rows", np.bincount(unit_of))
    table.insert(1, "residual", fit.residuals.groupby(unit_of).mean().to_numpy())
    order = [name for name in law.parameter_names if name not in fit.fixed][-1]
    if law.allocate is not None:
        order = "params_exponent"
        table[order] = size_exponent(law, values) - size_exponent(law, fit.values)
    return table.sort_values(order, key=np.abs, ascending=False, kind="stable")


def without_each(fit: "ScalingFit") -> FloatArray:
    """Optima without each unit, or without each of 500 groups of units, shape (groups, p)."""
    return _refits(fit, _units(fit)[0] % MOST_GROUPS)


def _units(fit: "ScalingFit") -> tuple[IntArray, pd.Index]:
    """Return the unit of every row and the names of the units."""
    if fit.cluster is None:
        return np.arange(len(fit.runs)), pd.RangeIndex(len(fit.runs), name="row")
    unit_of, labels = pd.factorize(fit.runs[fit.cluster])
    return unit_of, pd.Index(labels, name=fit.cluster)


def _refits(fit: "ScalingFit", unit_of: IntArray) -> FloatArray:
    """Return the optimum without each unit, shape (units, p)."""
    return np.concatenate(
        [
            fit.problem.minimise(weights, fit.theta[None, :], near=fit.theta).theta
            for weights in _weights_without(unit_of, fit.problem.weights)
        ]
    )


def _weights_without(unit_of: IntArray, weights: FloatArray) -> Iterator[FloatArray]:
    """Yield row weights with one unit at zero, some units at a time."""
    units, height = int(unit_of.max()) + 1, block_height(weights.size)
    for first in range(0, units, height):
        left_out = np.arange(first, min(first + height, units))
        yield np.where(unit_of == left_out[:, None], 0.0, weights)
