"""Batched robust minimisation: many starts, many resamples, one call, with certificates."""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import boolean, float64, int64, types, void

from toolkit.numerics.compiling import FloatArray, IntArray, compile_once
from toolkit.numerics.newton import minimise_batch

__all__ = ["MODEL_SIGNATURE", "Minima", "for_kernel", "minimise", "ready"]

#: ``model(theta (p,), x (d, n), value (n,), jacobian (p, n))`` fills the last two arrays.
MODEL_SIGNATURE = void(float64[::1], float64[:, ::1], float64[::1], float64[:, ::1])

_VECTOR, _MATRIX, _INDEX = float64[::1], float64[:, ::1], int64[::1]
_SIGNATURE = void(
    types.FunctionType(MODEL_SIGNATURE),
    *(_MATRIX, _MATRIX, _MATRIX, _MATRIX),  # x, targets, weights, starts
    *(_INDEX, _VECTOR, _VECTOR),  # problems, lower, upper
    *(float64, float64, float64, int64),  # delta, first_band, tolerance, max_evaluations
    *(_MATRIX, _VECTOR, _VECTOR, _INDEX, boolean[::1]),  # the results
)


@dataclass(frozen=True, slots=True)
class Minima:
    """Where each problem of a batch ended.

    Attributes
    ----------
    theta : array, shape (problems, p)
        Parameters.
    objective : array, shape (problems,)
        Sum of weighted losses at theta.
    gap : array, shape (problems,)
        Newton decrement ``g' H^-1 g / 2``: how far, to second order, the objective lies above
        its local minimum. Infinite where the Hessian is not positive definite.
    evaluations : array of int, shape (problems,)
        Evaluations of the model.
    certified : array of bool, shape (problems,)
        Whether the gap is at most the tolerance times the objective.
    """

    theta: FloatArray
    objective: FloatArray
    gap: FloatArray
    evaluations: IntArray
    certified: npt.NDArray[np.bool_]


def ready(model: Any) -> None:
    """Compile the minimiser and a model now, so that the first fit does not wait for it."""
    compile_once(model, MODEL_SIGNATURE)
    compile_once(minimise_batch, _SIGNATURE)


def minimise(
    model: Any,
    x: FloatArray,
    y: FloatArray,
    weights: FloatArray,
    starts: FloatArray,
    *,
    lower: FloatArray,
    upper: FloatArray,
    delta: float,
    first_band: float = np.inf,
    tolerance: float = 1e-10,
    max_evaluations: int = 5000,
    threads: int = 1,
) -> Minima:
    """Minimise ``sum_i w_i rho(g_i(theta) - y_i)`` for a batch of targets, weights or starts.

    Damped Gauss-Newton on a Huber band that narrows to delta, with second-order terms where
    needed (`toolkit.numerics.newton`). Each problem ends with a certificate; see `Minima.gap`.

    Parameters
    ----------
    model : kernel
        Fills the values g and the Jacobian dg/dtheta; made with `compiling.kernel` and the
        argument types of `MODEL_SIGNATURE`.
    x : array, shape (d, n)
        Inputs of the model, one column per observation.
    y : array, shape (n,) or (batch, n)
        Targets, in the unit of g.
    weights : array, shape (batch, n) or (1, n)
        Non-negative weights; bootstrap counts are weights.
    starts : array, shape (batch, p) or (1, p)
        Where each search begins.
    lower, upper : array, shape (p,)
        Bounds of the parameters; infinite where there are none.
    delta : float
        Huber threshold in the unit of y; ``inf`` gives squared loss (``r**2 / 2``).
    first_band : float
        Half-width of the first Huber band. The default takes in every point, right for a cold
        start; a few delta are enough for a start near the optimum.
    tolerance : float
        Largest gap, relative to the objective, that counts as certified.
    max_evaluations : int
        Model evaluations per problem before it is given up, not certified.
    threads : int
        Problems are spread over so many threads; results do not depend on it.

    Returns
    -------
    Minima
        One row per problem, in the order of the batch.

    Raises
    ------
    ValueError
        If the numbers of targets, weight vectors and starts do not match, or the shapes.

    Examples
    --------
    >>> import numpy as np
    >>> from numba import njit
    >>> @njit
    ... def line(theta, x, value, jacobian):
    ...     for i in range(value.size):
    ...         value[i] = theta[0] + theta[1] * x[0, i]
    ...         jacobian[0, i] = 1.0
    ...         jacobian[1, i] = x[0, i]
    >>> x = np.arange(5.0)[None, :]
    >>> free = np.full(2, np.inf)
    >>> found = minimise(line, x, 1 + 2 * x[0], np.ones((1, 5)), np.zeros((1, 2)),
    ...                  lower=-free, upper=free, delta=np.inf)
    >>> found.theta.round(6).tolist()
    [[1.0, 2.0]]
    """
    targets = np.atleast_2d(y)
    batch = max(len(targets), len(weights), len(starts))
    if not {len(targets), len(weights), len(starts)} <= {1, batch}:
        raise ValueError(
            f"{len(targets)} target vectors, {len(weights)} weight vectors and {len(starts)} "
            "starts do not match: the numbers may differ only where one is 1."
        )
    _check_shapes(x, targets, weights, starts, lower, upper)
    ready(model)
    arrays = [for_kernel(a) for a in (x, targets, weights, starts)]
    box = [for_kernel(a) for a in (lower, upper)]
    problems = np.arange(batch)
    found = Minima(
        np.empty((batch, starts.shape[1])),
        *(np.empty(batch), np.empty(batch)),
        np.empty(batch, dtype=np.int64),
        np.empty(batch, dtype=np.bool_),
    )

    def run(first: int, last: int) -> None:
        part = slice(first, last)
        minimise_batch(
            model,
            *arrays,
            problems[part],
            *box,
            *(float(delta), float(first_band), float(tolerance), int(max_evaluations)),
            *(found.theta[part], found.objective[part], found.gap[part]),
            *(found.evaluations[part], found.certified[part]),
        )

    _spread(run, batch, threads)
    return found


def for_kernel(array: npt.ArrayLike) -> FloatArray:
    """Return the array as kernels take it: contiguous and writable, copied only where it is not."""
    return np.require(array, np.float64, ["C_CONTIGUOUS", "WRITEABLE"])


def _check_shapes(
    x: FloatArray,
    targets: FloatArray,
    weights: FloatArray,
    starts: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
) -> None:
    """Kernels check no index: a transposed array would make them read foreign memory."""
    n, p = np.shape(targets)[-1], len(lower)
    if not (
        (np.shape(x)[1:], np.shape(targets)[1:]) == ((n,), (n,))
        and np.shape(weights)[1:] == (n,)
        and (np.shape(starts)[1:], np.shape(upper)) == ((p,), (p,))
    ):
        raise ValueError(
            f"The shapes do not match: x {np.shape(x)}, y {np.shape(targets)}, weights "
            f"{np.shape(weights)}, starts {np.shape(starts)}, lower {np.shape(lower)}, upper "
            f"{np.shape(upper)}; needed are (d, n), (batch, n), (batch, n), (batch, p), (p,), (p,)."
        )


def _spread(run: Callable[[int, int], None], batch: int, threads: int) -> None:
    """Call ``run(first, last)`` on consecutive parts of the batch; kernels release the GIL."""
    if threads <= 1 or batch == 1:
        run(0, batch)
        return
    edges = np.linspace(0, batch, min(threads, batch) + 1).astype(int).tolist()
    with ThreadPoolExecutor(max_workers=threads) as pool:
        for done in [pool.submit(run, first, last) for first, last in itertools.pairwise(edges)]:
            done.result()
