"""Laws of fine-tuning: test loss by the number of examples, and what pretraining is worth.

The rectified law ``loss = E + B / (D_l + D**beta)`` is flat while D is small against what the model
brought along, D_l, and falls as a power law afterwards. A plain power law (`FINETUNING_PLAIN`)
misses the flat part: over 30 models its error is two to five times larger.

The transfer law says how many tokens of the new task pretraining is worth.

Measured with ``python -m benchmarks.coverage finetuning finetuning_plain``: the 95 % interval of
beta covers the truth in 91 (rectified) and 90 (plain) of 100 simulated studies.
"""

import numpy as np

from toolkit.numerics.compiling import FloatArray, kernel
from toolkit.numerics.fast import exp, log
from toolkit.scaling.law import Law, Parameter, Preset
from toolkit.scaling.laws.starts import spread

__all__ = ["FINETUNING", "FINETUNING_PLAIN", "TRANSFER", "finetuning_law"]

FLAT = 1e-3


@kernel
def _rectified(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Log of ``E + B / (D_l + D**beta)``; theta is (log B, log D_l, log E, beta)."""
    known, floor = exp(theta[1]), exp(theta[2])
    for i in range(value.size):
        power = exp(theta[3] * x[0, i])
        total = known + power
        term = exp(theta[0]) / total
        loss = term + floor
        value[i] = log(loss)
        jacobian[0, i] = term / loss
        jacobian[1, i] = -term / loss * known / total
        jacobian[2, i] = floor / loss
        jacobian[3, i] = -term / loss * x[0, i] * power / total


@kernel
def _plain(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Log of ``(A / D**beta + E)**k``; theta is (log A, log E, beta, k)."""
    floor, power = exp(theta[1]), theta[3]
    for i in range(value.size):
        term = exp(theta[0] - theta[2] * x[0, i])
        base = term + floor
        value[i] = power * log(base)
        jacobian[0, i] = power * term / base
        jacobian[1, i] = power * floor / base
        jacobian[2, i] = -power * x[0, i] * term / base
        jacobian[3, i] = log(base)


@kernel
def _transfer(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Log of ``k tokens**alpha params**beta``; theta is (log k, alpha, beta)."""
    for i in range(value.size):
        value[i] = theta[0] + theta[1] * x[0, i] + theta[2] * x[1, i]
        jacobian[0, i] = 1.0
        jacobian[1, i] = x[0, i]
        jacobian[2, i] = x[1, i]


def _rectified_starts(x: FloatArray, y: FloatArray) -> FloatArray:
    """Thirty-two points of a Halton sequence: floor, power, and where the curve bends."""
    bends = (float(x.min()), float(x.max()))
    floor, beta, bend = spread([(0.05, 0.98), (0.1, 1.5), bends], 32).T
    log_floor = np.min(y) + np.log(floor)
    height = np.log(np.exp(np.max(y)) - np.exp(log_floor))
    log_known = beta * bend
    return np.column_stack(
        [height + np.logaddexp(log_known, beta * x.min()), log_known, log_floor, beta]
    )


def _plain_starts(x: FloatArray, y: FloatArray) -> FloatArray:
    """Thirty-two points of a Halton sequence: share of the floor, powers."""
    floor, beta, power = spread([(0.05, 0.98), (0.05, 1.5), (0.3, 3.0)], 32).T
    log_floor = np.min(y) / power + np.log(floor)
    rest = np.exp(np.mean(y) / power) - np.exp(log_floor)
    return np.column_stack([np.log(rest), log_floor, beta, power])


def _transfer_starts(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the least-squares solution: the law is linear in its logarithms."""
    design = np.column_stack([np.ones(len(y)), x])
    return np.asarray(np.linalg.lstsq(design, y, rcond=None)[0], dtype=np.float64)[None, :]


def finetuning_law(column: str = "examples") -> Law:
    """Make the rectified law of fine-tuning for a column that counts the data.

    Parameters
    ----------
    column : str
        Positive numbers: examples, ``tokens``, or steps.

    Returns
    -------
    Law

    Examples
    --------
    >>> from toolkit.scaling import finetuning_law
    >>> finetuning_law("tokens").columns
    ('tokens',)
    """
    return Law(
        name="finetuning" if column == "examples" else f"finetuning_{column}",
        title="rectified law of fine-tuning",
        formula=f"loss = E + B / (D_l + {column}^beta)",
        equation=r"L(D) = \frac{B}{D_l + D^{\beta}} + E",
        reference="Lin et al. 2024, arXiv:2402.02314",
        columns=(column,),
        parameters=(
            Parameter(
                "B",
                "term at one example when nothing was learned before",
                f"nats per token · {column}^beta",
                positive=True,
                scales=(column, "beta"),
            ),
            Parameter(
                "D_l",
                "what the model brought along: the power of data it is worth",
                f"{column}^beta",
                positive=True,
                scales=(column, "beta"),
            ),
            Parameter("E", "loss that no amount of data removes", "nats per token", positive=True),
            Parameter("beta", "exponent of data", "none", lower=FLAT, upper=5.0),
        ),
        model=_rectified,
        starts=_rectified_starts,
    )


FINETUNING = finetuning_law()

FINETUNING_PLAIN = Law(
    name="finetuning_plain",
    title="plain power law of fine-tuning",
    formula="loss = (A / examples^beta + E)^k",
    equation=r"L(D) = \left(A\,D^{-\beta} + E\right)^k",
    reference="the law that Lin et al. 2024, arXiv:2402.02314, compare with",
    columns=("examples",),
    parameters=(
        Parameter(
            "A",
            "term at one example",
            "nats per token^(1/k) · examples^beta",
            positive=True,
            scales=("examples", "beta"),
        ),
        Parameter("E", "what no amount of data removes", "nats per token^(1/k)", positive=True),
        Parameter("beta", "exponent of data", "none", lower=FLAT, upper=5.0),
        Parameter("k", "outer exponent", "none", lower=1e-2, upper=50.0),
    ),
    model=_plain,
    starts=_plain_starts,
)

_HERNANDEZ = "Hernandez et al. 2021, arXiv:2102.01293"

TRANSFER = Law(
    name="transfer",
    title="transfer law",
    formula="tokens_transferred = k tokens^alpha params^beta",
    equation=r"D_T(D_F, N) = k\,D_F^{\alpha}\,N^{\beta}",
    reference=_HERNANDEZ,
    columns=("tokens", "params"),
    parameters=(
        Parameter(
            "k",
            "tokens that pretraining is worth, for one token and one parameter",
            "tokens^(1 - alpha) / params^beta",
            positive=True,
            lower=1e-12,
            upper=1e24,
        ),
        Parameter("alpha", "exponent of fine-tuning tokens: how far apart the tasks are", "none"),
        Parameter("beta", "exponent of size: how well the model generalises", "none"),
    ),
    model=_transfer,
    starts=_transfer_starts,
    presets={
        "hernandez2021-text": Preset(
            {"k": 1.9e4, "alpha": 0.18, "beta": 0.38},
            f"{_HERNANDEZ}, text to Python (as cited by others; not compared with the paper)",
            rounded=True,
            fit_range={},
        ),
        "hernandez2021-half-code": Preset(
            {"k": 2.1e5, "alpha": 0.096, "beta": 0.38},
            f"{_HERNANDEZ}, half text, half code to Python (as cited by others; not compared with "
            "the paper)",
            rounded=True,
            fit_range={},
        ),
    },
)
