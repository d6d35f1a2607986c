"""Size and data under constraints: limited data, a size cap, tokens to serve after training."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit import tables
from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray
from toolkit.numerics.splitting import least_compute as _split_for_loss
from toolkit.numerics.splitting import least_loss as _split_budget
from toolkit.results import bootstrap_interval, check_level
from toolkit.scaling.allocation import FLOPS_PER_PARAM_TOKEN
from toolkit.scaling.prediction import warn_far

if TYPE_CHECKING:
    from toolkit.scaling.result import ScalingFit

__all__ = ["least_compute", "least_loss"]

Quantiles = Literal["percentile", "basic"]

FLOPS_PER_SERVED_TOKEN = 2.0  # forward pass of a dense model, per parameter
BINDING = 1e-9  # a logarithm that moves less between resamples is that of a constraint
BOX = np.log(  # plausible sizes and data, as `toolkit.tables` knows them
    [
        getattr(tables.COLUMNS[name], end)
        for name in ("params", "tokens")
        for end in ("lowest", "highest")
    ]
)


def least_loss(
    fit: "ScalingFit",
    flops: npt.ArrayLike,
    *,
    inference_tokens: npt.ArrayLike = 0.0,
    unique_tokens: float | None = None,
    repeat_decay: float = 0.0,
    max_params: float | None = None,
    level: float = 0.95,
    method: Quantiles = "percentile",
) -> pd.DataFrame:
    """Size and tokens with the least loss for a budget of compute, under constraints.

    Minimises the fitted loss where ``6 N D + 2 N D_inference <= flops``. Without constraints the
    answer is that of `ScalingFit.optimal_allocation`.

    Parameters
    ----------
    fit : ScalingFit
        A fit of a law of params and tokens.
    flops : array_like
        Compute of training and inference together (FLOPs).
    inference_tokens : array_like
        Tokens to be processed after training, over the life of the model; broadcast against
        `flops`.
    unique_tokens : float, optional
        Distinct tokens there are.
    repeat_decay : float
        What repeated tokens are worth: the constant R* of Muennighoff et al. 2023, equation 5;
        they find 15.4, and their runs leave it loosely determined. 0: nothing, so that
        `unique_tokens` is the most that is trained on.
    max_params : float, optional
        Largest size allowed, for example by latency or memory.
    level : float
        Nominal coverage of the bounds, in (0, 1).
    method : {"percentile", "basic"}
        See `toolkit.results.bootstrap_interval`; all quantities on the log scale.

    Returns
    -------
    DataFrame
        One row per request: flops, inference_tokens, params, tokens (seen, repeats included),
        tokens_per_param, loss, flops_training (``6 N D``; the budget is not used up where the
        constraints leave no use for it), and bounds with ``_lower`` and ``_upper`` after a
        bootstrap. NaN where the runs do not determine the exponents.

    Raises
    ------
    DataError
        If the law is not one of params and tokens, a request is no plausible number, or the
        budget is too small for the smallest model.

    Warns
    -----
    ExtrapolationWarning
        If training is more than 10 times the compute of the largest run, or tokens per parameter
        more than 10 times the largest ratio of the runs.

    References
    ----------
    Sardana, Portes, Doubov and Frankle 2024, arXiv:2401.00448; Muennighoff et al. 2023,
    arXiv:2305.16264.

    Examples
    --------
    >>> import toolkit as tk
    >>> fit = tk.scaling.fit("chinchilla", tk.datasets.load("simulated_runs"))
    >>> free, served = tk.scaling.least_loss(fit, 1e21, inference_tokens=[0, 1e11])["params"]
    >>> bool(served < free)
    True
    """
    table = _requests({"flops": flops, "inference_tokens": inference_tokens})
    limits = _limits(unique_tokens, repeat_decay, max_params)
    smallest = np.exp(BOX[0]) * (
        FLOPS_PER_PARAM_TOKEN * np.exp(BOX[2]) + FLOPS_PER_SERVED_TOKEN * table["inference_tokens"]
    )
    if (table["flops"] < smallest).any():
        row = int((table["flops"] < smallest).idxmax())
        raise DataError(
            f"flops: {table['flops'][row]:.3g} FLOPs are too little to train and serve even a "
            f"model of {np.exp(BOX[0]):.0f} parameters; feasible from {smallest[row]:.3g} FLOPs."
        )
    requests = np.column_stack([table, np.tile(limits, (len(table), 1))])
    split = _Splits.find(fit, _split_budget, requests)
    _fill(table, fit, split, "flops", level, method)
    return table


def least_compute(
    fit: "ScalingFit",
    loss: npt.ArrayLike,
    *,
    inference_tokens: npt.ArrayLike = 0.0,
    unique_tokens: float | None = None,
    repeat_decay: float = 0.0,
    max_params: float | None = None,
    level: float = 0.95,
    method: Quantiles = "percentile",
) -> pd.DataFrame:
    """Size and tokens that reach a loss with the least compute for training and inference.

    Minimises ``6 N D + 2 N D_inference`` where the fitted loss is at most `loss` (Sardana et al.
    2024, equation 2). At the optimum the elasticity of loss in params is
    ``1 + D_inference / (3 D)`` times that in tokens: who serves many tokens trains a smaller
    model for longer.

    Parameters
    ----------
    fit : ScalingFit
        A fit of a law of params and tokens.
    loss : array_like
        Losses to reach (nats per token).
    inference_tokens : array_like
        Tokens to be processed after training; broadcast against `loss`.
    unique_tokens, repeat_decay, max_params, level, method
        See `least_loss`.

    Returns
    -------
    DataFrame
        One row per request: loss, inference_tokens, params, tokens, tokens_per_param, flops
        (training and inference), flops_training, and bounds after a bootstrap. ``unreachable``
        is the share of resamples in which no size and data within the constraints reach the
        loss; where it is more than the tail of an interval, there are no bounds. NaN where the
        runs do not determine the exponents.

    Raises
    ------
    DataError
        If the fitted law cannot reach the loss within the constraints; the message gives the
        lowest loss that it can. Otherwise as `least_loss`.

    Warns
    -----
    ExtrapolationWarning
        As `least_loss`.

    Examples
    --------
    >>> import toolkit as tk
    >>> fit = tk.scaling.fit("chinchilla", tk.datasets.load("simulated_runs"))
    >>> plan = tk.scaling.least_compute(fit, 2.3, inference_tokens=[0, 1e11])
    >>> bool(plan["tokens_per_param"].is_monotonic_increasing)
    True
    """
    table = _requests({"loss": loss, "inference_tokens": inference_tokens})
    limits = _limits(unique_tokens, repeat_decay, max_params)
    wanted = table.assign(loss=np.log(table["loss"]))
    requests = np.column_stack([wanted, np.tile(limits, (len(table), 1))])
    split = _Splits.find(fit, _split_for_loss, requests)
    lowest = np.exp(split.point[:, 2])
    if (lowest > table["loss"]).any():
        row = int(np.argmax(lowest > table["loss"]))
        raise DataError(
            f"loss: no size and data within these constraints reach {table['loss'][row]:.5g}; the "
            f"lowest loss of the fitted law there is {lowest[row]:.5g}. Mend: ask for more loss, "
            "or allow more data or a larger size."
        )
    _fill(table, fit, split, "loss", level, method)
    return table


@dataclass(frozen=True, slots=True)
class _Splits:
    """Log params, log tokens and log loss at the estimate (m, 3) and of resamples (draws, m, 3)."""

    point: FloatArray
    draws: FloatArray | None

    @classmethod
    def find(
        cls, fit: "ScalingFit", split: Callable[..., FloatArray], requests: FloatArray
    ) -> Self:
        law = fit.law
        if tuple(law.columns) != ("params", "tokens"):
            raise DataError(
                f"The {law.title} is a law of {', '.join(law.columns)}; constraints need a law "
                "of params and tokens."
            )
        centre = np.zeros(2)
        point = split(law.model, law.to_working(fit.values[None, :], centre), requests, BOX)[0]
        if fit.bootstrap is None:
            return cls(point, None)
        theta = law.to_working(fit.draws.to_numpy(), centre)
        return cls(point, split(law.model, theta, requests, BOX))

    def quantity(self, of: Callable[[FloatArray], FloatArray]) -> tuple[FloatArray, FloatArray]:
        """Log of a quantity at the estimate (m,) and of resamples (draws, m)."""
        draws = np.empty((0, len(self.point), 3)) if self.draws is None else self.draws
        return of(self.point), of(draws)


def _requests(columns: dict[str, npt.ArrayLike]) -> pd.DataFrame:
    """Broadcast and check what is asked for; there may be no inference at all."""
    try:
        arrays = np.broadcast_arrays(*map(np.atleast_1d, columns.values()))
    except ValueError as error:
        raise DataError(f"{' and '.join(columns)} need one shape: {error}.") from error
    first, inference = columns
    table = tables.check({first: arrays[0].ravel()}, [first])
    served = pd.Series(arrays[1].ravel(), name=inference)
    if not pd.api.types.is_numeric_dtype(served) or not (np.isfinite(served) & (served >= 0)).all():
        raise DataError(f"{inference} are numbers of tokens, 0 or more; got {served.tolist()[:5]}.")
    table[inference] = served.astype(np.float64)
    return table


def _limits(
    unique_tokens: float | None, repeat_decay: float, max_params: float | None
) -> tuple[float, float, float]:
    """Log unique tokens (infinite where not given), decay of repeats, log of the largest size."""
    if not 0 <= repeat_decay < np.inf:
        raise DataError(f"repeat_decay is a number of epochs, 0 or more; got {repeat_decay!r}.")
    if repeat_decay and unique_tokens is None:
        raise DataError("repeat_decay values repeats of unique_tokens; give how many there are.")
    unique, largest = np.inf, np.exp(BOX[1])
    if unique_tokens is not None:
        unique = float(tables.check({"tokens": [unique_tokens]}, ["tokens"])["tokens"][0])
    if max_params is not None:
        largest = float(tables.check({"params": [max_params]}, ["params"])["params"][0])
    return float(np.log(unique)), float(repeat_decay), float(np.log(largest))


def _fill(
    table: pd.DataFrame,
    fit: "ScalingFit",
    split: _Splits,
    given: str,
    level: float,
    method: Quantiles,
) -> None:
    """Add size, tokens, their ratio, loss or compute, and bounds, to the requests."""
    check_level(level)
    if method not in ("percentile", "basic"):
        raise DataError(f"method must be 'percentile' or 'basic' for a split; got {method!r}.")
    served = np.log(FLOPS_PER_SERVED_TOKEN * table["inference_tokens"].to_numpy() + 1e-300)
    train = np.log(FLOPS_PER_PARAM_TOKEN)
    quantities: dict[str, Callable[[FloatArray], FloatArray]] = {
        "params": lambda s: s[..., 0],
        "tokens": lambda s: s[..., 1],
        "tokens_per_param": lambda s: s[..., 1] - s[..., 0],
        "loss": lambda s: s[..., 2],
        "flops": lambda s: s[..., 0] + np.logaddexp(train + s[..., 1], served),
        "flops_training": lambda s: train + s[..., 0] + s[..., 1],
    }
    del quantities[given]
    known = fit.allocation_identified
    for name, of in quantities.items():
        with np.errstate(invalid="ignore"):  # resamples out of reach are NaN
            point, draws = split.quantity(of)
        table[name] = np.exp(point) if known else np.nan
        if split.draws is not None:
            bounds = [
                _bounds(estimate, column, level, method)
                for estimate, column in zip(point, draws.T, strict=True)
            ]
            table[[f"{name}_lower", f"{name}_upper"]] = np.exp(bounds) if known else np.nan
    if given == "loss" and split.draws is not None:
        table["unreachable"] = np.isnan(split.draws[:, :, 0]).mean(axis=0)
    if known:
        warn_far(_reaches(fit, table))


def _bounds(
    estimate: float, draws: FloatArray, level: float, method: Quantiles
) -> tuple[float, float]:
    """Bounds of a logarithm; none where more than a tail of the resamples has no answer.

    Leaving those resamples out would make a plan look surer the less it can be reached.
    """
    if np.isnan(draws).mean() > (1 - level) / 2:
        return np.nan, np.nan
    if np.allclose(draws, estimate, rtol=0, atol=BINDING, equal_nan=True):
        return float(estimate), float(estimate)  # set by a constraint, whatever the law
    interval = bootstrap_interval(float(estimate), draws, level=level, method=method)
    return interval.lower, interval.upper


def _reaches(fit: "ScalingFit", table: pd.DataFrame) -> list[tuple[float, str]]:
    """How far the plans lie beyond the runs in compute and in tokens per parameter."""
    seen = (fit.runs["tokens"] / fit.runs["params"]).max()
    return [
        (
            table["flops_training"].max() / fit.largest_flops,
            f"the compute of the largest run ({fit.largest_flops:.2g} FLOPs)",
        ),
        (
            table["tokens_per_param"].max() / seen,
            f"the largest tokens per parameter of the runs ({seen:.3g})",
        ),
    ]
