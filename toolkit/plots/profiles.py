"""How the fit worsens when one parameter is held at other values."""

import numpy as np
from matplotlib.axes import Axes

from toolkit.plots import style
from toolkit.scaling.profile import Profile

__all__ = ["profile"]

HIGHEST_RISE = 5.0  # thresholds; above, a profile has said what it has to say


def profile(result: Profile, *, ax: Axes | None = None) -> Axes:
    """Draw the profile of one parameter, its threshold and the interval between.

    Parameters
    ----------
    result : Profile
        From ``fit.profile("alpha")``.
    ax : Axes, optional
        Where to draw; the current axes by default.

    Returns
    -------
    Axes
        x: the parameter, log where it is positive; y: rise of the objective above its lowest, in
        units of the rise that noise explains. A parameter whose profile never leaves the
        threshold on some side, or leaves it late, is marked "not identified".

    Examples
    --------
    >>> import toolkit as tk
    >>> runs = tk.datasets.load("simulated_runs")
    >>> fit = tk.scaling.fit("chinchilla", runs)
    >>> tk.plots.profile(fit.profile("beta")).get_ylabel()
    'rise of the objective (thresholds)'
    """
    parameter, table = result.parameter, result.table
    values, rise = table[parameter.name].to_numpy(), table["rise"].to_numpy()
    ax = style.axes(ax)
    if parameter.positive:
        style.log_axis(ax, "x")
    color = style.COLORS[0] if result.identified else style.COLORS[3]
    ax.axhline(1.0, color="0.3", lw=1, ls="--", label=f"threshold at {100 * result.level:.4g} %")
    low, high = np.clip([result.lower, result.upper], values.min(), values.max())
    shown = "interval" if result.identified else "not identified: no worse than noise explains"
    ax.axvspan(low, high, color=color, alpha=0.12, lw=0, label=shown)
    ax.plot(values, rise, color=color, marker="o", markersize=3)
    ax.plot(
        result.estimate,
        0.0,
        "*",
        color=style.COLORS[3],
        markersize=13,
        markeredgecolor="white",
        label="estimate",
        clip_on=False,
    )
    ax.set_ylim(0.0, min(max(1.5, 1.05 * rise.max()), HIGHEST_RISE))
    unit = "" if parameter.unit == "none" else f"\n({style.symbols(parameter.unit)})"
    ax.set(
        xlabel=f"{style.symbols(parameter.name)}: {parameter.meaning}{unit}",
        ylabel="rise of the objective (thresholds)",
    )
    ax.legend(loc="upper center", fontsize=style.FONT, frameon=False)
    return ax
