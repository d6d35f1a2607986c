"""Kernels of the minimiser: damped Gauss-Newton on robust losses, exact curvature where needed.

One problem is ``min over theta of F = sum_i w_i rho(r_i)`` with residuals ``r_i = g_i(theta) -
y_i`` and the Huber loss ``rho``. Two ideas make it quick and safe:

- The Huber band starts wide and narrows to delta. A banded objective keeps the slope delta in the
  tails; inside the band it is a parabola, so Gauss-Newton sees many points at first and ends
  with the exact loss.
- Near the end Gauss-Newton converges like Newton because residuals are small. Where they are
  not, or on a ridge, the missing second-order term is added by differences of the Jacobian.
"""

import numpy as np

from toolkit.numerics.compiling import FloatArray, IntArray, kernel, summing_kernel

BAND_SHRINK = 0.5  # factor on the band, each time a step gains little
LITTLE_GAIN = 0.3  # as a share of the objective
GAUSS_NEWTON_STEPS = 12  # within one band; then the second-order term is worth its price
DIFFERENCE = 1e-5  # step of the differences, relative to max(|theta|, 1); error about 1e-10
ROUNDING = 1e-11  # residuals below this are rounding: an exact fit counts as certified
FIRST_DAMPING, LARGEST_DAMPING = 1e-3, 1e12
LANES = 8  # values that a vector instruction may take at once


@kernel
def cholesky_solve(
    matrix: FloatArray, right: FloatArray, factor: FloatArray, solution: FloatArray
) -> bool:
    """Solve ``matrix @ solution = right``; False where the matrix is not positive definite."""
    size = right.size
    for i in range(size):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            if j < i:
                factor[i, j] = total * factor[j, j]
            elif total > 1e-14 * abs(matrix[i, i]):
                factor[i, i] = 1.0 / np.sqrt(total)  # the inverse: one slow division per row
            else:
                return False
    for i in range(size):
        total = right[i]
        for k in range(i):
            total -= factor[i, k] * solution[k]
        solution[i] = total * factor[i, i]
    for i in range(size - 1, -1, -1):
        total = solution[i]
        for k in range(i + 1, size):
            total -= factor[k, i] * solution[k]
        solution[i] = total * factor[i, i]
    return True


@summing_kernel
def _objective(value: FloatArray, y: FloatArray, w: FloatArray, delta: float, band: float) -> float:
    """Sum of Huber losses with threshold `band`, scaled so that the tails keep slope delta."""
    total = 0.0
    if band == np.inf:
        for i in range(y.size):
            total += 0.5 * w[i] * (value[i] - y[i]) ** 2
        return total
    for i in range(y.size):
        r = abs(value[i] - y[i])
        inside = r if r < band else band
        total += w[i] * inside * (r - 0.5 * inside)
    return total * delta / band


@summing_kernel
def inner_product(u: FloatArray, v: FloatArray) -> float:
    """Sum of ``u * v``."""
    total = 0.0
    for i in range(u.size):
        total += u[i] * v[i]
    return total


@summing_kernel
def _row_product(w: FloatArray, rows: FloatArray, a: int, b: int) -> float:
    """Sum of ``w * rows[a] * rows[b]``; a slice for each row would cost more than the sum."""
    total = 0.0
    for i in range(w.size):
        total += w[i] * rows[a, i] * rows[b, i]
    return total


@summing_kernel
def _row_sums(
    score: FloatArray, inside: FloatArray, w: FloatArray, rows: FloatArray, a: int
) -> tuple[float, float, float]:
    """Return the sums of ``score * rows[a]``, ``inside * rows[a]**2`` and ``w * rows[a]**2``."""
    first, second, third = 0.0, 0.0, 0.0
    for i in range(w.size):
        entry = rows[a, i]
        first += score[i] * entry
        second += inside[i] * entry * entry
        third += w[i] * entry * entry
    return first, second, third


@kernel
def _derivatives(
    value: FloatArray,
    jacobian: FloatArray,
    y: FloatArray,
    w: FloatArray,
    delta: float,
    band: float,
    score: FloatArray,
    inside: FloatArray,
    gradient: FloatArray,
    hessian: FloatArray,
    scale: FloatArray,
) -> None:
    """Gradient and Gauss-Newton Hessian of the banded objective, scores w psi, damping scale.

    The scale is the diagonal of the Hessian as if every point lay inside the band: it stays
    positive, and a step damped by it is short, even when hardly a point does.
    """
    slope = 1.0 if band == np.inf else delta / band
    for i in range(y.size):
        r = value[i] - y[i]
        clipped = min(max(r, -band), band)
        score[i] = slope * w[i] * clipped
        inside[i] = slope * w[i] if clipped == r else 0.0
    for a in range(gradient.size):
        gradient[a], hessian[a, a], squares = _row_sums(score, inside, w, jacobian, a)
        scale[a] = slope * squares
        for b in range(a):
            hessian[a, b] = _row_product(inside, jacobian, a, b)
            hessian[b, a] = hessian[a, b]


@kernel
def _add_second_order(
    model: object,
    theta: FloatArray,
    x: FloatArray,
    score: FloatArray,
    value: FloatArray,
    jacobian: FloatArray,
    hessian: FloatArray,
) -> None:
    """Add ``sum_i score_i * d2 g_i`` to the Hessian, by central differences of the Jacobian."""
    size = theta.size
    second = np.zeros((size, size))
    shifted = np.empty(size)
    for a in range(size):
        step = DIFFERENCE * max(abs(theta[a]), 1.0)
        for sign in (-1.0, 1.0):
            shifted[:] = theta
            shifted[a] += sign * step
            model(shifted, x, value, jacobian)  # type: ignore[operator]
            for b in range(size):
                second[a, b] += sign * inner_product(score, jacobian[b]) / (2.0 * step)
    for a in range(size):
        for b in range(size):
            hessian[a, b] += 0.5 * (second[a, b] + second[b, a])


@kernel
def _hold_at_bounds(
    theta: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    gradient: FloatArray,
    hessian: FloatArray,
    scale: FloatArray,
) -> None:
    """Take out the parameters that are pinned, or sit on a bound and are pushed against it."""
    for a in range(theta.size):
        pinned = lower[a] == upper[a]
        held_low = theta[a] <= lower[a] and gradient[a] > 0.0
        held_high = theta[a] >= upper[a] and gradient[a] < 0.0
        if pinned or held_low or held_high:
            gradient[a] = 0.0
            hessian[a, :] = 0.0
            hessian[:, a] = 0.0
            hessian[a, a] = 1.0
            scale[a] = 1.0


@kernel
def _damped_step(
    theta: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    gradient: FloatArray,
    hessian: FloatArray,
    scale: FloatArray,
    damping: float,
    trial: FloatArray,
    step: FloatArray,
    damped: FloatArray,
    factor: FloatArray,
) -> float:
    """Put the damped Newton point, cut to the box, in `trial`; return the decrease it promises.

    The answer is NaN where the damped Hessian is not positive definite.
    """
    size = theta.size
    damped[:, :] = hessian
    for a in range(size):
        damped[a, a] += damping * max(scale[a], abs(hessian[a, a]), 1e-300)
    if not cholesky_solve(damped, gradient, factor, step):
        return np.nan
    for a in range(size):
        trial[a] = min(max(theta[a] - step[a], lower[a]), upper[a])
        step[a] = trial[a] - theta[a]
    promised = 0.0
    for a in range(size):
        promised -= gradient[a] * step[a]
        for b in range(size):
            promised -= 0.5 * step[a] * hessian[a, b] * step[b]
    return promised


@kernel
def _next_damping(damping: float, gained: float, promised: float) -> float:
    """Relax the damping after a step that kept its promise, tighten it after a poor one."""
    quality = gained / promised if promised > 0.0 else 0.0
    if quality > 0.7:
        return 0.1 * damping if damping > 1e-6 else 0.0
    if quality < 0.3:
        return max(3.0 * damping, 1e-6)
    return damping


@kernel
def _minimise_one(
    model: object,
    x: FloatArray,
    y: FloatArray,
    w: FloatArray,
    theta: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    delta: float,
    first_band: float,
    tolerance: float,
    max_evaluations: int,
) -> tuple[float, float, int, bool]:
    """Minimise from `theta`, in place; return objective, gap, evaluations, certified."""
    n, size = y.size, theta.size
    value, other_value, score, inside = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    jacobian, other_jacobian = np.empty((size, n)), np.empty((size, n))
    gradient, scale, step, trial = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    hessian, damped, factor = np.empty((size, size)), np.empty((size, size)), np.empty((size, size))

    model(theta, x, value, jacobian)  # type: ignore[operator]
    evaluations = 1
    band = max(min(first_band, np.abs(value - y).max()), delta)
    current = _objective(value, y, w, delta, band)
    if not np.isfinite(current):
        return np.inf, np.inf, evaluations, False
    exact_fit = w.sum() * ROUNDING * min(delta, ROUNDING)
    damping, gap, steps_in_band, moved = FIRST_DAMPING, np.inf, 0, True

    while evaluations < max_evaluations:
        if moved:
            _derivatives(
                value, jacobian, y, w, delta, band, score, inside, gradient, hessian, scale
            )
            if steps_in_band >= GAUSS_NEWTON_STEPS:
                _add_second_order(model, theta, x, score, other_value, other_jacobian, hessian)
                evaluations += 2 * size
            _hold_at_bounds(theta, lower, upper, gradient, hessian, scale)
            if band == delta:
                convex = cholesky_solve(hessian, gradient, factor, step)
                gap = 0.5 * np.dot(gradient, step) if convex else np.inf
                if gap <= tolerance * current + exact_fit:
                    return current, gap, evaluations, True
        promised = _damped_step(
            theta, lower, upper, gradient, hessian, scale, damping, trial, step, damped, factor
        )
        found = np.inf
        if not np.isnan(promised):
            model(trial, x, other_value, other_jacobian)  # type: ignore[operator]
            evaluations += 1
            found = _objective(other_value, y, w, delta, band)
        moved = found < current
        narrow = False
        if moved:
            narrow = current - found < LITTLE_GAIN * current
            damping = _next_damping(damping, current - found, promised)
            theta[:] = trial
            current = found
            value, other_value = other_value, value
            jacobian, other_jacobian = other_jacobian, jacobian
            steps_in_band += 1
        else:
            damping = max(8.0 * damping, 1e-4)
            if damping > LARGEST_DAMPING:
                if band == delta:
                    break
                narrow, moved, damping = True, True, FIRST_DAMPING
        if narrow and band > delta:
            band, steps_in_band = max(BAND_SHRINK * band, delta), 0
            current = _objective(value, y, w, delta, band)
    return _objective(value, y, w, delta, delta), gap, evaluations, False


@kernel
def with_weight(
    x: FloatArray, y: FloatArray, w: FloatArray, lanes: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Copy the observations that have weight, side by side: a resample leaves a third out.

    Copies of the first observation, without weight, fill up to a multiple of `lanes`: loops over
    such a number have no remainder that goes one by one.
    """
    used = 0
    for i in range(w.size):
        used += w[i] > 0.0
    length = (used + lanes - 1) // lanes * lanes
    x_used, y_used, w_used = np.empty((len(x), length)), np.empty(length), np.empty(length)
    at, i = 0, 0
    while at < used:  # without a branch, which would be guessed wrong once in three
        for column in range(len(x)):
            x_used[column, at] = x[column, i]
        y_used[at] = y[i]
        w_used[at] = w[i]
        at += w[i] > 0.0
        i += 1
    for at in range(used, length):
        x_used[:, at] = x[:, 0]
        y_used[at] = y[0]
        w_used[at] = 0.0
    return x_used, y_used, w_used


@kernel
def minimise_batch(
    model: object,
    x: FloatArray,
    targets: FloatArray,
    weights: FloatArray,
    starts: FloatArray,
    problems: IntArray,
    lower: FloatArray,
    upper: FloatArray,
    delta: float,
    first_band: float,
    tolerance: float,
    max_evaluations: int,
    theta: FloatArray,
    objective: FloatArray,
    gap: FloatArray,
    evaluations: IntArray,
    certified: np.ndarray[tuple[int], np.dtype[np.bool_]],
) -> None:
    """Run the problems of a batch that are numbered, each on the observations with weight.

    Targets, weights and starts have one row for each problem of the batch, or one for all.
    """
    for k in range(problems.size):
        y, w = targets[problems[k] % len(targets)], weights[problems[k] % len(weights)]
        x_used, y_used, w_used = with_weight(x, y, w, LANES)
        start = starts[problems[k] % len(starts)]
        theta[k, :] = np.minimum(np.maximum(start, lower), upper)
        objective[k], gap[k], evaluations[k], certified[k] = _minimise_one(
            model,
            x_used,
            y_used,
            w_used,
            theta[k],
            lower,
            upper,
            delta,
            first_band,
            tolerance,
            max_evaluations,
        )
