"""Intervals of anything that follows from a fit, from its resamples or from leaving units out."""

from collections.abc import Callable
from typing import TYPE_CHECKING, get_args

import numpy as np
import pandas as pd

from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray
from toolkit.resampling import FEW_UNITS
from toolkit.results import Interval, IntervalMethod, bootstrap_interval, jackknife_interval
from toolkit.scaling.allocation import allocation_parameters, log_or_nan
from toolkit.scaling.influence import without_each
from toolkit.scaling.resampling import Bootstrap

if TYPE_CHECKING:
    from toolkit.scaling.result import ScalingFit

__all__ = ["default_method", "intervals", "parameter_intervals", "resampled"]


def default_method(bootstrap: Bootstrap) -> IntervalMethod:
    """Return "bca", or "jackknife" where a bootstrap has fewer than 10 units to draw from."""
    return "jackknife" if bootstrap.units < FEW_UNITS else "bca"


def resampled(fit: "ScalingFit") -> Bootstrap:
    """Return the bootstrap of a fit; raise `DataError` where it has none."""
    if fit.bootstrap is None:
        raise DataError(
            "This fit has no intervals; fit with bootstrap=1000 and an rng, or ask for "
            "method='jackknife', which needs neither."
        )
    return fit.bootstrap


def intervals(
    fit: "ScalingFit",
    quantities: Callable[[FloatArray], FloatArray],
    level: float,
    method: IntervalMethod | None,
    draws: FloatArray | None = None,
) -> list[Interval]:
    """Bound m quantities.

    Parameters
    ----------
    fit : ScalingFit
    quantities : callable
        From optima in working coordinates, shape (k, p), to values, shape (k, m).
    level : float
        Nominal coverage, in (0, 1).
    method : {"bca", "percentile", "basic", "jackknife"}, optional
        `default_method` when missing.
    draws : array, shape (resamples, m), optional
        The quantities of the resamples, where the caller has them already.

    Returns
    -------
    list of Interval
        One for each quantity.
    """
    method = method or default_method(resampled(fit))
    if method not in get_args(IntervalMethod):
        raise DataError(
            f"method must be 'bca', 'percentile', 'basic' or 'jackknife'; got {method!r}."
        )
    estimates = quantities(fit.theta[None, :])[0]
    unit = fit.cluster or "row"
    if method == "jackknife":
        left_out = quantities(_without_each(fit)).T
        return [
            jackknife_interval(estimate, values, level=level, unit=unit)
            for estimate, values in zip(estimates, left_out, strict=True)
        ]
    if draws is None:
        draws = quantities(resampled(fit).theta)
    needed = quantities(_without_each(fit)).T if method == "bca" else [None] * len(estimates)
    return [
        bootstrap_interval(e, d, level=level, method=method, left_out=left, unit=unit)
        for e, d, left in zip(estimates, draws.T, needed, strict=True)
    ]


def parameter_intervals(
    fit: "ScalingFit", level: float, method: IntervalMethod | None
) -> pd.DataFrame:
    """Intervals of parameters and allocation exponent; see `ScalingFit.conf_int`."""
    identified = fit.identifiability().identified
    names = fit.law.parameter_names
    table = pd.DataFrame(np.nan, index=names, columns=["estimate", "lower", "upper"])
    for name, value in fit.fixed.items():
        table.loc[name, "estimate"] = value
    known = np.flatnonzero(identified & ~fit.problem.pinned)
    positive = np.array([p.positive for p in fit.law.parameters])[known]

    def scaled(theta: FloatArray) -> FloatArray:
        values = fit.problem.values_of(theta)[:, known]
        return np.where(positive, log_or_nan(values), values)

    for k, interval in enumerate(intervals(fit, scaled, level, method)):
        row = np.array([interval.estimate, interval.lower, interval.upper])
        table.loc[names[known[k]]] = np.exp(row) if positive[k] else row
    if fit.law.allocate is not None:
        row = np.full(3, np.nan)
        if identified[allocation_parameters(fit.law)].all():
            exponent = fit.params_exponent(level, method)
            row = np.array([exponent.estimate, exponent.lower, exponent.upper])
        table.loc["params_exponent"] = row
    return table


def _without_each(fit: "ScalingFit") -> FloatArray:
    if "without_each" not in fit.kept:
        fit.kept["without_each"] = without_each(fit)
    return fit.kept["without_each"]
