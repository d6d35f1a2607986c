"""From near the optimum to the exact one: linear programme after linear programme.

A smoothed loss comes near the optimum, never to it. From there the curve is linearised, that
problem is solved exactly within a trust region (`toolkit.numerics.hinges`), the step is taken,
and so on: quadratic convergence where the optimum is a vertex, at which four rows or limits fix
the curve. In about 1 % of resamples it is not, and `toolkit.numerics.optimality` takes over. The
decrease that the last linear programme still promises is the certificate.
"""

import numpy as np

from toolkit.numerics.compiling import FloatArray, IntArray, kernel
from toolkit.numerics.hinges import hinge_optimum
from toolkit.numerics.optimality import LIMITS, NEWTON_STEPS, limit_value, settle
from toolkit.numerics.sigmoid import (
    BASE,
    LOGIT,
    MASS,
    SLOPE,
    TOP,
    confine,
    curve_values,
    fill_row,
    first_node_sums,
    hinge_loss,
    smooth_loss,
)

__all__ = ["descend_exactly"]

TRUST = 8  # rows that keep the step inside the trust region
LEAST_RADIUS, WIDE_RADIUS, WIDEST_RADIUS = 1e-7, 1e-3, 0.25
MOST_STEPS = 60
LEAN = 4  # in the scales
SLOWEST = 0.02  # coordinates that hardly move the curve are scaled as if they moved it so much
ROUNDING = 1e-15  # of the total weight: a promise below it is rounding


@kernel
def _rows_near(
    curve: FloatArray,
    first: IntArray,
    y: FloatArray,
    w: FloatArray,
    margin: float,
    listed: IntArray,
    group: IntArray,
    above: FloatArray,
    weight: FloatArray,
) -> int:
    """List the rows above the curve or less than `margin` below; return how many.

    Equal rows become one with the sum of their weights: at a vertex they would vanish together.
    """
    count = 0
    for g in range(curve.size):
        last = np.inf
        for i in range(first[g + 1] - 1, first[g] - 1, -1):
            if y[i] - curve[g] < -margin:
                break
            if w[i] > 0.0:
                if y[i] == last:
                    weight[count - 1] += w[i]
                else:
                    last = y[i]
                    listed[count], group[count] = i, g
                    above[count], weight[count] = y[i] - curve[g], w[i]
                    count += 1
    return count


@kernel
def _scales(theta: FloatArray, radius: float, scale: FloatArray) -> None:
    """Step of each coordinate that moves the curve by about `radius` where it moves it most.

    On a steep curve the slope turns about the midpoint: with each unit of it the logit moves by
    LEAN, or hardly any change of the slope would stay within reach.
    """
    low = 1.0 / (1.0 + np.exp(-(theta[LOGIT] - theta[SLOPE])))
    high = 1.0 / (1.0 + np.exp(-(theta[LOGIT] + theta[SLOPE])))
    steepest = 0.25 if low < 0.5 < high else max(low * (1.0 - low), high * (1.0 - high))
    scale[BASE] = radius / max(1.0 - low, SLOWEST)
    scale[TOP] = radius / max(high, SLOWEST)
    scale[LOGIT] = radius / max((theta[TOP] - theta[BASE]) * steepest, SLOWEST)
    slope = theta[SLOPE]
    scale[SLOPE] = scale[LOGIT]
    scale[LEAN] = 0.0
    if slope > 1.0:
        scale[SLOPE] = radius * slope / max((theta[TOP] - theta[BASE]) * 0.25, SLOWEST)
        scale[LEAN] = theta[LOGIT] / slope


@kernel
def _into_scale(row: FloatArray, scale: FloatArray) -> None:
    """Turn a derivative by theta into one by the scaled step."""
    row[SLOPE] += scale[LEAN] * row[LOGIT]
    for a in range(4):
        row[a] *= scale[a]


@kernel
def _programme(
    theta: FloatArray,
    limits: FloatArray,
    x: FloatArray,
    share: FloatArray,
    scale: FloatArray,
    group: IntArray,
    above: FloatArray,
    value: FloatArray,
    rows: FloatArray,
) -> None:
    """Fill the hinges of the listed rows, the limits and the trust region."""
    hinges = value.size - LIMITS - TRUST
    row = np.empty(4)
    for k in range(hinges):
        value[k] = above[k]
        fill_row(theta, x[group[k]], share[group[k]], row)
        _into_scale(row, scale)
        for a in range(4):
            rows[a, k] = -row[a]
    for j in range(LIMITS):
        value[hinges + j] = min(limit_value(j, theta, limits, row), 0.0)
        _into_scale(row, scale)
        for a in range(4):
            rows[a, hinges + j] = row[a]
    rows[:, hinges + LIMITS :] = 0.0
    value[hinges + LIMITS :] = -1.0
    for a in range(4):
        rows[a, hinges + LIMITS + 2 * a] = 1.0
        rows[a, hinges + LIMITS + 2 * a + 1] = -1.0


@kernel
def _largest_move(rows: FloatArray, step: FloatArray, hinges: int) -> float:
    """Return how far a step moves the curve, to first order, at the row where it moves most."""
    most = 0.0
    for k in range(hinges):
        move = 0.0
        for a in range(4):
            move += rows[a, k] * step[a]
        most = max(most, abs(move))
    return most


@kernel
def _held_rows(
    basis: IntArray,
    listed: IntArray,
    group: IntArray,
    weight: FloatArray,
    hinges: int,
    held: IntArray,
    held_weight: FloatArray,
) -> int:
    """List what the last vertex held at zero, the trust region apart: row and group, or limit."""
    count = 0
    for k in basis:
        if 0 <= k < hinges:
            held[count, 0], held[count, 1], held_weight[count] = listed[k], group[k], weight[k]
            count += 1
        elif hinges <= k < hinges + LIMITS:
            held[count, 0], held[count, 1], held_weight[count] = -1, k - hinges, np.inf
            count += 1
    return count


@kernel
def descend_exactly(
    nodes: FloatArray,
    mass: FloatArray,
    x: FloatArray,
    first: IntArray,
    y: FloatArray,
    w: FloatArray,
    weighted_sum: float,
    tau: float,
    limits: FloatArray,
    radius: float,
    tolerance: float,
    to_the_last_digit: bool,
    theta: FloatArray,
) -> tuple[float, float, int, bool]:
    """Take linear programme after linear programme, in place.

    Return objective, gap, evaluations, certified.
    """
    groups, most = x.size, y.size
    share, curve, pull, stiffness = (
        np.empty(groups),
        np.empty(groups),
        np.empty(groups),
        np.empty(groups),
    )
    listed, group = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    above, weight = np.empty(most), np.empty(most)
    sums, gradient, slope = np.empty(7), np.empty(4), np.empty(4)
    scale, step, trial = np.empty(5), np.empty(4), theta.copy()
    basis = np.empty(4, dtype=np.int64)
    current, gap, margin, promised, moved = np.inf, np.inf, radius, np.inf, np.inf
    held_back, at_optimum, hinges = False, False, 0
    for evaluations in range(1, MOST_STEPS):
        curve_values(trial, x, share, curve)
        first_node_sums(trial, nodes, mass, sums)
        found = smooth_loss(trial, sums, weighted_sum, tau, slope)
        found += hinge_loss(curve, first, y, w, 0.0, pull, stiffness)
        kept = (current - found) / promised
        if found < current:
            theta[:] = trial
            gradient[:] = slope
            current = found
            if held_back:
                radius *= 4.0 if kept > 0.5 else 1.0
            else:
                radius = min(radius, max(4.0 * moved, LEAST_RADIUS))
        else:
            curve_values(theta, x, share, curve)
        if at_optimum:
            if not held_back or radius >= WIDE_RADIUS:
                return current, gap, evaluations, True
            radius *= 16.0
        elif kept < 0.1:
            radius *= 0.25
        if radius < LEAST_RADIUS:
            break
        radius = min(radius, WIDEST_RADIUS)
        # Rows below the margin cannot matter once steps are short; where a step fell short of
        # its promise, they may have, and the wider margin takes in all that the region reaches.
        margin = 4.0 * radius if kept < 0.1 else 2.0 * radius
        hinges = _rows_near(curve, first, y, w, margin, listed, group, above, weight)
        value, rows = np.empty(hinges + LIMITS + TRUST), np.empty((4, hinges + LIMITS + TRUST))
        _scales(theta, radius, scale)
        _programme(theta, limits, x, share, scale, group[:hinges], above, value, rows)
        slope[:] = gradient
        _into_scale(slope, scale)
        enough = tolerance * current + ROUNDING * sums[MASS]
        promised = hinge_optimum(slope, value, rows, weight[:hinges], 1e-3 * enough, basis, step)
        gap = max(promised, 0.0)
        moved = _largest_move(rows, step, hinges)
        at_optimum = -enough <= promised <= enough and moved <= margin
        held_back = False
        for k in range(4):
            held_back = held_back or basis[k] >= hinges + LIMITS
        if at_optimum and not held_back and not to_the_last_digit:
            return current, gap, evaluations, True
        for a in range(4):
            trial[a] = theta[a] + scale[a] * step[a]
        trial[LOGIT] += scale[LEAN] * scale[SLOPE] * step[SLOPE]
        confine(trial, limits)
    held, held_weight = np.empty((4, 2), dtype=np.int64), np.empty(4)
    count = _held_rows(basis, listed, group, weight, hinges, held, held_weight)
    found, decrement, settled = settle(
        nodes,
        mass,
        x,
        first,
        y,
        w,
        weighted_sum,
        tau,
        limits,
        held,
        held_weight,
        count,
        trial,
        theta,
    )
    if settled and found <= current * (1.0 + 1e-13):
        theta[:] = trial
        return found, decrement, evaluations + NEWTON_STEPS, True
    return current, gap, evaluations, False
