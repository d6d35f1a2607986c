"""Split compute between model size and data under constraints, for many parameter values at once.

All sizes are natural logarithms: n of parameters, d of tokens. The model is that of a law with
these two columns, in this order, evaluated by the kernels of `toolkit.numerics.minimise`.
"""

from typing import Any

import numpy as np
from numba import float64, types, void

from toolkit.numerics.compiling import FloatArray, compile_once, kernel
from toolkit.numerics.minimise import MODEL_SIGNATURE

__all__ = ["least_compute", "least_loss", "ready"]

STEP = 1e-4  # of the central difference: its error is below 1e-9 of an elasticity
HALVINGS = 45  # of a plausible range of 30 in logarithms: to 1e-12

_MATRIX, _BOX = float64[:, ::1], float64[::1]
_SIGNATURE = void(types.FunctionType(MODEL_SIGNATURE), _MATRIX, _MATRIX, _BOX, float64[:, :, ::1])


@kernel
def _effective(d: float, unique: float, decay: float) -> tuple[float, float]:
    """Log of what d tokens are worth when `unique` of them differ, and its elasticity.

    Muennighoff et al. 2023, equation 5: repeats decay exponentially with the constant `decay`.
    """
    if d <= unique:
        return d, 1.0
    if decay == 0.0:
        return unique, 0.0
    repeats = np.exp(d - unique) - 1.0
    faded = np.exp(-repeats / decay)
    worth = 1.0 + decay * (1.0 - faded)
    return unique + np.log(worth), (repeats + 1.0) * faded / worth


@kernel
def _log_loss(model: Any, theta: FloatArray, n: float, d: float, work: Any) -> float:
    """Log loss at one point; `work` holds columns (2, 1), value (1,), Jacobian (p, 1)."""
    x, value, jacobian = work
    x[0, 0], x[1, 0] = n, d
    model(theta, x, value, jacobian)
    result: float = value[0]
    return result


@kernel
def _pull(
    model: Any, theta: FloatArray, n: float, d: float, request: FloatArray, work: Any
) -> float:
    """Gain of size minus gain of data for equal compute: zero at the best split.

    Elasticity of loss in params, minus that in tokens times the compute that a larger model frees
    per token it is not trained on: ``1 + inference / (3 tokens)`` (Sardana et al. 2024).
    """
    inference, unique, decay = request[1], request[2], request[3]
    worth, share = _effective(d, unique, decay)
    size = _log_loss(model, theta, n - STEP, worth, work) - _log_loss(
        model, theta, n + STEP, worth, work
    )
    data = _log_loss(model, theta, n, worth - STEP, work) - _log_loss(
        model, theta, n, worth + STEP, work
    )
    freed = 1.0 + inference / (3.0 * np.exp(d))
    return float(size - data * share * freed)


@kernel
def _least_loss(
    model: Any, theta: FloatArray, requests: FloatArray, box: FloatArray, found: FloatArray
) -> None:
    """Fill found (draws, requests, 3) with n, d and log loss; see `least_loss`."""
    work = (np.empty((2, 1)), np.empty(1), np.empty((theta.shape[1], 1)))
    for k in range(len(theta)):
        for r in range(len(requests)):
            request = requests[r]
            flops, inference, unique, decay = request[0], request[1], request[2], request[3]
            most = min(box[3], unique) if decay == 0.0 else box[3]
            low = max(box[0], np.log(flops / (6.0 * np.exp(most) + 2.0 * inference)))
            high = min(request[4], np.log(flops / (6.0 * np.exp(box[2]) + 2.0 * inference)))
            low = min(low, high)
            for _ in range(HALVINGS):
                n = 0.5 * (low + high)
                d = np.log((flops * np.exp(-n) - 2.0 * inference) / 6.0)
                if _pull(model, theta[k], n, d, request, work) > 0.0:
                    low = n
                else:
                    high = n
            n = 0.5 * (low + high)
            d = min(most, np.log((flops * np.exp(-n) - 2.0 * inference) / 6.0))
            found[k, r, 0], found[k, r, 1] = n, d
            worth, _ = _effective(d, unique, decay)
            found[k, r, 2] = _log_loss(model, theta[k], n, worth, work)


@kernel
def _size_for(
    model: Any, theta: FloatArray, target: float, worth: float, low: float, high: float, work: Any
) -> float:
    """Log size in [low, high] with which data of this worth reach the target."""
    for _ in range(HALVINGS):
        n = 0.5 * (low + high)
        if _log_loss(model, theta, n, worth, work) > target:
            low = n
        else:
            high = n
    return high


@kernel
def _least_compute(
    model: Any, theta: FloatArray, requests: FloatArray, box: FloatArray, found: FloatArray
) -> None:
    """Fill found (draws, requests, 3) with n, d and the lowest log loss; see `least_compute`."""
    work = (np.empty((2, 1)), np.empty(1), np.empty((theta.shape[1], 1)))
    for k in range(len(theta)):
        for r in range(len(requests)):
            request = requests[r]
            target, unique, decay, top = request[0], request[2], request[3], request[4]
            high = min(box[3], unique) if decay == 0.0 else box[3]
            worth, _ = _effective(high, unique, decay)
            found[k, r, 2] = _log_loss(model, theta[k], top, worth, work)
            if found[k, r, 2] > target:
                found[k, r, 0], found[k, r, 1] = np.nan, np.nan
                continue
            low = box[2]
            for _ in range(HALVINGS):
                d = 0.5 * (low + high)
                worth, _ = _effective(d, unique, decay)
                if _log_loss(model, theta[k], top, worth, work) > target:
                    low = d  # no allowed size reaches the target with so little data
                    continue
                n = _size_for(model, theta[k], target, worth, box[0], top, work)
                if _pull(model, theta[k], n, d, request, work) > 0.0:
                    high = d
                else:
                    low = d
            worth, _ = _effective(high, unique, decay)
            n = _size_for(model, theta[k], target, worth, box[0], top, work)
            found[k, r, 0], found[k, r, 1] = n, high


def ready() -> None:
    """Compile both kernels now, so that the first split does not wait for them."""
    compile_once(_least_loss, _SIGNATURE)
    compile_once(_least_compute, _SIGNATURE)


def least_loss(model: Any, theta: FloatArray, requests: FloatArray, box: FloatArray) -> FloatArray:
    """Split compute for the least loss.

    Parameters
    ----------
    model : kernel
        Of a law of params and tokens; see `toolkit.numerics.minimise`.
    theta : array, shape (draws, p)
        Parameters in working coordinates for columns that are not centred.
    requests : array, shape (m, 5)
        Compute in FLOPs (training and inference), inference tokens, log of unique tokens, decay
        constant of repeats, log of the largest size allowed.
    box : array, shape (4,)
        Plausible range: lowest and highest log params, lowest and highest log tokens.

    Returns
    -------
    array, shape (draws, m, 3)
        Log params, log tokens, log loss.
    """
    return _fill(_least_loss, model, theta, requests, box)


def least_compute(
    model: Any, theta: FloatArray, requests: FloatArray, box: FloatArray
) -> FloatArray:
    """Find the split that reaches a loss with the least compute.

    Parameters
    ----------
    model, theta, box
        See `least_loss`.
    requests : array, shape (m, 5)
        Log of the loss to reach, then as in `least_loss`.

    Returns
    -------
    array, shape (draws, m, 3)
        Log params and log tokens, NaN where the loss is out of reach, and the lowest log loss
        that the constraints allow.
    """
    return _fill(_least_compute, model, theta, requests, box)


def _fill(
    split: Any, model: Any, theta: FloatArray, requests: FloatArray, box: FloatArray
) -> FloatArray:
    compile_once(model, MODEL_SIGNATURE)
    compile_once(split, _SIGNATURE)
    found = np.empty((len(theta), len(requests), 3))
    split(model, *map(np.ascontiguousarray, (theta, requests, box)), found)
    return found
