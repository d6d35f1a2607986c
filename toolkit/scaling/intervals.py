"""Intervals of anything that follows from a fit, from its resamples or from leaving units out."""

from collections.abc import Callable
from typing import TYPE_CHECKING, get_args

from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray
from toolkit.results import Interval, IntervalMethod, bootstrap_interval, jackknife_interval
from toolkit.scaling.influence import without_each
from toolkit.scaling.resampling import FEW_UNITS, Bootstrap

if TYPE_CHECKING:
    from toolkit.scaling.result import ScalingFit

__all__ = ["default_method", "intervals", "resampled"]


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
    draws = quantities(resampled(fit).theta).T
    needed = quantities(_without_each(fit)).T if method == "bca" else [None] * len(draws)
    return [
        bootstrap_interval(e, d, level=level, method=method, left_out=left, unit=unit)
        for e, d, left in zip(estimates, draws, needed, strict=True)
    ]


def _without_each(fit: "ScalingFit") -> FloatArray:
    if "without_each" not in fit.kept:
        fit.kept["without_each"] = without_each(fit)
    return fit.kept["without_each"]
