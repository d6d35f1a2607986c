"""Loss against compute and against model size: the runs and the law that was fitted to them."""

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import LogNorm, to_rgba
from matplotlib.container import ErrorbarContainer
from matplotlib.legend import Legend
from matplotlib.typing import ColorType

from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray, IntArray
from toolkit.plots import style
from toolkit.plots.runs import (
    OTHER,
    SAME_BUDGET,
    group_budgets,
    isoflop_groups,
    training_compute,
)
from toolkit.scaling.allocation import FLOPS_PER_PARAM_TOKEN
from toolkit.scaling.result import ScalingFit

__all__ = ["isoflop", "loss_vs_compute"]

CURVE_POINTS = 101


def loss_vs_compute(fit: ScalingFit, *, ax: Axes | None = None) -> Axes:
    """Draw the runs and the loss that the law promises at the best split of each budget.

    Runs in isoFLOP groups (budgets equal within 2 %, three or more sizes each) are coloured by
    budget, and larger markers are larger models; otherwise colour is model size.

    Parameters
    ----------
    fit : ScalingFit
        A fit of a law of ``params`` and ``tokens``. With a bootstrap, the curve has a 95 % band.
    ax : Axes, optional
        Where to draw; the current axes by default.

    Returns
    -------
    Axes
        x: training compute ``6 N D`` in FLOPs, log; y: loss in nats per token.

    Raises
    ------
    DataError
        If the law is not one of size and data.

    Examples
    --------
    >>> import toolkit as tk
    >>> runs = tk.datasets.load("simulated_runs")
    >>> fit = tk.scaling.fit("chinchilla", runs)
    >>> tk.plots.loss_vs_compute(fit).get_ylabel()
    'validation loss (nats per token)'
    """
    flops = training_compute(fit)
    ax = style.axes(ax)
    style.log_axis(ax, "x")
    groups = isoflop_groups(flops, fit.runs["params"].to_numpy())
    if groups is None:
        _draw_by_size(ax, fit, flops)
    else:
        runs = _draw_groups(ax, fit, flops, groups, group_budgets(flops, groups), by_size=True)
        _name_budgets(ax, runs, "budget (FLOPs)\nlarger marker: larger model")
    if fit.law.allocate is not None:
        _draw_frontier(ax, fit, flops)
    ax.set(xlabel=style.LABELS["flops"], ylabel=style.LABELS["loss"])
    return ax


def isoflop(fit: ScalingFit, *, ax: Axes | None = None) -> Axes:
    """Draw loss against model size at each budget, with the fitted curves and their optima.

    Parameters
    ----------
    fit : ScalingFit
        A fit of runs in isoFLOP groups: budgets equal within 2 %, each with three or more sizes.
        With a bootstrap, each optimum has the 95 % interval of its size.
    ax : Axes, optional
        Where to draw; the current axes by default.

    Returns
    -------
    Axes
        x: parameters, log; y: loss in nats per token.

    Raises
    ------
    DataError
        If the runs do not form isoFLOP groups, or the law is not one of size and data.

    Examples
    --------
    >>> import toolkit as tk
    >>> runs = tk.datasets.load("simulated_runs")
    >>> fit = tk.scaling.fit("chinchilla", runs)
    >>> tk.plots.isoflop(fit).get_xlabel()
    'model size (parameters)'
    """
    flops = training_compute(fit)
    params: FloatArray = fit.runs["params"].to_numpy()
    groups = isoflop_groups(flops, params)
    if groups is None:
        raise DataError(
            f"The {len(flops)} runs do not form isoFLOP groups: too few share their compute "
            f"6*params*tokens within {SAME_BUDGET - 1:.0%} with two runs of other sizes. Draw "
            "loss_vs_compute(fit), or fit runs of at least 2 budgets with 3 or more sizes each."
        )
    budgets = group_budgets(flops, groups)
    best = fit.optimal_allocation(budgets)
    ax = style.axes(ax)
    style.log_axis(ax, "x")
    runs = _draw_groups(ax, fit, params, groups, budgets)
    for k, color in enumerate(_shades(len(budgets))):
        sizes = np.append(params[groups == k], best["params"][k])
        grid = np.geomspace(sizes.min(), sizes.max(), CURVE_POINTS)
        points = {"params": grid, "tokens": budgets[k] / (FLOPS_PER_PARAM_TOKEN * grid)}
        ax.plot(grid, fit.law.predict(fit.values, points), color=color, zorder=1.5)
    optima = _draw_optima(ax, best)
    ax.set(xlabel=style.LABELS["params"], ylabel=style.LABELS["loss"])
    _name_budgets(ax, runs, "budget (FLOPs)")
    ax.legend(handles=[optima], loc="lower left", fontsize=style.FONT, frameon=False)
    return ax


def _shades(count: int) -> list[tuple[float, float, float, float]]:
    """Colours of budgets, from low to high."""
    return [style.SEQUENTIAL(share) for share in np.linspace(0.0, 1.0, count)]


def _draw_groups(
    ax: Axes,
    fit: ScalingFit,
    x: FloatArray,
    groups: IntArray,
    budgets: FloatArray,
    *,
    by_size: bool = False,
) -> list[PathCollection]:
    """Draw the runs at x, one colour and marker per budget; by size, large models are larger."""
    loss = fit.runs["loss"].to_numpy()
    areas = _marker_areas(fit.runs["params"]) if by_size else np.full(len(x), 28.0)
    looks: list[tuple[int, str, ColorType, str]] = [
        (k, style.MARKERS[k % len(style.MARKERS)], color, style.power_of_ten(budgets[k]))
        for k, color in enumerate(_shades(len(budgets)))
    ]
    if (groups == OTHER).any():
        looks.append((OTHER, "o", style.COLORS[7], "other runs"))
    drawn = []
    for k, marker, color, label in looks:
        mine = groups == k
        drawn.append(
            ax.scatter(
                x[mine],
                loss[mine],
                s=areas[mine],
                marker=marker,
                facecolors=[to_rgba(color, 0.3)],
                edgecolors=[color],
                linewidths=1.0,
                label=label,
            )
        )
    return drawn


def _marker_areas(params: pd.Series) -> FloatArray:
    """Area in square points that grows with the logarithm of model size."""
    logs = np.log(params.to_numpy(dtype=np.float64))
    areas: FloatArray = 10.0 + 40.0 * (logs - logs.min()) / (logs.max() - logs.min())
    return areas


def _name_budgets(ax: Axes, runs: list[PathCollection], title: str) -> None:
    """Add a legend of budgets where no run lies, as loss falls with compute: upper right.

    It is an artist of its own: axes keep only the last of two legends.
    """
    legend = Legend(
        ax,
        runs,
        [str(run.get_label()) for run in runs],
        title=title,
        loc="upper right",
        alignment="left",
        fontsize=style.FONT,
        title_fontsize=style.FONT,
        frameon=False,
    )
    ax.add_artist(legend)


def _draw_by_size(ax: Axes, fit: ScalingFit, flops: FloatArray) -> None:
    points = ax.scatter(
        flops,
        fit.runs["loss"],
        s=22,
        c=fit.runs["params"],
        cmap=style.SEQUENTIAL,
        norm=LogNorm(),
        edgecolors="white",
        linewidths=0.3,
        label="runs",
    )
    bar = ax.figure.colorbar(points, ax=ax, label=style.LABELS["params"])
    style.log_ticks(bar.ax.yaxis)


def _draw_frontier(ax: Axes, fit: ScalingFit, flops: FloatArray) -> None:
    best = fit.optimal_allocation(np.geomspace(flops.min(), flops.max(), CURVE_POINTS))
    color = style.COLORS[3]
    (line,) = ax.plot(
        best["flops"], best["loss"], color=color, lw=1.5, label="compute-optimal loss of the fit"
    )
    handles: list[Artist] = [line]
    if "loss_lower" in best:
        handles.append(
            ax.fill_between(
                best["flops"],
                best["loss_lower"],
                best["loss_upper"],
                color=color,
                alpha=0.3,
                lw=0,
                label="95 % interval",
            )
        )
    ax.legend(handles=handles, loc="lower left", fontsize=style.FONT, frameon=False)


def _draw_optima(ax: Axes, best: pd.DataFrame) -> ErrorbarContainer:
    spread = None
    label = "best size"
    if "params_lower" in best:
        below, above = best["params"] - best["params_lower"], best["params_upper"] - best["params"]
        spread = np.array([below, above])
        label = "best size, 95 % interval"
    return ax.errorbar(
        best["params"],
        best["loss"],
        xerr=spread,
        fmt="--*",
        color=style.COLORS[3],
        ecolor=style.COLORS[3],
        markersize=9,
        capsize=4,
        lw=1.3,
        label=label,
        zorder=4,
    )
