"""Compute-optimal size from training curves: the run with the lowest loss at each compute."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit import tables
from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray
from toolkit.scaling.allocation import FLOPS_PER_PARAM_TOKEN
from toolkit.scaling.budgets.frontier import NAMES, FrontierFit, power_laws

__all__ = ["fit_envelope"]

FEWEST_WINNERS = 3  # sizes on the envelope, besides the smallest and the largest model


def fit_envelope(
    curves: pd.DataFrame | Mapping[str, npt.ArrayLike],
    *,
    points: int = 1500,
    bootstrap: int = 0,
    rng: np.random.Generator | int | None = None,
) -> FrontierFit:
    """Fit the best size and data as powers of compute to the envelope of training curves.

    Approach 1 of Hoffmann et al. 2022: at many values of compute, the run whose interpolated loss
    is lowest; then least squares on the logarithms of its size and tokens. Compute at which the
    smallest or the largest model wins is refused: a size beyond the grid might be better. Losses
    in the middle of a learning-rate schedule are higher than at its end, so curves should come
    from schedules of several lengths.

    Parameters
    ----------
    curves : DataFrame or mapping
        One row per checkpoint: run, params (the same in all rows of a run), tokens, loss; flops
        where compute is not ``6 N D``.
    points : int
        Values of compute, equally spaced on a log scale over the range of the curves.
    bootstrap : int
        Resamples of whole runs; 0 gives no intervals.
    rng : Generator, int or None
        Source of the draws.

    Returns
    -------
    FrontierFit
        ``minima`` has one row per value of compute, with the winning ``run``.

    Raises
    ------
    DataError
        If the table is not valid, a run has several sizes or one checkpoint, or fewer than three
        sizes between the smallest and the largest win anywhere.

    Examples
    --------
    >>> import numpy as np
    >>> import toolkit as tk
    >>> sizes, data = np.meshgrid(np.geomspace(1e7, 1e10, 13), np.geomspace(1e8, 1e12, 40))
    >>> design = {"params": sizes.ravel(), "tokens": data.ravel(), "run": sizes.ravel()}
    >>> curves = tk.datasets.simulate_runs("chinchilla", "besiroglu2024", design, noise=0.0)
    >>> round(tk.scaling.fit_envelope(curves).exponent, 2)
    0.51
    """
    if isinstance(points, bool) or points < 2:
        raise DataError(f"points is a number of values of compute, 2 or more; got {points!r}.")
    table = tables.check(curves, ["run", "params", "tokens", "loss"], optional=["flops"])
    if "flops" not in table:
        table["flops"] = FLOPS_PER_PARAM_TOKEN * table["params"] * table["tokens"]
    _check_runs(table)
    grid = np.geomspace(table["flops"].min(), table["flops"].max(), points)
    names, params, log_loss, log_tokens = _interpolate(table, np.log(grid))
    everyone = np.ones(len(names), dtype=bool)
    winner, reason = _winners(log_loss, params, everyone)
    used = reason == ""
    _check_winners(params, winner[used])
    rows = np.arange(points)
    minima = pd.DataFrame(
        {
            "flops": grid,
            "run": np.asarray(names, dtype=object)[winner],
            "sizes": (np.isfinite(log_loss)).sum(axis=0),
            "params": np.where(used, params[winner], np.nan),
            "tokens": np.where(used, np.exp(log_tokens[winner, rows]), np.nan),
            "loss": np.where(used, np.exp(log_loss[winner, rows]), np.nan),
            "used": used,
            "reason": reason,
        }
    )
    laws = power_laws(grid, minima["params"].to_numpy(), minima["tokens"].to_numpy())
    approach = "envelope of training curves"
    if not bootstrap:
        return FrontierFit(approach, table, minima, laws)
    if isinstance(bootstrap, bool) or bootstrap < 2:
        raise DataError(f"bootstrap must be 0 or at least 2 resamples; got {bootstrap!r}.")
    generator = np.random.default_rng(rng)
    draws = np.full((bootstrap, len(NAMES)), np.nan)
    for draw in draws:
        drawn = np.zeros(len(names), dtype=bool)
        drawn[generator.integers(0, len(names), size=len(names))] = True
        winner, reason = _winners(log_loss, params, drawn)
        used = reason == ""
        if len(np.unique(params[winner[used]])) > 1:
            draw[:] = power_laws(
                grid[used], params[winner[used]], np.exp(log_tokens[winner[used], rows[used]])
            )
    return FrontierFit(approach, table, minima, laws, draws=pd.DataFrame(draws, columns=NAMES))


def _check_runs(table: pd.DataFrame) -> None:
    runs = table.groupby("run", sort=False)
    mixed = runs["params"].nunique().pipe(lambda sizes: sizes.index[sizes > 1])
    if len(mixed):
        raise DataError(
            f"Column 'params': run {mixed[0]!r} has several sizes. Mend: give every training run "
            "its own name in 'run'."
        )
    short = runs["tokens"].nunique().pipe(lambda length: length.index[length < 2])
    if len(short):
        raise DataError(
            f"Column 'tokens': {len(short)} runs ({', '.join(map(str, short[:5]))}) have one "
            "checkpoint; a training curve needs two or more. Mend: drop them, or use "
            "fit_isoflops for final losses."
        )
    tables.check_keys(table, ["run", "tokens"], "Keep one row per checkpoint of a run.")


def _interpolate(
    table: pd.DataFrame, logs: FloatArray
) -> tuple[list[object], FloatArray, FloatArray, FloatArray]:
    """Names, params (r,), log loss and log tokens (r, points) of runs, linear in log compute.

    The log loss is infinite where a run has no checkpoint on both sides.
    """
    names: list[object] = []
    params, loss, tokens = [], [], []
    for name, rows in table.sort_values("flops").groupby("run", sort=True):
        at = np.log(rows[["flops", "loss", "tokens"]].to_numpy(dtype=np.float64)).T
        names.append(name)
        params.append(float(rows["params"].iloc[0]))
        inside = (logs >= at[0, 0] - 1e-12) & (logs <= at[0, -1] + 1e-12)
        loss.append(np.where(inside, np.interp(logs, at[0], at[1]), np.inf))
        tokens.append(np.interp(logs, at[0], at[2]))
    return names, np.array(params), np.array(loss), np.array(tokens)


def _winners(
    log_loss: FloatArray, params: FloatArray, drawn: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.object_]]:
    """Run with the lowest loss at each compute, and why it is refused ("" where it is not)."""
    losses = np.where(drawn[:, None], log_loss, np.inf)
    winner = losses.argmin(axis=0)
    reason = np.full(len(winner), "", dtype=object)
    reason[params[winner] == params[drawn].min()] = "the smallest model wins"
    reason[params[winner] == params[drawn].max()] = "the largest model wins"
    reason[np.isinf(losses.min(axis=0))] = "no curve reaches this compute"
    return winner.astype(np.int64), reason


def _check_winners(params: FloatArray, winner: npt.NDArray[np.int64]) -> None:
    sizes = len(np.unique(params[winner]))
    if sizes < FEWEST_WINNERS:
        raise DataError(
            f"{sizes} sizes between the smallest and the largest of {len(np.unique(params))} "
            f"have the lowest loss at some compute; the envelope needs {FEWEST_WINNERS} or more. "
            "Mend: add curves of more sizes, or of longer training."
        )
