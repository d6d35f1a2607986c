"""Compile everything once, before a class or a test run."""

import time

__all__ = ["warm_up"]


def warm_up() -> float:
    """Compile the kernels, or load them from disk, so that no later call waits for it.

    Returns
    -------
    float
        Seconds it took: about half a minute the first time on a machine, then below one.

    Examples
    --------
    >>> import toolkit as tk
    >>> seconds = tk.warm_up()
    """
    from toolkit.numerics import absolute, minimise
    from toolkit.scaling import laws

    began = time.perf_counter()
    for law in laws.LAWS.values():
        minimise.ready(law.model)
    absolute.ready()
    return time.perf_counter() - began
