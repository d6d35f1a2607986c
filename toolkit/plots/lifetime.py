"""What it costs to train and to serve a model, against how much it is going to serve."""

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes

from toolkit.errors import DataError
from toolkit.plots import style
from toolkit.scaling.allocation import FLOPS_PER_PARAM_TOKEN
from toolkit.scaling.budgets.constrained import FLOPS_PER_SERVED_TOKEN, least_compute
from toolkit.scaling.result import ScalingFit

__all__ = ["lifetime_compute"]


def lifetime_compute(
    fit: ScalingFit,
    loss: float,
    inference_tokens: npt.ArrayLike,
    *,
    max_params: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the compute to train, and to train and serve, a model of a given loss.

    The lines of the plan are those of `toolkit.scaling.least_compute`; the dotted line is the
    model that is cheapest to train, whatever it serves.

    Parameters
    ----------
    fit : ScalingFit
        A fit of a law of params and tokens; with a bootstrap, the plan has 95 % bands.
    loss : float
        Loss to reach (nats per token).
    inference_tokens : array_like
        Tokens to serve, two or more values above zero, for example ``np.geomspace(1e9, 1e14)``.
    max_params : float, optional
        Largest size allowed.
    ax : Axes, optional
        Where to draw; the current axes by default.

    Returns
    -------
    Axes
        x: inference tokens, log; y: compute in FLOPs, log.

    Raises
    ------
    DataError
        If there are fewer than two positive numbers of tokens, or as `least_compute`.

    Warns
    -----
    ExtrapolationWarning
        As `least_compute`.

    Examples
    --------
    >>> import toolkit as tk
    >>> fit = tk.scaling.fit("chinchilla", tk.datasets.load("simulated_runs"))
    >>> tk.plots.lifetime_compute(fit, 2.3, [1e10, 1e11, 1e12]).get_ylabel()
    'compute (FLOPs)'
    """
    served = np.unique(np.atleast_1d(np.asarray(inference_tokens, dtype=np.float64)))
    if served.size < 2 or not served[0] > 0:
        raise DataError(
            "inference_tokens: two or more numbers above zero make a line on a log axis."
        )
    plan = least_compute(fit, loss, inference_tokens=served, max_params=max_params)
    trained = least_compute(fit, loss, max_params=max_params).iloc[0]
    unaware = trained["params"] * (
        FLOPS_PER_PARAM_TOKEN * trained["tokens"] + FLOPS_PER_SERVED_TOKEN * served
    )
    ax = style.axes(ax)
    style.log_axis(ax, "x")
    style.log_axis(ax, "y")
    _draw_line(ax, plan, "flops", style.COLORS[0], "-", "training and serving, planned for both")
    _draw_line(ax, plan, "flops_training", style.COLORS[1], "--", "of it training")
    ax.plot(
        served, unaware, ":", color="0.15", lw=1.8, label="training and serving, planned to train"
    )
    ax.set(xlabel="inference (tokens)", ylabel="compute (FLOPs)")
    ax.legend(
        title=f"loss {loss:g} nats per token",
        loc="upper left",
        alignment="left",
        fontsize=style.FONT,
        title_fontsize=style.FONT,
        frameon=False,
    )
    return ax


def _draw_line(
    ax: Axes, plan: pd.DataFrame, name: str, color: str, dashes: str, label: str
) -> None:
    tokens = plan["inference_tokens"]
    if f"{name}_lower" in plan:
        ax.fill_between(
            tokens, plan[f"{name}_lower"], plan[f"{name}_upper"], color=color, alpha=0.25, lw=0
        )
        label += ", 95 % interval"
    ax.plot(tokens, plan[name], dashes, color=color, lw=2, label=label)
