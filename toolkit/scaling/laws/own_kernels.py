"""Compile a user's function: the model of a law of one's own, and words for what cannot be."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit
from numba.core.errors import NumbaError
from numba.np.unsafe import ndarray as arrays

from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray

__all__ = ["compile_for", "model_by_differences", "model_by_gradient", "scalar_kernel"]

to_fixed_tuple: Any = arrays.to_fixed_tuple  # so that a function gets an array as arguments


def scalar_kernel(function: Callable[..., Any]) -> Any:
    """Compile for numbers, without a cache: a function typed into a notebook has no file."""
    return njit(error_model="numpy")(function)


def compile_for(compiled: Any, signature: Any, function: Callable[..., Any]) -> None:
    """Compile for one signature; raise `DataError` in plain words where numba cannot."""
    try:
        compiled.compile(signature)
    except NumbaError as error:
        raise DataError(_in_plain_words(function, str(error))) from error
    compiled.disable_compile()


def _in_plain_words(function: Callable[..., Any], error: str) -> str:
    """Keep what numba says about the user's line, and tell what a law may contain."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    telling = [
        line
        for line in lines
        if line.startswith(
            ("NameError", "Untyped global", "Unknown attribute", "Use of unsupported")
        )
        or "No implementation of function" in line
        or "not supported" in line
        or "Cannot" in line
    ]
    return (
        f"own_law: {function.__name__} cannot be compiled. It gets one number for each argument "
        "and must return one number; allowed are arithmetic, if, and functions of math and numpy "
        "on numbers. Not supported are pandas, scipy, strings, other Python functions that are not "
        f"compiled, and names that are not defined. The compiler says: {(telling or lines[-1:])[0]}"
    )


def model_by_differences(
    loss_of: Any,
    place: npt.NDArray[np.int64],
    fraction: npt.NDArray[np.bool_],
    positive: npt.NDArray[np.bool_],
    step: FloatArray,
) -> Any:
    """Model whose Jacobian is made of central differences."""
    size, count = place.size, fraction.size

    def own_model(
        theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray
    ) -> None:
        # An exception inside a compiled function leaves the arrays as they are: not a number.
        value[:] = np.nan
        given, inputs = np.empty(size), np.empty(size)
        below, above = theta - step, theta + step
        for k in range(theta.size):
            given[count + k] = np.exp(theta[k]) if positive[k] else theta[k]
            if positive[k]:
                below[k], above[k] = np.exp(below[k]), np.exp(above[k])
        for i in range(value.size):
            for c in range(count):
                given[c] = x[c, i] if fraction[c] else np.exp(x[c, i])
            for a in range(size):
                inputs[a] = given[place[a]]
            loss = loss_of(*to_fixed_tuple(inputs, size))
            for a in range(size):
                k = place[a] - count
                if k >= 0:
                    inputs[a] = above[k]
                    change = loss_of(*to_fixed_tuple(inputs, size))
                    inputs[a] = below[k]
                    change -= loss_of(*to_fixed_tuple(inputs, size))
                    inputs[a] = given[place[a]]
                    jacobian[k, i] = change / (2.0 * step[k] * loss)
            value[i] = np.log(loss) if loss > 0.0 else np.nan

    return njit(nogil=True, error_model="numpy")(own_model)


def model_by_gradient(
    loss_of: Any,
    gradient_of: Any,
    place: npt.NDArray[np.int64],
    fraction: npt.NDArray[np.bool_],
    positive: npt.NDArray[np.bool_],
) -> Any:
    """Model with the user's own derivatives."""
    size, count = place.size, fraction.size

    def own_model(
        theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray
    ) -> None:
        value[:] = np.nan
        given, inputs = np.empty(size), np.empty(size)
        for k in range(theta.size):
            given[count + k] = np.exp(theta[k]) if positive[k] else theta[k]
        for i in range(value.size):
            for c in range(count):
                given[c] = x[c, i] if fraction[c] else np.exp(x[c, i])
            for a in range(size):
                inputs[a] = given[place[a]]
            loss = loss_of(*to_fixed_tuple(inputs, size))
            value[i] = np.log(loss) if loss > 0.0 else np.nan
            slopes = gradient_of(*to_fixed_tuple(inputs, size))
            for k in range(theta.size):
                jacobian[k, i] = slopes[k] * (given[count + k] if positive[k] else 1.0) / loss

    return njit(nogil=True, error_model="numpy")(own_model)
