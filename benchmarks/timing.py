"""CPU seconds of one call: what work costs, whatever else the machine is doing."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd


@dataclass(frozen=True)
class Timing:
    """One way to do a piece of work.

    Attributes
    ----------
    work, who : str
        What was done, and by which program.
    seconds : float
        CPU seconds per unit of work.
    unit : str
        What one unit is.
    objective : float
        Objective reached: lower is better, equal means the same answer.
    note : str
        Failures, sample sizes.
    """

    work: str
    who: str
    seconds: float
    unit: str
    objective: float
    note: str = ""


def cpu_seconds(call: Callable[[], object], repeats: int = 1) -> float:
    """Return the least CPU time of `repeats` calls."""
    best = float("inf")
    for _ in range(repeats):
        began = time.process_time()
        call()
        best = min(best, time.process_time() - began)
    return best


def table(timings: list[Timing]) -> str:
    """Lay timings out, with each one's ratio to the toolkit's on the same work."""
    rows = []
    for timing in timings:
        ours = next(t for t in timings if t.work == timing.work and t.who == "toolkit")
        rows.append(
            {
                "work": timing.work,
                "who": timing.who,
                "CPU": _readable(timing.seconds),
                "per": timing.unit,
                "times toolkit": f"{timing.seconds / ours.seconds:,.0f}",
                "objective": f"{timing.objective:.10g}",
                "note": timing.note,
            }
        )
    return pd.DataFrame(rows).to_string(index=False)


def _readable(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
