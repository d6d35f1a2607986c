"""Kernels of the learning curves: log loss and Jacobian over one log column.

theta holds log A, then log c and log S where the family has them, then alpha. A curve with a floor
is ``c + A g``; `_add` turns g and its derivatives into those of the log loss.
"""

import math

from toolkit.numerics.compiling import FloatArray, kernel
from toolkit.numerics.fast import exp, log

__all__ = [
    *("bertalanffy", "exp3", "gompertz", "ilog2", "log_power", "logistic", "mmf"),
    *("pow2", "pow3", "pow4", "vapor", "weibull"),
]


@kernel
def _add(
    theta: FloatArray,
    i: int,
    shape: float,
    by_bend: float,
    by_power: float,
    value: FloatArray,
    jacobian: FloatArray,
) -> None:
    """Put in the log of ``c + A shape``, given the derivatives of the shape by log S and alpha."""
    height, floor = exp(theta[0]), exp(theta[1])
    loss = height * shape + floor
    value[i] = log(loss)
    jacobian[0, i] = height * shape / loss
    jacobian[1, i] = floor / loss
    if theta.size > 2:
        jacobian[2, i] = height * by_bend / loss
    if theta.size > 3:
        jacobian[3, i] = height * by_power / loss


@kernel
def pow2(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Log of ``A x**-alpha``; theta is (log A, alpha)."""
    for i in range(value.size):
        value[i] = theta[0] - theta[1] * x[0, i]
        jacobian[0, i] = 1.0
        jacobian[1, i] = -x[0, i]


@kernel
def pow3(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Log of ``c + A x**-alpha``; theta is (log A, log c, alpha)."""
    for i in range(value.size):
        shape = exp(-theta[2] * x[0, i])
        _add(theta, i, shape, -x[0, i] * shape, 0.0, value, jacobian)


@kernel
def pow4(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Log of ``c + A (1 + x / S)**-alpha``; theta is (log A, log c, log S, alpha)."""
    for i in range(value.size):
        ratio = exp(x[0, i] - theta[2])
        decades = math.log1p(ratio)
        shape = exp(-theta[3] * decades)
        by_bend = theta[3] * shape * ratio / (1.0 + ratio)
        _add(theta, i, shape, by_bend, -decades * shape, value, jacobian)


@kernel
def exp3(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Log of ``c + A exp(-x / S)``; theta is (log A, log c, log S)."""
    for i in range(value.size):
        ratio = exp(x[0, i] - theta[2])
        shape = exp(-ratio)
        _add(theta, i, shape, ratio * shape, 0.0, value, jacobian)


@kernel
def weibull(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Log of ``c + A exp(-(x / S)**alpha)``; theta is (log A, log c, log S, alpha)."""
    for i in range(value.size):
        distance = x[0, i] - theta[2]
        power = exp(theta[3] * distance)
        shape = exp(-power)
        _add(theta, i, shape, theta[3] * power * shape, -distance * power * shape, value, jacobian)


@kernel
def vapor(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Log of ``A exp(S / x) x**-alpha``; theta is (log A, log S, alpha)."""
    for i in range(value.size):
        early = exp(theta[1] - x[0, i])
        value[i] = theta[0] + early - theta[2] * x[0, i]
        jacobian[0, i] = 1.0
        jacobian[1, i] = early
        jacobian[2, i] = -x[0, i]


@kernel
def ilog2(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Log of ``c + A / log x``, not a number up to x = 1; theta is (log A, log c)."""
    for i in range(value.size):
        shape = 1.0 / x[0, i] if x[0, i] > 0.0 else math.nan
        _add(theta, i, shape, 0.0, 0.0, value, jacobian)


@kernel
def log_power(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Log of ``A / (1 + (x / S)**alpha)``; theta is (log A, log S, alpha)."""
    for i in range(value.size):
        distance = x[0, i] - theta[1]
        power = exp(theta[2] * distance)
        passed = power / (1.0 + power)
        value[i] = theta[0] - math.log1p(power)
        jacobian[0, i] = 1.0
        jacobian[1, i] = theta[2] * passed
        jacobian[2, i] = -distance * passed


@kernel
def mmf(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Log of ``c + A / (1 + (x / S)**alpha)``; theta is (log A, log c, log S, alpha)."""
    for i in range(value.size):
        distance = x[0, i] - theta[2]
        power = exp(theta[3] * distance)
        shape = 1.0 / (1.0 + power)
        slope = shape * (1.0 - shape)
        _add(theta, i, shape, theta[3] * slope, -distance * slope, value, jacobian)


@kernel
def gompertz(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Log of ``c + A (1 - exp(-(x / S)**-alpha))``; theta is (log A, log c, log S, alpha)."""
    for i in range(value.size):
        distance = x[0, i] - theta[2]
        power = exp(-theta[3] * distance)
        shape = -math.expm1(-power)
        slope = power * exp(-power)
        _add(theta, i, shape, theta[3] * slope, -distance * slope, value, jacobian)


@kernel
def logistic(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Log of ``c + 2 A / (1 + exp(x / S))``; theta is (log A, log c, log S)."""
    for i in range(value.size):
        ratio = exp(x[0, i] - theta[2])
        shape = 2.0 / (1.0 + exp(ratio))
        _add(theta, i, shape, ratio * shape * (1.0 - 0.5 * shape), 0.0, value, jacobian)


@kernel
def bertalanffy(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Log of ``c + A (1 - (1 - exp(-x / S))**3)``; theta is (log A, log c, log S)."""
    for i in range(value.size):
        ratio = exp(x[0, i] - theta[2])
        left = exp(-ratio)
        grown = -math.expm1(-ratio)
        shape = left * (3.0 - 3.0 * left + left * left)
        _add(theta, i, shape, 3.0 * grown * grown * ratio * left, 0.0, value, jacobian)
