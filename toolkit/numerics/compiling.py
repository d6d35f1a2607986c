"""How kernels are compiled: one decorator, no work at import, and a word when it takes long."""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

__all__ = ["FloatArray", "IntArray", "compile_once", "kernel", "summing_kernel"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

TOLD_AFTER_SECONDS = 1.0  # shorter compilations are not worth a message


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function on its first call and keep the machine code on disk.

    Kernels that call each other share a file: the cache of a kernel notices a change of its own
    file only.
    """
    return njit(cache=True, nogil=True, error_model="numpy")(function)


def summing_kernel(function: Callable[..., Any]) -> Any:
    """Compile a kernel whose sums may be taken in any order.

    Only with leave to reorder can a sum run on several values at once. Measured on 152 values: an
    objective in 0.04 instead of 0.4 microseconds, five by five products in 0.45 instead of 2;
    the sums differ by at most 4e-16 relative, less than sequential addition errs itself.
    """
    order_free = {"reassoc", "contract", "nsz"}
    return njit(cache=True, nogil=True, error_model="numpy", fastmath=order_free)(function)


def compile_once(dispatcher: Any, signature: Any) -> None:
    """Compile a kernel for one signature, or load it from the cache, before its first call.

    A kernel with one fixed signature can be passed to other kernels as a function pointer, so
    that those need not be compiled again for every function that they are given.

    Examples
    --------
    >>> from numba import float64, njit
    >>> @njit
    ... def double(x):
    ...     return 2.0 * x
    >>> compile_once(double, float64(float64))
    >>> double(2.0)
    4.0
    """
    if dispatcher.signatures:
        return
    began = time.perf_counter()
    dispatcher.compile(signature)
    dispatcher.disable_compile()
    seconds = time.perf_counter() - began
    if seconds > TOLD_AFTER_SECONDS and not sum(dispatcher.stats.cache_hits.values()):
        print(
            f"toolkit: compiled {dispatcher.py_func.__name__} in {seconds:.0f} s, "
            "kept on disk for the next time.",
            file=sys.stderr,
        )
