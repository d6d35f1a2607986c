"""Families of learning curves: a loss or error rate that falls with one column.

Twelve shapes, all positive and decreasing, as laws to be fitted like any other. Several names
stand for one shape when it is written for a falling quantity: exp4, Janoschek and Weibull are
``weibull``; MMF and the four-parameter Hill curve are ``mmf``; the three-parameter Hill curve is
``log_power``. S is where the curve bends, in the unit of the column.

The shapes go back to Domhan et al. 2015 (IJCAI) and Viering and Loog 2023 (TPAMI 45, 7799).
"""

import re
from collections.abc import Callable

import numpy as np

from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray
from toolkit.scaling.law import Law, Parameter
from toolkit.scaling.laws import curve_kernels as kernels
from toolkit.scaling.laws.starts import spread

__all__ = ["CURVES", "learning_curve"]

FLAT = 1e-3
REFERENCE = "Domhan, Springenberg and Hutter 2015, IJCAI, and Viering and Loog 2023, TPAMI 45"

Starts = Callable[[FloatArray, FloatArray], FloatArray]


def learning_curve(family: str, column: str = "tokens") -> Law:
    """Make the law of one family of learning curves.

    Parameters
    ----------
    family : str
        One of `CURVES`: ``pow2``, ``pow3``, ``pow4``, ``exp3``, ``weibull``, ``vapor``,
        ``ilog2``, ``log_power``, ``mmf``, ``gompertz``, ``logistic``, ``bertalanffy``.
    column : str
        What the curve is drawn over: ``tokens``, ``steps``, ``params``, or any column of positive
        numbers. Values must exceed 1 for ``ilog2``.

    Returns
    -------
    Law

    Raises
    ------
    DataError
        If there is no such family.

    Examples
    --------
    >>> from toolkit.scaling import learning_curve
    >>> learning_curve("pow3", "steps").formula
    'loss = c + A / steps^alpha'
    """
    if family not in _FAMILIES:
        raise DataError(f"No family {family!r}. Known families: {', '.join(_FAMILIES)}.")
    formula, equation, names, model, starts = _FAMILIES[family]
    return Law(
        name=f"curve_{family}" if column == "tokens" else f"curve_{family}_{column}",
        title=f"{family} learning curve",
        formula="loss = " + re.sub(r"\bx\b", column, formula),
        equation=f"L(x) = {equation}",
        reference=REFERENCE,
        columns=(column,),
        parameters=tuple(_parameter(name, family, column) for name in names),
        model=model,
        starts=starts,
        absolute=(column,) if family == "ilog2" else (),
    )


def _parameter(name: str, family: str, column: str) -> Parameter:
    power_law = family in {"pow2", "pow3", "vapor"}
    if name == "A":
        if power_law:
            meaning = f"term at {column} of one"
            unit, scales = f"unit of the loss · {column}^alpha", (column, "alpha")
            return Parameter(name, meaning, unit, positive=True, scales=scales)
        return Parameter(name, "height of the falling part", "unit of the loss", positive=True)
    if name == "c":
        return Parameter(name, "loss that is never undercut", "unit of the loss", positive=True)
    if name == "S":
        return Parameter(
            name,
            "where the curve bends",
            column,
            positive=True,
            lower=1e-6,
            upper=1e20,
            unit_of=column if family != "ilog2" else None,
        )
    return Parameter(name, "steepness", "none", lower=FLAT, upper=20.0)


def _starts(*, floor: bool, bend: bool, power: bool) -> Starts:
    """Make starts for curves of a floor, a height, a bend within the data and a power."""

    def starts(x: FloatArray, y: FloatArray) -> FloatArray:
        reach = (float(x.min()), float(x.max()) + 1.0)
        share, at, steep = spread([(0.05, 0.98), reach, (0.1, 2.0)], 24).T
        log_floor = np.min(y) + np.log(share) if floor else np.full(24, -np.inf)
        height = np.log(np.exp(np.mean(y)) - np.exp(log_floor))
        if bend:
            height = np.log(np.exp(np.max(y)) - np.exp(log_floor))
        columns = [height, log_floor, at, steep]
        return np.column_stack(
            [c for c, used in zip(columns, [True, floor, bend, power], strict=True) if used]
        )

    return starts


def _ilog_starts(x: FloatArray, y: FloatArray) -> FloatArray:
    """Start from a floor and a height over the logarithm of the column."""
    share = np.array([0.1, 0.5, 0.8, 0.95])
    log_floor = np.min(y) + np.log(share)
    height = np.log((np.exp(np.mean(y)) - np.exp(log_floor)) * np.mean(x))
    return np.column_stack([height, log_floor])


_BENT = _starts(floor=True, bend=True, power=True)
_BENT_ONCE = _starts(floor=True, bend=True, power=False)

_FAMILIES = {
    "pow2": (
        "A / x^alpha",
        r"A x^{-\alpha}",
        ("A", "alpha"),
        kernels.pow2,
        _starts(floor=False, bend=False, power=True),
    ),
    "pow3": (
        "c + A / x^alpha",
        r"c + A x^{-\alpha}",
        ("A", "c", "alpha"),
        kernels.pow3,
        _starts(floor=True, bend=False, power=True),
    ),
    "pow4": (
        "c + A (1 + x / S)^-alpha",
        r"c + A (1 + x / S)^{-\alpha}",
        ("A", "c", "S", "alpha"),
        kernels.pow4,
        _BENT,
    ),
    "exp3": ("c + A exp(-x / S)", r"c + A e^{-x / S}", ("A", "c", "S"), kernels.exp3, _BENT_ONCE),
    "weibull": (
        "c + A exp(-(x / S)^alpha)",
        r"c + A e^{-(x / S)^{\alpha}}",
        ("A", "c", "S", "alpha"),
        kernels.weibull,
        _BENT,
    ),
    "vapor": (
        "A exp(S / x) / x^alpha",
        r"A e^{S / x} x^{-\alpha}",
        ("A", "S", "alpha"),
        kernels.vapor,
        _starts(floor=False, bend=True, power=True),
    ),
    "ilog2": ("c + A / log(x)", r"c + A / \log x", ("A", "c"), kernels.ilog2, _ilog_starts),
    "log_power": (
        "A / (1 + (x / S)^alpha)",
        r"\frac{A}{1 + (x / S)^{\alpha}}",
        ("A", "S", "alpha"),
        kernels.log_power,
        _starts(floor=False, bend=True, power=True),
    ),
    "mmf": (
        "c + A / (1 + (x / S)^alpha)",
        r"c + \frac{A}{1 + (x / S)^{\alpha}}",
        ("A", "c", "S", "alpha"),
        kernels.mmf,
        _BENT,
    ),
    "gompertz": (
        "c + A (1 - exp(-(x / S)^-alpha))",
        r"c + A \left(1 - e^{-(x / S)^{-\alpha}}\right)",
        ("A", "c", "S", "alpha"),
        kernels.gompertz,
        _BENT,
    ),
    "logistic": (
        "c + 2 A / (1 + exp(x / S))",
        r"c + \frac{2 A}{1 + e^{x / S}}",
        ("A", "c", "S"),
        kernels.logistic,
        _BENT_ONCE,
    ),
    "bertalanffy": (
        "c + A (1 - (1 - exp(-x / S))^3)",
        r"c + A \left(1 - (1 - e^{-x / S})^3\right)",
        ("A", "c", "S"),
        kernels.bertalanffy,
        _BENT_ONCE,
    ),
}

#: Names of the families.
CURVES: tuple[str, ...] = tuple(_FAMILIES)
