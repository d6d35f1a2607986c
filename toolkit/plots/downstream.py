"""Benchmark scores: against the loss, through both steps, back-tested, and under three metrics."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray
from toolkit.plots import style
from toolkit.scaling.allocation import FLOPS_PER_PARAM_TOKEN
from toolkit.scaling.downstream.score_backtest import ScoreBacktest
from toolkit.scaling.downstream.score_result import ScoreFit
from toolkit.scaling.downstream.two_step import TwoStepFit

__all__ = ["emergence", "score_backtest", "score_vs_compute", "score_vs_loss"]

CURVE_POINTS = 101
BEYOND = 0.25  # how far a curve goes on past the points, as a share of their range
MOST_NAMED = 4  # sizes that get a curve of their own in the picture of two steps


def score_vs_loss(fit: ScoreFit, *, ax: Axes | None = None) -> Axes:
    """Draw the fitted scores and the curve through them, against the loss.

    Beyond the fitted losses the curve is dashed.

    Parameters
    ----------
    fit : ScoreFit
        A fit of a law of the loss. With a bootstrap, the curve has a 95 % band.
    ax : Axes, optional
        Where to draw; the current axes by default.

    Returns
    -------
    Axes
        x: loss, better to the right; y: score.

    Raises
    ------
    DataError
        If the law is not one of the loss.

    Examples
    --------
    >>> import numpy as np
    >>> import toolkit as tk
    >>> loss = np.linspace(0.6, 1.4, 12)
    >>> score = 0.25 + 0.7 / (1 + np.exp(6 * (loss - 1)))
    >>> fit = tk.scaling.downstream.fit_score("sigmoid", {"loss": loss, "score": score})
    >>> tk.plots.score_vs_loss(fit).get_ylabel()
    'benchmark score'
    """
    if fit.law.columns != ("loss",):
        raise DataError(
            f"The {fit.law.title} is a law of {', '.join(fit.law.columns)}; this picture needs a "
            "law of the loss, such as fit_score('sigmoid', table)."
        )
    ax = style.axes(ax)
    loss = fit.table["loss"].to_numpy()
    low, high = loss.min(), loss.max()
    ax.plot(
        loss, fit.table["score"], "o", ms=3.5, alpha=0.55, mec="none",
        color=style.COLORS[0], label="fitted scores",
    )  # fmt: skip
    grid = np.linspace(max(low - BEYOND * (high - low), 1e-3), high, CURVE_POINTS)
    curve = fit.predict({"loss": grid})
    _draw_curve(ax, grid, curve, grid < low, fit.law.title)
    if fit.floor is not None:
        ax.axhline(fit.floor, color="0.6", lw=1, ls=":", label="guessing")
    ax.set(xlabel="loss, better to the right (nats per token, or bits per byte)")
    ax.invert_xaxis()
    _score_axis(ax)
    ax.legend(loc="upper left", fontsize=style.FONT, frameon=False)
    return ax


def score_vs_compute(fit: TwoStepFit, *, ax: Axes | None = None) -> Axes:
    """Draw the scores that both steps predict against compute, with the runs.

    One curve for each model size, over the compute that its token counts need; runs of many
    sizes share the curve of the best split, if the first law has one.

    Parameters
    ----------
    fit : TwoStepFit
        A fit of runs in ``params`` and ``tokens``. With a bootstrap, each curve has a 95 % band.
    ax : Axes, optional
        Where to draw; the current axes by default.

    Returns
    -------
    Axes
        x: training compute ``6 N D`` in FLOPs, log; y: score.

    Raises
    ------
    DataError
        If the first law is not one of size and data.

    Examples
    --------
    >>> import numpy as np
    >>> import toolkit as tk
    >>> runs = tk.datasets.load("simulated_runs")
    >>> runs["score"] = 0.25 + 0.75 / (1 + np.exp(3 * (runs["loss"] - 2.6)))
    >>> fit = tk.scaling.downstream.two_step(runs, floor=0.25)
    >>> tk.plots.score_vs_compute(fit).get_xlabel()
    'training compute (FLOPs)'
    """
    if not {"params", "tokens"} <= set(fit.loss_fit.law.columns):
        raise DataError(
            f"The {fit.loss_fit.law.title} is a law of {', '.join(fit.loss_fit.law.columns)}; "
            "this picture needs a law of size and data."
        )
    ax = style.axes(ax)
    style.log_axis(ax, "x")
    sizes = np.unique(fit.runs["params"].to_numpy())
    many = len(sizes) > 2 * MOST_NAMED
    shown = sizes[np.unique(np.linspace(0, len(sizes) - 1, MOST_NAMED).round().astype(int))]
    drawn = shown if many else sizes
    flops = FLOPS_PER_PARAM_TOKEN * fit.runs["params"] * fit.runs["tokens"]
    for size, shade in zip(drawn, np.linspace(0, 1, len(drawn)), strict=True):
        color = style.SEQUENTIAL(shade)
        of_size = fit.runs["params"] == size
        budget = flops if many else flops[of_size]
        grid = np.geomspace(budget.min(), 3 * budget.max(), CURVE_POINTS)
        tokens = grid / (FLOPS_PER_PARAM_TOKEN * size)
        curve = fit.predict({"params": np.full(CURVE_POINTS, size), "tokens": tokens})
        ax.plot(grid, curve["score"], color=color, lw=1.4, label=style.power_of_ten(size))
        if "lower" in curve:
            ax.fill_between(grid, curve["lower"], curve["upper"], color=color, alpha=0.15, lw=0)
        if not many:
            ax.plot(flops[of_size], fit.runs["score"][of_size], "o", ms=4.5, color=color)
    if many:
        ax.plot(flops, fit.runs["score"], "o", ms=3.5, color="0.35", alpha=0.6, label="runs")
    ax.set(xlabel=style.LABELS["flops"])
    _score_axis(ax)
    ax.legend(
        title="parameters", loc="upper left", fontsize=style.FONT, title_fontsize=style.FONT,
        frameon=False,
    )  # fmt: skip
    return ax


def score_backtest(test: ScoreBacktest, *, ax: Axes | None = None) -> Axes:
    """Draw predicted against observed scores of the runs that were not fitted.

    Parameters
    ----------
    test : ScoreBacktest
        With a bootstrap, bars are the intervals of a new run.
    ax : Axes, optional
        Where to draw; the current axes by default.

    Returns
    -------
    Axes
        x: observed score; y: predicted score; a perfect prediction lies on the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> import toolkit as tk
    >>> runs = tk.datasets.load("simulated_runs")
    >>> runs["score"] = 0.25 + 0.75 / (1 + np.exp(3 * (runs["loss"] - 2.6)))
    >>> test = tk.scaling.downstream.backtest_scores(
    ...     runs, train_flops=5e20, methods=["two-step"], floor=0.25)
    >>> tk.plots.score_backtest(test).get_xlabel()
    'observed score'
    """
    ax = style.axes(ax)
    ends = test.predictions[["score", "predicted"]].to_numpy()
    low, high = ends.min() - 0.02, ends.max() + 0.02
    ax.plot([low, high], [low, high], color="0.6", lw=1, zorder=1)
    errors = test.to_frame()["mean_error"]
    for k, (method, rows) in enumerate(test.predictions.groupby("method", sort=False)):
        color, marker = style.COLORS[k], style.MARKERS[k]
        if "lower" in rows:
            ax.vlines(rows["score"], rows["lower"], rows["upper"], color=color, lw=1, alpha=0.45)
        ax.plot(
            rows["score"], rows["predicted"], marker, ms=5, color=color, alpha=0.85, mec="white",
            mew=0.4, label=f"{method}: off by {100 * errors[method]:.1f} points",
        )  # fmt: skip
    ax.set(xlabel="observed score", ylabel="predicted score")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.legend(loc="upper left", fontsize=style.FONT, frameon=False)
    return ax


def emergence(curves: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw one model series under a smooth metric, a sharp one, and the sharp one as items show it.

    Parameters
    ----------
    curves : DataFrame
        From `toolkit.scaling.emergence_curves`.
    ax : Axes, optional
        Where to draw; the current axes by default.

    Returns
    -------
    Axes
        x: parameters, log; y: score.

    Raises
    ------
    DataError
        If a column is missing.

    Examples
    --------
    >>> import numpy as np
    >>> import toolkit as tk
    >>> curves = tk.scaling.downstream.emergence_curves(
    ...     np.geomspace(1e7, 1e12, 50), scale=1e8, exponent=0.4, length=20, items=500)
    >>> tk.plots.emergence(curves).get_xlabel()
    'model size (parameters)'
    """
    _check_columns(curves, ["params", "token_accuracy", "exact_match", "lower", "upper", "visible"])
    ax = style.axes(ax)
    style.log_axis(ax, "x")
    size = curves["params"].to_numpy()
    ax.plot(size, curves["token_accuracy"], color=style.COLORS[0], label="right token")
    sharp = style.COLORS[1]
    ax.plot(size, curves["exact_match"], color=sharp, label="all tokens right")
    seen = curves["visible"].to_numpy()
    ax.fill_between(
        size, curves["lower"], curves["upper"], color=sharp, alpha=0.2, lw=0,
        label="95 % of scores with these items",
    )  # fmt: skip
    hidden = size[~seen]
    ax.plot(
        hidden, np.zeros_like(hidden), color=style.COLORS[2], lw=3.5, zorder=3,
        label="these items may show zero",
    )  # fmt: skip
    ax.set(xlabel=style.LABELS["params"])
    _score_axis(ax)
    ax.legend(loc="upper left", fontsize=style.FONT, frameon=False)
    return ax


def _draw_curve(
    ax: Axes, x: FloatArray, curve: pd.DataFrame, beyond: npt.NDArray[np.bool_], name: str
) -> None:
    """Draw a curve, dashed where it is beyond the data, and its band."""
    color = style.COLORS[1]
    score = curve["score"].to_numpy()
    ax.plot(x[~beyond], score[~beyond], color=color, label=name)
    ax.plot(x[beyond], score[beyond], color=color, ls="--", label="beyond the fitted losses")
    if "lower" in curve:
        ax.fill_between(
            x, curve["lower"], curve["upper"], color=color, alpha=0.25, lw=0, label="95 % interval"
        )


def _score_axis(ax: Axes) -> None:
    ax.set(ylabel="benchmark score")
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def _check_columns(table: pd.DataFrame, needed: Sequence[str]) -> None:
    missing = [name for name in needed if name not in table]
    if missing:
        raise DataError(
            f"Missing {', '.join(missing)}. Give the table that "
            "scaling.downstream.emergence_curves returns."
        )
