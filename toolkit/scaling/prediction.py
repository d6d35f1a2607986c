"""What a fit says about points that were not run: the target there, the best split of a budget."""

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit import tables
from toolkit.errors import DataError, ExtrapolationWarning
from toolkit.numerics.compiling import FloatArray
from toolkit.results import IntervalMethod, check_level
from toolkit.scaling.allocation import FLOPS_PER_PARAM_TOKEN, best_split, log_or_nan
from toolkit.scaling.intervals import intervals
from toolkit.scaling.law import Law

if TYPE_CHECKING:
    from toolkit.scaling.result import ScalingFit

__all__ = ["optimal_allocation", "predict", "warn_far"]

FAR = 10.0  # factor beyond the runs from which a warning is due


def predict(
    fit: "ScalingFit",
    points: Any,
    columns: Mapping[str, npt.ArrayLike],
    level: float,
    method: IntervalMethod | None,
) -> pd.DataFrame:
    """Loss (or other target) at given points; see `ScalingFit.predict`."""
    law = fit.law
    table = _as_points(law, points, columns)
    x = fit.problem.inputs(table)
    table = tables.check(table, law.columns)
    warn_far(_reaches(fit, table))
    table[fit.problem.target] = np.exp(law.evaluate_working(fit.theta, x)[0])
    if fit.bootstrap is None:
        return table

    def curves(thetas: FloatArray) -> FloatArray:
        return np.array([law.evaluate_working(theta, x)[0] for theta in thetas])

    draws = curves(fit.bootstrap.theta)
    bounds = intervals(fit, curves, level, method, draws=draws)
    table["lower"] = np.exp([interval.lower for interval in bounds])
    table["upper"] = np.exp([interval.upper for interval in bounds])
    noise = fit.residuals.to_numpy() * _residual_inflation(fit)
    mixed = [_tails((curve[:, None] + noise).ravel(), level) for curve in draws.T]
    table["run_lower"], table["run_upper"] = np.exp(np.transpose(mixed))
    return table


def optimal_allocation(
    fit: "ScalingFit", flops: npt.ArrayLike, level: float, method: IntervalMethod | None
) -> pd.DataFrame:
    """Best size and tokens of compute budgets; see `ScalingFit.optimal_allocation`."""
    table = tables.check({"flops": np.atleast_1d(flops)}, ["flops"])
    budgets = table["flops"].to_numpy()
    warn_far([_compute_reach(fit, budgets)])
    point = best_split(fit.law, fit.values[None, :], budgets)
    identified = fit.allocation_identified
    bounds = np.full((len(point), budgets.size, 2), np.nan)
    with_bounds = fit.bootstrap is not None or method is not None
    if identified and with_bounds:
        bounds = _split_bounds(fit, budgets, level, method)
    for (name, value), bound in zip(point.items(), bounds, strict=True):
        table[name] = value[0] if identified else np.nan
        if with_bounds:
            table[[f"{name}_lower", f"{name}_upper"]] = bound
    table["decades_beyond"] = np.maximum(np.log10(budgets / fit.largest_flops), 0.0)
    return table


def warn_far(reaches: list[tuple[float, str]]) -> None:
    """Warn of each factor above 10 beyond the part of the runs that it is measured by.

    The warning points at the caller of the caller's caller, who asked a fit.
    """
    for factor, part in reaches:
        if factor > FAR:
            warnings.warn(
                f"{np.log10(factor):.1f} powers of ten beyond {part}: the law is extrapolated.",
                ExtrapolationWarning,
                stacklevel=4,
            )


def _reaches(fit: "ScalingFit", points: pd.DataFrame) -> list[tuple[float, str]]:
    """How far the points lie beyond the runs: in compute, or column by column."""
    if {"params", "tokens"} <= set(points.columns):
        flops = FLOPS_PER_PARAM_TOKEN * points["params"] * points["tokens"]
        return [_compute_reach(fit, flops.to_numpy())]
    largest = {name: float(fit.runs[name].max()) for name in fit.law.columns}
    return [
        (float(points[name].max()) / most, f"the largest {name} of the runs ({most:.2g})")
        for name, most in largest.items()
    ]


def _compute_reach(fit: "ScalingFit", flops: FloatArray) -> tuple[float, str]:
    largest = fit.largest_flops
    return float(flops.max()) / largest, f"the compute of the largest run ({largest:.2g} FLOPs)"


def _split_bounds(
    fit: "ScalingFit", budgets: FloatArray, level: float, method: IntervalMethod | None
) -> FloatArray:
    """Bounds of the four columns that `best_split` gives, one by one, shape (4, m, 2)."""

    def logs(theta: FloatArray) -> FloatArray:
        split = best_split(fit.law, fit.problem.values_of(theta), budgets)
        return log_or_nan(np.concatenate(list(split.values()), axis=1))

    bounds = [(i.lower, i.upper) for i in intervals(fit, logs, level, method)]
    return np.exp(bounds).reshape(-1, budgets.size, 2)


def _residual_inflation(fit: "ScalingFit") -> float:
    """Residuals of a fit are too small by this factor, as p parameters followed the noise."""
    rows, used = len(fit.runs), int((~fit.problem.pinned).sum())
    return float(np.sqrt(rows / (rows - used)))


def _as_points(law: Law, points: Any, columns: Mapping[str, npt.ArrayLike]) -> pd.DataFrame:
    """Lay out the arguments of `predict` as a table of points."""
    if len(points) == 1 and not columns and isinstance(points[0], (pd.DataFrame, Mapping)):
        return pd.DataFrame(points[0]).reset_index(drop=True)
    if len(points) > len(law.columns):
        raise DataError(f"The {law.title} has {len(law.columns)} columns; {len(points)} given.")
    given = dict(zip(law.columns, points, strict=False))
    unknown = sorted((given.keys() & columns.keys()) | (columns.keys() - set(law.columns)))
    given |= columns
    if unknown or len(given) < len(law.columns):
        raise DataError(
            f"The {law.title} predicts from {', '.join(law.columns)}, each given once, or from "
            f"a table with these columns; given here: {', '.join([*given]) or 'nothing'}."
        )
    try:
        arrays = np.broadcast_arrays(*(np.atleast_1d(given[name]) for name in law.columns))
    except ValueError as error:
        raise DataError(f"{', '.join(law.columns)} need one shape: {error}.") from error
    return pd.DataFrame({name: a.ravel() for name, a in zip(law.columns, arrays, strict=True)})


def _tails(draws: FloatArray, level: float) -> FloatArray:
    """Quantiles of the draws, shape (resamples, ...), that leave equal tails, shape (2, ...)."""
    check_level(level)
    return np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
