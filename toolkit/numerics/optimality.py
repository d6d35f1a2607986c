"""Optima of the pinball loss that are no vertex: fewer than four rows on the curve.

There the loss is smooth along the edge on which these rows stay on the curve. Newton's method on
the conditions of optimality, in theta and the multipliers of the rows, ends at its lowest point.
"""

import numpy as np

from toolkit.numerics.compiling import FloatArray, IntArray, kernel
from toolkit.numerics.hinges import invert
from toolkit.numerics.sigmoid import (
    BASE,
    CEILING,
    FARTHEST,
    FLOOR,
    LOGIT,
    SLOPE,
    STEEPEST,
    TOP,
    add_curvature,
    add_hinges,
    confine,
    curve_values,
    fill_row,
    hinge_loss,
    node_sums,
    smooth_loss,
)

__all__ = ["LIMITS", "NEWTON_STEPS", "limit_value", "settle"]

LIMITS = 7  # that keep theta where it may be
NEWTON_STEPS = 8


@kernel
def limit_value(j: int, theta: FloatArray, limits: FloatArray, normal: FloatArray) -> float:
    """Return how far theta is beyond limit j (negative inside), and fill the gradient of that."""
    normal[:] = 0.0
    if j == 0:
        normal[BASE] = -1.0
        beyond = limits[FLOOR] - theta[BASE]
    elif j == 1:
        normal[TOP] = 1.0
        beyond = theta[TOP] - limits[CEILING]
    elif j == 2:
        normal[BASE], normal[TOP] = 1.0, -1.0
        beyond = theta[BASE] - theta[TOP]
    elif j == 3:
        normal[SLOPE] = -1.0
        beyond = -theta[SLOPE]
    elif j == 4:
        normal[SLOPE] = 1.0
        beyond = theta[SLOPE] - limits[STEEPEST]
    else:  # the logit at one end of the data
        side = 1.0 if j == 5 else -1.0
        normal[LOGIT], normal[SLOPE] = side, -1.0
        beyond = side * theta[LOGIT] - theta[SLOPE] - FARTHEST
    return float(beyond)


@kernel
def settle(
    nodes: FloatArray,
    mass: FloatArray,
    x: FloatArray,
    first: IntArray,
    y: FloatArray,
    w: FloatArray,
    weighted_sum: float,
    tau: float,
    limits: FloatArray,
    held: IntArray,
    held_weight: FloatArray,
    count: int,
    trial: FloatArray,
    theta: FloatArray,
) -> tuple[float, float, bool]:
    """Solve the conditions of optimality on the edge where `count` rows and limits are held at 0.

    Newton's method in theta and the multipliers, which must end between 0 and the weights; the
    row that breaks this most is let go, and so on. Return objective, gap and whether it ended.
    """
    groups = x.size
    share, curve, pull, level = (
        np.empty(groups),
        np.empty(groups),
        np.empty(groups),
        np.empty(groups),
    )
    stiffness = np.zeros(groups)
    sums, gradient, normal, hessian = np.empty(7), np.empty(4), np.empty(4), np.empty((4, 4))
    multiplier = np.zeros(4)
    found = gap = np.inf
    while count >= 0:
        trial[:] = theta
        multiplier[:] = 0.0
        matrix, inverse = np.empty((4 + count, 4 + count)), np.empty((4 + count, 4 + count))
        right = np.empty(4 + count)
        longest = np.inf
        for turn in range(NEWTON_STEPS):
            curve_values(trial, x, share, curve)
            node_sums(trial, nodes, mass, sums)
            found = smooth_loss(trial, sums, weighted_sum, tau, gradient)
            found += hinge_loss(curve, first, y, w, 0.0, pull, level)
            matrix[:, :] = 0.0
            for j in range(count):
                i, g = held[j, 0], held[j, 1]
                if i < 0:
                    right[4 + j] = -limit_value(g, trial, limits, normal)
                else:
                    right[4 + j] = curve[g] - y[i]
                    fill_row(trial, x[g], share[g], normal)
                    normal *= -1.0
                    if y[i] > curve[g]:
                        pull[g] += held_weight[j]
                for a in range(4):
                    matrix[a, 4 + j] = matrix[4 + j, a] = normal[a]
            hessian[:, :] = 0.0
            add_hinges(trial, x, share, pull, stiffness, gradient, hessian)
            add_curvature(trial, sums, 1.0 - tau, hessian)
            for j in range(count):
                if held[j, 0] >= 0:
                    pull[held[j, 1]] -= multiplier[j]
            node_sums(trial, x, pull, sums)
            add_curvature(trial, sums, 1.0, hessian)
            matrix[:4, :4] = hessian
            right[:4] = -gradient
            if longest < 1e-12 or not invert(matrix, inverse):
                break
            gap, longest = 0.0, 0.0
            for a in range(4):
                step, uphill = 0.0, gradient[a]
                for k in range(4 + count):
                    step += inverse[a, k] * right[k]
                for j in range(count):
                    uphill += multiplier[j] * matrix[a, 4 + j]
                gap += 0.5 * abs(step * uphill)
                longest = max(longest, abs(step))
                normal[a] = step
            for j in range(count):
                multiplier[j] = 0.0
                for k in range(4 + count):
                    multiplier[j] += inverse[4 + j, k] * right[k]
            if turn == 0:
                longest = np.inf  # the multipliers first: the curvature rests on them
            else:
                for a in range(4):
                    trial[a] += normal[a]
        worst, row = 1e-9, -1
        for j in range(count):
            excess = max(-multiplier[j], multiplier[j] - held_weight[j])
            if excess > worst:
                worst, row = excess, j
        if row < 0:
            normal[:] = trial
            confine(normal, limits)
            outside = 0.0
            for a in range(4):
                outside = max(outside, abs(normal[a] - trial[a]))
            return found, gap, longest < 1e-8 and outside < 1e-12
        count -= 1
        held[row], held_weight[row] = held[count], held_weight[count]
    return found, gap, False
