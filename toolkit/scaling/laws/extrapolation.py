"""Four laws of one column by which learning curves are extrapolated, M1 to M4.

- ``m1``: ``loss = b x**-c``, a power law;
- ``m2``: ``loss = a + b x**-c``, with a floor;
- ``m3``: ``loss = b (1 / x + 1 / s)**c``, which levels off beyond ``x = s``;
- ``m4``: ``(loss - a) / (top - loss)**p = b x**-c``, which also levels off at the loss of guessing,
  ``top``, on the left: an S in logarithms.

At ``p = 0`` and below its top, m4 is m2; at ``a = 0`` m2 is m1, as is m3 far below s. They were
compared by how well a fit to the small end of a curve predicts the large end, where m4 did best; a
fit to the whole range says little about that.

Measured with ``python -m benchmarks.coverage``: the 95 % percentile interval of c covers the truth
in 95.0 % (m1), 97.8 % (m2), 96.0 % (m3) and 94.2 % (m4) of 400 simulated studies of 240 runs each
(standard error 0.7 to 1.2 %).
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray, kernel
from toolkit.numerics.fast import exp, log
from toolkit.scaling.law import Law, Parameter
from toolkit.scaling.laws.broken import broken
from toolkit.scaling.laws.chinchilla import FLAT
from toolkit.scaling.laws.starts import floor_and_rest, spread

__all__ = ["EXTRAPOLATION_LAWS", "extrapolation_law"]

REFERENCE = "Alabdulmohsin et al. 2022, arXiv:2209.06640"
NEWTON_STEPS = 40  # each takes the error to its square; 5 are usual


@kernel
def _log_m1(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Log of ``b x**-c``; theta is (log b, c)."""
    for i in range(value.size):
        value[i] = theta[0] - theta[1] * x[0, i]
        jacobian[0, i] = 1.0
        jacobian[1, i] = -x[0, i]


@kernel
def _log_m3(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Log of ``b (1 / x + 1 / s)**c``; theta is (log b, c, log s)."""
    for i in range(value.size):
        rising, level = exp(-x[0, i]), exp(-theta[2])
        log_sum = log(rising + level)
        value[i] = theta[0] + theta[1] * log_sum
        jacobian[0, i] = 1.0
        jacobian[1, i] = log_sum
        jacobian[2, i] = -theta[1] * level / (rising + level)


@kernel
def _log_m4(theta: FloatArray, x: FloatArray, value: FloatArray, jacobian: FloatArray) -> None:
    """Log of the loss that solves m4; theta is (log a, log b, c, log top, p).

    With ``loss = a + (top - a) t`` the equation is ``log t - p log(1 - t) = right``. In
    ``s = log(t / (1 - t))`` its left side is nearly a line of slope 1 on the left and p on the
    right, so that Newton's method cannot fail.
    """
    floor, top, p = exp(theta[0]), exp(theta[3]), theta[4]
    log_width = np.log(top - floor)  # NaN where the top is below the floor, which is refused
    for i in range(value.size):
        right = theta[1] - theta[2] * x[0, i] - (1.0 - p) * log_width
        s = right if right < 0.0 or p < 1e-3 else right / p
        for _ in range(NEWTON_STEPS):
            folded = exp(-abs(s))
            small = log(1.0 + folded)
            part = (1.0 if s > 0.0 else folded) / (1.0 + folded)
            left = p * (max(s, 0.0) + small) - (max(-s, 0.0) + small)
            step = (left - right) / ((1.0 - part) + p * part)
            s -= step
            if not abs(step) > 1e-14 * (1.0 + abs(s)):
                break
        folded = exp(-abs(s))
        part = (1.0 if s > 0.0 else folded) / (1.0 + folded)
        rest = (folded if s > 0.0 else 1.0) / (1.0 + folded)
        loss = floor + (top - floor) * part
        value[i] = np.log(loss)
        # the derivatives of the equation by loss, floor and top, times top - floor
        by_floor, by_top = 1.0 / part, p / rest
        scale = (top - floor) / ((by_floor + by_top) * loss)
        jacobian[0, i] = floor * by_floor / ((by_floor + by_top) * loss)
        jacobian[1, i] = scale
        jacobian[2, i] = -x[0, i] * scale
        jacobian[3, i] = top * by_top / ((by_floor + by_top) * loss)
        jacobian[4, i] = (log_width + np.log(rest)) * scale


def _m1_starts(x: FloatArray, y: FloatArray) -> FloatArray:
    """Eight slopes through the mean: the law is a line in logs."""
    c = np.geomspace(0.02, 2.0, 8)
    return np.column_stack([np.mean(y) + c * np.mean(x), c])


def _m3_starts(x: FloatArray, y: FloatArray) -> FloatArray:
    """Halton points: the end of the fall from before the data to beyond them."""
    place, c = spread([(0.0, 1.2), (0.05, 1.5)], 16).T
    level = np.min(x) + (np.max(x) - np.min(x)) * place
    b = np.mean(y) - c * np.logaddexp(-np.mean(x), -level)
    return np.column_stack([b, c, level])


def _m4_starts(x: FloatArray, y: FloatArray) -> FloatArray:
    """Halton points, scaled so that the mean is met."""
    share, c, above, p = spread([(0.1, 0.97), (0.05, 2.0), (0.01, 0.7), (0.05, 3.0)], 48).T
    log_floor, rest = floor_and_rest(y, share)
    log_top = np.max(y) + above
    b = np.log(rest) - p * np.log(np.exp(log_top) - np.exp(np.mean(y))) + c * np.mean(x)
    return np.column_stack([log_floor, b, c, log_top, p])


_FLOOR = Parameter("a", "loss that remains at the end", "nats per token", positive=True)


def _level(column: str, of: str, unit: str) -> Parameter:
    return Parameter(
        "b",
        f"{of} at one unit of {column}",
        f"{unit} · {column}^c",
        positive=True,
        lower=1e-200,
        upper=1e200,
        scales=(column, "c"),
    )


def _slope(column: str) -> Parameter:
    return Parameter("c", f"exponent of {column}", "none", lower=FLAT, upper=20.0)


def _m1(column: str) -> Law:
    return Law(
        name="m1",
        title=f"power law of {column} (M1)",
        formula=f"loss = b {column}^-c",
        equation=r"L(x) = b\,x^{-c}",
        reference=f"{REFERENCE}, M1",
        columns=(column,),
        parameters=(_level(column, "loss", "nats per token"), _slope(column)),
        model=_log_m1,
        starts=_m1_starts,
    )


def _m2(column: str) -> Law:
    law = broken(breaks=0, column=column)
    return replace(
        law,
        name="m2",
        title=f"power law of {column} with a floor (M2)",
        formula=f"loss = a + b {column}^-c",
        equation=r"L(x) = a + b\,x^{-c}",
        reference=f"{REFERENCE}, M2",
        parameters=(
            _FLOOR,
            _level(column, "loss above the floor", "nats per token"),
            _slope(column),
        ),
    )


def _m3(column: str) -> Law:
    return Law(
        name="m3",
        title=f"power law of {column} that levels off (M3)",
        formula=f"loss = b (1 / {column} + 1 / s)^c",
        equation=r"L(x) = b\,\left(1 / x + 1 / s\right)^{c}",
        reference=f"{REFERENCE}, M3",
        columns=(column,),
        parameters=(
            _level(column, "loss before it levels off", "nats per token"),
            _slope(column),
            Parameter(
                "s",
                f"{column} at which the loss levels off",
                f"unit of {column}",
                positive=True,
                lower=1e-30,
                upper=1e60,
                unit_of=column,
            ),
        ),
        model=_log_m3,
        starts=_m3_starts,
    )


def _m4(column: str) -> Law:
    return Law(
        name="m4",
        title=f"two-sided law of {column} (M4)",
        formula=f"(loss - a) / (top - loss)^p = b {column}^-c",
        equation=r"(L - a) / (t - L)^{p} = b\,x^{-c}",
        reference=f"{REFERENCE}, M4",
        columns=(column,),
        parameters=(
            _FLOOR,
            _level(column, "the left side of the equation", "(nats per token)^(1 - p)"),
            _slope(column),
            Parameter(
                "top",
                "loss without any learning",
                "nats per token",
                positive=True,
                lower=1e-3,
                upper=1e3,
            ),
            Parameter("p", "how long the loss stays at the top", "none", lower=1e-3, upper=20.0),
        ),
        model=_log_m4,
        starts=_m4_starts,
    )


_FORMS: dict[str, Callable[[str], Law]] = {"m1": _m1, "m2": _m2, "m3": _m3, "m4": _m4}


def extrapolation_law(form: str, column: str = "tokens") -> Law:
    """Return one of the laws M1 to M4 of Alabdulmohsin et al. 2022, in one column.

    Parameters
    ----------
    form : {"m1", "m2", "m3", "m4"}
        See `toolkit.scaling.laws.extrapolation`.
    column : str
        What the loss is a function of: a column of the vocabulary, or any column of positive
        numbers.

    Raises
    ------
    DataError
        If there is no such form.

    Examples
    --------
    >>> from toolkit.scaling.laws.extrapolation import extrapolation_law
    >>> extrapolation_law("m3", column="steps").formula
    'loss = b (1 / steps + 1 / s)^c'
    """
    if form not in _FORMS:
        raise DataError(f"No form {form!r}; the forms are {', '.join(_FORMS)}.")
    return _FORMS[form](column)


EXTRAPOLATION_LAWS = tuple(extrapolation_law(form) for form in _FORMS)
