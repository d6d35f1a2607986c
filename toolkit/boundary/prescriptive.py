"""The published recipe for a capability boundary, for comparison with the exact quantile.

Zhang, Jin, Syrgkanis and Kakade 2026 (arXiv:2602.15327) minimise the mean of a smoothed pinball
loss plus a ridge on the steepness. At their smoothing the curve is the quantile of the score plus
logistic noise with a standard deviation of 0.036, which lies above that of the score.
"""

import itertools

import numpy as np
from scipy import optimize, special

from toolkit.boundary.curve import attainable
from toolkit.boundary.models import Models
from toolkit.numerics.compiling import FloatArray

__all__ = ["KAPPA", "RIDGE", "fit_curve", "smoothed_loss"]

KAPPA = 50.0  # 1 / width of the smoothing, per unit of score
RIDGE = 1e-3  # on the squared steepness per decade, added to the mean loss
FIRST_TAU, FIRST_KAPPA = 0.9, 10.0
STAGES = ((0.9, 10.0), (0.9, 25.0), (0.9, 50.0), (0.95, 50.0))  # then the wanted tau
STEEPNESS = (0.05, 50.0)
GRID, RANDOM_PAIRS, REFINED = 10, 100, 10
LEVEL_STEPS = 12


def smoothed_loss(residuals: FloatArray, tau: float, kappa: float) -> FloatArray:
    """``log(1 + exp(kappa u)) / kappa + (tau - 1) u`` for residuals u, score minus curve."""
    return np.asarray(np.logaddexp(0.0, kappa * residuals) / kappa + (tau - 1) * residuals)


def fit_curve(models: Models, tau: float) -> FloatArray:
    """Fit base, rise, midpoint and steepness by the published recipe; shape (4,).

    Levels are fitted at tau 0.9 and kappa 10 for 250 pairs of midpoint and steepness; the 10 best
    are refined by sequential quadratic programming while kappa rises to 50 and tau to its value.
    The midpoint stays inside the data, and 0 <= base <= base + rise <= 1.
    """
    z, y, w = models.log_flops, models.scores, models.weights / models.weights.sum()
    pairs = _pairs(z)
    levels, losses = _best_levels(z, y, w, pairs)
    best = np.argsort(losses, kind="stable")[:REFINED]
    ends = [_refine(z, y, w, np.array([*levels[k], *pairs[k]]), tau) for k in best]
    params, _ = min(ends, key=lambda end: end[1])
    return np.array([params[0], params[1], params[2], np.exp(params[3])])


def _pairs(z: FloatArray) -> FloatArray:
    """Midpoints and log steepness to begin from, shape (250, 2)."""
    low, high = np.log(STEEPNESS)
    midpoints = np.concatenate(
        [np.linspace(z[0], z[-1], GRID), np.quantile(z, [0.1, 0.25, 0.5, 0.75, 0.9])]
    )
    grid = np.array(list(itertools.product(midpoints, np.linspace(low, high, GRID))))
    rng = np.random.default_rng(0)
    random = rng.uniform([z[0], low], [z[-1], high], (RANDOM_PAIRS, 2))
    return np.vstack([grid, random])


def _best_levels(
    z: FloatArray, y: FloatArray, w: FloatArray, pairs: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Fit base and rise for each pair, a convex problem, by Newton's method with limits."""
    levels, losses = np.empty((len(pairs), 2)), np.empty(len(pairs))
    for k, (midpoint, log_steepness) in enumerate(pairs):
        share = special.expit(np.exp(log_steepness) * (z - midpoint))
        levels[k] = _fit_levels(share, y, w)
        u = y - levels[k, 0] - levels[k, 1] * share
        losses[k] = w @ smoothed_loss(u, FIRST_TAU, FIRST_KAPPA)
    return levels, losses + RIDGE * np.exp(2 * pairs[:, 1])


def _fit_levels(share: FloatArray, y: FloatArray, w: FloatArray) -> FloatArray:
    base, rise = 0.1, 0.5
    for _ in range(LEVEL_STEPS):
        s = special.expit(FIRST_KAPPA * (y - base - rise * share))
        pull = w * (1 - FIRST_TAU - s)
        stiffness = w * FIRST_KAPPA * s * (1 - s)
        gradient = np.array([pull.sum(), pull @ share])
        cross = stiffness @ share
        hessian = np.array([[stiffness.sum(), cross], [cross, stiffness @ share**2]])
        step = np.linalg.solve(hessian + 1e-6 * np.eye(2), gradient)
        base = float(np.clip(base - step[0], 0.0, 1.0))
        rise = float(np.clip(rise - step[1], 0.0, 1.0 - base))
    return np.array([base, rise])


def _refine(
    z: FloatArray, y: FloatArray, w: FloatArray, start: FloatArray, tau: float
) -> tuple[FloatArray, float]:
    """Joint refinement of base, rise, midpoint and log steepness; the end and its loss."""
    params, loss = start, np.inf
    box = [(0.0, 1.0), (0.0, 1.0), (z[0], z[-1]), (np.log(STEEPNESS[0]), np.log(STEEPNESS[1]))]
    below_one = optimize.LinearConstraint(np.array([[1.0, 1.0, 0.0, 0.0]]), -np.inf, 1.0)
    for level, kappa in (*STAGES, (tau, KAPPA)):
        found = optimize.minimize(
            _objective,
            params,
            args=(z, y, w, level, kappa),
            jac=True,
            method="SLSQP",
            bounds=box,
            constraints=below_one,
            options={"ftol": 1e-9, "maxiter": 700},
        )
        params, loss = found.x, float(found.fun)
    return params, loss


def _objective(
    params: FloatArray, z: FloatArray, y: FloatArray, w: FloatArray, tau: float, kappa: float
) -> tuple[float, FloatArray]:
    """Mean smoothed loss with the ridge, and its gradient."""
    base, rise, midpoint, log_steepness = params
    steepness = np.exp(log_steepness)
    u = y - attainable(np.array([[base, rise, midpoint, steepness]]), z)[0]
    share = special.expit(steepness * (z - midpoint))
    pull = w * (1 - tau - special.expit(kappa * u))
    bend = pull * rise * share * (1 - share) * steepness
    gradient = [pull.sum(), pull @ share, -bend.sum(), bend @ (z - midpoint)]
    gradient[3] += 2 * RIDGE * steepness**2
    loss = w @ smoothed_loss(u, tau, kappa) + RIDGE * steepness**2
    return float(loss), np.array(gradient)
