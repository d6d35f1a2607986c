"""How the best model size and data grow with the budget, and how sure that is."""

import warnings
from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from toolkit.errors import DataError, ExtrapolationWarning
from toolkit.numerics.compiling import FloatArray
from toolkit.plots import style
from toolkit.plots.runs import training_compute
from toolkit.scaling.allocation import FLOPS_PER_PARAM_TOKEN
from toolkit.scaling.result import ScalingFit

__all__ = ["allocation"]

SHOWN = ("params", "tokens", "tokens_per_param")
PRESET_LOOKS = ((style.COLORS[3], "-."), ("0.15", ":"), (style.COLORS[4], (0, (6, 2))))


def allocation(
    fit: ScalingFit,
    flops: npt.ArrayLike,
    *,
    show: Literal["params", "tokens", "tokens_per_param"] = "params",
    presets: str | Sequence[str] = (),
    ax: Axes | None = None,
) -> Axes:
    """Draw the best split of each budget with its 95 % band.

    The compute of the fitted runs is shaded. Beyond it the line is dashed and the band hatched:
    there the law is extrapolated.

    Parameters
    ----------
    fit : ScalingFit
        A fit of a law that says how to split a budget. The band needs a bootstrap.
    flops : array_like
        Budgets in FLOPs, two or more, for example ``np.geomspace(1e18, 1e25, 50)``.
    show : {"params", "tokens", "tokens_per_param"}
        The best model size, the best number of tokens, or their ratio.
    presets : str or sequence of str
        Published values of the law to compare with, by name; see ``fit.law.presets``.
    ax : Axes, optional
        Where to draw; the current axes by default.

    Returns
    -------
    Axes
        x: training compute in FLOPs, log; y: what is shown, log.

    Raises
    ------
    DataError
        If the law cannot split a budget, a budget is not positive, there are fewer than two, or
        `show` or a preset is unknown.

    Examples
    --------
    >>> import toolkit as tk
    >>> runs = tk.datasets.load("simulated_runs")
    >>> fit = tk.scaling.fit("chinchilla", runs)
    >>> ax = tk.plots.allocation(fit, [1e19, 1e24], presets=["hoffmann2022-unrounded"])
    >>> ax.get_ylabel()
    'best model size (parameters)'
    """
    budgets = np.unique(np.atleast_1d(np.asarray(flops, dtype=np.float64)))
    if budgets.size < 2:
        raise DataError("A line needs two or more budgets, such as np.geomspace(1e18, 1e25, 50).")
    if show not in SHOWN:
        raise DataError(f"show must be one of {', '.join(map(repr, SHOWN))}; got {show!r}.")
    runs = training_compute(fit)
    edges = np.array([runs.min(), runs.max()])
    seen = edges[(edges > budgets[0]) & (edges < budgets[-1])]
    best = _allocate(fit, np.union1d(budgets, seen))
    names = [presets] if isinstance(presets, str) else presets
    lines = {name: _published(fit, name, budgets)[show] for name in names}
    ax = style.axes(ax)
    style.log_axis(ax, "x")
    style.log_axis(ax, "y")
    ax.axvspan(*edges, facecolor="0.92", lw=0, zorder=0)
    fitted = Patch(facecolor="0.92", edgecolor="0.7")  # the edge shows it on the shaded range
    legend: dict[str, Artist | tuple[Artist, ...]] = {"compute of the fitted runs": fitted}
    legend |= _draw_fit(ax, best, show, edges)
    for k, (name, values) in enumerate(lines.items()):
        color, dashes = PRESET_LOOKS[k % len(PRESET_LOOKS)]
        (legend[name],) = ax.plot(budgets, values, color=color, ls=dashes)
    ax.set(xlabel=style.LABELS["flops"], ylabel=f"best {style.LABELS[show]}")
    columns = 1
    if show == "tokens_per_param":  # the one that need not rise: no corner is surely free
        columns = 2
        style.headroom(ax, 0.04 + 0.07 * np.ceil(len(legend) / columns))
    ax.legend(
        legend.values(),
        legend.keys(),
        loc="upper left",
        ncols=columns,
        fontsize=style.FONT,
        frameon=False,
    )
    return ax


def _allocate(fit: ScalingFit, budgets: FloatArray) -> pd.DataFrame:
    """Best split; the picture itself shows where it is extrapolated, so no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)
        return fit.optimal_allocation(budgets)


def _published(fit: ScalingFit, preset: str, budgets: FloatArray) -> dict[str, FloatArray]:
    assert fit.law.allocate is not None  # optimal_allocation has raised otherwise
    params, tokens = fit.law.allocate(fit.law.values(preset), budgets / FLOPS_PER_PARAM_TOKEN)
    return {"params": params, "tokens": tokens, "tokens_per_param": tokens / params}


def _draw_fit(
    ax: Axes, best: pd.DataFrame, show: str, edges: FloatArray
) -> dict[str, tuple[Artist, ...]]:
    """Draw line and band, dashed and hatched beyond the compute of the runs; return the legend."""
    flops, color = best["flops"], style.COLORS[0]
    banded = f"{show}_lower" in best
    legend: dict[str, tuple[Artist, ...]] = {}
    for rows, inside in (
        (flops.between(*edges), True),
        (flops <= edges[0], False),
        (flops >= edges[1], False),
    ):
        part = best[rows]
        if len(part) < 2:
            continue
        dashes = "-" if inside else "--"
        artists: list[Artist] = [*ax.plot(part["flops"], part[show], dashes, color=color, lw=2)]
        if banded:
            band = ax.fill_between(
                part["flops"],
                part[f"{show}_lower"],
                part[f"{show}_upper"],
                color=color,
                alpha=0.35 if inside else 0.2,
                lw=0,
                hatch=None if inside else "////",
            )
            artists = [band, *artists]
        name = ("fit, 95 % interval" if banded else "fit") if inside else "extrapolated"
        legend[name] = tuple(artists)
    return legend
