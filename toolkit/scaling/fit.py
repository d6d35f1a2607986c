"""Fit a scaling law to a table of runs."""

import warnings
from collections.abc import Mapping
from dataclasses import astuple, replace
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit.errors import (
    ConvergenceWarning,
    DataError,
    IdentifiabilityWarning,
    SmallSampleWarning,
)
from toolkit.numerics.compiling import FloatArray, IntArray
from toolkit.numerics.minimise import Minima
from toolkit.resampling import FEW_UNITS, Resampling
from toolkit.scaling import laws
from toolkit.scaling.checking import check_runs
from toolkit.scaling.law import Law
from toolkit.scaling.perturbing import Perturbation
from toolkit.scaling.problem import TOLERANCE, Problem, check_fixed
from toolkit.scaling.refits import refit
from toolkit.scaling.resampling import Scheme
from toolkit.scaling.result import ScalingFit

__all__ = ["fit"]

LAST_DIGITS = 1e-14  # gap, as a share of the objective, that rounding just allows
AGREE = 1e-6  # starts whose objective is within this share of the best found the same optimum
EXACT = 1e-11  # residuals below this are rounding: two exact fits agree
FEW_AGREE = 0.2


def fit(
    law: str | Law,
    runs: pd.DataFrame | Mapping[str, npt.ArrayLike],
    *,
    loss: Literal["huber", "squared", "absolute"] = "huber",
    delta: float = 1e-3,
    target: str = "loss",
    fixed: Mapping[str, float] | None = None,
    weights: str | None = None,
    bootstrap: int | IntArray = 0,
    resample: Scheme = "pairs",
    cluster: str | None = None,
    starts: npt.ArrayLike | None = None,
    threads: int = 1,
    rng: np.random.Generator | int | None = None,
) -> ScalingFit:
    """Fit a scaling law by robust regression on the log loss.

    Minimises ``sum_i w_i rho(log L(x_i) - log loss_i)`` from many starts and, for intervals,
    again on every bootstrap resample with the same objective. Each optimum is certified
    (`toolkit.numerics.minimise`). The answer does not depend on the order of rows or on units.

    Parameters
    ----------
    law : str or Law
        Name of a law in `toolkit.scaling.laws`, or a law.
    runs : DataFrame or mapping
        One row per run: the law's columns and the target; counts are absolute.
    loss : {"huber", "squared", "absolute"}
        Loss rho of a log residual r: Huber with threshold `delta` (Hoffmann et al. 2022),
        ``r**2 / 2``, or ``abs(r)``.
    delta : float
        Huber threshold in log loss; 1e-3 means that residuals above 0.1 % count linearly.
    target : str
        Column that the law describes: ``loss`` (nats per token), or any column of positive
        numbers.
    fixed : mapping of parameter name to value, optional
        Parameters that are pinned, not fitted; the result tells which.
    weights : str, optional
        Column with positive row weights. A weight of 2 equals a repeated row. Where the noise of
        rows differs and is known, as from repeated seeds, use the inverse of its variance:
        ``1 / groups["log_loss"].var()`` per configuration, better pooled over similar ones (a
        variance from three seeds is off by half). Only ratios of weights matter.
    bootstrap : int or array of int, shape (resamples, units)
        Number of resamples (0: no intervals), or, for pairs, the positions of the drawn units of
        each.
    resample : {"pairs", "residual", "wild"}
        What a resample is. ``pairs`` draws units (rows, or clusters whole) with replacement and
        assumes nothing else. The others keep every row and make new targets from the curve:
        ``residual`` adds residuals drawn with replacement, as if all errors were alike and
        independent; ``wild`` flips the sign of each unit's own residuals at random, so that
        errors may differ in size and be shared inside a cluster. Both enlarge residuals by what
        the fit took from them, and suit designs with few runs, of which a resample of pairs
        leaves a third out; with squared loss, or a threshold not below the noise. A robust fit
        draws its curve through some runs: with 60 runs and a threshold of a quarter of the noise
        both give 0.7 to 0.8 of the true spread (pairs: 0.96), with 240 runs 0.9 (pairs: 1.02).
    cluster : str, optional
        Column that names the independent unit of each row, for example ``"run"``. Rows are
        resampled when missing; then no two rows may be equal.
    starts : array, shape (starts, p), optional
        Starting values of the parameters, in the law's order, instead of the law's own.
    threads : int
        Threads for the resamples. The result does not depend on it.
    rng : Generator, int or None
        Source of the bootstrap draws.

    Returns
    -------
    ScalingFit

    Raises
    ------
    DataError
        If the table cannot support the fit: see `toolkit.tables.check`; also repeated rows
        without `cluster`, fewer different points than parameters, a column that never changes.

    Warns
    -----
    ConvergenceWarning
        If the optimum or more than 1 % of the resamples are not certified, or few starts agree.
    IdentifiabilityWarning
        If the data leave a parameter undetermined.
    SmallSampleWarning
        If there are fewer than 10 independent units, or resamples that hold too few different
        points.

    Examples
    --------
    >>> import toolkit as tk
    >>> runs = tk.datasets.load("simulated_runs")
    >>> fit = tk.scaling.fit("chinchilla", runs, bootstrap=200, rng=0)
    >>> bool(fit.certified)
    True
    """
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or threads < 1:
        raise DataError(f"threads must be a whole number, 1 or more; got {threads!r}.")
    law = laws.get(law)
    pinned = check_fixed(law, fixed)
    free = len(law.parameters) - len(pinned)
    table = check_runs(law, runs, target, weights, cluster, free)
    problem = Problem.build(
        law,
        table,
        target=target,
        weights=weights,
        loss=loss,
        delta=_threshold(loss, delta),
        fixed=pinned,
    )
    searches = _search(problem, starts, threads)
    best = _polish(problem, searches)
    plan = _plan(problem, best.theta[0], table, bootstrap, resample, cluster, rng)
    draws = None if plan is None else refit(problem, best.theta[0], plan, threads)
    result = ScalingFit(
        problem=problem,
        runs=table,
        theta=best.theta[0],
        objective=float(best.objective[0]),
        gap=float(best.gap[0]),
        certified=bool(best.certified[0]),
        starts=_start_table(problem, searches),
        bootstrap=draws,
        cluster=cluster,
    )
    _warn(result)
    return result


def _threshold(loss: str, delta: float) -> float:
    if loss == "huber":
        try:
            threshold = float(delta)
        except (TypeError, ValueError):
            threshold = np.nan
        if not 0 < threshold < np.inf:
            raise DataError(f"delta must be a positive number in log loss; got {delta!r}.")
        return threshold
    if loss == "squared":
        return np.inf
    if loss == "absolute":
        return 0.0
    raise DataError(f"loss must be 'huber', 'squared' or 'absolute'; got {loss!r}.")


def _search(problem: Problem, starts: npt.ArrayLike | None, threads: int) -> Minima:
    law = problem.law
    if starts is None:
        points = problem.own_starts()
    else:
        points = law.to_working(_check_starts(law, starts), problem.centre)
    return problem.minimise(problem.weights[None, :], points, threads=threads)


def _check_starts(law: Law, starts: npt.ArrayLike) -> FloatArray:
    """Return starts as values, shape (starts, p); exponents beyond their bounds are moved later."""
    try:
        values = np.atleast_2d(np.asarray(starts, dtype=np.float64))
    except (TypeError, ValueError):
        values = np.empty((0, 0))
    positive = [p.positive for p in law.parameters]
    right_shape = values.ndim == 2 and len(values) and values.shape[1] == len(positive)
    if not (right_shape and np.isfinite(values).all() and (values[:, positive] > 0).all()):
        raise DataError(
            f"starts must be finite values of {', '.join(law.parameter_names)} in this order, "
            "positive where the parameter is positive; one start per row."
        )
    return values


def _plan(
    problem: Problem,
    optimum: FloatArray,
    table: pd.DataFrame,
    bootstrap: int | IntArray,
    resample: Scheme,
    cluster: str | None,
    rng: np.random.Generator | int | None,
) -> Resampling | Perturbation | None:
    if resample not in get_args(Scheme):
        raise DataError(f"resample must be 'pairs', 'residual' or 'wild'; got {resample!r}.")
    if isinstance(bootstrap, (int, np.integer)) and bootstrap == 0:
        return None
    clusters = None if cluster is None else table[cluster]
    if resample == "pairs":
        return Resampling.plan(bootstrap, clusters, problem.weights, rng)
    return Perturbation.plan(resample, bootstrap, clusters, problem, optimum, rng)


def _polish(problem: Problem, searches: Minima) -> Minima:
    """Bring the best search to the last digits that rounding leaves.

    A gap of 1e-10 leaves 1e-6 in the parameters, so that other starts, rows in another order or
    another unit would print other digits.
    """
    k = int(np.argmin(searches.objective))
    best = Minima(*(part[k : k + 1] for part in astuple(searches)))
    finer = problem.minimise(
        problem.weights[None, :], best.theta, near=best.theta[0], tolerance=LAST_DIGITS
    )
    if not finer.objective[0] <= best.objective[0]:
        return best
    # Rounding can keep the gap above the finer tolerance; the certificate is for the usual one.
    return replace(finer, certified=finer.certified | (finer.gap <= TOLERANCE * finer.objective))


def _start_table(problem: Problem, searches: Minima) -> pd.DataFrame:
    objective = searches.objective
    lowest = float(np.min(objective))
    rounding = EXACT if problem.loss == "absolute" else EXACT**2
    enough = lowest + AGREE * abs(lowest) + rounding * problem.weights.sum()
    return pd.DataFrame(
        {
            "objective": objective,
            "certified": searches.certified,
            "agrees": searches.certified & (objective <= enough),
            "evaluations": searches.evaluations,
        },
        index=pd.RangeIndex(len(objective), name="start"),
    )


def _warn(result: ScalingFit) -> None:
    if not result.certified:
        warnings.warn(
            "The best point found is not a certified optimum "
            f"(gap {result.gap:.1e} of objective {result.objective:.1e}); give other starts.",
            ConvergenceWarning,
            stacklevel=3,
        )
    elif result.agreement < FEW_AGREE and len(result.starts) > 1:
        warnings.warn(
            f"Only {result.agreement:.0%} of {len(result.starts)} starts reach the best optimum; "
            "a better one may exist.",
            ConvergenceWarning,
            stacklevel=3,
        )
    draws = result.bootstrap
    if draws is not None and draws.failed > 0.01 * len(draws):
        warnings.warn(
            f"{draws.failed} of {len(draws)} resamples have no certified optimum; they are kept "
            "in the intervals.",
            ConvergenceWarning,
            stacklevel=3,
        )
    if draws is not None and draws.scheme == "pairs" and draws.units < FEW_UNITS:
        warnings.warn(
            f"Only {draws.units} independent units ({draws.unit}): their resamples are a poor "
            "picture of chance, so bounds rest on leaving out one at a time (method='jackknife').",
            SmallSampleWarning,
            stacklevel=3,
        )
    known = result.identifiability()
    unsure = known.identified
    if not unsure.all():
        names = ", ".join(unsure.index[~unsure])
        way_out = "vary one while the other stays"
        if result.law.name != "chinchilla_tied":
            way_out += ", or fit a law in which they share an exponent (chinchilla_tied)"
        why = "".join(
            f" {one} and {other} rise together in these runs, so that their terms cannot be told "
            f"apart: {way_out}."
            for one, other in known.confounded
        )
        warnings.warn(
            f"The data do not determine {names}: other values fit as well.{why} See "
            "identifiability() and profile().",
            IdentifiabilityWarning,
            stacklevel=3,
        )
