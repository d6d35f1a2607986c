"""Exact minimum of a sum of hinges: an edge descent over the vertices of a linear programme.

The problem is ``min over d of g'd + sum_i w_i max(v_i + J_i d, 0)`` subject to ``v_j + J_j d <= 0``
for some further rows j: what the pinball loss becomes when the curve is linearised. A solution
is a vertex, where p rows vanish. From d = 0 the descent leaves the worst row of the vertex along
the edge on which the others stay zero, and walks past the points where hinges open or close
until the slope turns upward (Barrodale and Roberts 1973).
"""

import numpy as np

from toolkit.numerics.compiling import FloatArray, IntArray, kernel

__all__ = ["hinge_optimum", "invert"]

MOST_PIVOTS = 500
SORTED_AFTER = 16  # breakpoints: a short walk needs the nearest few, a long one sorts the rest


@kernel
def invert(matrix: FloatArray, inverse: FloatArray) -> bool:
    """Gauss-Jordan with row pivots; False where the matrix is singular."""
    size = len(matrix)
    work = matrix.copy()
    inverse[:, :] = 0.0
    for c in range(size):
        inverse[c, c] = 1.0
    for c in range(size):
        pivot = c
        for r in range(c + 1, size):
            if abs(work[r, c]) > abs(work[pivot, c]):
                pivot = r
        if not abs(work[pivot, c]) > 1e-300:
            return False
        if pivot != c:
            for k in range(size):
                work[c, k], work[pivot, k] = work[pivot, k], work[c, k]
                inverse[c, k], inverse[pivot, k] = inverse[pivot, k], inverse[c, k]
        head = work[c, c]
        for k in range(size):
            work[c, k] /= head
            inverse[c, k] /= head
        for r in range(size):
            if r != c:
                factor = work[r, c]
                for k in range(size):
                    work[r, k] -= factor * work[c, k]
                    inverse[r, k] -= factor * inverse[c, k]
    return True


@kernel
def _leaving(
    inverse: FloatArray, slope: FloatArray, limit: FloatArray, tolerance: float
) -> tuple[int, float, float]:
    """Row of the basis whose release descends fastest, the side it leaves to, and the slope.

    The multiplier of a hinge may lie from 0 to its weight; below 0 the hinge should close, above
    its weight it should open. The slope is per unit of the largest coordinate of the edge.
    """
    size = slope.size
    best, row, side, steepest = tolerance, -1, 1.0, 0.0
    for k in range(size):
        multiplier, length = 0.0, 0.0
        for c in range(size):
            multiplier -= inverse[c, k] * slope[c]
            length = max(length, abs(inverse[c, k]))
        excess = max(-multiplier, multiplier - limit[k])
        if excess > best * length:
            best, row = excess / length, k
            side = -1.0 if -multiplier > multiplier - limit[k] else 1.0
            steepest = -excess
    return row, side, steepest


@kernel
def _breakpoints(
    moved: FloatArray, speed: FloatArray, side: FloatArray, basis: IntArray, reach: FloatArray
) -> None:
    """Put in `reach` how far along the edge each row changes side; infinite where it does not."""
    for i in range(moved.size):
        distance = max(-moved[i] / speed[i], 0.0)
        reach[i] = distance if side[i] * speed[i] < 0.0 else np.inf
    for k in range(basis.size):
        if basis[k] >= 0:
            reach[basis[k]] = np.inf


@kernel
def _nearby(reach: FloatArray, speed: FloatArray, hinges: int, near: IntArray) -> int:
    """List the rows whose breakpoints come no later than the first constraint; return how many.

    The constraint itself, which nothing may cross, comes last.
    """
    wall, stop = -1, np.inf
    for j in range(hinges, reach.size):
        # Of constraints met together, the one met head-on gives the better-conditioned corner.
        if reach[j] < stop or (reach[j] == stop < np.inf and speed[j] > speed[wall]):
            wall, stop = j, reach[j]
    count = 0
    for i in range(hinges):
        if reach[i] < stop:
            near[count] = i
            count += 1
    if wall >= 0:
        near[count] = wall
        count += 1
    return count


@kernel
def _walk(
    reach: FloatArray,
    speed: FloatArray,
    rows: FloatArray,
    weight: FloatArray,
    steepest: float,
    near: IntArray,
    side: FloatArray,
    slope: FloatArray,
) -> int:
    """Open or close the hinges along an edge until the slope turns upward; return that row.

    The answer is -1 where the slope never turns.
    """
    hinges = weight.size
    count = _nearby(reach, speed, hinges, near)
    picked = 0
    while count > 0:
        if picked == SORTED_AFTER:
            near[:count] = near[:count][np.argsort(-reach[near[:count]])]
        elif picked < SORTED_AFTER:
            first = 0
            for k in range(1, count):
                if reach[near[k]] < reach[near[first]]:
                    first = k
            near[first], near[count - 1] = near[count - 1], near[first]
        count -= 1
        picked += 1
        i = int(near[count])
        if i >= hinges:
            return i
        steepest += weight[i] * abs(speed[i])
        if steepest >= 0.0:
            return i
        side[i] = -side[i]
        _add_row(slope, rows, i, side[i] * weight[i])
    return -1


@kernel
def _add_row(slope: FloatArray, rows: FloatArray, i: int, factor: float) -> None:
    for c in range(slope.size):
        slope[c] += factor * rows[c, i]


@kernel
def hinge_optimum(
    gradient: FloatArray,
    value: FloatArray,
    rows: FloatArray,
    weight: FloatArray,
    tolerance: float,
    basis: IntArray,
    step: FloatArray,
) -> float:
    """Minimise ``g'd + sum_i w_i max(v_i + J_i d, 0)`` where ``v_j + J_j d <= 0``.

    Parameters
    ----------
    gradient : array, shape (p,)
        Slope g of the smooth part.
    value : array, shape (m,)
        v of the hinges, then of the constraints. Constraints hold at d = 0: values <= 0.
    rows : array, shape (p, m)
        J, one column per hinge or constraint; coordinates of d should be of like scale.
    weight : array, shape (hinges,)
        Positive weights of the hinges; rows beyond are constraints.
    tolerance : float
        A slope per unit of d that counts as level, in the unit of the objective.
    basis : array of int, shape (p,)
        Filled with the rows that vanish at the solution; ``-1 - k`` where coordinate k never
        moved along an edge of its own, because nothing depends on it.
    step : array, shape (p,)
        Filled with d.

    Returns
    -------
    float
        How much lower the objective is at d than at 0; minus infinity where the problem has no
        bound or its vertices are too close to singular.
    """
    size, m = rows.shape
    hinges = weight.size
    moved, speed, reach = value.copy(), np.empty(m), np.empty(m)
    side = np.full(m, -1.0)  # 1 where a hinge is open
    near = np.empty(m, dtype=np.int64)
    corner, inverse = np.eye(size), np.eye(size)
    slope, limit, edge = gradient.copy(), np.zeros(size), np.empty(size)
    promised = 0.0
    for i in range(hinges):
        if value[i] > 0.0:
            side[i] = 1.0
            promised += weight[i] * value[i]
            _add_row(slope, rows, i, weight[i])
    for k in range(size):
        basis[k] = -1 - k
    step[:] = 0.0

    for _ in range(MOST_PIVOTS):
        k, way, steepest = _leaving(inverse, slope, limit, tolerance)
        if k < 0:
            break
        speed[:] = 0.0
        for c in range(size):
            edge[c] = way * inverse[c, k]
            for i in range(m):
                speed[i] += edge[c] * rows[c, i]
        left = basis[k]
        if left >= 0:
            speed[left] = way
            side[left] = way
            if way > 0.0:
                _add_row(slope, rows, left, weight[left])
        _breakpoints(moved, speed, side, basis, reach)
        if left >= 0:
            reach[left] = np.inf
        entering = _walk(reach, speed, rows, weight, steepest, near, side, slope)
        if entering < 0:
            return -np.inf
        if side[entering] > 0.0:
            _add_row(slope, rows, entering, -weight[entering])
            side[entering] = -1.0
        length = reach[entering]
        for i in range(m):
            moved[i] += length * speed[i]
        for c in range(size):
            step[c] += length * edge[c]
            corner[k, c] = rows[c, entering]
        basis[k] = entering
        limit[k] = weight[entering] if entering < hinges else np.inf
        for c in range(size):
            if basis[c] >= 0:
                moved[basis[c]] = 0.0
        if not invert(corner, inverse):
            return -np.inf
    for c in range(size):
        promised -= gradient[c] * step[c]
    for i in range(hinges):
        if side[i] > 0.0:
            promised -= weight[i] * moved[i]
    return promised
