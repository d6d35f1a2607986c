"""The Chinchilla law: loss as a sum of a floor, a term for size and a term for data."""

import itertools
import math

import numpy as np

from toolkit.numerics.compiling import FloatArray, kernel
from toolkit.numerics.fast import exp, log
from toolkit.scaling.law import Law, Parameter, Preset
from toolkit.scaling.laws.starts import floor_and_rest, spread

__all__ = ["CHINCHILLA", "hoffmann_starts"]


@kernel
def _log_loss(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Log of ``exp(a - alpha x0) + exp(b - beta x1) + exp(e)``; theta is (a, b, e, alpha, beta).

    Short loops over few rows: a loop that writes to many is not compiled to vector instructions.
    """
    a, b, alpha, beta = theta[0], theta[1], theta[3], theta[4]
    floor = exp(theta[2])
    for i in range(value.size):
        jacobian[0, i] = exp(a - alpha * x[0, i])
    for i in range(value.size):
        jacobian[1, i] = exp(b - beta * x[1, i])
    for i in range(value.size):
        loss = jacobian[0, i] + jacobian[1, i] + floor
        value[i] = log(loss)
        jacobian[2, i] = 1.0 / loss
    for i in range(value.size):
        jacobian[0, i] *= jacobian[2, i]
        jacobian[3, i] = -x[0, i] * jacobian[0, i]
    for i in range(value.size):
        jacobian[1, i] *= jacobian[2, i]
        jacobian[4, i] = -x[1, i] * jacobian[1, i]
    for i in range(value.size):
        jacobian[2, i] *= floor


def _working_points(guesses: FloatArray, y: FloatArray) -> FloatArray:
    """Scale guesses to the data: floor as share of the lowest loss, size as share of the rest."""
    floor, share, alpha, beta = guesses.T
    log_floor, rest = floor_and_rest(y, floor)
    return np.column_stack(
        [np.log(share * rest), np.log((1 - share) * rest), log_floor, alpha, beta]
    )


def _starts(x: FloatArray, y: FloatArray) -> FloatArray:
    """Three plain guesses and 21 points of a Halton sequence, all scaled to the data."""
    plain = np.array([[0.85, 0.5, 0.35, 0.35], [0.6, 0.5, 0.2, 0.2], [0.95, 0.5, 0.6, 0.6]])
    ranges = [(0.3, 0.99), (0.1, 0.9), (0.05, 0.9), (0.05, 0.9)]
    return _working_points(np.vstack([plain, spread(ranges, 21)]), y)


def _allocate(values: FloatArray, budget: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Split ``params * tokens = budget`` so that the loss is least (Hoffmann 2022, equation 4)."""
    a, b, _, alpha, beta = np.moveaxis(values, -1, 0)
    with np.errstate(all="ignore"):
        ratio = (alpha * a / (beta * b)) ** (1 / (alpha + beta))
        params = ratio * budget ** (beta / (alpha + beta))
        return params, budget / params


def hoffmann_starts() -> FloatArray:
    """Return the 4,500 starting points of the published fits, shape (4500, 5), as values.

    Hoffmann et al. 2022, appendix D.3: every combination of log A and log B in 0, 5, ..., 25,
    log E in -1, -0.5, ..., 1, and both exponents in 0, 0.5, ..., 2.

    Examples
    --------
    >>> from toolkit.scaling import hoffmann_starts
    >>> hoffmann_starts().shape
    (4500, 5)
    """
    logs, floors = np.arange(0.0, 26.0, 5.0), np.arange(-1.0, 1.5, 0.5)
    exponents = np.arange(0.0, 2.5, 0.5)
    grid = np.array(list(itertools.product(logs, logs, floors, exponents, exponents)))
    grid[:, :3] = np.exp(grid[:, :3])
    return grid


# An exponent of zero makes its term a constant and the best split of a budget undefined; from here
# down it is zero for every purpose, and the split has a limit.
FLAT = 1e-4

_HOFFMANN_RANGE = {"params": (70e6, 16e9), "tokens": (5e9, 500e9)}
_HOFFMANN = "Hoffmann et al. 2022, arXiv:2203.15556, approach 3"
_BESIROGLU_RANGE = {"params": (57.3e6, 16.2e9), "tokens": (0.82e9, 318e9)}
_BESIROGLU = "Besiroglu et al. 2024, arXiv:2404.10102, refit of 240 points of that paper's figure 4"

SIZE_TERM = Parameter(
    "A",
    "size term at one parameter",
    "nats per token · params^alpha",
    positive=True,
    scales=("params", "alpha"),
)
DATA_TERM = Parameter(
    "B",
    "data term at one token",
    "nats per token · tokens^beta",
    positive=True,
    scales=("tokens", "beta"),
)
FLOOR = Parameter("E", "loss that neither size nor data removes", "nats per token", positive=True)

CHINCHILLA = Law(
    name="chinchilla",
    title="Chinchilla law",
    formula="loss = E + A / params^alpha + B / tokens^beta",
    equation=r"L(N, D) = E + A\,N^{-\alpha} + B\,D^{-\beta}",
    reference="Hoffmann et al. 2022, arXiv:2203.15556, equation 2",
    columns=("params", "tokens"),
    parameters=(
        SIZE_TERM,
        DATA_TERM,
        FLOOR,
        Parameter("alpha", "exponent of size", "none", lower=FLAT, upper=5.0),
        Parameter("beta", "exponent of data", "none", lower=FLAT, upper=5.0),
    ),
    model=_log_loss,
    starts=_starts,
    presets={
        "hoffmann2022": Preset(
            {"A": 406.4, "B": 410.7, "E": 1.69, "alpha": 0.34, "beta": 0.28},
            f"{_HOFFMANN}, equation 10",
            rounded=True,
            fit_range=_HOFFMANN_RANGE,
        ),
        "hoffmann2022-unrounded": Preset(
            {
                "A": math.exp(6.0073404),
                "B": math.exp(6.0179186),
                "E": math.exp(0.5267228),
                "alpha": 0.33917084,
                "beta": 0.2849083,
            },
            f"{_HOFFMANN}, from the paper's source",
            rounded=False,
            fit_range=_HOFFMANN_RANGE,
        ),
        "besiroglu2024": Preset(
            {"A": 482.01, "B": 2085.43, "E": 1.8172, "alpha": 0.3478, "beta": 0.3658},
            f"{_BESIROGLU}, table 1",
            rounded=True,
            fit_range=_BESIROGLU_RANGE,
        ),
        "besiroglu2024-unrounded": Preset(
            {"A": 482.00572, "B": 2085.43420, "E": 1.81686, "alpha": 0.34781, "beta": 0.36585},
            f"{_BESIROGLU}, printed by the code (E differs from the table, which gives the "
            "value of the Huber fit)",
            rounded=False,
            fit_range=_BESIROGLU_RANGE,
        ),
    },
    allocate=_allocate,
)
