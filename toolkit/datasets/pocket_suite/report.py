"""What the bundled tables say about the suite: the figures on its card."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from toolkit.datasets import pocket
from toolkit.datasets.pocket_suite import pack, plan

SIZES_NEEDED = 4
# In log parameters: farther from the minimum the curve is no parabola.
PARABOLA_REACH = 1.5


def isoflop_minima(runs: pd.DataFrame) -> pd.DataFrame:
    """Locate the best size of each budget of the grid by a parabola in log parameters.

    Parameters
    ----------
    runs : DataFrame
        ``pocket_runs``.

    Returns
    -------
    DataFrame
        Per budget: ``params`` with the embedding and ``loss`` at the minimum, ``tokens`` per
        parameter there, whether the minimum lies ``inside`` the sizes tried, and the number of
        ``runs`` and of ``sizes``.
    """
    grid = runs[(runs["part"] == "grid") & ~runs["diverged"]].copy()
    grid["total"] = grid["params"] + grid["params_embedding"]
    grid["nearest"] = [
        int(np.argmin(np.abs(np.log(plan.BUDGETS) - np.log(c)))) for c in grid["flops"]
    ]
    rows = []
    for number, budget in enumerate(plan.BUDGETS):
        at = grid[grid["nearest"] == number]
        cells = at.groupby("total")["loss"].mean()
        if len(cells) < SIZES_NEEDED:
            continue
        x, losses = np.log(cells.index.to_numpy(float)), cells.to_numpy(float)
        best = x[losses.argmin()]
        near = np.abs(x - best) <= PARABOLA_REACH
        a, b, c = np.polyfit(x[near] - best, losses[near], 2)
        place = best - b / (2 * a)
        rows.append(
            {
                "budget": budget,
                "params": np.exp(place),
                "tokens_per_param": budget / 6 / np.exp(2 * place),
                "loss": c - b**2 / (4 * a),
                "inside": bool(a > 0 and x.min() < place < x.max()),
                "runs": len(at),
                "sizes": len(cells),
            }
        )
    return pd.DataFrame(rows)


def allocation_exponent(minima: pd.DataFrame) -> tuple[float, float]:
    """Slope of log parameters at the minimum on log budget, and its standard error."""
    x, y = np.log(minima["budget"]), np.log(minima["params"])
    if len(minima) < 3:
        return np.nan, np.nan
    coefficients, covariance = np.polyfit(x, y, 1, cov=True)
    return float(coefficients[0]), float(np.sqrt(covariance[0, 0]))


def noise(runs: pd.DataFrame, curves: pd.DataFrame, items: pd.DataFrame) -> dict[str, float]:
    """Measure the noise of seeds, checkpoints and items.

    Returns
    -------
    dict of str to float
        ``seed_loss`` (nats) and ``seed_<task>`` (fractions): standard deviation over the seeds of
        part ``seeds``, pooled over its points; ``checkpoint_loss``: standard deviation of the
        second differences of the curves' last ten checkpoints divided by sqrt(6), which a smooth
        curve leaves at zero; ``item_<task>``: standard error of the mean over items.
    """
    seeds = runs[runs["part"] == "seeds"]
    points = seeds.groupby(["width", "depth", "tokens"])
    names = [str(name) for name in runs if str(name).startswith("accuracy_")]
    found = {"seed_loss": float(np.sqrt(points["loss"].var().mean()))}
    for name in names:
        task = name.removeprefix("accuracy_")
        found[f"seed_{task}"] = float(np.sqrt(points[name].var().mean()))
    chosen = curves[curves["run"].isin(seeds["run"])]
    bends = [
        np.diff(losses.to_numpy()[-10:], 2)
        for _, losses in chosen.groupby("run")["loss_all_windows"]
    ]
    found["checkpoint_loss"] = (
        float(np.std(np.concatenate(bends)) / np.sqrt(6)) if bends else np.nan
    )
    ends = items.groupby("run", observed=True)["checkpoint"].transform("max") == items["checkpoint"]
    last = items[ends & (items["prompt"] == "plain")]
    errors = last.groupby(["run", "task"], observed=True)["score"].sem()
    by_task = errors.groupby("task", observed=True).mean()
    return found | {f"item_{task}": float(value) for task, value in by_task.items()}


def describe(bundled: Path) -> str:
    """Write the figures of the card as plain text."""
    runs = pd.read_parquet(bundled / pack.RUNS)
    curves = pd.read_parquet(bundled / pack.CURVES)
    items = pocket.items(bundled / pack.ITEMS)
    planned = pd.Series([run.part for run in plan.make()]).value_counts()
    parts = pd.DataFrame({"planned": planned, "done": runs["part"].value_counts()})
    parts = parts.fillna(0).astype(int)
    seconds = runs["cpu_seconds"] + runs["evaluation_seconds"]
    parts["cpu_hours"] = seconds.groupby(runs["part"]).sum() / 3600
    minima = isoflop_minima(runs)
    slope, error = allocation_exponent(minima)
    sizes = {name: (bundled / name).stat().st_size for name in (pack.RUNS, pack.CURVES, pack.ITEMS)}
    rows = {pack.RUNS: len(runs), pack.CURVES: len(curves), pack.ITEMS: len(items)}
    return "\n\n".join(
        [
            parts.to_string(float_format="{:.2f}".format),
            "\n".join(f"{name}: {rows[name]} rows, {size} bytes" for name, size in sizes.items()),
            f"diverged: {int(runs['diverged'].sum())}",
            minima.to_string(float_format="{:.4g}".format),
            f"allocation exponent {slope:.3f}, standard error {error:.3f}",
            "\n".join(f"{name} {value:.4f}" for name, value in noise(runs, curves, items).items()),
        ]
    )
