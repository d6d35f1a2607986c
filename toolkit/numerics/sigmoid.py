"""Kernels of the sigmoid boundary: its values, its pinball loss, a descent on the smoothed loss.

The curve is ``q(x) = base + (top - base) sigma(a + b x)`` with compute x scaled to [-1, 1]: linear
in (base, top) and, inside sigma, in (a, b), so that every limit is linear in theta = (base, top,
a, b). The pinball loss splits into a smooth part, which sees only how much weight lies at which
compute, and the rows above the curve::

    sum_i w_i rho_tau(y_i - q_i) = (1 - tau) sum_i w_i (q_i - y_i) + sum_i w_i max(y_i - q_i, 0)

Nodes (x, mass) carry the first sum. Groups carry the second: rows of equal x, sorted by y. In a
group one goes from the highest score down and stops at the curve, and groups far below any
boundary need not be there at all.
"""

import numpy as np

from toolkit.numerics.compiling import FloatArray, IntArray, kernel, summing_kernel
from toolkit.numerics.fast import exp
from toolkit.numerics.newton import cholesky_solve

__all__ = [
    "BASE",
    "CEILING",
    "FARTHEST",
    "FLOOR",
    "LOGIT",
    "MASS",
    "SLOPE",
    "STEEPEST",
    "TOP",
    "add_curvature",
    "add_hinges",
    "confine",
    "curve_values",
    "descend_smoothed",
    "fill_row",
    "first_node_sums",
    "hinge_loss",
    "node_sums",
    "smooth_loss",
]

BASE, TOP, LOGIT, SLOPE = range(4)  # theta
FLOOR, CEILING, STEEPEST = range(3)  # limits
FARTHEST = 12.0  # |logit| that one end of the data must reach below: beyond, sigma is flat there
MASS, SHARE, D, DX, DD, DDX, DDXX = range(7)  # sums over nodes

BANDS = 3  # the smoothing band shrinks so many times, each time by this factor
BAND_SHRINK = 0.25
STEPS_IN_BAND = 8
LITTLE_GAIN = 1e-3  # as a share of the objective
FIRST_DAMPING, LARGEST_DAMPING = 1e-3, 1e6


@kernel
def curve_values(theta: FloatArray, x: FloatArray, share: FloatArray, curve: FloatArray) -> None:
    """Fill ``sigma(a + b x)`` and the curve."""
    base, rise = theta[BASE], theta[TOP] - theta[BASE]
    for g in range(x.size):
        share[g] = 1.0 / (1.0 + exp(-(theta[LOGIT] + theta[SLOPE] * x[g])))
        curve[g] = base + rise * share[g]


@summing_kernel
def _sums(
    logit: float, slope: float, x: FloatArray, mass: FloatArray
) -> tuple[float, float, float, float, float, float, float]:
    """Sum mass times 1, sigma, sigma', sigma' x, sigma'', sigma'' x and sigma'' x^2."""
    total, share, d, dx, dd, ddx, ddxx = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for c in range(x.size):
        sigma = 1.0 / (1.0 + exp(-(logit + slope * x[c])))
        first = mass[c] * sigma * (1.0 - sigma)
        second = first * (1.0 - 2.0 * sigma)
        total += mass[c]
        share += mass[c] * sigma
        d += first
        dx += first * x[c]
        dd += second
        ddx += second * x[c]
        ddxx += second * x[c] * x[c]
    return total, share, d, dx, dd, ddx, ddxx


@summing_kernel
def _first_sums(
    logit: float, slope: float, x: FloatArray, mass: FloatArray
) -> tuple[float, float, float, float]:
    """Sum mass times 1, sigma, sigma' and sigma' x."""
    total, share, d, dx = 0.0, 0.0, 0.0, 0.0
    for c in range(x.size):
        sigma = 1.0 / (1.0 + exp(-(logit + slope * x[c])))
        first = mass[c] * sigma * (1.0 - sigma)
        total += mass[c]
        share += mass[c] * sigma
        d += first
        dx += first * x[c]
    return total, share, d, dx


@kernel
def node_sums(theta: FloatArray, x: FloatArray, mass: FloatArray, sums: FloatArray) -> None:
    """Fill what the value and two derivatives of ``sum_c mass_c q(x_c)`` need."""
    sums[MASS], sums[SHARE], sums[D], sums[DX], sums[DD], sums[DDX], sums[DDXX] = _sums(
        theta[LOGIT], theta[SLOPE], x, mass
    )


@kernel
def first_node_sums(theta: FloatArray, x: FloatArray, mass: FloatArray, sums: FloatArray) -> None:
    """Fill what the value and gradient of ``sum_c mass_c q(x_c)`` need."""
    sums[MASS], sums[SHARE], sums[D], sums[DX] = _first_sums(theta[LOGIT], theta[SLOPE], x, mass)


@kernel
def smooth_loss(
    theta: FloatArray, sums: FloatArray, weighted_sum: float, tau: float, gradient: FloatArray
) -> float:
    """Return ``(1 - tau) sum_i w_i (q_i - y_i)`` and fill its gradient."""
    rise = theta[TOP] - theta[BASE]
    gradient[BASE] = (1.0 - tau) * (sums[MASS] - sums[SHARE])
    gradient[TOP] = (1.0 - tau) * sums[SHARE]
    gradient[LOGIT] = (1.0 - tau) * rise * sums[D]
    gradient[SLOPE] = (1.0 - tau) * rise * sums[DX]
    curve_sum = theta[BASE] * sums[MASS] + rise * sums[SHARE]
    return float((1.0 - tau) * (curve_sum - weighted_sum))


@kernel
def add_curvature(theta: FloatArray, sums: FloatArray, factor: float, hessian: FloatArray) -> None:
    """Add ``factor`` times the second derivative of ``sum_c mass_c q(x_c)``."""
    rise = theta[TOP] - theta[BASE]
    for level, sign in ((BASE, -factor), (TOP, factor)):
        hessian[level, LOGIT] += sign * sums[D]
        hessian[LOGIT, level] += sign * sums[D]
        hessian[level, SLOPE] += sign * sums[DX]
        hessian[SLOPE, level] += sign * sums[DX]
    hessian[LOGIT, LOGIT] += factor * rise * sums[DD]
    hessian[LOGIT, SLOPE] += factor * rise * sums[DDX]
    hessian[SLOPE, LOGIT] += factor * rise * sums[DDX]
    hessian[SLOPE, SLOPE] += factor * rise * sums[DDXX]


@kernel
def hinge_loss(
    curve: FloatArray,
    first: IntArray,
    y: FloatArray,
    w: FloatArray,
    band: float,
    pull: FloatArray,
    stiffness: FloatArray,
) -> float:
    """Return ``sum_i w_i max(y_i - q_i, 0)``; fill two derivatives by the curve in each group.

    Within `band` of the curve the hinge is rounded off to a parabola; band 0 is the exact loss.
    """
    loss = 0.0
    for g in range(curve.size):
        above_weight, near_weight = 0.0, 0.0
        for i in range(first[g + 1] - 1, first[g] - 1, -1):
            above = y[i] - curve[g]
            if above <= -band:
                break
            if above >= band:
                above_weight += w[i]
                loss += w[i] * above
            else:
                above_weight += w[i] * (above + band) / (2.0 * band)
                near_weight += w[i]
                loss += w[i] * (above + band) ** 2 / (4.0 * band)
        pull[g] = -above_weight
        stiffness[g] = near_weight / (2.0 * band) if near_weight > 0.0 else 0.0
    return loss


@kernel
def confine(theta: FloatArray, limits: FloatArray) -> None:
    """Move theta inside its limits."""
    theta[BASE] = min(max(theta[BASE], limits[FLOOR]), limits[CEILING])
    theta[TOP] = min(max(theta[TOP], theta[BASE]), limits[CEILING])
    theta[SLOPE] = min(max(theta[SLOPE], 0.0), limits[STEEPEST])
    reach = FARTHEST + theta[SLOPE]
    theta[LOGIT] = min(max(theta[LOGIT], -reach), reach)


@kernel
def _hold_at_limits(
    theta: FloatArray, limits: FloatArray, gradient: FloatArray, hessian: FloatArray
) -> None:
    """Take out the coordinates that sit on a limit and are pushed against it."""
    for a in range(4):
        low = (a == BASE and theta[a] <= limits[FLOOR]) or (a == SLOPE and theta[a] <= 0.0)
        high = (a == TOP and theta[a] >= limits[CEILING]) or (
            a == SLOPE and theta[a] >= limits[STEEPEST]
        )
        if (low and gradient[a] > 0.0) or (high and gradient[a] < 0.0):
            gradient[a] = 0.0
            hessian[a, :] = 0.0
            hessian[:, a] = 0.0
            hessian[a, a] = 1.0


@kernel
def fill_row(theta: FloatArray, x: float, share: float, row: FloatArray) -> None:
    """Fill the derivative of the curve at one x."""
    row[BASE], row[TOP] = 1.0 - share, share
    row[LOGIT] = (theta[TOP] - theta[BASE]) * share * (1.0 - share)
    row[SLOPE] = row[LOGIT] * x


@kernel
def add_hinges(
    theta: FloatArray,
    x: FloatArray,
    share: FloatArray,
    pull: FloatArray,
    stiffness: FloatArray,
    gradient: FloatArray,
    hessian: FloatArray,
) -> None:
    """Add the first-order terms of the rows near and above the curve."""
    row = np.empty(4)
    for g in range(x.size):
        if pull[g] != 0.0:
            fill_row(theta, x[g], share[g], row)
            for a in range(4):
                gradient[a] += pull[g] * row[a]
                for b in range(a + 1):
                    hessian[a, b] += stiffness[g] * row[a] * row[b]
    for a in range(4):
        for b in range(a):
            hessian[b, a] = hessian[a, b]


@kernel
def descend_smoothed(
    nodes: FloatArray,
    mass: FloatArray,
    x: FloatArray,
    first: IntArray,
    y: FloatArray,
    w: FloatArray,
    weighted_sum: float,
    tau: float,
    limits: FloatArray,
    band: float,
    theta: FloatArray,
) -> int:
    """Descend on the smoothed loss, in place, while its band shrinks; return the evaluations."""
    groups, total = x.size, mass.sum()
    share, curve, pull, stiffness = (
        np.empty(groups),
        np.empty(groups),
        np.empty(groups),
        np.empty(groups),
    )
    sums, gradient, trial, step = np.empty(7), np.empty(4), np.empty(4), np.empty(4)
    hessian, damped, factor = np.empty((4, 4)), np.empty((4, 4)), np.empty((4, 4))
    evaluations = 0
    for _ in range(BANDS):
        damping, current, trial[:] = FIRST_DAMPING, np.inf, theta
        for _ in range(STEPS_IN_BAND):
            curve_values(trial, x, share, curve)
            node_sums(trial, nodes, mass, sums)
            found = hinge_loss(curve, first, y, w, band, pull, stiffness)
            found += smooth_loss(trial, sums, weighted_sum, tau, step)
            evaluations += 1
            if found < current:
                little = current - found < LITTLE_GAIN * current
                theta[:] = trial
                current = found
                if little:
                    break
                gradient[:] = step
                hessian[:, :] = 0.0
                add_hinges(theta, x, share, pull, stiffness, gradient, hessian)
                add_curvature(theta, sums, 1.0 - tau, hessian)
                node_sums(theta, x, pull, sums)
                add_curvature(theta, sums, 1.0, hessian)
                _hold_at_limits(theta, limits, gradient, hessian)
                damping *= 0.1
            else:
                damping *= 8.0
            solved = False
            while not solved and damping < LARGEST_DAMPING:
                damped[:, :] = hessian
                for a in range(4):
                    damped[a, a] += damping * (abs(hessian[a, a]) + 1e-3 * total)
                solved = cholesky_solve(damped, gradient, factor, step)
                if not solved:
                    damping *= 8.0
            if not solved:
                break
            for a in range(4):
                trial[a] = theta[a] - step[a]
            confine(trial, limits)
        band *= BAND_SHRINK
    return evaluations
