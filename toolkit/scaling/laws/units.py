"""Find out how a function of columns and parameters takes a change of a column's unit.

If ``A / params**alpha`` is the only place of a column, counting it in millions changes A and
nothing else. A fit that knows this works in a unit where A and alpha are hardly correlated, and
needs a twentieth of the evaluations.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from toolkit.numerics.compiling import FloatArray
from toolkit.scaling.laws.starts import spread

__all__ = ["Unit", "unit_changes"]

POINTS = 24
LOG_COLUMN = (np.log(1e2), np.log(1e13))  # where the function is probed
FACTORS = (-20.0, -5.0, 1.0, 10.0)  # logarithms; far enough to cross a threshold in the function
STEP = 1e-3  # of fourth-order differences
SAME = 1e-5  # an estimated coefficient this close to a parameter's value is that parameter
EXACT = 1e-9  # relative; the change of unit is then verified


@dataclass(frozen=True, slots=True)
class Unit:
    """How one positive parameter moves when the unit of a column does.

    Attributes
    ----------
    column : int
        Place of the column.
    parameter : int
        Place of the parameter.
    exponent : int or None
        Place of the parameter whose value is the power; None where the power is one and the
        parameter is itself in the unit of the column.
    """

    column: int
    parameter: int
    exponent: int | None


def unit_changes(
    function: Callable[[FloatArray, FloatArray], float],
    ranges: list[tuple[float, float]],
    positive: list[bool],
    columns: int,
) -> list[Unit]:
    """Find the parameters that take up a change of unit, column by column.

    The derivative of the function by a log column must be a fixed combination of its derivatives
    by the log parameters; the coefficients are the powers. What is found is verified by changing
    the unit.

    Parameters
    ----------
    function : callable
        ``function(x, values)``: positive number from columns (d,) and parameter values (p,).
    ranges : list of (low, high)
        Of the parameters, in working coordinates (logarithms of the positive ones).
    positive : list of bool
        Which parameters are positive.
    columns : int
        Number d of columns.

    Returns
    -------
    list of Unit
        Empty for a column where no such change exists: the function then needs it in its own
        unit.

    Examples
    --------
    >>> import numpy as np
    >>> unit_changes(lambda x, v: v[1] + v[0] * x[0] ** -v[2], [(0, 3), (0, 1), (0.1, 0.9)],
    ...              [True, True, False], 1)
    [Unit(column=0, parameter=0, exponent=2)]
    """
    x = spread([LOG_COLUMN] * columns, POINTS)
    thetas = spread(ranges, 2)
    logs = np.array(positive)

    def log_loss(theta: FloatArray, at: FloatArray) -> float:
        with np.errstate(all="ignore"):
            return float(np.log(function(np.exp(at), np.where(logs, np.exp(theta), theta))))

    found: list[Unit] = []
    for column in range(columns):
        units, other = (_match(log_loss, theta, x, column, logs) for theta in thetas)
        taken = {unit.parameter for unit in found}
        if not units or units != other or taken & {unit.parameter for unit in units}:
            continue
        values = np.where(logs, np.exp(thetas[0]), thetas[0])
        powers = np.array([1.0 if u.exponent is None else values[u.exponent] for u in units])
        if _holds(log_loss, thetas[0], x, units, powers):
            found += units
    return found


LogLoss = Callable[[FloatArray, FloatArray], float]


def _match(
    log_loss: LogLoss, theta: FloatArray, x: FloatArray, column: int, logs: FloatArray
) -> list[Unit]:
    """Express the slope by a log column through the slopes by log parameters."""
    values = np.where(logs, np.exp(theta), theta)
    candidates = np.flatnonzero(logs)

    def slopes(k: int, in_column: bool) -> FloatArray:
        """Differentiate by one log column or parameter at every point, to fourth order."""
        by, to = np.zeros_like(theta), np.zeros(x.shape[1])
        (to if in_column else by)[k] = STEP
        moved = [
            np.array([log_loss(theta + m * by, at + m * to) for at in x]) for m in (-2, -1, 1, 2)
        ]
        change: FloatArray = moved[0] - 8 * moved[1] + 8 * moved[2] - moved[3]
        return change / (12 * STEP)

    by_column = slopes(column, True)
    by_parameter = np.column_stack([slopes(int(k), False) for k in candidates])
    if not (np.isfinite(by_column).all() and np.isfinite(by_parameter).all()):
        return []
    length = np.maximum(np.linalg.norm(by_parameter, axis=0), 1e-300)
    power = -np.linalg.lstsq(by_parameter / length, by_column, rcond=1e-9)[0] / length
    units = []
    for k, p in zip(candidates, power, strict=True):
        if abs(p) < SAME:
            continue
        others = [j for j in range(len(theta)) if j != k and abs(values[j] - p) < SAME]
        if not others and abs(p - 1) > SAME:
            return []
        units.append(Unit(column, int(k), others[0] if others else None))
    return units


def _holds(
    log_loss: LogLoss, theta: FloatArray, x: FloatArray, units: list[Unit], powers: FloatArray
) -> bool:
    """Change the unit and the parameters with it: nothing else may change."""
    before = np.array([log_loss(theta, at) for at in x])
    for factor in FACTORS:
        moved, shifted = theta.copy(), x.copy()
        shifted[:, units[0].column] += factor
        for unit, power in zip(units, powers, strict=True):
            moved[unit.parameter] += power * factor
        after = np.array([log_loss(moved, at) for at in shifted])
        if not np.all(np.abs(after - before) <= EXACT * np.maximum(1.0, np.abs(before))):
            return False
    return True
