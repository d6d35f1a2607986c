"""Fit the resamples of a bootstrap."""

import warnings

import numpy as np
import numpy.typing as npt

from toolkit.errors import SmallSampleWarning
from toolkit.numerics.compiling import FloatArray, IntArray
from toolkit.numerics.counting import fingerprints
from toolkit.resampling import Resampling
from toolkit.scaling.perturbing import Perturbation
from toolkit.scaling.problem import Problem
from toolkit.scaling.resampling import Bootstrap

__all__ = ["refit"]

FEW_THIN = 0.01  # share of resamples with too few points from which a warning is due


def refit(
    problem: Problem, optimum: FloatArray, plan: Resampling | Perturbation, threads: int
) -> Bootstrap:
    """Fit every resample, block by block, and count the different ones."""
    parts, keys, thin = [], [], 0
    membership = _few_points(problem)
    for weights, targets in plan.samples():
        keys.append(fingerprints(weights if targets is None else targets))
        if membership is not None:
            thin += _too_thin(problem, weights @ membership)
        parts.append(_refit_block(problem, optimum, weights, targets, threads))
    theta, certified, evaluations = (np.concatenate(part) for part in zip(*parts, strict=True))
    if thin > FEW_THIN * len(theta):
        warnings.warn(
            f"{thin} of {len(theta)} resamples hold too few different points to determine the "
            "law. Keep every run instead: loss='squared' and resample='wild'.",
            SmallSampleWarning,
            stacklevel=3,
        )
    distinct = len(np.unique(np.concatenate(keys)))
    return Bootstrap(theta, certified, evaluations, plan.unit, plan.units, distinct, plan.scheme)


def _few_points(problem: Problem) -> FloatArray | None:
    """Which row lies at which different point, shape (n, points); None where points are many.

    With many points the chance that a resample holds too few of them is one that no one will see.
    """
    free = int((~problem.pinned).sum())
    points = np.unique(problem.x, axis=0, return_inverse=True)[1].ravel()
    if points.max() > 10 * free:
        return None
    membership: FloatArray = np.asarray(points[:, None] == np.arange(points.max() + 1), float)
    return membership


def _too_thin(problem: Problem, held: FloatArray) -> int:
    """Count resamples, given the weight at each point, that hold too few points for the law."""
    free = int((~problem.pinned).sum())
    return int(((held > 0).sum(axis=1) <= free).sum())


def _refit_block(
    problem: Problem,
    optimum: FloatArray,
    weights: FloatArray,
    targets: FloatArray | None,
    threads: int,
) -> tuple[FloatArray, npt.NDArray[np.bool_], IntArray]:
    """Fit resamples from the optimum; those without certificate again, from all starts."""
    warm = problem.minimise(
        weights, optimum[None, :], targets=targets, near=optimum, threads=threads
    )
    theta, certified = warm.theta.copy(), warm.certified.copy()
    for k in np.flatnonzero(~warm.certified):
        again = problem.minimise(
            weights[k % len(weights)][None, :],
            problem.own_starts(),
            targets=None if targets is None else targets[k : k + 1],
        )
        winner = int(np.argmin(np.where(again.certified, again.objective, np.inf)))
        if again.certified[winner] and again.objective[winner] <= warm.objective[k]:
            theta[k], certified[k] = again.theta[winner], True
    return theta, certified, warm.evaluations
