"""The law of compressed representations: a format's capacity follows from one number.

``loss = E + A / (params rho)**alpha + B / tokens**beta``, where the capacity rho of a number format
(bits, groups, sparsity, any mix) depends on how well it can hold random Gaussian numbers:
``rho = tanh(F log_{1/4} error)**C`` with ``representation_error`` the mean square error of standard
normal numbers in that format: 1 for a format that holds nothing, a quarter as much for each bit of
an ideal one. Capacities of weights and activations multiply.

The paper's factor L, the capacity of a format without error, cannot be told from A here; it is one.
One kind of format (say, rounding to integers) has one F and C.

Measured with ``python -m benchmarks.coverage compressed``: the 95 % interval of F covers the
truth in 96 of 100 simulated studies.
"""

import math

import numpy as np

from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray, kernel
from toolkit.numerics.fast import exp, log
from toolkit.scaling.law import Law, Parameter
from toolkit.scaling.laws.chinchilla import CHINCHILLA
from toolkit.scaling.laws.starts import floor_and_rest, spread

__all__ = ["COMPRESSED"]

LN4 = math.log(4.0)


@kernel
def _log_loss(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Log of the loss; theta is (log A, log B, log E, alpha, beta, log F, log C).

    Not a number where the error is 1 or more: such a format has no capacity.
    """
    alpha, beta, floor, steep = theta[3], theta[4], exp(theta[2]), exp(theta[6])
    for i in range(value.size):
        depth = exp(theta[5]) * (-x[2, i] / LN4 if x[2, i] < 0.0 else math.nan)
        capacity = math.log(math.tanh(depth))
        effective = x[0, i] + steep * capacity
        size = exp(theta[0] - alpha * effective)
        data = exp(theta[1] - beta * x[1, i])
        loss = size + data + floor
        value[i] = log(loss)
        size, data = size / loss, data / loss
        jacobian[0, i] = size
        jacobian[1, i] = data
        jacobian[2, i] = floor / loss
        jacobian[3, i] = -effective * size
        jacobian[4, i] = -x[1, i] * data
        wide = 2.0 * depth
        jacobian[5, i] = -alpha * size * steep * (wide / math.sinh(wide) if wide < 700.0 else 0.0)
        jacobian[6, i] = -alpha * size * steep * capacity


def _starts(x: FloatArray, y: FloatArray) -> FloatArray:
    """Thirty-two points of a Halton sequence, scaled to the data."""
    nothing = int(np.sum(x[:, 2] >= 0))
    if nothing:
        raise DataError(
            f"Column 'representation_error': {nothing} of {len(x)} rows are 1 or more. It is the "
            "mean square error of standard normal numbers in the format, from above 0 to below 1: "
            "a format with error 1 holds nothing. Scale to variance 1, or drop the rows."
        )
    ranges = [(0.3, 0.98), (0.1, 0.9), (0.1, 0.8), (0.1, 0.8), (-1.5, 1.0), (-0.7, 1.0)]
    floor, share, alpha, beta, log_f, log_c = spread(ranges, 32).T
    log_floor, rest = floor_and_rest(y, floor)
    size, data = np.log(share * rest), np.log((1 - share) * rest)
    return np.column_stack([size, data, log_floor, alpha, beta, log_f, log_c])


COMPRESSED = Law(
    name="compressed",
    title="law of compressed representations",
    formula=(
        "loss = E + A / (params rho)^alpha + B / tokens^beta, "
        "rho = tanh(F log_{1/4}(representation_error))^C"
    ),
    equation=(
        r"L(N, D, R) = A\,(N \rho)^{-\alpha} + B\,D^{-\beta} + E,\quad"
        r" \rho = \tanh\left(F \log_{1/4} \mathrm{GMSE}(R)\right)^C"
    ),
    reference="Panferov et al. 2025, arXiv:2506.01863, equations 1 and 3, with L = 1",
    columns=("params", "tokens", "representation_error"),
    parameters=(
        *CHINCHILLA.parameters,
        Parameter(
            "F",
            "how little error is needed for full capacity",
            "1 / bits",
            positive=True,
            lower=1e-2,
            upper=1e2,
        ),
        Parameter(
            "C",
            "how steeply capacity rises from nothing",
            "none",
            positive=True,
            lower=2e-2,
            upper=5e1,
        ),
    ),
    model=_log_loss,
    starts=_starts,
)
