"""Compile everything once, before a class or a test run."""

import time

__all__ = ["warm_up"]


def warm_up() -> float:
    """Compile the kernels, or load them from disk, so that no later call waits for it.

    Returns
    -------
    float
        Seconds it took: about a minute or two the first time on a machine, then about one.

    Examples
    --------
    >>> import toolkit as tk
    >>> seconds = tk.warm_up()
    """
    from toolkit.numerics import absolute, minimise, pinball, splitting
    from toolkit.scaling import laws
    from toolkit.scaling.downstream.score_laws import SCORE_LAWS

    began = time.perf_counter()
    models = [law.model for law in laws.LAWS.values()]
    models += [law.model for law in SCORE_LAWS.values()]
    for model in models:
        minimise.ready(model)
    absolute.ready()
    pinball.ready()
    splitting.ready()
    return time.perf_counter() - began
