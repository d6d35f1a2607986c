"""The routed law: how much a number of experts adds to a language model of a given size.

``log10 loss = a log10 N + b log10 E + c log10 N log10 E + d``, where N is the size of the dense
model (``params_active``) and E grows with the number of experts from ``E_start`` at one expert to
``E_max``: experts help less and less. Experts are worth nothing from the size on where
``b + c log10 N`` is zero.

Traps: the interaction c multiplies numbers near 9, so that three printed digits of it are not
enough: evaluated at the end of training of the published runs, the printed values err by up to 2.4
times the residuals of a fit of these runs. E_start and E_max are weakly determined: both only bend
the ends of a curve over log experts, so look at the interval before reading a meaning into them.

Measured with ``python -m benchmarks.coverage routed``: the 95 % interval of b covers the truth in
95 of 100 simulated studies.
"""

import itertools
import math

import numpy as np

from toolkit.numerics.compiling import FloatArray, kernel
from toolkit.numerics.fast import log
from toolkit.scaling.law import Law, Parameter, Preset

__all__ = ["ROUTED"]

LN10 = math.log(10.0)
FEW, MANY = (
    30.0,
    1e6,
)  # E_start lies below FEW and E_max above, so that E rises from one to the other


@kernel
def _log_loss(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Log of the loss; theta is (a, b, c, d, log E_start, log E_max).

    ``1 / E = left + 1 / E_max`` with ``left = gap / (1 + (experts - 1) gap)`` and ``gap`` its
    value at one expert.
    """
    a, b, c, d = theta[0], theta[1], theta[2], theta[3]
    start, most = math.exp(-theta[4]), math.exp(-theta[5])
    gap = start - most
    for i in range(value.size):
        size = x[0, i]
        spent = 1.0 / (1.0 + math.expm1(x[1, i]) * gap)
        inverse = gap * spent + most
        experts = -log(inverse)
        slope = b + c / LN10 * size
        value[i] = a * size + slope * experts + d * LN10
        jacobian[0, i] = size
        jacobian[1, i] = experts
        jacobian[2, i] = size * experts / LN10
        jacobian[3, i] = LN10
        jacobian[4, i] = slope * spent * spent * start / inverse
        jacobian[5, i] = slope * (1.0 - spent * spent) * most / inverse


def _starts(x: FloatArray, y: FloatArray) -> FloatArray:
    """Twelve pairs of E_start and E_max; the law is linear in the other parameters."""
    points = []
    for start, most in itertools.product([1.2, 2.0, 4.0, 10.0], [60.0, 300.0, 3000.0]):
        gap = 1 / start - 1 / most
        experts = -np.log(gap / (1 + np.expm1(x[:, 1]) * gap) + 1 / most)
        one = np.full(len(y), LN10)
        design = np.column_stack([x[:, 0], experts, x[:, 0] * experts / LN10, one])
        linear = np.linalg.lstsq(design, y, rcond=None)[0]
        points.append([*linear, np.log(start), np.log(most)])
    return np.array(points)


# of the published runs (seed 42, one expert per token, half of the layers routed)
_RANGE = {"params_active": (1.65e7, 1.31e9), "experts": (1, 512)}


def _preset(router: str, *values: float) -> Preset:
    return Preset(
        dict(zip(("a", "b", "c", "d", "E_start", "E_max"), values, strict=True)),
        f"Clark et al. 2022, arXiv:2202.01169, table of the routed law, {router} routing "
        "(rounded values as cited by others, not compared with the paper; the range is that of "
        "the published runs)",
        rounded=True,
        fit_range=_RANGE,
    )


ROUTED = Law(
    name="routed",
    title="routed law",
    formula=(
        "log10(loss) = a log10(params_active) + b log10(E) "
        "+ c log10(params_active) log10(E) + d, "
        "1 / E = 1 / (experts - 1 + 1 / (1/E_start - 1/E_max)) + 1 / E_max"
    ),
    equation=(
        r"\log_{10} L(N, E) = a \log_{10} N + b \log_{10} \hat E"
        r" + c \log_{10} N \log_{10} \hat E + d"
    ),
    reference="Clark et al. 2022, arXiv:2202.01169",
    columns=("params_active", "experts"),
    parameters=(
        Parameter("a", "power of size for one effective expert; negative", "none"),
        Parameter("b", "power of effective experts for a model of one parameter", "none"),
        Parameter("c", "change of that power per factor ten of size", "none"),
        Parameter("d", "log10 of the loss at one parameter and effective expert", "log10 nats"),
        Parameter(
            "E_start",
            "effective experts of a dense model",
            "experts",
            positive=True,
            lower=1.0,
            upper=FEW,
        ),
        Parameter(
            "E_max",
            "effective experts that no number of experts exceeds",
            "experts",
            positive=True,
            lower=FEW,
            upper=MANY,
        ),
    ),
    model=_log_loss,
    starts=_starts,
    presets={
        "clark2022-s-base": _preset("S-Base", -0.082, -0.108, 0.009, 1.104, 1.847, 314.5),
        "clark2022-rl-r": _preset("RL-R", -0.083, -0.126, 0.012, 1.111, 1.880, 470.0),
        "clark2022-hash": _preset("Hash", -0.087, -0.136, 0.012, 1.157, 4.175, 477.7),
    },
)
