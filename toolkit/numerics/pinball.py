"""Exact pinball loss of a sigmoid boundary: smoothed descent, then linear programmes.

A smoothed loss comes near the optimum, never to it. From there the curve is linearised, that
problem is solved exactly within a trust region (`toolkit.numerics.hinges`), the step is taken,
and so on: quadratic convergence where the optimum is a vertex, at which four rows or limits fix
the curve. In about 1 % of resamples it is not: fewer rows and a curved direction remain, and
Newton's method on the conditions of optimality ends there. The decrease that the last linear
programme still promises is the certificate.
"""

import itertools
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from numba import boolean, float64, int64, void

from toolkit.numerics.compiling import FloatArray, IntArray, compile_once, kernel
from toolkit.numerics.hinges import hinge_optimum, invert
from toolkit.numerics.minimise import Minima, for_kernel
from toolkit.numerics.newton import inner_product
from toolkit.numerics.sigmoid import (
    BASE,
    CEILING,
    FARTHEST,
    FLOOR,
    LOGIT,
    MASS,
    SLOPE,
    STEEPEST,
    TOP,
    add_curvature,
    add_hinges,
    confine,
    curve_values,
    descend_smoothed,
    first_node_sums,
    hinge_loss,
    node_sums,
    smooth_loss,
)

__all__ = ["Sample", "minimise_pinball", "ready"]

LIMITS = 7  # rows that keep theta inside its limits; 8 more keep the step inside the trust region
COLD_RADIUS, WARM_RADIUS = 0.02, 0.01  # of the first trust region, as a change of the curve
LEAST_RADIUS, WIDE_RADIUS, WIDEST_RADIUS = 1e-7, 1e-3, 0.25
MOST_STEPS = 60
NEWTON_STEPS = 8
SLOWEST = 0.02  # coordinates that hardly move the curve are scaled as if they moved it so much
ROUNDING = 1e-15  # of the total weight: a promise below it is rounding
STEEPEST_SLOPE = 400.0  # per half range of x: a step between neighbours

WINDOWS = 40  # over which the rows far below any boundary are told apart
FEWEST_TO_SCREEN = 1000  # rows
KEPT_ABOVE = 5.0  # times 1 - tau: share of the rows in a window that may be near the boundary
LEAST_KEPT = 0.05
COARSE_NODES = 128  # of the smooth part while the loss is smoothed


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows sorted by compute, then score, and which of them can be near a boundary.

    Attributes
    ----------
    x : array, shape (cells,)
        Different values of compute, scaled to [-1, 1].
    first : array of int, shape (cells + 1,)
        Where the rows of each cell begin, and the number of rows.
    y : array, shape (n,)
        Scores.
    coarse : array of int, shape (nodes + 1,)
        Where blocks of neighbouring cells begin.
    near : array of int, shape (kept,)
        Rows kept by the screening.
    near_x, near_first : arrays, shape (groups,) and (groups + 1,)
        Their compute, and where the kept rows of each begin.
    hidden : array, shape (cells,)
        Highest score that was left out of each cell; minus infinity where none was.
    centre, half_range : float
        Compute is ``centre + half_range * x``.
    """

    x: FloatArray
    first: IntArray
    y: FloatArray
    coarse: IntArray
    near: IntArray
    near_x: FloatArray
    near_first: IntArray
    hidden: FloatArray
    centre: float
    half_range: float

    @classmethod
    def of(cls, compute: FloatArray, y: FloatArray, tau: float) -> Self:
        """Arrange sorted rows with at least two different values of compute.

        Raises
        ------
        ValueError
            If the rows are not sorted by compute and then by y.
        """
        step = np.diff(compute)
        if (step < 0).any() or ((step == 0) & (np.diff(y) < 0)).any():
            raise ValueError("The rows must be sorted by compute, then by y.")
        first = _starts(np.asarray(compute))
        distinct = compute[first[:-1]]
        centre, half_range = (distinct[-1] + distinct[0]) / 2, (distinct[-1] - distinct[0]) / 2
        keep = _can_be_near(compute, y, tau)
        near = np.flatnonzero(keep)
        near_first = _starts(compute[near])
        left_out = np.where(keep, -np.inf, y)
        return cls(
            x=for_kernel((distinct - centre) / half_range),
            first=first,
            y=for_kernel(y),
            coarse=np.linspace(0, len(distinct), min(COARSE_NODES, len(distinct)) + 1).astype(
                np.int64
            ),
            near=near,
            near_x=for_kernel((compute[near[near_first[:-1]]] - centre) / half_range),
            near_first=near_first,
            hidden=np.maximum.reduceat(left_out, first[:-1]),
            centre=float(centre),
            half_range=float(half_range),
        )


def _starts(compute: FloatArray) -> IntArray:
    """Where each different value of a sorted array begins, and its length."""
    changes = np.flatnonzero(np.diff(compute)) + 1
    return np.concatenate([[0], changes, [len(compute)]]).astype(np.int64)


def _can_be_near(compute: FloatArray, y: FloatArray, tau: float) -> npt.NDArray[np.bool_]:
    """Keep the highest scores among neighbours in compute; small samples whole.

    The threshold is a line between windows: in steps, it would cut where the boundary is steep.
    """
    share = max(KEPT_ABOVE * (1 - tau), LEAST_KEPT)
    if len(y) < FEWEST_TO_SCREEN or share >= 1:
        return np.ones(len(y), dtype=np.bool_)
    edges = np.linspace(0, len(y), WINDOWS + 1).astype(int)
    windows = [slice(i, j) for i, j in itertools.pairwise(edges)]
    middle = [compute[window].mean() for window in windows]
    threshold = [_order_statistic(y[window], 1 - share) for window in windows]
    kept: npt.NDArray[np.bool_] = y >= np.interp(compute, middle, threshold)
    return kept


def _order_statistic(values: FloatArray, share: float) -> float:
    k = int(share * len(values))
    return float(np.partition(values, k)[k])


def minimise_pinball(
    sample: Sample,
    weights: FloatArray,
    starts: FloatArray,
    *,
    tau: float,
    floor: float = 0.0,
    ceiling: float = 1.0,
    band: float = 0.0,
    tolerance: float = 1e-10,
) -> Minima:
    """Minimise ``sum_i w_i rho_tau(y_i - q(x_i))`` for a batch of weight vectors or starts.

    ``q(x) = base + (top - base) sigma(a + b x)`` with floor <= base <= top <= ceiling and b >= 0;
    ``rho_tau(u) = u (tau - [u < 0])``.

    Parameters
    ----------
    sample : Sample
        The rows.
    weights : array, shape (batch, n) or (1, n)
        Non-negative weights; bootstrap counts are weights.
    starts : array, shape (batch, 4) or (1, 4)
        Where each search begins: base, top, a, b.
    tau : float
        Level of the quantile, in (0, 1).
    floor, ceiling : float
        Limits of the curve.
    band : float
        Half-width of the first smoothing of the loss, in the unit of y; 0 for a start near the
        optimum, where smoothing would only lead away.
    tolerance : float
        Largest gap, relative to the objective, that counts as certified.

    Returns
    -------
    Minima
        One row per problem; theta is (base, top, a, b). The gap is what the last linear programme
        promised to gain, or, at an optimum that is no vertex, the Newton decrement.

    Raises
    ------
    ValueError
        If the numbers of weight vectors and starts do not match, or the shapes of the arrays.

    Examples
    --------
    >>> import numpy as np
    >>> z = np.linspace(20.0, 24.0, 9)
    >>> y = 0.2 + 0.6 / (1 + np.exp(-2.0 * (z - 22.0)))
    >>> found = minimise_pinball(Sample.of(z, y, 0.9), np.ones((1, 9)),
    ...                          np.array([[0.1, 0.9, 0.0, 2.0]]), tau=0.9, band=0.1)
    >>> found.theta.round(6).tolist()  # 2 per unit of z, and the half range is 2
    [[0.2, 0.8, 0.0, 4.0]]
    """
    batch = max(len(weights), len(starts))
    if not {len(weights), len(starts)} <= {1, batch}:
        raise ValueError(f"{len(weights)} weight vectors do not match {len(starts)} starts.")
    if np.shape(weights)[1:] != sample.y.shape or np.shape(starts)[1:] != (4,):
        raise ValueError(
            f"The shapes do not match: {len(sample.y)} rows, weights {np.shape(weights)}, starts "
            f"{np.shape(starts)}; needed are (batch, n) and (batch, 4)."
        )
    ready()
    found = Minima(
        np.empty((batch, 4)),
        *(np.empty(batch), np.empty(batch)),
        np.empty(batch, dtype=np.int64),
        np.empty(batch, dtype=np.bool_),
    )
    _minimise_batch(
        *(sample.x, sample.first, sample.y, sample.coarse),
        *(sample.near, sample.near_x, sample.near_first, sample.hidden),
        *(for_kernel(weights), for_kernel(starts)),
        *(float(tau), np.array([floor, ceiling, STEEPEST_SLOPE]), float(band), float(tolerance)),
        *(found.theta, found.objective, found.gap, found.evaluations, found.certified),
    )
    return found


def ready() -> None:
    """Compile the kernel now, so that the first fit does not wait for it."""
    compile_once(_minimise_batch, _SIGNATURE)


@kernel
def _limit(j: int, theta: FloatArray, limits: FloatArray, normal: FloatArray) -> float:
    """How far theta is beyond limit j (negative inside), and its gradient."""
    normal[:] = 0.0
    if j == 0:
        normal[BASE] = -1.0
        return limits[FLOOR] - theta[BASE]
    if j == 1:
        normal[TOP] = 1.0
        return theta[TOP] - limits[CEILING]
    if j == 2:
        normal[BASE], normal[TOP] = 1.0, -1.0
        return theta[BASE] - theta[TOP]
    if j == 3:
        normal[SLOPE] = -1.0
        return -theta[SLOPE]
    if j == 4:
        normal[SLOPE] = 1.0
        return theta[SLOPE] - limits[STEEPEST]
    normal[SLOPE] = -1.0
    if j == 5:
        normal[LOGIT] = 1.0
        return theta[LOGIT] - theta[SLOPE] - FARTHEST
    normal[LOGIT] = -1.0
    return -theta[LOGIT] - theta[SLOPE] - FARTHEST


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
def _fill_row(theta: FloatArray, x: float, share: float, row: FloatArray) -> None:
    """Derivative of the curve at one x."""
    row[BASE], row[TOP] = 1.0 - share, share
    row[LOGIT] = (theta[TOP] - theta[BASE]) * share * (1.0 - share)
    row[SLOPE] = row[LOGIT] * x


@kernel
def _scales(theta: FloatArray, radius: float, scale: FloatArray) -> None:
    """Step of each coordinate that moves the curve by about `radius` where it moves it most."""
    low = 1.0 / (1.0 + np.exp(-(theta[LOGIT] - theta[SLOPE])))
    high = 1.0 / (1.0 + np.exp(-(theta[LOGIT] + theta[SLOPE])))
    steepest = 0.25 if low < 0.5 < high else max(low * (1.0 - low), high * (1.0 - high))
    scale[BASE] = radius / max(1.0 - low, SLOWEST)
    scale[TOP] = radius / max(high, SLOWEST)
    scale[LOGIT] = radius / max((theta[TOP] - theta[BASE]) * steepest, SLOWEST)
    scale[SLOPE] = scale[LOGIT]


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
    hinges = value.size - LIMITS - 8
    row = np.empty(4)
    for k in range(hinges):
        value[k] = above[k]
        _fill_row(theta, x[group[k]], share[group[k]], row)
        for a in range(4):
            rows[a, k] = -scale[a] * row[a]
    for j in range(LIMITS):
        value[hinges + j] = min(_limit(j, theta, limits, row), 0.0)
        for a in range(4):
            rows[a, hinges + j] = scale[a] * row[a]
    rows[:, hinges + LIMITS :] = 0.0
    value[hinges + LIMITS :] = -1.0
    for a in range(4):
        rows[a, hinges + LIMITS + 2 * a] = 1.0
        rows[a, hinges + LIMITS + 2 * a + 1] = -1.0


@kernel
def _largest_move(rows: FloatArray, step: FloatArray, hinges: int) -> float:
    """Most that a step moves the curve at the listed rows, to first order."""
    most = 0.0
    for k in range(hinges):
        move = 0.0
        for a in range(4):
            move += rows[a, k] * step[a]
        most = max(most, abs(move))
    return most


@kernel
def _settle(
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
                    right[4 + j] = -_limit(g, trial, limits, normal)
                else:
                    right[4 + j] = curve[g] - y[i]
                    _fill_row(trial, x[g], share[g], normal)
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


@kernel
def _descend_exactly(
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
    scale, step, trial = np.empty(4), np.empty(4), theta.copy()
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
        margin = radius if kept > 0.1 else 4.0 * radius
        hinges = _rows_near(curve, first, y, w, margin, listed, group, above, weight)
        value, rows = np.empty(hinges + LIMITS + 8), np.empty((4, hinges + LIMITS + 8))
        _scales(theta, radius, scale)
        _programme(theta, limits, x, share, scale, group[:hinges], above, value, rows)
        for a in range(4):
            slope[a] = scale[a] * gradient[a]
        enough = tolerance * current + ROUNDING * sums[MASS]
        promised = hinge_optimum(slope, value, rows, weight[:hinges], 1e-3 * enough, basis, step)
        gap = max(promised, 0.0)
        moved = _largest_move(rows, step, hinges)
        at_optimum = -enough <= promised <= enough and moved <= margin
        held_back = False
        for k in range(4):
            held_back = held_back or basis[k] >= hinges + LIMITS
        for a in range(4):
            trial[a] = theta[a] + scale[a] * step[a]
        confine(trial, limits)
    held = np.empty((4, 2), dtype=np.int64)
    held_weight = np.empty(4)
    count = 0
    for k in range(4):
        if 0 <= basis[k] < hinges:
            held[count, 0], held[count, 1] = listed[basis[k]], group[basis[k]]
            held_weight[count] = weight[basis[k]]
            count += 1
        elif hinges <= basis[k] < hinges + LIMITS:
            held[count, 0], held[count, 1] = -1, basis[k] - hinges
            held_weight[count] = np.inf
            count += 1
    found, decrement, settled = _settle(
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


@kernel
def _node_masses(
    x: FloatArray, cell_mass: FloatArray, block: IntArray, nodes: FloatArray, mass: FloatArray
) -> None:
    """Put the weight of each block of cells at its mean."""
    for k in range(nodes.size):
        total, moment = 0.0, 0.0
        for c in range(block[k], block[k + 1]):
            total += cell_mass[c]
            moment += cell_mass[c] * x[c]
        mass[k] = total
        nodes[k] = moment / total if total > 0.0 else x[block[k]]


@kernel
def _cell_masses(first: IntArray, w: FloatArray, mass: FloatArray) -> None:
    """Sum the weights of each cell."""
    for c in range(mass.size):
        total = 0.0
        for i in range(first[c], first[c + 1]):
            total += w[i]
        mass[c] = total


@kernel
def _shows_hidden(theta: FloatArray, x: FloatArray, hidden: FloatArray) -> bool:
    """Whether the curve runs below a row that the screening left out."""
    share, curve = np.empty(x.size), np.empty(x.size)
    curve_values(theta, x, share, curve)
    shown = 0
    for c in range(x.size):
        shown += curve[c] < hidden[c]
    return shown > 0


@kernel
def _minimise_batch(
    x: FloatArray,
    first: IntArray,
    y: FloatArray,
    coarse: IntArray,
    near: IntArray,
    near_x: FloatArray,
    near_first: IntArray,
    hidden: FloatArray,
    weights: FloatArray,
    starts: FloatArray,
    tau: float,
    limits: FloatArray,
    band: float,
    tolerance: float,
    theta: FloatArray,
    objective: FloatArray,
    gap: FloatArray,
    evaluations: IntArray,
    certified: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> None:
    """Solve every problem of a batch: on the rows that can be near, and where that fails on all."""
    mass, near_y, near_w = np.empty(x.size), y[near], np.empty(near.size)
    nodes, node_mass = np.empty(coarse.size - 1), np.empty(coarse.size - 1)
    radius = COLD_RADIUS if band > 0.0 else WARM_RADIUS
    weighted_sum = 0.0
    for k in range(len(theta)):
        w = weights[k % len(weights)]
        if k < len(weights):
            _cell_masses(first, w, mass)
            weighted_sum = inner_product(w, y)
            for i in range(near.size):
                near_w[i] = w[near[i]]
        theta[k] = starts[k % len(starts)]
        confine(theta[k], limits)
        before = 0
        if band > 0.0:
            _node_masses(x, mass, coarse, nodes, node_mass)
            before = descend_smoothed(
                *(nodes, node_mass, near_x, near_first, near_y, near_w),
                *(weighted_sum, tau, limits, band, theta[k]),
            )
        groups, begins, scores, counts = near_x, near_first, near_y, near_w
        evaluations[k] = before
        for _ in range(2):
            objective[k], gap[k], more, certified[k] = _descend_exactly(
                *(x, mass, groups, begins, scores, counts),
                *(weighted_sum, tau, limits, radius, tolerance, theta[k]),
            )
            evaluations[k] += more
            if not _shows_hidden(theta[k], x, hidden):
                break
            groups, begins, scores, counts = x, first, y, w


_SIGNATURE = void(
    *(float64[::1], int64[::1], float64[::1], int64[::1]),
    *(int64[::1], float64[::1], int64[::1], float64[::1]),
    *(float64[:, ::1], float64[:, ::1]),
    *(float64, float64[::1], float64, float64),
    *(float64[:, ::1], float64[::1], float64[::1], int64[::1], boolean[::1]),
)
