"""Train a few runs again and compare them with the bundled table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from toolkit.datasets.pocket_suite import plan, run_suite

# One or two minutes on one core together: two sizes, three recipes, and repeated data.
RUNS = (
    "recipes-code-d16l2-s30",
    "recipes-code-50-d16l2-s30",
    "recipes-prose-d16l2-s30",
    "repeated-d32l3-64k-x4",
    "grid-3.0e+11-d48l3-s0",
)
TOLERANCE_DEVIATIONS = 3.0


def compare(corpus: Path, table: Path) -> pd.DataFrame:
    """Train the demonstration runs again.

    Parameters
    ----------
    corpus : Path
        Folder of the built corpus.
    table : Path
        ``pocket_runs.parquet``.

    Returns
    -------
    DataFrame
        Per run: ``bundled`` and ``retrained`` loss, their ``difference``, the ``allowed``
        difference (three standard deviations of the difference of two seeds) and whether it is
        ``within``. On the processor and the PyTorch of the bundled runs the difference is zero.
    """
    bundled = pd.read_parquet(table).set_index("run")
    allowed = TOLERANCE_DEVIATIONS * np.sqrt(2) * seed_deviation(bundled)
    bench = run_suite.open_bench(corpus, items=False)
    planned = {run.run: run for run in plan.make()}
    rows = []
    for name in RUNS:
        retrained = float(run_suite.perform(planned[name], bench)["loss"][-1].mean())
        before = float(bundled["loss"].loc[name])
        rows.append({"run": name, "bundled": before, "retrained": retrained})
    result = pd.DataFrame(rows).set_index("run")
    result["difference"] = result["retrained"] - result["bundled"]
    result["allowed"] = allowed
    result["within"] = result["difference"].abs() <= allowed
    return result


def seed_deviation(runs: pd.DataFrame) -> float:
    """Pooled standard deviation of the loss over the seeds of part ``seeds``."""
    seeds = runs[runs["part"] == "seeds"]
    return float(np.sqrt(seeds.groupby(["width", "tokens"])["loss"].var().mean()))
