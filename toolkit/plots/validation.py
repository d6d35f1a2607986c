"""Pictures of validation: predictions of runs that were not fitted, and the laws side by side."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes

from toolkit.errors import DataError
from toolkit.plots import style
from toolkit.plots.runs import training_compute
from toolkit.scaling.validation.comparison import Comparison
from toolkit.scaling.validation.held_out import Validation
from toolkit.scaling.validation.residual_structure import ResidualStructure

__all__ = ["comparison", "extrapolation_error", "held_out", "leverage_map"]

ERROR = "held-out error (% of the loss)"
SHOWN = 0.05  # lowest error in view, as a share of the lowest mean error
RINGS = 8  # runs ringed on a leverage map
LARGEST_RING = 320.0  # square points


def held_out(validation: Validation, *, ax: Axes | None = None) -> Axes:
    """Draw the held-out runs: observed over predicted loss, against the prediction.

    Parameters
    ----------
    validation : Validation
        With a bootstrap, each run has the interval of its prediction; runs outside it are filled.
    ax : Axes, optional
        Where to draw; the current axes by default.

    Returns
    -------
    Axes
        x: predicted loss, log; y: observed loss, log; on the line they are equal.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import toolkit as tk
    >>> runs = tk.datasets.load("simulated_runs")
    >>> validation = tk.scaling.hold_out("chinchilla", runs, above=1e21)
    >>> tk.plots.held_out(validation, ax=plt.figure().subplots()).get_ylabel()
    'observed loss'
    """
    predictions = _some(validation)
    ax = style.axes(ax)
    style.log_axis(ax, "x")
    style.log_axis(ax, "y")
    for law, mine, color, marker in _looks(validation, predictions):
        predicted, observed = mine["predicted"].to_numpy(), mine["observed"].to_numpy()
        if mine["lower"].notna().all():
            spread = np.array([predicted - mine["lower"], mine["upper"] - predicted])
            ax.errorbar(predicted, observed, xerr=spread, fmt="none", ecolor=color, alpha=0.4, lw=1)
        outside = (mine["covered"] == False).fillna(False).to_numpy(dtype=bool)  # noqa: E712
        faces = np.where(outside, color, "white")
        ax.scatter(
            predicted, observed, s=30, marker=marker, facecolors=list(faces), edgecolors=color
        )
        ax.plot([], [], marker, mfc="white", mec=color, label=_name(law, mine, validation.level))
    ends = [predictions[["observed", "predicted"]].to_numpy(dtype=float).min()]
    ends.append(predictions[["observed", "predicted"]].to_numpy(dtype=float).max())
    ax.plot(ends, ends, color="0.3", lw=1, zorder=1, label="predicted = observed")
    ax.set(xlabel="predicted loss", ylabel="observed loss")
    ax.legend(loc="upper left", fontsize=style.FONT, frameon=False)
    return ax


def extrapolation_error(
    validation: Validation, *, width: float = 0.5, ax: Axes | None = None
) -> Axes:
    """Draw the error of each law against the distance of extrapolation.

    Parameters
    ----------
    validation : Validation
        Best a `backtest`, which predicts at many distances.
    width : float
        Width of the bins in powers of ten, see `Validation.by_decades`.
    ax : Axes, optional
        Where to draw; the current axes by default.

    Returns
    -------
    Axes
        x: powers of ten beyond the largest fitted run (0 inside its range), each error at the
        mean distance of the predictions in its bin; y: error in percent of the loss, log. Thin
        marks are the single predictions.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import toolkit as tk
    >>> runs = tk.datasets.load("simulated_runs")
    >>> rolling = tk.scaling.backtest("chinchilla", runs, levels=[1e20, 1e21])
    >>> tk.plots.extrapolation_error(rolling, ax=plt.figure().subplots()).get_yscale()
    'log'
    """
    predictions = _some(validation)
    bins = validation.by_decades(width)
    ax = style.axes(ax)
    style.log_axis(ax, "y")
    for law, mine, color, marker in _looks(validation, predictions):
        decades = np.maximum(mine["decades"].to_numpy(), 0.0)
        size = 100 * mine["residual"].abs().to_numpy()
        seen = size > 0  # an exact prediction has no place on a log axis
        ax.scatter(decades[seen], size[seen], s=6, color=color, alpha=0.25, linewidths=0)
        binned = bins.xs(law)
        ax.plot(
            binned["decades"].to_numpy(),
            binned["error"].to_numpy(),
            marker + "-",
            color=color,
            mec="white",
            ms=8,
            label=law,
        )
    axis = "training compute" if validation.by == "flops" else validation.by
    ax.set(xlabel=f"powers of ten of {axis} beyond the largest fitted run", ylabel=ERROR)
    # Single predictions can be right by chance; they do not decide the scale.
    ax.set_ylim(bottom=max(ax.get_ylim()[0], SHOWN * bins["error"].min()))
    style.headroom(ax, 0.08 * len(validation.laws))
    ax.legend(loc="upper left", fontsize=style.FONT, frameon=False)
    return ax


def comparison(result: Comparison, *, ax: Axes | None = None) -> Axes:
    """Draw the laws of a comparison, the lowest held-out error on top.

    Parameters
    ----------
    result : Comparison
    ax : Axes, optional
        Where to draw; the current axes by default.

    Returns
    -------
    Axes
        x: error in percent of the loss, log. Full dots: held out, with the paired interval of the
        difference from the lowest error, laid from that error; hollow: in sample. Laws without a
        fit have a line and say so.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import toolkit as tk
    >>> runs = tk.datasets.load("simulated_runs")
    >>> result = tk.scaling.compare("chinchilla", runs, bootstrap=50, rng=0)
    >>> ax = tk.plots.comparison(result, ax=plt.figure().subplots())
    >>> [text.get_text() for text in ax.get_yticklabels()][0]
    'chinchilla'
    """
    table = result.table
    ax = style.axes(ax)
    style.log_axis(ax, "x")
    y = np.arange(len(table), dtype=float)
    lowest = table["held_out"].min()
    floor = 0.5 * float(np.nanmin(table[["in_sample", "held_out"]].to_numpy(dtype=float)))
    for at, (_, row) in zip(y, table.iterrows(), strict=True):
        color = style.COLORS[3] if row["verdict"] == "worse" else style.COLORS[0]
        if np.isfinite(row["lower"]):
            ends = np.maximum([lowest + row["lower"], lowest + row["upper"]], floor)
            ax.plot(ends, [at, at], color=color, lw=2, alpha=0.6)
        ax.plot(row["held_out"], at, "o", color=color, ms=8)
        ax.plot(row["in_sample"], at, "o", mfc="white", mec="0.4", ms=6)
        if np.isnan(row["held_out"]):
            ax.annotate(
                "no held-out prediction", (1.0, at), xycoords=("axes fraction", "data"),
                ha="right", va="center", fontsize=style.FONT, color="0.3",
            )  # fmt: skip
    if np.isfinite(lowest):
        ax.axvline(lowest, color="0.6", lw=1, ls=":", zorder=0)
    ax.set(yticks=y, yticklabels=list(table.index), ylim=(len(table) - 0.5, -0.5))
    ax.set_xlabel("error (% of the loss)")
    ax.legend(
        handles=_comparison_keys(ax, result),
        loc="upper center",
        bbox_to_anchor=(0.5, -0.18),
        ncols=2,
        fontsize=style.FONT,
        frameon=False,
    )
    return ax


def leverage_map(structure: ResidualStructure, *, ax: Axes | None = None) -> Axes:
    """Draw where the residuals sit and which runs decide: size against compute.

    Parameters
    ----------
    structure : ResidualStructure
        Of a fit of a law of ``params`` and ``tokens``.
    ax : Axes, optional
        Where to draw; the current axes by default.

    Returns
    -------
    Axes
        x: training compute ``6 N D``, log; y: parameters, log. Colour is the residual in percent;
        rings mark the eight runs that move the allocation exponent (or the last parameter) most
        when left out, the larger the more.

    Raises
    ------
    DataError
        If the law is not one of size and data.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import toolkit as tk
    >>> runs = tk.datasets.load("simulated_runs")
    >>> fit = tk.scaling.fit("chinchilla", runs)
    >>> structure = tk.scaling.residual_structure(fit, width=1.0, rng=0)
    >>> tk.plots.leverage_map(structure, ax=plt.figure().subplots()).get_ylabel()
    'model size (parameters)'
    """
    fit = structure.fit
    flops, params = training_compute(fit), fit.runs["params"].to_numpy()
    percent = 100 * np.expm1(fit.residuals.to_numpy())
    ax = style.axes(ax)
    style.log_axis(ax, "x")
    style.log_axis(ax, "y")
    reach = float(np.quantile(np.abs(percent), 0.95)) or 1.0
    points = ax.scatter(
        flops, params, s=26, c=percent, cmap="RdBu_r", vmin=-reach, vmax=reach,
        edgecolors="0.4", linewidths=0.4,
    )  # fmt: skip
    bar = ax.figure.colorbar(points, ax=ax, extend="both")
    bar.set_label("residual (% of the fitted loss)")
    quantity = str(structure.row_influence.columns[-1])
    moved = structure.row_influence[quantity].to_numpy()
    first = np.argsort(-np.abs(moved), kind="stable")[:RINGS]
    areas = LARGEST_RING * np.abs(moved[first]) / np.abs(moved[first]).max()
    ax.scatter(
        flops[first], params[first], s=areas, facecolors="none", edgecolors="0.1", linewidths=1.3,
        label=f"left out, {quantity} moves by up to {np.abs(moved[first]).max():.2g}",
    )  # fmt: skip
    ax.set(xlabel=style.LABELS["flops"], ylabel=style.LABELS["params"])
    style.headroom(ax, 0.08)
    ax.legend(loc="upper left", fontsize=style.FONT, frameon=False, markerscale=0.6)
    return ax


def _some(validation: Validation) -> pd.DataFrame:
    if validation.predictions.empty:
        raise DataError("There is no prediction to draw: no law could be fitted. See `fits`.")
    return validation.predictions


def _looks(
    validation: Validation, predictions: pd.DataFrame
) -> Iterator[tuple[str, pd.DataFrame, str, str]]:
    """Yield each law with predictions, its rows, colour and marker."""
    for k, law in enumerate(validation.laws):
        mine = predictions[predictions["law"] == law]
        if len(mine):
            color = style.COLORS[k % len(style.COLORS)]
            yield law, mine, color, style.MARKERS[k % len(style.MARKERS)]


def _name(law: str, mine: pd.DataFrame, level: float) -> str:
    covered = mine["covered"].dropna()
    if covered.empty:
        return law
    inside = int(covered.sum())
    return f"{law}: {inside} of {len(covered)} inside {100 * level:g} % (filled: outside)"


def _comparison_keys(ax: Axes, result: Comparison) -> list[Artist]:
    color = style.COLORS[0]
    return [
        *ax.plot([], [], "o", color=color, ms=8, label="held out"),
        *ax.plot([], [], "o", mfc="white", mec="0.4", ms=6, label="in sample"),
        *ax.plot(
            [], [], color=color, lw=2, alpha=0.6,
            label=f"lowest error + difference, {100 * result.level:g} % for all pairs",
        ),
        *ax.plot([], [], "o", color=style.COLORS[3], ms=8, label="worse than the lowest"),
    ]  # fmt: skip
