"""Scores against training compute, and the boundary that a high share of models stays below."""

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from toolkit.boundary.result import BoundaryFit
from toolkit.plots import style

__all__ = ["boundary"]

CURVE_POINTS = 201
LINES = ("-", "--", "-.", ":")


def boundary(fit: BoundaryFit, *, ax: Axes | None = None) -> Axes:
    """Draw the models and the fitted boundaries, each with the number of models beyond it.

    Parameters
    ----------
    fit : BoundaryFit
        With a bootstrap, each curve that has bounds has a 95 % band.
    ax : Axes, optional
        Where to draw; the current axes by default.

    Returns
    -------
    Axes
        x: training compute in FLOPs, log, over the range of the models; y: score, a fraction. The
        ceiling is a thin line, the floor another where it is above 0.

    Examples
    --------
    >>> import numpy as np
    >>> import toolkit as tk
    >>> rng = np.random.default_rng(0)
    >>> flops = 10 ** rng.uniform(21, 25, 500)
    >>> best = tk.boundary.Curve(0.25, 0.6, 23.0, 2.0).attainable(flops)
    >>> models = {"flops": flops, "mmlu": best * rng.beta(4, 2, 500)}
    >>> edge = tk.boundary.fit(models, score="mmlu", tau=0.9)
    >>> tk.plots.boundary(edge).get_ylabel()
    'mmlu (fraction)'
    """
    ax = style.axes(ax)
    style.log_axis(ax, "x")
    models = fit.models
    areas = 12.0 * models.weights / models.weights.mean()
    dots = ax.scatter(
        models.flops,
        models.scores,
        s=areas,
        color=style.COLORS[7],
        alpha=0.5 if len(models.scores) < 500 else 0.3,
        linewidths=0,
        label=f"{len(models.scores):,} models",
    )
    handles: list[Artist] = [dots, *_draw_curves(ax, fit)]
    _draw_limit(ax, fit.ceiling, "ceiling")
    if fit.floor > 0:
        _draw_limit(ax, fit.floor, "floor")
    ax.set(xlabel=style.LABELS["flops"], ylabel=f"{models.score} (fraction)")
    ax.set_ylim(min(0.0, *models.scores), fit.ceiling * 1.02)
    ax.legend(handles=handles, loc="upper left", fontsize=style.FONT, frameon=False)
    style.headroom(ax, 0.08 + 0.06 * len(handles))
    ax.set_yticks([tick for tick in ax.get_yticks() if 0 <= tick <= fit.ceiling])
    return ax


def _draw_curves(ax: Axes, fit: BoundaryFit) -> list[Artist]:
    z = fit.models.log_flops
    table = fit.attainable(np.logspace(z[0], z[-1], CURVE_POINTS))
    handles: list[Artist] = []
    for k, (tau, count) in enumerate(fit.tail.items()):
        color = style.COLORS[k % 7]
        mine = table[table["tau"] == tau]
        side = "above" if fit.tau[k] >= 0.5 else "below"
        (line,) = ax.plot(
            mine["flops"],
            mine["score"],
            LINES[k % len(LINES)],
            color=color,
            lw=1.8,
            label=f"tau {tau:g}: {count:.0f} models {side}",
        )
        handles.append(line)
        if "lower" in mine and mine["lower"].notna().any():
            ax.fill_between(
                mine["flops"], mine["lower"], mine["upper"], color=color, alpha=0.2, lw=0
            )
            line.set_label(f"{line.get_label()}, 95 % band")
        elif "lower" in mine:
            line.set_label(f"{line.get_label()}, too few for a band")
    return handles


def _draw_limit(ax: Axes, height: float, name: str) -> None:
    ax.axhline(height, color="0.4", lw=0.8, ls=(0, (1, 2)))
    ax.annotate(
        name,
        (1.0, height),
        xycoords=("axes fraction", "data"),
        xytext=(-2, 3),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=style.FONT,
        color="0.3",
    )
