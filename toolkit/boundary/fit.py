"""Fit a capability boundary: the score that training compute can buy, as a high quantile."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit.boundary import prescriptive
from toolkit.boundary.models import Models
from toolkit.boundary.result import FEW_IN_TAIL, TAIL_FOR_INTERVALS, BoundaryFit
from toolkit.boundary.search import Search
from toolkit.errors import (
    ConvergenceWarning,
    DataError,
    IdentifiabilityWarning,
    SmallSampleWarning,
)
from toolkit.numerics.compiling import FloatArray
from toolkit.resampling import FEW_UNITS, Resampling, check_resamples

__all__ = ["fit"]

LEAST_TAIL = 4.0  # the curve has four parameters; with fewer models beyond it, anything fits
FEW_AGREE = 3  # starts


def fit(
    models: pd.DataFrame | Mapping[str, npt.ArrayLike],
    score: str = "score",
    *,
    tau: float | Sequence[float] = 0.95,
    floor: float = 0.0,
    ceiling: float = 1.0,
    weights: str | None = None,
    cluster: str | None = None,
    bootstrap: int = 0,
    recipe: Literal["exact", "prescriptive"] = "exact",
    rng: np.random.Generator | int | None = None,
) -> BoundaryFit:
    """Fit the score that a share tau of models stays below, as a sigmoid of log compute.

    Minimises the pinball loss ``sum_i w_i rho_tau(y_i - q(log10 C_i))`` of ``q(z) = base + rise
    / (1 + exp(-steepness (z - midpoint)))`` exactly, from several starts and, for intervals, again
    on every resample. The answer does not depend on the order of rows, and a weight of 2 equals
    a repeated row.

    Parameters
    ----------
    models : DataFrame or mapping
        One row per model: ``flops`` (training compute in FLOPs), or ``tokens`` and ``params`` (or
        ``params_active``), from which it is 6 N D; and the score. Rows without score or compute
        are left out, and the result tells how many.
    score : str
        Column of the scores, fractions from 0 to 1.
    tau : float or sequence of float
        Levels of the quantile, in (0, 1). Curves of several levels that cross are rearranged
        (Chernozhukov, Fernandez-Val and Galichon 2010).
    floor : float
        Lowest base allowed: the score of guessing, 0.25 for four choices. Scores below it stay as
        they are.
    ceiling : float
        Highest score that is possible; the curve stays below it.
    weights : str, optional
        Column with positive row weights.
    cluster : str, optional
        Column of the independent unit, ``"base_model"`` or ``"family"``: fine-tunes of one base
        share its compute and much of its ability. Rows are resampled when missing.
    bootstrap : int
        Number of resamples; 0 for no intervals.
    recipe : {"exact", "prescriptive"}
        ``prescriptive`` is the published recipe of Zhang et al. 2026, for comparison: a loss
        smoothed over 0.07 in score and a ridge on the steepness, which lift the curve above the
        quantile. It has no intervals.
    rng : Generator, int or None
        Source of the bootstrap draws.

    Returns
    -------
    BoundaryFit

    Raises
    ------
    DataError
        If the table cannot support the fit: see `toolkit.tables.check`; also scores in percent,
        repeated models, implausible token counts, scores above the ceiling, fewer than 4 models
        beyond the curve, ``n (1 - tau)``.

    Warns
    -----
    SmallSampleWarning
        If fewer than 40 models are beyond the curve, or fewer than 10 units are resampled.
        Below 10 models there are no bounds: they would be far too narrow.
    IdentifiabilityWarning
        If the data do not determine the shape of the curve: one value of compute, or scores that
        do not rise with it.
    ConvergenceWarning
        If an optimum or more than 1 % of the resamples are not certified, or only one or two
        starts agree.

    Examples
    --------
    >>> import numpy as np
    >>> import toolkit as tk
    >>> rng = np.random.default_rng(0)
    >>> flops = 10 ** rng.uniform(21, 25, 1000)
    >>> best = tk.boundary.Curve(0.25, 0.6, 23.0, 2.0).attainable(flops)
    >>> models = {"flops": flops, "mmlu": 0.25 + (best - 0.25) * rng.beta(4, 2, 1000)}
    >>> edge = tk.boundary.fit(models, score="mmlu", tau=0.9, floor=0.25)
    >>> bool(edge.certified[0.9])
    True
    """
    levels = _check_levels(tau)
    _check_limits(floor, ceiling)
    checked = Models.check(models, score, ceiling=ceiling, weights=weights, cluster=cluster)
    _check_tails(checked.effective, levels)
    if recipe not in ("exact", "prescriptive"):
        raise DataError(f"recipe must be 'exact' or 'prescriptive'; got {recipe!r}.")
    if recipe == "prescriptive" and bootstrap:
        raise DataError("The published recipe has no intervals; fit with bootstrap=0.")
    searches = [Search.of(checked, level, floor, ceiling) for level in levels]
    if recipe == "prescriptive":
        params = np.array([prescriptive.fit_curve(checked, level) for level in levels])
        outcome = [search.judge(values) for search, values in zip(searches, params, strict=True)]
    else:
        outcome = [search.run() for search in searches]
        params = np.array([found.params for found in outcome])
    draws, failed, plan = None, 0, None
    if bootstrap:
        clusters = None if cluster is None else checked.labels[cluster]
        plan = Resampling.plan(check_resamples(bootstrap), clusters, checked.weights, rng)
        draws, failed = _refit(searches, params, plan)
    result = BoundaryFit(
        models=checked,
        tau=levels,
        floor=float(floor),
        ceiling=float(ceiling),
        recipe=recipe,
        searches=tuple(outcome),
        draws=draws,
        failed=failed,
        unit=None if plan is None else plan.unit,
        units=0 if plan is None else plan.units,
    )
    _warn(result)
    return result


def _check_levels(tau: object) -> tuple[float, ...]:
    try:
        levels = np.unique(np.atleast_1d(np.asarray(tau, dtype=np.float64)))
    except (TypeError, ValueError):
        levels = np.empty(0)
    if levels.ndim != 1 or not levels.size or not ((levels > 0) & (levels < 1)).all():
        raise DataError(f"tau must lie between 0 and 1, for example 0.95; got {tau!r}.")
    return tuple(levels.tolist())


def _check_limits(floor: float, ceiling: float) -> None:
    if not 0 <= floor < ceiling <= 1:
        raise DataError(
            "floor and ceiling are scores with 0 <= floor < ceiling <= 1; got "
            f"floor={floor!r}, ceiling={ceiling!r}."
        )


def _check_tails(effective: float, levels: Sequence[float]) -> None:
    """Refuse a quantile beyond which there are fewer models than the curve has parameters."""
    for level in levels:
        share = min(level, 1 - level)
        if effective * share < LEAST_TAIL - 1e-9:
            most = 1 - LEAST_TAIL / effective
            mend = f"Choose tau of at most {np.floor(100 * most) / 100:g}" if most > 0.5 else "Add"
            raise DataError(
                f"tau={level:g} leaves {effective * share:.1f} of {effective:.0f} models beyond "
                f"the curve, which has four parameters: it would run above them all. {mend} "
                f"{'or add ' if most > 0.5 else ''}models."
            )


def _refit(
    searches: Sequence[Search], params: FloatArray, plan: Resampling
) -> tuple[FloatArray, int]:
    """Fit every resample at every level, shape (resamples, levels, 4), and count the failures.

    Levels whose tail is too thin for bounds stay NaN.
    """
    draws = np.full((plan.resamples, len(searches), 4), np.nan)
    failed, begin = 0, 0
    trusted = [search.tail >= TAIL_FOR_INTERVALS for search in searches]
    if not any(trusted):
        return draws, 0
    for weights, _ in plan.samples():
        for k, search in enumerate(searches):
            if not trusted[k]:
                continue
            found, certified = search.refit(weights, params[k])
            draws[begin : begin + len(weights), k] = found
            failed += int((~certified).sum())
        begin += len(weights)
    return draws, failed


def _warn(result: BoundaryFit) -> None:
    level, count = min(zip(result.tau, result.tails, strict=True), key=lambda pair: pair[1])
    if count < FEW_IN_TAIL - 1e-9:
        consequence = "bounds are not given" if count < TAIL_FOR_INTERVALS else "bounds are narrow"
        warnings.warn(
            f"tau={level:g} leaves {count:.1f} models beyond the curve, fewer than "
            f"{FEW_IN_TAIL:g}: the curve is uncertain and {consequence}. A lower tau or more "
            "models help.",
            SmallSampleWarning,
            stacklevel=3,
        )
    if result.draws is not None and result.units < FEW_UNITS:
        warnings.warn(
            f"Only {result.units} independent units ({result.unit}): bootstrap intervals are "
            "unreliable.",
            SmallSampleWarning,
            stacklevel=3,
        )
    if result.recipe == "exact":
        _warn_of_search(result)
    unsure = result.unidentified
    if unsure:
        warnings.warn(f"{unsure} See summary().", IdentifiabilityWarning, stacklevel=3)


def _warn_of_search(result: BoundaryFit) -> None:
    agree = {tau: found.agrees for tau, found in zip(result.tau, result.searches, strict=True)}
    certified = [found.certified[found.best] for found in result.searches]
    if not all(certified):
        levels = ", ".join(
            f"{tau:g}" for tau, ok in zip(result.tau, certified, strict=True) if not ok
        )
        warnings.warn(
            f"No certified optimum at tau={levels}.",
            ConvergenceWarning,
            stacklevel=4,
        )
    for tau, agrees in agree.items():
        if agrees.sum() < FEW_AGREE <= len(agrees):
            warnings.warn(
                f"Only {agrees.sum()} of {len(agrees)} starts reach the best optimum at "
                f"tau={tau:g}; a better one may exist.",
                ConvergenceWarning,
                stacklevel=4,
            )
    if result.draws is not None and result.failed > 0.01 * result.draws[..., 0].size:
        warnings.warn(
            f"{result.failed} of {result.draws[..., 0].size} resamples have no certified optimum; "
            "they are kept in the bounds.",
            ConvergenceWarning,
            stacklevel=4,
        )
