"""Pictures of the compute-optimal frontier: minima of isoFLOP curves, and approaches compared."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.container import Container, ErrorbarContainer
from matplotlib.lines import Line2D

from toolkit.errors import DataError
from toolkit.plots import style
from toolkit.scaling.budgets.frontier import FrontierFit
from toolkit.scaling.result import ScalingFit

__all__ = ["exponents", "isoflop_minima"]


def isoflop_minima(fit: FrontierFit, *, ax: Axes | None = None) -> Axes:
    """Draw the isoFLOP curves of approach 2, the minimum of each, and the budgets refused.

    A refused budget is grey, its curve dashed; the legend counts them.

    Parameters
    ----------
    fit : FrontierFit
        From `toolkit.scaling.fit_isoflops`. With a bootstrap, each minimum has the 95 % interval
        of its size.
    ax : Axes, optional
        Where to draw; the current axes by default.

    Returns
    -------
    Axes
        x: parameters, log; y: loss in nats per token.

    Raises
    ------
    DataError
        If the fit has no isoFLOP curves.

    Examples
    --------
    >>> import toolkit as tk
    >>> design = tk.datasets.isoflop_design([1e18, 1e19, 1e20, 1e21], [5, 10, 20, 40, 80])
    >>> runs = tk.datasets.simulate_runs("chinchilla", "besiroglu2024", design, noise=0.0)
    >>> tk.plots.isoflop_minima(tk.scaling.fit_isoflops(runs)).get_xlabel()
    'model size (parameters)'
    """
    if fit.curves is None:
        raise DataError(f"A fit by {fit.approach} has no isoFLOP curves; use fit_isoflops.")
    ax = style.axes(ax)
    style.log_axis(ax, "x")
    used = fit.minima[fit.minima["used"]]
    shades = style.SEQUENTIAL(np.linspace(0.0, 1.0, len(used)))
    budgets: list[Artist | Container] = []
    for k, (flops, color) in enumerate(zip(used["flops"], shades, strict=True)):
        marker = style.MARKERS[k % len(style.MARKERS)]
        points = _draw_budget(ax, fit, flops, marker, tuple(color), "-")
        points.set_label(style.power_of_ten(flops))
        budgets.append(points)
    for flops in fit.refused["flops"]:
        _draw_budget(ax, fit, flops, "x", "0.6", ":")
    legend = [*budgets, _draw_minima(ax, used)]
    if len(fit.refused):
        label = f"refused ({len(fit.refused)})"
        legend.append(Line2D([], [], color="0.6", marker="x", ls=":", markersize=5, label=label))
    ax.set(xlabel=style.LABELS["params"], ylabel=style.LABELS["loss"])
    ax.legend(  # beside the axes, as small budgets reach into every corner
        handles=legend,
        title="budget (FLOPs)",
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        alignment="left",
        fontsize=style.FONT,
        title_fontsize=style.FONT,
        frameon=False,
    )
    return ax


def exponents(
    fits: Mapping[str, FrontierFit | ScalingFit],
    *,
    published: Mapping[str, float] | None = None,
    level: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Draw the power of compute in the best size, as several fits find it, with intervals.

    Parameters
    ----------
    fits : mapping of label to FrontierFit or ScalingFit
        For example the three approaches of Hoffmann et al. 2022 on the same runs, first on top.
        A fit without bootstrap is a point without a line.
    published : mapping of label to float, optional
        Values to compare with, one for each fit of that label: hollow diamonds.
    level : float
        Nominal coverage of the intervals, in (0, 1).
    ax : Axes, optional
        Where to draw; the current axes by default.

    Returns
    -------
    Axes
        x: exponent; y: the labels.

    Raises
    ------
    DataError
        If there is no fit, a law cannot split a budget, or `published` names an unknown label.

    Examples
    --------
    >>> import toolkit as tk
    >>> runs = tk.datasets.load("simulated_runs")
    >>> fits = {"minima": tk.scaling.fit_isoflops(runs, bootstrap=50, rng=0),
    ...         "law": tk.scaling.fit("chinchilla", runs, bootstrap=50, rng=0)}
    >>> [label.get_text() for label in tk.plots.exponents(fits).get_yticklabels()]
    ['minima', 'law']
    """
    published = published or {}
    unknown = [label for label in published if label not in fits]
    if not fits or unknown:
        raise DataError(
            f"exponents needs one fit or more, and published values for their labels "
            f"({', '.join(fits) or 'none given'}); unknown: {', '.join(unknown) or 'none'}."
        )
    rows = pd.DataFrame({label: _exponent(fit, level) for label, fit in fits.items()}).T
    ax = style.axes(ax)
    for k, (_, row) in enumerate(rows.iterrows()):
        color = style.COLORS[k % len(style.COLORS)]
        ax.plot([row["lower"], row["upper"]], [k, k], color=color, lw=2.5, solid_capstyle="butt")
        ax.plot([row["estimate"]], [k], "o", color=color, markersize=8)
    labels = list(fits)
    legend = [
        Line2D(
            [], [], color="0.3", marker="o", lw=2.5, label=f"estimate, {100 * level:g} % interval"
        )
    ]
    if published:
        (diamonds,) = ax.plot(
            list(published.values()),
            [labels.index(label) for label in published],
            "D",
            color="0.15",
            fillstyle="none",
            markersize=9,
            label="published",
        )
        legend.append(diamonds)
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.5, -0.5 - 0.35 * len(legend))
    ax.legend(handles=legend, loc="upper right", fontsize=style.FONT, frameon=False)
    ax.set_xlabel("exponent of compute in the best model size")
    return ax


def _draw_budget(
    ax: Axes, fit: FrontierFit, flops: float, marker: str, color: object, dashes: str
) -> Line2D:
    """Draw runs and curve of one budget; return the runs."""
    assert fit.curves is not None  # isoflop_minima has raised otherwise
    runs = fit.runs[np.isclose(fit.runs["budget"], flops, rtol=1e-9)]
    curve = fit.curves[np.isclose(fit.curves["flops"], flops, rtol=1e-9)]
    ax.plot(curve["params"], curve["loss"], dashes, color=color, lw=1.2, zorder=1)
    (points,) = ax.plot(
        runs["params"], runs["loss"], ls="", marker=marker, color=color, markersize=5, alpha=0.75
    )
    return points


def _draw_minima(ax: Axes, used: pd.DataFrame) -> ErrorbarContainer:
    label = "minimum"
    spread = None
    if "params_lower" in used:
        # A bound that lies on the other side of the estimate would be a negative length.
        lower = (used["params"] - used["params_lower"]).clip(lower=0)
        upper = (used["params_upper"] - used["params"]).clip(lower=0)
        spread = np.array([lower, upper])
        label += "\n95 % interval"
    return ax.errorbar(
        used["params"],
        used["loss"],
        xerr=spread,
        fmt="--*",
        color=style.COLORS[3],
        markersize=9,
        capsize=4,
        lw=1.3,
        label=label,
        zorder=4,
    )


def _exponent(fit: FrontierFit | ScalingFit, level: float) -> pd.Series:
    if isinstance(fit, FrontierFit):
        whole = fit.draws is not None
        estimate = fit.exponent
    else:
        whole = fit.bootstrap is not None
        if fit.law.allocate is None:
            raise DataError(f"The {fit.law.title} does not say how to split a budget.")
        pair = fit.optimal_allocation([fit.largest_flops / 10, fit.largest_flops])["params"]
        estimate = float(np.log10(pair[1] / pair[0]))
    if whole:
        row: pd.Series = fit.conf_int(level).T["params_exponent"]
        return row
    return pd.Series({"estimate": estimate, "lower": np.nan, "upper": np.nan})
