"""The data-constrained law: tokens that are seen again are worth less each time.

``loss = E + A / N'**alpha + B / D'**beta`` with the effective size and data

- ``D' = U + U R_D (1 - exp(-r / R_D))``: U distinct tokens (``tokens_unique``, at most
  ``tokens``), seen ``r = tokens / U - 1`` times more;
- ``N' = V + V R_N (1 - exp(-s / R_N))``: V is the best size for U tokens seen once, at most
  ``params``, and ``s = params / V - 1`` the excess over it.

At ``r = R_D`` repeated tokens have been worth, on average, 1 - 1/e = 63 % of new ones; where R_D
goes to infinity, repeated tokens are as good as new.

Trap: the loss hardly tells large values of R_D apart unless many runs repeat their data more
than R_D times. On the 182 runs behind the published values (``datablations_182``) any R_D from 15
to 300 fits within 0.2 % of the best objective, and the profile (``fit.profile("R_D")``) runs from 7
to no end. Look at the interval before using a point value.

Measured with ``python -m benchmarks.coverage repeated_data``: where data were seen from 1 to 1,000
times, the 95 % percentile interval of R_D covers the truth in 97.5 % of 400 simulated studies of
240 runs (standard error 0.8 %).
"""

import math

import numpy as np

from toolkit.numerics.compiling import FloatArray, kernel
from toolkit.numerics.fast import exp, log
from toolkit.scaling.law import Law, Parameter, Preset
from toolkit.scaling.laws.chinchilla import DATA_TERM, FLAT, FLOOR, SIZE_TERM
from toolkit.scaling.laws.starts import floor_and_rest, spread
from toolkit.scaling.laws.tied import CHINCHILLA_TIED

__all__ = ["REPEATED_DATA"]

FEWEST, MOST = 1e-2, 1e4  # repeats: below, the first repeat is worthless; above, all are new


@kernel
def _log_loss(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Log of the loss; theta is (log A, log B, log E, alpha, beta, log R_D, log R_N).

    `excess` is the log of N'/V or D'/U, `gain` its derivative by the log of R. The best size for
    U tokens, where both terms of the loss fall equally fast, depends on the law's own parameters;
    `follow` is the derivative of log N' by its logarithm.
    """
    a, b, alpha, beta = theta[0], theta[1], theta[3], theta[4]
    floor, repeats, oversize = exp(theta[2]), math.exp(theta[5]), math.exp(theta[6])
    for i in range(value.size):
        params, unique = x[0, i], min(x[1, i], x[2, i])
        best = (math.log(alpha / beta) + a - b + beta * unique) / alpha
        log_size, follow, size_gain = params, 0.0, 0.0
        if best < params:
            times = math.exp(min(params - best, 300.0))
            left = math.exp(-(times - 1.0) / oversize)
            spent = -math.expm1(-(times - 1.0) / oversize)
            effective = 1.0 + oversize * spent
            log_size = best + math.log(effective)
            follow = 1.0 - left * times / effective
            size_gain = (oversize * spent - (times - 1.0) * left) / effective
        again = math.expm1(x[1, i] - unique)
        left = math.exp(-again / repeats)
        spent = -math.expm1(-again / repeats)
        effective = 1.0 + repeats * spent
        log_data = unique + math.log(effective)
        data_gain = (repeats * spent - again * left) / effective

        size, data = exp(a - alpha * log_size), exp(b - beta * log_data)
        loss = size + data + floor
        value[i] = log(loss)
        size, data = size / loss, data / loss
        jacobian[0, i] = size * (1.0 - follow)
        jacobian[1, i] = data + size * follow
        jacobian[2, i] = floor / loss
        jacobian[3, i] = -size * (log_size + follow * (1.0 / alpha - best))
        jacobian[4, i] = -data * log_data - size * follow * (unique - 1.0 / beta)
        jacobian[5, i] = -beta * data * data_gain
        jacobian[6, i] = -alpha * size * size_gain


def _starts(x: FloatArray, y: FloatArray) -> FloatArray:
    """Thirty-two points of a Halton sequence, scaled to the data: near-flat R make many optima."""
    ranges = [(0.3, 0.99), (0.1, 0.9), (0.1, 0.8), (0.1, 0.8), (0.0, 7.0), (-1.0, 5.0)]
    floor, share, alpha, beta, repeats, oversize = spread(ranges, 32).T
    log_floor, rest = floor_and_rest(y, floor)
    centre = x.mean(axis=0)
    a = np.log(share * rest) + alpha * centre[0]
    b = np.log((1 - share) * rest) + beta * centre[1]
    return np.column_stack([a, b, log_floor, alpha, beta, repeats, oversize])


_BASE = CHINCHILLA_TIED.presets["muennighoff2023-c4"].values

REPEATED_DATA = Law(
    name="repeated_data",
    title="data-constrained law",
    formula=(
        "loss = E + A / N'^alpha + B / D'^beta, "
        "D' = U + U R_D (1 - exp(-(tokens / U - 1) / R_D)), U = min(tokens_unique, tokens), "
        "N' = V + V R_N (1 - exp(-(params / V - 1) / R_N)), V = min(best size for U, params)"
    ),
    equation=(
        r"L(N, D, U) = E + A\,\left[V + V R_N (1 - e^{-(N / V - 1) / R_N})\right]^{-\alpha}"
        r" + B\,\left[U + U R_D (1 - e^{-(D / U - 1) / R_D})\right]^{-\beta}"
    ),
    reference="Muennighoff et al. 2023, arXiv:2305.16264, equations 5 and 6 and appendix A",
    columns=("params", "tokens", "tokens_unique"),
    parameters=(
        SIZE_TERM,
        DATA_TERM,
        FLOOR,
        Parameter("alpha", "exponent of effective size", "none", lower=FLAT, upper=5.0),
        Parameter("beta", "exponent of effective data", "none", lower=FLAT, upper=5.0),
        Parameter(
            "R_D",
            "repeats of the data after which most of their worth is gone",
            "repeats",
            positive=True,
            lower=FEWEST,
            upper=MOST,
        ),
        Parameter(
            "R_N",
            "excess size, in multiples of the best, after which most of its worth is gone",
            "multiples of the best size",
            positive=True,
            lower=FEWEST,
            upper=MOST,
        ),
    ),
    model=_log_loss,
    starts=_starts,
    # tokens and tokens_unique are compared with each other, so that no column has its own unit
    absolute=("params", "tokens", "tokens_unique"),
    presets={
        "muennighoff2023": Preset(
            {
                "A": _BASE["A"],
                "B": _BASE["B"],
                "E": _BASE["E"],
                "alpha": _BASE["alpha"],
                "beta": _BASE["alpha"],
                "R_D": 15.387756,
                "R_N": 5.309743,
            },
            "Muennighoff et al. 2023, arXiv:2305.16264, appendix A; no interval was published, "
            "and the 182 runs behind it do not determine R_D",
            rounded=False,
            fit_range={
                "params": (7e6, 8.7e9),
                "tokens": (1e8, 9e11),
                "tokens_unique": (1e8, 1.78e11),
            },
        ),
    },
)
