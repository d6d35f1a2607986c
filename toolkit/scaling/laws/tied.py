"""The Chinchilla law with one exponent: size and data pay off at the same rate.

``loss = E + A / params**alpha + B / tokens**alpha``. The best size and the best token count then
grow with the same power of compute, 1/2, and their ratio is one number. Where sizes and tokens
were varied together, this is often all that a table of runs can support.

Measured with ``python -m benchmarks.coverage chinchilla_tied``: the 95 % percentile interval of
alpha covers the truth in 96.5 % of 400 simulated studies of 240 runs (standard error 0.9 %).
"""

import math
from dataclasses import replace

import numpy as np

from toolkit.numerics.compiling import FloatArray, kernel
from toolkit.numerics.fast import exp, log
from toolkit.scaling.law import Law, Parameter, Preset
from toolkit.scaling.laws.chinchilla import DATA_TERM, FLAT, FLOOR, SIZE_TERM
from toolkit.scaling.laws.starts import floor_and_rest, spread

__all__ = ["CHINCHILLA_TIED"]


@kernel
def _log_loss(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Log of ``exp(a - alpha x0) + exp(b - alpha x1) + exp(e)``; theta is (a, b, e, alpha)."""
    a, b, alpha = theta[0], theta[1], theta[3]
    floor = exp(theta[2])
    for i in range(value.size):
        size = exp(a - alpha * x[0, i])
        data = exp(b - alpha * x[1, i])
        loss = size + data + floor
        value[i] = log(loss)
        share = 1.0 / loss
        jacobian[0, i] = size * share
        jacobian[1, i] = data * share
        jacobian[2, i] = floor * share
        jacobian[3, i] = -(x[0, i] * size + x[1, i] * data) * share


def _starts(x: FloatArray, y: FloatArray) -> FloatArray:
    """Three plain guesses and 13 points of a Halton sequence, all scaled to the data."""
    plain = np.array([[0.85, 0.5, 0.35], [0.6, 0.5, 0.2], [0.95, 0.5, 0.6]])
    guesses = np.vstack([plain, spread([(0.3, 0.99), (0.1, 0.9), (0.05, 0.9)], 13)])
    floor, share, alpha = guesses.T
    log_floor, rest = floor_and_rest(y, floor)
    return np.column_stack([np.log(share * rest), np.log((1 - share) * rest), log_floor, alpha])


def _allocate(values: FloatArray, budget: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Split ``params * tokens = budget`` so that the loss is least: a constant ratio."""
    a, b, _, alpha = np.moveaxis(values, -1, 0)
    with np.errstate(all="ignore"):
        params = (a / b) ** (0.5 / alpha) * np.sqrt(budget)
        return params, budget / params


CHINCHILLA_TIED = Law(
    name="chinchilla_tied",
    title="tied Chinchilla law",
    formula="loss = E + A / params^alpha + B / tokens^alpha",
    equation=r"L(N, D) = E + A\,N^{-\alpha} + B\,D^{-\alpha}",
    reference="Muennighoff et al. 2023, arXiv:2305.16264, appendix A",
    columns=("params", "tokens"),
    parameters=(
        SIZE_TERM,
        replace(DATA_TERM, unit="nats per token · tokens^alpha", scales=("tokens", "alpha")),
        FLOOR,
        Parameter("alpha", "exponent of size and of data", "none", lower=FLAT, upper=5.0),
    ),
    model=_log_loss,
    starts=_starts,
    presets={
        "muennighoff2023-c4": Preset(
            {
                "A": math.exp(6.255414),
                "B": math.exp(7.3049974),
                "E": math.exp(0.6254804),
                "alpha": 0.3526596,
            },
            "Muennighoff et al. 2023, arXiv:2305.16264, single-epoch runs on C4, from the code "
            "published with the paper (A 521, B 1488, E 1.87 in print)",
            rounded=False,
            fit_range={"params": (7e6, 8.7e9), "tokens": (1e8, 1.78e11)},
        ),
    },
    allocate=_allocate,
)
