"""Exact pinball loss of a sigmoid boundary: smoothed descent, then linear programmes.

Three things make it quick: descent on a smoothed loss comes near the optimum, linear programmes
go on from there to the exact one (`toolkit.numerics.sequential`), and the rows far below any
boundary enter through their mass alone. Which rows these are is guessed and then checked: where
the curve uncovers one of them, the search goes on with all rows.
"""

import itertools
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from numba import boolean, float64, int64, void

from toolkit.numerics.compiling import FloatArray, IntArray, compile_once, kernel
from toolkit.numerics.minimise import Minima, for_kernel
from toolkit.numerics.newton import inner_product
from toolkit.numerics.sequential import descend_exactly
from toolkit.numerics.sigmoid import confine, curve_values, descend_smoothed

__all__ = ["Sample", "minimise_pinball", "ready"]

COLD_RADIUS, WARM_RADIUS = 0.02, 0.01  # of the first trust region, as a change of the curve
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
    >>> np.abs(found.theta.round(6)).tolist()  # 2 per unit of z, and the half range is 2
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
def _shows_hidden(theta: FloatArray, x: FloatArray, hidden: FloatArray, block: IntArray) -> bool:
    """Whether the curve runs below a row that the screening left out.

    The curve rises, so that its left end stands for a block of cells, unless that is in doubt.
    """
    share, curve = np.empty(1), np.empty(1)
    for k in range(block.size - 1):
        begin, end = block[k], block[k + 1]
        highest = hidden[begin]
        for c in range(begin + 1, end):
            highest = max(highest, hidden[c])
        curve_values(theta, x[begin : begin + 1], share, curve)
        if curve[0] < highest:
            for c in range(begin, end):
                curve_values(theta, x[c : c + 1], share, curve)
                if curve[0] < hidden[c]:
                    return True
    return False


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
            if x.size == y.size:
                mass = w
            else:
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
            objective[k], gap[k], more, certified[k] = descend_exactly(
                *(x, mass, groups, begins, scores, counts),
                *(weighted_sum, tau, limits, radius, tolerance, band > 0.0, theta[k]),
            )
            evaluations[k] += more
            if not _shows_hidden(theta[k], x, hidden, coarse):
                break
            groups, begins, scores, counts = x, first, y, w


_SIGNATURE = void(
    *(float64[::1], int64[::1], float64[::1], int64[::1]),
    *(int64[::1], float64[::1], int64[::1], float64[::1]),
    *(float64[:, ::1], float64[:, ::1]),
    *(float64, float64[::1], float64, float64),
    *(float64[:, ::1], float64[::1], float64[::1], int64[::1], boolean[::1]),
)
