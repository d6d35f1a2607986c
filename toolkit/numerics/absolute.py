"""Exact least absolute deviations: linearise, solve that problem exactly, repeat.

A smooth stand-in for ``|r|`` comes near the optimum, never to it. From there this module walks
the vertices: the linearised problem ``min over d of sum_i w_i |r_i + J_i d|`` has a solution
where p residuals are zero; an edge descent (Barrodale and Roberts 1973) finds it; the step is
taken; the model is linearised again. It converges quadratically at a vertex, and the decrease
that the linearised optimum still promises is the certificate.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import boolean, float64, int64, types, void

from toolkit.numerics.compiling import FloatArray, IntArray, compile_once, kernel
from toolkit.numerics.hinges import invert
from toolkit.numerics.minimise import MODEL_SIGNATURE, Minima, for_kernel, minimise
from toolkit.numerics.newton import inner_product, with_weight

__all__ = ["minimise_absolute", "ready"]

SMOOTHING = 3e-3  # Huber threshold of the first phase, as a share of the spread of y
MOST_STEPS, MOST_PIVOTS = 60, 1000
OPTIMAL = 1e-9  # a multiplier beyond its weight by less than this share counts as within
DEPENDENT = 1e-9  # a basis row shorter than this after projection adds no direction


def minimise_absolute(
    model: Any,
    x: FloatArray,
    y: FloatArray,
    weights: FloatArray,
    starts: FloatArray,
    *,
    lower: FloatArray,
    upper: FloatArray,
    smoothing: float | None = None,
    first_band: float = np.inf,
    tolerance: float = 1e-10,
    threads: int = 1,
) -> Minima:
    """Minimise ``sum_i w_i |g_i(theta) - y_i|`` for a batch of targets, weights or starts.

    Parameters are those of `toolkit.numerics.minimise.minimise`; `smoothing` is the Huber
    threshold of the first phase, any value well below the residuals (default: 0.3 % of the mean
    absolute deviation of y from its median). Where the optimum is not a vertex (fewer than p zero
    residuals), the gap stays above the tolerance and the problem counts as not certified.
    """
    if smoothing is None:
        smoothing = SMOOTHING * float(np.mean(np.abs(y - np.median(y)))) + 1e-12
    near = minimise(
        model,
        *(x, y, weights, starts),
        lower=lower,
        upper=upper,
        delta=smoothing,
        first_band=first_band,
        tolerance=1e-4,
        threads=threads,
    )
    ready()
    found = Minima(*(np.array(part) for part in _fields(near)))
    _polish_batch(
        model,
        *(for_kernel(a) for a in (x, np.atleast_2d(y), weights)),
        *(for_kernel(a) for a in (lower, upper)),
        tolerance,
        *_fields(found),
    )
    return found


def ready() -> None:
    """Compile the kernel now, so that the first fit does not wait for it."""
    compile_once(_polish_batch, _SIGNATURE)


def _fields(minima: Minima) -> tuple[npt.NDArray[Any], ...]:
    return minima.theta, minima.objective, minima.gap, minima.evaluations, minima.certified


@kernel
def _first_basis(residual: FloatArray, rows: FloatArray, basis: IntArray) -> bool:
    """Pick the smallest residuals whose rows are linearly independent."""
    n, size = rows.shape
    frame = np.zeros((size, size))
    rest = np.empty(size)
    seen = np.zeros(n, dtype=np.bool_)
    filled = 0
    for _ in range(n):
        i = -1
        for k in range(n):
            if not seen[k] and (i < 0 or abs(residual[k]) < abs(residual[i])):
                i = k
        seen[i] = True
        rest[:] = rows[i]
        for k in range(filled):
            part = inner_product(rest, frame[k])
            for c in range(size):
                rest[c] -= part * frame[k, c]
        length = np.sqrt(inner_product(rest, rest))
        if length > DEPENDENT * np.sqrt(inner_product(rows[i], rows[i])) + 1e-300:
            for c in range(size):
                frame[filled, c] = rest[c] / length
            basis[filled] = i
            filled += 1
            if filled == size:
                return True
    return False


@kernel
def _corner(
    residual: FloatArray,
    rows: FloatArray,
    w: FloatArray,
    basis: IntArray,
    inverse: FloatArray,
    step: FloatArray,
    moved: FloatArray,
    gradient: FloatArray,
) -> bool:
    """Go where the basis residuals vanish: step, residuals there, gradient of the others."""
    n, size = rows.shape
    corner = np.empty((size, size))
    for k in range(size):
        corner[k, :] = rows[basis[k]]
    if not invert(corner, inverse):
        return False
    step[:] = 0.0
    gradient[:] = 0.0
    for k in range(size):
        for c in range(size):
            step[c] -= inverse[c, k] * residual[basis[k]]
    for i in range(n):
        moved[i] = residual[i] + inner_product(rows[i], step)
    for k in range(size):
        moved[basis[k]] = 0.0
    for i in range(n):
        outside = True
        for k in range(size):
            outside = outside and basis[k] != i
        if outside:
            push = w[i] if moved[i] >= 0.0 else -w[i]
            for c in range(size):
                gradient[c] += push * rows[i, c]
    return True


@kernel
def _entering(moved: FloatArray, speed: FloatArray, w: FloatArray, slope: float) -> int:
    """Walk past the points where residuals change sign until the slope turns upward."""
    along = np.empty(moved.size)
    for i in range(moved.size):
        toward = (moved[i] >= 0.0 and speed[i] < 0.0) or (moved[i] < 0.0 and speed[i] > 0.0)
        along[i] = -moved[i] / speed[i] if toward else np.inf
    last = -1
    while slope < 0.0:
        nearest = -1
        for i in range(along.size):
            if along[i] < np.inf and (nearest < 0 or along[i] < along[nearest]):
                nearest = i
        if nearest < 0:
            return -1
        along[nearest] = np.inf
        slope += 2.0 * w[nearest] * abs(speed[nearest])
        last = nearest
    return last


@kernel
def _linear_optimum(
    residual: FloatArray, rows: FloatArray, w: FloatArray, basis: IntArray, step: FloatArray
) -> float:
    """Solve ``min over d of sum w |residual + rows d|`` exactly; return its value, d in `step`."""
    n, size = rows.shape
    inverse = np.empty((size, size))
    moved, speed, gradient = np.empty(n), np.empty(n), np.empty(size)
    for _ in range(MOST_PIVOTS):
        if not _corner(residual, rows, w, basis, inverse, step, moved, gradient):
            return np.inf
        worst, leaving, sign = OPTIMAL, -1, 1.0
        for k in range(size):
            multiplier = 0.0
            for c in range(size):
                multiplier -= inverse[c, k] * gradient[c]
            excess = abs(multiplier) / w[basis[k]] - 1.0
            if excess > worst:
                worst, leaving, sign = excess, k, (1.0 if multiplier > 0.0 else -1.0)
        if leaving < 0:
            break
        for i in range(n):
            speed[i] = 0.0
            for c in range(size):
                speed[i] += sign * inverse[c, leaving] * rows[i, c]
        for k in range(size):
            speed[basis[k]] = 0.0
        entering = _entering(moved, speed, w, -worst * w[basis[leaving]])
        if entering < 0:
            return np.inf
        basis[leaving] = entering
    total = 0.0
    for i in range(n):
        total += w[i] * abs(moved[i])
    return total


@kernel
def _absolute(value: FloatArray, y: FloatArray, w: FloatArray) -> float:
    """Sum of weighted absolute residuals."""
    total = 0.0
    for i in range(y.size):
        total += w[i] * abs(value[i] - y[i])
    return total


@kernel
def _polish_one(
    model: object,
    x: FloatArray,
    y: FloatArray,
    w: FloatArray,
    theta: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    tolerance: float,
) -> tuple[float, float, int, bool]:
    """Descend from `theta`, in place; return objective, gap, evaluations, certified."""
    n, size = y.size, theta.size
    value, jacobian, trial = np.empty(n), np.empty((size, n)), np.empty(size)
    free = np.empty(size, dtype=np.int64)
    moving = 0
    for a in range(size):
        if lower[a] < theta[a] < upper[a]:
            free[moving] = a
            moving += 1
    rows, step, residual = np.empty((n, moving)), np.empty(moving), np.empty(n)
    basis = np.empty(moving, dtype=np.int64)
    model(theta, x, value, jacobian)  # type: ignore[operator]
    evaluations = 1
    current = _absolute(value, y, w)
    gap = np.inf
    exact_fit = 1e-13 * w.sum()
    for _ in range(MOST_STEPS):
        for i in range(n):
            residual[i] = value[i] - y[i]
            for k in range(moving):
                rows[i, k] = jacobian[free[k], i]
        if not _first_basis(residual, rows, basis):
            break
        gap = current - _linear_optimum(residual, rows, w, basis, step)
        if gap <= tolerance * current + exact_fit:
            return current, max(gap, 0.0), evaluations, True
        share = 1.0
        found = np.inf
        while share > 1e-6 and not found < current:
            trial[:] = theta
            for k in range(moving):
                a = free[k]
                trial[a] = min(max(theta[a] + share * step[k], lower[a]), upper[a])
            model(trial, x, value, jacobian)  # type: ignore[operator]
            evaluations += 1
            found = _absolute(value, y, w)
            share *= 0.5
        if not found < current:
            break
        theta[:] = trial
        current = found
    return current, gap, evaluations, False


@kernel
def _polish_batch(
    model: object,
    x: FloatArray,
    targets: FloatArray,
    weights: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    tolerance: float,
    theta: FloatArray,
    objective: FloatArray,
    gap: FloatArray,
    evaluations: IntArray,
    certified: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> None:
    """Polish every problem of a batch."""
    for k in range(len(theta)):
        y, w = targets[k % len(targets)], weights[k % len(weights)]
        x_used, y_used, w_used = with_weight(x, y, w, 1)
        objective[k], gap[k], more, certified[k] = _polish_one(
            model, x_used, y_used, w_used, theta[k], lower, upper, tolerance
        )
        evaluations[k] += more


_SIGNATURE = void(
    types.FunctionType(MODEL_SIGNATURE),
    *(float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1], float64[::1]),
    *(float64, float64[:, ::1], float64[::1], float64[::1], int64[::1], boolean[::1]),
)
