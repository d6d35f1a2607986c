"""Laws of precision: a model in few bits counts as a smaller one.

Training in P bits leaves ``1 - exp(-P / gamma)`` of the parameters, for weights, activations and
the key-value cache alike, and the shares multiply. Rounding a trained model to P bits afterwards
adds ``C tokens**gamma_D / params**gamma_N exp(-P / gamma_after)``: the longer a model was trained,
the more it loses.

Four laws, as a column that never changes cannot be fitted: `PRECISION_WEIGHTS` and `PRECISION` for
training in weights only and in all three, `PRECISION_AFTER` for rounding after training in full
precision, `PRECISION_UNIFIED` for both.

Trap: the paper quotes 7 to 8 bits as the best precision for training. With its printed constants,
and a cost proportional to parameters times bits, effective parameters are cheapest at 3.5 bits, and
at 5.1 if all three parts were as sensitive as weights: look at an interval of your own fit instead.

Measured with ``python -m benchmarks.coverage``: the 95 % interval of the sensitivity (of weights,
of activations, after training, after training in the unified law) covers the truth in 94, 93, 98
and 100 of 100 simulated studies.
"""

from dataclasses import replace

import numpy as np

from toolkit.numerics.compiling import FloatArray, kernel
from toolkit.numerics.fast import exp, log
from toolkit.scaling.law import Law, Parameter, Preset
from toolkit.scaling.laws.chinchilla import DATA_TERM, FLAT, FLOOR, SIZE_TERM
from toolkit.scaling.laws.starts import floor_and_rest, spread

__all__ = ["PRECISION", "PRECISION_AFTER", "PRECISION_UNIFIED", "PRECISION_WEIGHTS"]


@kernel
def _fill(
    theta: FloatArray,
    x: FloatArray,
    value: FloatArray,
    jacobian: FloatArray,
    trained: int,
    after: bool,
) -> None:
    """Log loss for so many columns of bits in training, after those of params and tokens.

    theta is (log A, log B, log E, alpha, beta, log gamma of each column, and where there is a
    column of bits after training log C, gamma_D, gamma_N, log gamma_after).
    """
    alpha, beta, floor = theta[3], theta[4], exp(theta[2])
    last, column = 5 + trained, 2 + trained
    for i in range(value.size):
        size = theta[0] - alpha * x[0, i]
        for k in range(trained):
            ratio = exp(x[2 + k, i] - theta[5 + k])
            gone = exp(-ratio)
            size -= alpha * log(1.0 - gone)
            jacobian[5 + k, i] = ratio * gone / (1.0 - gone)
        size = exp(size)
        data = exp(theta[1] - beta * x[1, i])
        rounding = 0.0
        if after:
            ratio = exp(x[column, i] - theta[last + 3])
            rounding = exp(
                theta[last] + theta[last + 1] * x[1, i] - theta[last + 2] * x[0, i] - ratio
            )
        loss = size + data + floor + rounding
        value[i] = log(loss)
        size, data, rounding = size / loss, data / loss, rounding / loss
        effective = x[0, i]
        for k in range(trained):
            effective += log(1.0 - exp(-exp(x[2 + k, i] - theta[5 + k])))
            jacobian[5 + k, i] *= alpha * size
        jacobian[0, i] = size
        jacobian[1, i] = data
        jacobian[2, i] = floor / loss
        jacobian[3, i] = -effective * size
        jacobian[4, i] = -x[1, i] * data
        if after:
            jacobian[last, i] = rounding
            jacobian[last + 1, i] = x[1, i] * rounding
            jacobian[last + 2, i] = -x[0, i] * rounding
            jacobian[last + 3, i] = exp(x[column, i] - theta[last + 3]) * rounding


@kernel
def _weights(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    _fill(theta, x, value, jacobian, 1, False)


@kernel
def _all(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    _fill(theta, x, value, jacobian, 3, False)


@kernel
def _after(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    _fill(theta, x, value, jacobian, 0, True)


@kernel
def _unified(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    _fill(theta, x, value, jacobian, 3, True)


def _training_starts(x: FloatArray, y: FloatArray) -> FloatArray:
    """Thirty-two points of a Halton sequence, scaled to the data."""
    return _points(x, y, [(np.log(0.3), np.log(5.0))] * (x.shape[1] - 2))


def _after_starts(x: FloatArray, y: FloatArray) -> FloatArray:
    """Add a rounding term of up to half the mean loss; columns have their own unit."""
    trained = x.shape[1] - 3
    ranges = [(np.log(0.3), np.log(5.0))] * trained
    points = _points(x, y, [*ranges, (-6.0, -0.7), (0.1, 1.0), (0.1, 1.0), (-1.0, 0.7)])
    centre = x.mean(axis=0)
    points[:, 0] += points[:, 3] * centre[0]
    points[:, 1] += points[:, 4] * centre[1]
    share, more_data, more_params, sensitivity = points[:, 5 + trained :].T
    at_centre = np.exp(centre[2 + trained] - sensitivity)
    points[:, 5 + trained] = (
        share + y.mean() + at_centre - more_data * centre[1] + more_params * centre[0]
    )
    return points


def _points(x: FloatArray, y: FloatArray, further: list[tuple[float, float]]) -> FloatArray:
    ranges = [(0.3, 0.98), (0.1, 0.9), (0.1, 0.8), (0.1, 0.8), *further]
    floor, share, alpha, beta, *rest_of = spread(ranges, 32).T
    log_floor, rest = floor_and_rest(y, floor)
    size, data = np.log(share * rest), np.log((1 - share) * rest)
    return np.column_stack([size, data, log_floor, alpha, beta, *rest_of])


_BASE = (
    replace(SIZE_TERM, meaning="size term at one effective parameter"),
    DATA_TERM,
    FLOOR,
    Parameter("alpha", "exponent of effective size", "none", lower=FLAT, upper=5.0),
    Parameter("beta", "exponent of data", "none", lower=FLAT, upper=5.0),
)


def _sensitivity(name: str, what: str, unit_of: str | None) -> Parameter:
    return Parameter(
        name,
        f"bits in which {what} keep 63 % of their worth",
        "bits",
        positive=True,
        lower=0.02,
        upper=64.0,
        unit_of=unit_of,
    )


def _trained(own_unit: bool) -> tuple[Parameter, ...]:
    named = {"gamma_w": "weights", "gamma_a": "activations", "gamma_kv": "cache entries"}
    columns = ("bits_weights", "bits_activations", "bits_cache")
    return tuple(
        _sensitivity(name, what, None if own_unit else column)
        for (name, what), column in zip(named.items(), columns, strict=True)
    )


_ROUNDING = (
    Parameter(
        "C",
        "rounding term for one parameter, one token and no bits",
        "nats per token · params^gamma_N / tokens^gamma_D",
        positive=True,
        lower=1e-12,
        upper=1e12,
    ),
    Parameter("gamma_D", "exponent of data in the rounding term", "none", lower=FLAT, upper=3.0),
    Parameter("gamma_N", "exponent of size in the rounding term", "none", lower=FLAT, upper=3.0),
    Parameter(
        "gamma_after",
        "bits that reduce the rounding term to 37 %",
        "bits",
        positive=True,
        lower=0.02,
        upper=64.0,
    ),
)

_REFERENCE = "Kumar et al. 2024, arXiv:2411.04330"
_SOURCE = f"{_REFERENCE}, table of fitted constants; one exponent is printed for size and data"
_CHINCHILLA_PART = {"A": 4.299e3, "B": 1.806e4, "E": 2.7648, "alpha": 0.4965, "beta": 0.4965}
_TRAINED = {"gamma_w": 2.6745, "gamma_a": 2.2102, "gamma_kv": 0.9578}
_AFTER = {"C": 0.0598, "gamma_D": 0.5068, "gamma_N": 0.3439, "gamma_after": 0.5907}
_RANGE = {"params": (3e7, 2.2e8), "tokens": (1.5e9, 2.6e10)}
_BITS = ("bits_weights", "bits_activations", "bits_cache")


def _preset(values: dict[str, float], *bits: str) -> dict[str, Preset]:
    fit_range = _RANGE | dict.fromkeys(bits, (3.0, 16.0))
    return {"kumar2024": Preset(values, _SOURCE, rounded=True, fit_range=fit_range)}


_EFFECTIVE = (
    "N = params (1 - exp(-bits_weights / gamma_w)) "
    "(1 - exp(-bits_activations / gamma_a)) (1 - exp(-bits_cache / gamma_kv))"
)
_ROUNDED = "C tokens^gamma_D / params^gamma_N exp(-bits_after / gamma_after)"
_TEX_SIZE = r"A\,\left[N \prod_{x} \left(1 - e^{-P_x / \gamma_x}\right)\right]^{-\alpha}"
_TEX_DATA = r" + B\,D^{-\beta} + E"
_TEX_AFTER = r" + C D^{\gamma_D} N^{-\gamma_N} e^{-P_\mathrm{after} / \gamma_\mathrm{after}}"

PRECISION_WEIGHTS = Law(
    name="precision_weights",
    title="precision law of weights",
    formula=("loss = E + A / (params (1 - exp(-bits_weights / gamma_w)))^alpha + B / tokens^beta"),
    equation="L = " + _TEX_SIZE + _TEX_DATA,
    reference=_REFERENCE,
    columns=("params", "tokens", "bits_weights"),
    parameters=(*_BASE, _trained(own_unit=False)[0]),
    model=_weights,
    starts=_training_starts,
    presets=_preset(_CHINCHILLA_PART | {"gamma_w": _TRAINED["gamma_w"]}, "bits_weights"),
)

PRECISION = Law(
    name="precision",
    title="precision law",
    formula=f"loss = E + A / N^alpha + B / tokens^beta, {_EFFECTIVE}",
    equation="L = " + _TEX_SIZE + _TEX_DATA,
    reference=_REFERENCE,
    columns=("params", "tokens", *_BITS),
    parameters=(*_BASE, *_trained(own_unit=False)),
    model=_all,
    starts=_training_starts,
    presets=_preset(_CHINCHILLA_PART | _TRAINED, *_BITS),
)

PRECISION_AFTER = Law(
    name="precision_after",
    title="precision law after training",
    formula=f"loss = E + A / params^alpha + B / tokens^beta + {_ROUNDED}",
    equation=r"L = A\,N^{-\alpha}" + _TEX_DATA + _TEX_AFTER,
    reference=_REFERENCE,
    columns=("params", "tokens", "bits_after"),
    parameters=(*_BASE, *_ROUNDING),
    model=_after,
    starts=_after_starts,
    absolute=("params", "tokens", "bits_after"),
    presets=_preset(_CHINCHILLA_PART | _AFTER, "bits_after"),
)

PRECISION_UNIFIED = Law(
    name="precision_unified",
    title="unified precision law",
    formula=f"loss = E + A / N^alpha + B / tokens^beta + {_ROUNDED}, {_EFFECTIVE}",
    equation="L = " + _TEX_SIZE + _TEX_DATA + _TEX_AFTER,
    reference=_REFERENCE,
    columns=("params", "tokens", *_BITS, "bits_after"),
    parameters=(*_BASE, *_trained(own_unit=True), *_ROUNDING),
    model=_unified,
    starts=_after_starts,
    absolute=("params", "tokens", *_BITS, "bits_after"),
    presets=_preset(_CHINCHILLA_PART | _TRAINED | _AFTER, *_BITS, "bits_after"),
)
