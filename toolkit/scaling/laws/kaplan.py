"""Laws of Kaplan et al. (2020): powers of size, data, compute and steps, without a floor.

- ``kaplan_params``: ``loss = (N_c / params)**alpha_N``, trained to convergence on ample data;
- ``kaplan_tokens``: ``loss = (D_c / tokens)**alpha_D``, a large model, stopped early;
- ``kaplan_flops``: ``loss = (C_c / flops)**alpha_C``, the best size for the compute;
- ``kaplan``: ``loss = ((N_c / params)**(alpha_N / alpha_D) + D_c / tokens)**alpha_D``, for models
  stopped early on a limited set of data;
- ``kaplan_steps``: ``loss = (N_c / params)**alpha_N + (S_c / steps)**alpha_S``, learning curves
  on ample data, in steps of very large batches.

Every published constant was compared with the paper's text: tables 2, 3, 5 and 6, equations 1.1 to
1.6 and 4.4. Sizes are without embeddings. The scale constants (N_c and so on) depend on the
tokenizer and have no meaning of their own; no interval was published for any of them.

Trap: these laws fall to zero. Near the entropy of the text they promise too much, and their best
size grows faster with compute than later fits with a floor found.

Measured with ``python -m benchmarks.coverage``: 95 % percentile intervals cover the truth in 95.0 %
(exponents of kaplan_params, kaplan_tokens and kaplan_flops), 94.8 % (kaplan: power of compute in
the best size) and 94.8 % (kaplan_steps: alpha_S) of 400 simulated studies of 240 runs each
(standard error 1.1 %).
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray, kernel
from toolkit.numerics.fast import exp, log
from toolkit.scaling.law import Law, Parameter, Preset
from toolkit.scaling.laws.chinchilla import FLAT
from toolkit.scaling.laws.starts import spread

__all__ = [
    "FLOPS_PER_PETAFLOP_DAY",
    "KAPLAN",
    "KAPLAN_FLOPS",
    "KAPLAN_PARAMS",
    "KAPLAN_STEPS",
    "KAPLAN_TOKENS",
    "critical_batch_size",
    "minimum_steps",
    "tokens_without_overfitting",
]

FLOPS_PER_PETAFLOP_DAY = 8.64e19

_PAPER = "Kaplan et al. 2020, arXiv:2001.08361"
_PARAMS, _TOKENS = (768.0, 1.5e9), (22e6, 23e9)
_LOWEST, _HIGHEST = 1e-6, 1e90  # of a scale constant: loss 10 with an exponent of 0.01 needs 1e100


@kernel
def _log_power(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Log of ``exp(alpha (c - x0))``; theta is (c, alpha)."""
    scale, alpha = theta[0], theta[1]
    for i in range(value.size):
        distance = scale - x[0, i]
        value[i] = alpha * distance
        jacobian[0, i] = alpha
        jacobian[1, i] = distance


@kernel
def _log_joint(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Log of the law of size and data; theta is (log N_c, log D_c, alpha_N, alpha_D)."""
    alpha_n, alpha_d = theta[2], theta[3]
    power = alpha_n / alpha_d
    for i in range(value.size):
        distance = theta[0] - x[0, i]
        size = exp(power * distance)
        data = exp(theta[1] - x[1, i])
        log_sum = log(size + data)
        share = size / (size + data)
        value[i] = alpha_d * log_sum
        jacobian[0, i] = alpha_n * share
        jacobian[1, i] = alpha_d * (1.0 - share)
        jacobian[2, i] = share * distance
        jacobian[3, i] = log_sum - power * share * distance


@kernel
def _log_steps(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Log of the law of size and steps; theta is (log N_c, log S_c, alpha_N, alpha_S)."""
    alpha_n, alpha_s = theta[2], theta[3]
    for i in range(value.size):
        size_distance, step_distance = theta[0] - x[0, i], theta[1] - x[1, i]
        size, training = exp(alpha_n * size_distance), exp(alpha_s * step_distance)
        loss = size + training
        value[i] = log(loss)
        share = size / loss
        jacobian[0, i] = alpha_n * share
        jacobian[1, i] = alpha_s * (1.0 - share)
        jacobian[2, i] = share * size_distance
        jacobian[3, i] = (1.0 - share) * step_distance


def _power_starts(x: FloatArray, y: FloatArray) -> FloatArray:
    """Eight exponents, each with the scale that meets the mean: the law is a line in logs."""
    alpha = np.geomspace(0.01, 1.5, 8)
    return np.column_stack([np.mean(x) + np.mean(y) / alpha, alpha])


def _joint_starts(x: FloatArray, y: FloatArray) -> FloatArray:
    """Twenty-four points of a Halton sequence, scaled so that the mean is met."""
    share, alpha_n, alpha_d = spread([(0.1, 0.9), (0.02, 0.5), (0.02, 0.5)], 24).T
    log_sum = np.mean(y) / alpha_d
    log_size = x[:, 0].mean() + (np.log(share) + log_sum) * alpha_d / alpha_n
    log_data = x[:, 1].mean() + np.log(1 - share) + log_sum
    return np.column_stack([log_size, log_data, alpha_n, alpha_d])


def _steps_starts(x: FloatArray, y: FloatArray) -> FloatArray:
    """Twenty-four points of a Halton sequence, scaled so that the mean is met."""
    share, alpha_n, alpha_s = spread([(0.2, 0.98), (0.02, 0.5), (0.1, 1.5)], 24).T
    log_size = x[:, 0].mean() + (np.log(share) + np.mean(y)) / alpha_n
    log_steps = x[:, 1].mean() + (np.log(1 - share) + np.mean(y)) / alpha_s
    return np.column_stack([log_size, log_steps, alpha_n, alpha_s])


def _allocate(values: FloatArray, budget: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Split ``params * tokens = budget`` so that the loss is least.

    This is the best split among models stopped early on limited data. The paper's own advice, a
    size that grows with the power 0.73 of compute, comes from its law of steps instead.
    """
    log_n, log_d = np.log(np.moveaxis(values[..., :2], -1, 0))
    power = values[..., 2] / values[..., 3]
    with np.errstate(all="ignore"):
        log_ratio = (np.log(power) + power * log_n - log_d) / (1 + power)
        params = np.exp(log_ratio + np.log(budget) / (1 + power))
        return params, budget / params


def _scale(name: str, meaning: str, column: str, unit: str) -> Parameter:
    return Parameter(
        name, meaning, unit, positive=True, lower=_LOWEST, upper=_HIGHEST, unit_of=column
    )


def _exponent(name: str, of: str) -> Parameter:
    return Parameter(name, f"exponent of {of}", "none", lower=FLAT, upper=5.0)


def _power_law(
    column: str, letter: str, of: str, unit: str, equation: int, presets: Mapping[str, Preset]
) -> Law:
    scale, alpha = f"{letter}_c", f"alpha_{letter}"
    return Law(
        name=f"kaplan_{column}",
        title=f"Kaplan law of {of}",
        formula=f"loss = ({scale} / {column})^{alpha}",
        equation=rf"L({letter}) = (\,{letter}_c / {letter}\,)^{{\alpha_{letter}}}",
        reference=f"{_PAPER}, equation 1.{equation}",
        columns=(column,),
        parameters=(
            _scale(scale, f"{of} at which the loss would be 1", column, unit),
            _exponent(alpha, of),
        ),
        model=_log_power,
        starts=_power_starts,
        presets=presets,
    )


KAPLAN_PARAMS = _power_law(
    "params",
    "N",
    "size",
    "parameters",
    1,
    {
        "kaplan2020": Preset(
            {"N_c": 8.8e13, "alpha_N": 0.076},
            f"{_PAPER}, equation 1.1 and table 5",
            rounded=True,
            fit_range={"params": _PARAMS},
        )
    },
)

KAPLAN_TOKENS = _power_law(
    "tokens",
    "D",
    "data",
    "tokens",
    2,
    {
        "kaplan2020": Preset(
            {"D_c": 5.4e13, "alpha_D": 0.095},
            f"{_PAPER}, equation 1.2 and table 5",
            rounded=True,
            fit_range={"tokens": _TOKENS},
        )
    },
)

# From figures 1 and 13, as the text gives no numbers: 1e-8 to about 10 petaflop-days.
_FLOPS = (1e-8 * FLOPS_PER_PETAFLOP_DAY, 10 * FLOPS_PER_PETAFLOP_DAY)

KAPLAN_FLOPS = _power_law(
    "flops",
    "C",
    "compute",
    "FLOPs",
    3,
    {
        "kaplan2020": Preset(
            {"C_c": 3.1e8 * FLOPS_PER_PETAFLOP_DAY, "alpha_C": 0.050},
            f"{_PAPER}, equation 1.3 and table 5, turned from petaflop-days into FLOPs; compute "
            "adjusted to batches far below the critical size; range read off figure 13",
            rounded=True,
            fit_range={"flops": _FLOPS},
        ),
        "kaplan2020-fixed-batch": Preset(
            {"C_c": 1.6e7 * FLOPS_PER_PETAFLOP_DAY, "alpha_C": 0.057},
            f"{_PAPER}, table 5, turned from petaflop-days into FLOPs; compute as spent at one "
            "batch size; range read off figure 1",
            rounded=True,
            fit_range={"flops": _FLOPS},
        ),
    },
)

KAPLAN = Law(
    name="kaplan",
    title="Kaplan law",
    formula="loss = ((N_c / params)^(alpha_N / alpha_D) + D_c / tokens)^alpha_D",
    equation=r"L(N, D) = \left[(N_c / N)^{\alpha_N / \alpha_D} + D_c / D\right]^{\alpha_D}",
    reference=f"{_PAPER}, equation 1.5",
    columns=("params", "tokens"),
    parameters=(
        _scale("N_c", "size at which the loss would be 1 on ample data", "params", "parameters"),
        _scale("D_c", "data at which the loss would be 1 for a large model", "tokens", "tokens"),
        _exponent("alpha_N", "size"),
        _exponent("alpha_D", "data"),
    ),
    model=_log_joint,
    starts=_joint_starts,
    presets={
        "kaplan2020": Preset(
            {"N_c": 6.4e13, "D_c": 1.8e13, "alpha_N": 0.076, "alpha_D": 0.103},
            f"{_PAPER}, table 2",
            rounded=True,
            fit_range={"params": _PARAMS, "tokens": _TOKENS},
        )
    },
    allocate=_allocate,
)

KAPLAN_STEPS = Law(
    name="kaplan_steps",
    title="Kaplan law of steps",
    formula="loss = (N_c / params)^alpha_N + (S_c / steps)^alpha_S",
    equation=r"L(N, S) = (N_c / N)^{\alpha_N} + (S_c / S_{\min})^{\alpha_S}",
    reference=f"{_PAPER}, equation 1.6",
    columns=("params", "steps"),
    parameters=(
        _scale(
            "N_c", "size at which the loss of endless training would be 1", "params", "parameters"
        ),
        _scale("S_c", "steps after which 1 nat is left to learn", "steps", "steps"),
        _exponent("alpha_N", "size"),
        _exponent("alpha_S", "steps"),
    ),
    model=_log_steps,
    starts=_steps_starts,
    presets={
        "kaplan2020": Preset(
            {"N_c": 6.5e13, "S_c": 2.1e3, "alpha_N": 0.077, "alpha_S": 0.76},
            f"{_PAPER}, table 3; steps are those of very large batches (`minimum_steps`), from the "
            "end of the warm-up, 3,000 steps, to 250,000",
            rounded=True,
            fit_range={"params": _PARAMS, "steps": (3e3, 2.5e5)},
        )
    },
)


def critical_batch_size(loss: npt.ArrayLike) -> FloatArray:
    """Batch size, in tokens, beyond which larger batches waste compute.

    ``2.1e8 / loss**(1 / 0.21)``: Kaplan et al. 2020, arXiv:2001.08361, equation 5.3, with the
    constant of table 5 (the text rounds it to 2e8). It depends on the loss alone.

    Parameters
    ----------
    loss : array_like
        Training loss in nats per token; positive.

    Examples
    --------
    >>> from toolkit.scaling.laws.kaplan import critical_batch_size
    >>> float(critical_batch_size(3.0).round(-4))
    1120000.0
    """
    return np.asarray(2.1e8 * _positive(loss, "loss") ** (-1 / 0.21))


def minimum_steps(
    steps: npt.ArrayLike, batch_tokens: npt.ArrayLike, loss: npt.ArrayLike
) -> FloatArray:
    """Return the steps that very large batches would have needed to come to the same loss.

    ``steps / (1 + critical_batch_size(loss) / batch_tokens)``: Kaplan et al. 2020,
    arXiv:2001.08361, equation 5.4. The column ``steps`` of the law ``kaplan_steps`` is this one.

    Parameters
    ----------
    steps : array_like
        Optimiser steps taken.
    batch_tokens : array_like
        Tokens per batch.
    loss : array_like
        Loss reached, in nats per token.

    Examples
    --------
    >>> from toolkit.scaling.laws.kaplan import critical_batch_size, minimum_steps
    >>> float(minimum_steps(1000, critical_batch_size(3.0), 3.0))
    500.0
    """
    ratio = critical_batch_size(loss) / _positive(batch_tokens, "batch_tokens")
    return np.asarray(_positive(steps, "steps") / (1 + ratio))


def tokens_without_overfitting(params: npt.ArrayLike) -> FloatArray:
    """Distinct tokens from which on a model of a size overfits by less than 0.02 nats.

    ``5e3 * params**0.74``: Kaplan et al. 2020, arXiv:2001.08361, equation 4.4, from sizes without
    embeddings, 768 to 1.5e9. The exponent is ``alpha_N / alpha_D`` of the law ``kaplan``.

    Parameters
    ----------
    params : array_like
        Parameters without embeddings.

    Examples
    --------
    >>> from toolkit.scaling.laws.kaplan import tokens_without_overfitting
    >>> float(tokens_without_overfitting(1e9).round(-9))
    23000000000.0
    """
    return np.asarray(5e3 * _positive(params, "params") ** 0.74)


def _positive(values: npt.ArrayLike, name: str) -> FloatArray:
    numbers = np.asarray(values, dtype=np.float64)
    if not (np.isfinite(numbers).all() and (numbers > 0).all()):
        raise DataError(f"{name} must be finite and positive; got {values!r}.")
    return numbers
