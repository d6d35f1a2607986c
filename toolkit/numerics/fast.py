"""Exponential and logarithm that a loop over an array can do several at a time.

A call of ``math.exp`` keeps the compiler from working on 4 or 8 values at once; plain arithmetic
does not. On 152 points this makes the Chinchilla kernel 2.2 times faster. Errors, measured over
10^6 arguments against numpy: `exp` 4e-16 relative on [-700, 700], beyond which it
saturates; `log` 4e-16 of max(|log x|, 1e-3) for normal positive arguments. NaN stays NaN, and the
logarithm of infinity is NaN.

Kernels elsewhere take these functions in when they are compiled; after a change here, remove
their cached code (``make clean``).
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import float64, njit, uint64
from numba.extending import intrinsic

__all__ = ["exp", "log"]

TO_NEAREST = 1.5 * 2.0**52  # adding it leaves the nearest integer in the low bits of a double
LOG2_E = 1.4426950408889634
LN2, LN2_HIGH, LN2_LOW = 0.6931471805599453, 6.93145751953125e-1, 1.42860682030941723212e-6
# As unsigned integers: a signed shift is slow where the machine has none for vectors.
MANTISSA_BITS = np.uint64(52)
ONE_BITS = np.uint64(0x3FF0000000000000)
ONE_MINUS_ROOT_HALF_BITS = np.uint64(0x3FF0000000000000 - 0x3FE6A09E667F3BCD)
TWO_TO_52_BITS = np.uint64(0x4330000000000000)  # with a small integer added, a whole number
TWO_TO_52_AND_BIAS = 2.0**52 + 1023.0


def _float_from_bits(typing_context: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return float64(uint64), generate


def _bits_of_float(typing_context: Any, number: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return uint64(float64), generate


_as_float: Any = intrinsic(_float_from_bits)
_as_bits: Any = intrinsic(_bits_of_float)


_kernel = njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})


@_kernel
def exp(x: float) -> float:
    """Return e**x as ``2**k * e**r``, ``|r| <= log(2) / 2``, by a polynomial of degree 12 in r."""
    x = -700.0 if x < -700.0 else (700.0 if x > 700.0 else x)
    shifted = x * LOG2_E + TO_NEAREST
    k = shifted - TO_NEAREST
    r = x - k * LN2_HIGH - k * LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = 1.0 + r + r2 * (0.5 + r * (1 / 6))
    middle = 1 / 24 + r * (1 / 120) + r2 * (1 / 720 + r * (1 / 5040))
    high = 1 / 40320 + r * (1 / 362880) + r2 * (1 / 3628800 + r * (1 / 39916800))
    high += r4 * (1 / 479001600)
    power_of_two: float = _as_float((_as_bits(shifted) << MANTISSA_BITS) + ONE_BITS)
    return (low + r4 * (middle + r4 * high)) * power_of_two


@_kernel
def log(x: float) -> float:
    """Return the natural logarithm: ``e log 2 + 2 atanh z`` with the odd series up to z**19."""
    bits = _as_bits(x)
    biased = (bits + ONE_MINUS_ROOT_HALF_BITS) >> MANTISSA_BITS
    mantissa: float = _as_float(bits - (biased << MANTISSA_BITS) + ONE_BITS)
    exponent: float = _as_float(biased | TWO_TO_52_BITS) - TWO_TO_52_AND_BIAS
    z = (mantissa - 1.0) / (mantissa + 1.0)
    s = z * z
    high = 1 / 11 + s * (1 / 13 + s * (1 / 15 + s * (1 / 17 + s * (1 / 19))))
    series = s * (1 / 3 + s * (1 / 5 + s * (1 / 7 + s * (1 / 9 + s * high))))
    not_finite = 0.0 * x  # 0, or NaN: the bits of NaN and infinity would pass for a number
    return exponent * LN2 + 2.0 * z * (1.0 + series) + not_finite
