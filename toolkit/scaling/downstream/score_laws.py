"""Laws of a benchmark score: from the loss of a model, or in one step from its compute or size."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.stats import qmc

from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray, compile_once, kernel
from toolkit.numerics.fast import exp
from toolkit.numerics.minimise import MODEL_SIGNATURE, for_kernel

__all__ = ["SCORE_LAWS", "ScoreLaw", "ScoreParameter", "get_score_law"]

SIZE_UNIT, DATA_UNIT = 1e9, 1e11  # a study's own scale: coefficients are terms of order one there


@dataclass(frozen=True, slots=True)
class ScoreParameter:
    """One parameter of a score law.

    Attributes
    ----------
    name, meaning, unit : str
        Symbol, what it says, unit of its value.
    working : {"value", "log", "minus log"}
        The coordinate in which it is fitted.
    widest : float
        Half-width of a 95 % interval, in the working coordinate, from which on the data do not
        determine it.
    """

    name: str
    meaning: str
    unit: str
    working: Literal["value", "log", "minus log"]
    widest: float


@dataclass(frozen=True, slots=True)
class ScoreLaw:
    """A benchmark score as a function of some columns of a table of runs.

    Attributes
    ----------
    name, title : str
        Short name for `fit_score`, and how to call it in text.
    formula, equation : str
        In plain text, and in LaTeX in the symbols of the literature.
    reference : str
        Where it was proposed.
    columns : tuple of str
        Columns it needs, out of `toolkit.tables.COLUMNS`.
    parameters : tuple of ScoreParameter
    model : kernel
        Score and its Jacobian in working coordinates; see `toolkit.numerics.minimise`.
    inputs : callable
        ``inputs(table)`` gives what the kernel takes, shape (d, n).
    starts : callable
        ``starts(x, y, floor)`` gives starting points, shape (starts, p).
    bounds : callable
        ``bounds(x, floor)`` gives the lower and upper bounds, shape (p,) each. A known floor is
        a pair of equal bounds.
    bends : bool
        Whether the law has a midpoint that the data must pass for its two ends to be known.
    """

    name: str
    title: str
    formula: str
    equation: str
    reference: str
    columns: tuple[str, ...]
    parameters: tuple[ScoreParameter, ...]
    model: Any = field(repr=False)
    inputs: Callable[[pd.DataFrame], FloatArray] = field(repr=False)
    starts: Callable[[FloatArray, FloatArray, float | None], FloatArray] = field(repr=False)
    bounds: Callable[[FloatArray, float | None], tuple[FloatArray, FloatArray]] = field(repr=False)
    bends: bool

    @property
    def parameter_names(self) -> list[str]:
        """Names of the parameters, in the order of every array."""
        return [parameter.name for parameter in self.parameters]

    def evaluate(self, theta: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Score (n,) and Jacobian (p, n) in working coordinates at inputs x (d, n)."""
        compile_once(self.model, MODEL_SIGNATURE)
        value, jacobian = np.empty(x.shape[1]), np.empty((len(self.parameters), x.shape[1]))
        self.model(for_kernel(theta), for_kernel(x), value, jacobian)
        return value, jacobian

    def values(self, theta: FloatArray) -> FloatArray:
        """Turn working coordinates, shape (..., p), into values."""
        values = np.array(theta, dtype=np.float64)
        for k, parameter in enumerate(self.parameters):
            if parameter.working != "value":
                sign = 1.0 if parameter.working == "log" else -1.0
                values[..., k] = np.exp(sign * theta[..., k])
        return values


@kernel
def _sigmoid(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """``floor + (ceiling - floor) / (1 + exp(k (x - m)))``; theta: (floor, ceiling, log k, m)."""
    floor, ceiling, k, midpoint = theta[0], theta[1], exp(theta[2]), theta[3]
    for i in range(value.size):
        z = k * (x[0, i] - midpoint)
        share = 1.0 / (1.0 + exp(z))
        slope = (ceiling - floor) * share * (1.0 - share)
        value[i] = floor + (ceiling - floor) * share
        jacobian[0, i] = 1.0 - share
        jacobian[1, i] = share
        jacobian[2, i] = -slope * z
        jacobian[3, i] = slope * k


@kernel
def _exponential(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """``1 - epsilon + k exp(-gamma x)``; theta is (epsilon, log k, log gamma)."""
    gamma = exp(theta[2])
    for i in range(value.size):
        gain = exp(theta[1] - gamma * x[0, i])
        value[i] = 1.0 - theta[0] + gain
        jacobian[0, i] = -1.0
        jacobian[1, i] = gain
        jacobian[2, i] = -gamma * x[0, i] * gain


@kernel
def _combined(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Sigmoid of ``E + A n^-alpha + B d^-beta``; (floor, ceiling, log A, log B, E, alpha, beta)."""
    floor, ceiling = theta[0], theta[1]
    for i in range(value.size):
        size = exp(theta[2] - theta[5] * x[0, i])
        data = exp(theta[3] - theta[6] * x[1, i])
        share = 1.0 / (1.0 + exp(theta[4] + size + data))
        slope = (floor - ceiling) * share * (1.0 - share)
        value[i] = floor + (ceiling - floor) * share
        jacobian[0, i] = 1.0 - share
        jacobian[1, i] = share
        jacobian[2, i] = slope * size
        jacobian[3, i] = slope * data
        jacobian[4, i] = slope
        jacobian[5, i] = -slope * size * x[0, i]
        jacobian[6, i] = -slope * data * x[1, i]


def _loss(table: pd.DataFrame) -> FloatArray:
    losses: FloatArray = table[["loss"]].to_numpy(dtype=np.float64).T
    return losses


def _minus_log_flops(table: pd.DataFrame) -> FloatArray:
    """Compute counted downwards: like the loss, it falls as models get better."""
    downwards: FloatArray = -np.log(table[["flops"]].to_numpy(dtype=np.float64)).T
    return downwards


def _log_size_and_data(table: pd.DataFrame) -> FloatArray:
    counts = table[["params", "tokens"]].to_numpy(dtype=np.float64)
    logs: FloatArray = np.log(counts / [SIZE_UNIT, DATA_UNIT]).T
    return logs


def _pin(lower: list[float], upper: list[float], floor: float | None) -> None:
    if floor is not None:
        lower[0] = upper[0] = floor


def _sigmoid_bounds(x: FloatArray, floor: float | None) -> tuple[FloatArray, FloatArray]:
    """Keep both ends in [0, 1] and the bend within two widths of the data."""
    low, width = x.min(), np.ptp(x)
    lower = [0.0, 0.0, np.log(0.2 / width), low - 2 * width]
    upper = [1.0, 1.0, np.log(500.0 / width), low + 3 * width]
    _pin(lower, upper, floor)
    return np.array(lower), np.array(upper)


def _sigmoid_starts(x: FloatArray, y: FloatArray, floor: float | None) -> FloatArray:
    """Every combination of two floors, two ceilings, three slopes and four midpoints."""
    low, width = x.min(), np.ptp(x)
    floors = [0.9 * y.min(), 0.5 * y.min()] if floor is None else [floor]
    ceilings = [min(1.0, 1.05 * y.max()), 1.0]
    slopes = np.log(np.array([2.0, 5.0, 15.0]) / width)
    midpoints = low + width * np.array([-0.2, 0.25, 0.6, 1.0])
    grid = np.meshgrid(floors, ceilings, slopes, midpoints, indexing="ij")
    return np.column_stack([axis.ravel() for axis in grid])


def _exponential_bounds(x: FloatArray, floor: float | None) -> tuple[FloatArray, FloatArray]:
    width = np.ptp(x)
    lower, upper = [0.0, -60.0, np.log(0.01 / width)], [1.0, 60.0, np.log(100.0 / width)]
    _pin(lower, upper, None if floor is None else 1.0 - floor)
    return np.array(lower), np.array(upper)


def _exponential_starts(x: FloatArray, y: FloatArray, floor: float | None) -> FloatArray:
    """Twelve decay rates; the amplitude that meets the best score from a floor."""
    rates = np.geomspace(0.1, 20.0, 12) / np.ptp(x)
    bottom = 0.95 * y.min() if floor is None else floor
    top = max(y.max() - bottom, 1e-3)
    amplitude = np.log(top) + rates * x.min()
    return np.column_stack([np.full(12, 1.0 - bottom), amplitude, np.log(rates)])


def _combined_bounds(x: FloatArray, floor: float | None) -> tuple[FloatArray, FloatArray]:
    lower = [0.0, 0.0, -12.0, -12.0, -20.0, 0.0, 0.0]
    upper = [1.0, 1.0, 5.0, 5.0, 20.0, 3.0, 3.0]
    _pin(lower, upper, floor)
    return np.array(lower), np.array(upper)


def _combined_starts(x: FloatArray, y: FloatArray, floor: float | None) -> FloatArray:
    """40 points of a Halton sequence."""
    bottom = 0.9 * y.min() if floor is None else floor
    low = [min(1.0, 1.02 * y.max()), -2.0, -2.0, -6.0, 0.1, 0.1]
    high = [1.0 + 1e-9, 2.0, 2.0, 0.0, 0.6, 0.6]
    points = qmc.scale(qmc.Halton(6, scramble=False).random(41)[1:], np.minimum(low, 0.999), high)
    return np.column_stack([np.full(40, bottom), points])


_FLOOR = ScoreParameter("floor", "score of a model that knows nothing", "fraction", "value", 0.25)
_CEILING = ScoreParameter(
    "ceiling", "score of the best model there can be", "fraction", "value", 0.25
)
_LOG_WIDEST = float(np.log(10.0))
_LADDER = "Bhagia et al. 2024, arXiv:2412.04403"

SIGMOID = ScoreLaw(
    name="sigmoid",
    title="sigmoid of the loss",
    formula="score = floor + (ceiling - floor) / (1 + exp(k (loss - L0)))",
    equation=r"\mathrm{Acc}(L) = \frac{a}{1 + e^{-k(L - L_0)}} + b",
    reference=f"{_LADDER}, step 2, where a = floor - ceiling and b = ceiling",
    columns=("loss",),
    parameters=(
        _FLOOR,
        _CEILING,
        ScoreParameter("k", "steepness", "1 / unit of loss", "log", _LOG_WIDEST),
        ScoreParameter(
            "L0", "loss at which half of the way is gone", "unit of loss", "value", np.inf
        ),
    ),
    model=_sigmoid,
    inputs=_loss,
    starts=_sigmoid_starts,
    bounds=_sigmoid_bounds,
    bends=True,
)

EXPONENTIAL = ScoreLaw(
    name="exponential",
    title="exponential of the loss",
    formula="score = 1 - (epsilon - k exp(-gamma loss))",
    equation=r"\mathrm{Err}(L) = \epsilon - k\,e^{-\gamma L}",
    reference="Gadre et al. 2024, arXiv:2403.08540, equation 5",
    columns=("loss",),
    parameters=(
        ScoreParameter("epsilon", "error of a model that knows nothing", "fraction", "value", 0.25),
        ScoreParameter(
            "k", "error that would be gained at zero loss", "fraction", "log", _LOG_WIDEST
        ),
        ScoreParameter("gamma", "rate", "1 / unit of loss", "log", _LOG_WIDEST),
    ),
    model=_exponential,
    inputs=_loss,
    starts=_exponential_starts,
    bounds=_exponential_bounds,
    bends=False,
)

COMPUTE = ScoreLaw(
    name="compute",
    title="sigmoid of log compute",
    formula="score = floor + (ceiling - floor) / (1 + (flops / C0)^-k)",
    equation=r"\mathrm{Acc}(C) = f + \frac{c - f}{1 + (C / C_0)^{-k}}",
    reference="Owen 2024, arXiv:2401.04757",
    columns=("flops",),
    parameters=(
        _FLOOR,
        _CEILING,
        ScoreParameter("k", "steepness", "1 / log compute", "log", _LOG_WIDEST),
        ScoreParameter(
            "C0", "compute at which half of the way is gone", "FLOPs", "minus log", np.inf
        ),
    ),
    model=_sigmoid,
    inputs=_minus_log_flops,
    starts=_sigmoid_starts,
    bounds=_sigmoid_bounds,
    bends=True,
)

COMBINED = ScoreLaw(
    name="combined",
    title="sigmoid of a Chinchilla form",
    formula=(
        "score = floor + (ceiling - floor) / (1 + exp(E + A (params / 1e9)^-alpha"
        " + B (tokens / 1e11)^-beta))"
    ),
    equation=r"\mathrm{Acc}(N, D) = \frac{a}{1 + e^{-(A N^{-\alpha} + B D^{-\beta} + E)}} + b",
    reference=f"{_LADDER}, single step",
    columns=("params", "tokens"),
    parameters=(
        _FLOOR,
        _CEILING,
        ScoreParameter("A", "size term at 1e9 parameters", "logits", "log", _LOG_WIDEST),
        ScoreParameter("B", "data term at 1e11 tokens", "logits", "log", _LOG_WIDEST),
        ScoreParameter("E", "logit that neither removes", "logits", "value", 5.0),
        ScoreParameter("alpha", "exponent of size", "none", "value", 0.5),
        ScoreParameter("beta", "exponent of data", "none", "value", 0.5),
    ),
    model=_combined,
    inputs=_log_size_and_data,
    starts=_combined_starts,
    bounds=_combined_bounds,
    bends=False,
)

SCORE_LAWS: dict[str, ScoreLaw] = {
    law.name: law for law in (SIGMOID, EXPONENTIAL, COMPUTE, COMBINED)
}


def get_score_law(law: str | ScoreLaw) -> ScoreLaw:
    """Return a score law by its name; a law is returned as it is.

    Examples
    --------
    >>> from toolkit.scaling.downstream.score_laws import get_score_law
    >>> get_score_law("exponential").columns
    ('loss',)
    """
    if isinstance(law, ScoreLaw):
        return law
    if law not in SCORE_LAWS:
        raise DataError(f"No score law {law!r}. Known: {', '.join(SCORE_LAWS)}.")
    return SCORE_LAWS[law]
