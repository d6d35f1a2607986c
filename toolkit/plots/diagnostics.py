"""Pictures that question a fit: its residuals, and what its parameters trade for one another."""

from typing import Literal

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray, IntArray
from toolkit.plots import style
from toolkit.plots.runs import training_compute
from toolkit.scaling.result import ScalingFit

__all__ = ["bootstrap_cloud", "residuals"]

RIDGE = 0.5  # correlation below which a cloud has no direction worth drawing


def residuals(
    fit: ScalingFit,
    by: Literal["flops", "params", "tokens"] = "flops",
    *,
    mark: int = 3,
    ax: Axes | None = None,
) -> Axes:
    """Draw how far each run lies from the fitted law.

    Parameters
    ----------
    fit : ScalingFit
        Any fit; the Huber threshold is shaded when the fit has one.
    by : {"flops", "params", "tokens"}
        What to lay the residuals against: training compute ``6 N D``, or a column of the runs.
    mark : int
        How many of the largest residuals to name: by cluster (``"run 7"``) when the fit has one,
        else by row of ``fit.runs``.
    ax : Axes, optional
        Where to draw; the current axes by default.

    Returns
    -------
    Axes
        x: the column, log; y: observed over fitted loss, minus one, in percent.

    Raises
    ------
    DataError
        If the fitted runs lack the column, or `mark` is negative.

    Examples
    --------
    >>> import toolkit as tk
    >>> runs = tk.datasets.load("simulated_runs")
    >>> fit = tk.scaling.fit("chinchilla", runs)
    >>> tk.plots.residuals(fit, by="params").get_ylabel()
    'residual (% of the fitted loss)'
    """
    x = _column(fit, by)
    if mark < 0:
        raise DataError(f"mark is the number of residuals to name, 0 or more; got {mark}.")
    percent = 100 * np.expm1(fit.residuals.to_numpy())
    ax = style.axes(ax)
    style.log_axis(ax, "x")
    ax.axhline(0.0, color="0.3", lw=1, zorder=1)
    delta = fit.problem.delta
    if fit.problem.loss == "huber":
        low, high = 100 * np.expm1([-delta, delta])
        ax.axhspan(
            low,
            high,
            color=style.COLORS[1],
            alpha=0.35,
            lw=0,
            label=f"Huber threshold, ±{100 * delta:.2g} %: residuals inside count squared",
        )
    ax.scatter(x, percent, s=26, color=style.COLORS[0], edgecolors="white", linewidths=0.5)
    ax.margins(y=0.12)
    largest = np.argsort(-np.abs(percent), kind="stable")[:mark]
    ax.scatter(
        x[largest],
        percent[largest],
        s=80,
        facecolors="none",
        edgecolors=style.COLORS[3],
        linewidths=1.5,
    )
    ax.set(xlabel=style.LABELS[by], ylabel="residual (% of the fitted loss)")
    if fit.problem.loss == "huber":
        style.headroom(ax, 0.1)
        ax.legend(loc="upper right", fontsize=style.FONT, frameon=False)
    style.name_points(ax, x, percent, dict(zip(largest, _row_names(fit, largest), strict=True)))
    return ax


def bootstrap_cloud(
    fit: ScalingFit, x: str = "A", y: str = "alpha", *, ax: Axes | None = None
) -> Axes:
    """Draw two parameters of every resample: their spread, and the ridge along which they trade.

    The ridge is the first principal axis of the standardised draws, positive parameters on the
    log scale; it does not depend on units. It is drawn when the correlation is 0.5 or stronger.

    Parameters
    ----------
    fit : ScalingFit
        A fit with a bootstrap.
    x, y : str
        Names of two parameters of the law.
    ax : Axes, optional
        Where to draw; the current axes by default.

    Returns
    -------
    Axes
        Positive parameters on log axes. Resamples without a certified optimum are crosses.

    Raises
    ------
    DataError
        If the fit has no bootstrap, or the law has no such parameters.

    Examples
    --------
    >>> import toolkit as tk
    >>> runs = tk.datasets.load("simulated_runs")
    >>> fit = tk.scaling.fit("chinchilla", runs, bootstrap=50, rng=0)
    >>> tk.plots.bootstrap_cloud(fit, "B", "beta").get_xscale()
    'log'
    """
    names = fit.law.parameter_names
    if x == y or not {x, y} <= set(names):
        raise DataError(
            f"x and y must be two of the parameters {', '.join(names)}; got {x!r}, {y!r}."
        )
    draws = fit.draws[[x, y]].to_numpy()
    assert fit.bootstrap is not None  # fit.draws has raised otherwise
    certified = fit.bootstrap.certified
    parameters = [fit.law.parameters[names.index(name)] for name in (x, y)]
    positive = np.array([parameter.positive for parameter in parameters])
    ax = style.axes(ax)
    if positive[0]:
        style.log_axis(ax, "x")
    if positive[1]:
        style.log_axis(ax, "y")
    ax.scatter(
        draws[certified, 0],
        draws[certified, 1],
        s=14,
        color=style.COLORS[0],
        alpha=0.5,
        linewidths=0,
        label=f"{certified.sum()} resamples",
    )
    if not certified.all():
        ax.scatter(
            draws[~certified, 0],
            draws[~certified, 1],
            s=30,
            marker="x",
            color=style.COLORS[1],
            label=f"{(~certified).sum()} without a certified optimum",
        )
    correlation = _draw_ridge(ax, draws, positive)
    ax.plot(
        *fit.params[[x, y]].to_numpy(),
        "*",
        color=style.COLORS[3],
        markersize=13,
        markeredgecolor="white",
        label="estimate",
    )
    for axis, parameter in zip((ax.xaxis, ax.yaxis), parameters, strict=True):
        unit = "" if parameter.unit == "none" else f"\n({style.symbols(parameter.unit)})"
        axis.set_label_text(f"{style.symbols(parameter.name)}: {parameter.meaning}{unit}")
    style.headroom(ax, 0.1)
    ax.legend(
        loc="upper left" if correlation > 0 else "upper right",
        fontsize=style.FONT,
        frameon=False,
    )
    return ax


def _draw_ridge(ax: Axes, draws: FloatArray, positive: npt.NDArray[np.bool_]) -> float:
    """Draw the first principal axis over the span of the draws; return the correlation."""
    working = np.where(positive, np.log(np.where(positive, draws, 1.0)), draws)
    centre, spread = working.mean(axis=0), working.std(axis=0)
    if not (spread > 0).all():  # a parameter that sits on its bound in every resample
        ax.plot([], [], " ", label="no correlation: one of them never varies")
        return 0.0
    correlation = float(np.corrcoef(working.T)[0, 1])
    label = f"correlation {correlation:+.3f}".replace("-", "\N{MINUS SIGN}")
    if abs(correlation) < RIDGE:
        ax.plot([], [], " ", label=label)
        return correlation
    direction = np.array([1.0, np.sign(correlation)]) / np.sqrt(2)
    along = (working - centre) / spread @ direction
    ends = centre + np.array([[along.min()], [along.max()]]) * direction * spread
    ends = np.where(positive, np.exp(np.where(positive, ends, 0.0)), ends)
    ax.plot(*ends.T, color="0.15", lw=1.5, ls="--", label=f"ridge, {label}")
    return correlation


def _column(fit: ScalingFit, by: str) -> FloatArray:
    if by == "flops":
        return training_compute(fit)
    if by not in ("params", "tokens") or by not in fit.runs.columns:
        raise DataError(
            f"by must be 'flops', 'params' or 'tokens' and a column that was fitted "
            f"({', '.join(fit.law.columns)}); got {by!r}."
        )
    return fit.runs[by].to_numpy(dtype=np.float64)


def _row_names(fit: ScalingFit, rows: IntArray) -> list[str]:
    if fit.cluster is None:
        return [f"row {row}" for row in rows]
    return [f"{fit.cluster} {label}" for label in fit.runs[fit.cluster].iloc[rows]]
