"""Intervals and summaries, shared by every fit of every pillar."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special

from toolkit.errors import DataError

__all__ = [
    "Interval",
    "IntervalMethod",
    "Summary",
    "bootstrap_interval",
    "check_level",
    "jackknife_interval",
    "significant",
]

IntervalMethod = Literal["percentile", "basic", "bca", "jackknife"]


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its interval, and what the interval rests on.

    Attributes
    ----------
    estimate, lower, upper : float
        In the unit of the quantity.
    level : float
        Nominal coverage, in (0, 1).
    method : str
        How the bounds were made, for example "percentile bootstrap".
    unit : str
        What was resampled: "row", "run", "item", ...
    resamples : int
        Resamples that gave a finite value.
    """

    estimate: float
    lower: float
    upper: float
    level: float
    method: str
    unit: str
    resamples: int

    @property
    def width(self) -> float:
        """Distance between the bounds."""
        return self.upper - self.lower

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def __str__(self) -> str:
        bounds = f"{significant(self.lower)} to {significant(self.upper)}"
        level = f"{100 * self.level:.4g}%"
        return f"{significant(self.estimate)} ({level} {self.method}: {bounds})"


def bootstrap_interval(
    estimate: float,
    draws: npt.NDArray[np.float64],
    *,
    level: float = 0.95,
    method: IntervalMethod = "percentile",
    left_out: npt.NDArray[np.float64] | None = None,
    unit: str = "row",
) -> Interval:
    """Interval from bootstrap draws of one quantity.

    Parameters
    ----------
    estimate : float
        Value on the full data.
    draws : array, shape (resamples,)
        Values on the resamples, from the same objective as the estimate. NaN marks resamples
        where the quantity could not be computed; they are left out and not counted.
    level : float
        Nominal coverage, in (0, 1).
    method : {"percentile", "basic", "bca"}
        ``percentile`` takes quantiles of the draws; ``basic`` reflects them about the estimate
        (Davison and Hinkley 1997, sections 5.2 and 5.3). ``bca`` moves the quantiles by the bias
        of the draws and by how the spread changes with the truth (Efron 1987, Journal of the
        American Statistical Association 82).
    left_out : array, shape (units,), optional
        Values without each unit in turn, for ``bca``.
    unit : str
        What was resampled, for the record.

    Returns
    -------
    Interval

    Raises
    ------
    DataError
        If the level or the method is not allowed, the draws are not of one quantity, fewer than 2
        of them are finite, or all are the same number, which would pass chance for certainty.

    Examples
    --------
    >>> import numpy as np
    >>> interval = bootstrap_interval(5.0, np.arange(11.0), level=0.8)
    >>> round(interval.lower, 6), round(interval.upper, 6)
    (1.0, 9.0)
    """
    check_level(level)
    finite = _finite(draws, "resamples; fit with bootstrap=1000")
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    if method == "bca":
        if left_out is None:
            raise DataError("method 'bca' needs the values without each unit: give left_out.")
        tails = _corrected(tails, estimate, finite, _finite(left_out, "values in left_out"))
    elif method not in ("percentile", "basic"):
        raise DataError(f"method must be 'percentile', 'basic' or 'bca'; got {method!r}.")
    low, high = np.quantile(finite, tails)
    if method == "basic":
        low, high = 2 * estimate - high, 2 * estimate - low
    name = "BCa" if method == "bca" else method
    return Interval(
        float(estimate), float(low), float(high), level, f"{name} bootstrap", unit, finite.size
    )


def jackknife_interval(
    estimate: float,
    left_out: npt.NDArray[np.float64],
    *,
    level: float = 0.95,
    unit: str = "row",
) -> Interval:
    """Interval from the values without each unit in turn (Tukey 1958): estimate ± t · error.

    The error is the jackknife's, the quantile Student's with ``units - 1`` degrees of freedom:
    honest for few units, where a bootstrap has little to draw from.

    Parameters
    ----------
    estimate : float
        Value on the full data.
    left_out : array, shape (units,)
        Values without each unit, in any order. NaN marks those that could not be computed.
    level : float
        Nominal coverage, in (0, 1).
    unit : str
        What was left out, for the record.

    Returns
    -------
    Interval
        Its ``resamples`` are the units left out.

    Raises
    ------
    DataError
        If the level is not allowed, or fewer than 2 values are finite, or all are the same.

    Examples
    --------
    >>> import numpy as np
    >>> data = np.array([1.0, 2.0, 3.0, 6.0])
    >>> means = (data.sum() - data) / 3
    >>> interval = jackknife_interval(data.mean(), means)
    >>> round(interval.lower, 3), round(interval.upper, 3)
    (-0.437, 6.437)
    """
    check_level(level)
    finite = _finite(left_out, "units left out")
    centre, units = float(estimate), finite.size
    error = np.sqrt((units - 1) / units * np.sum((finite - finite.mean()) ** 2))
    half = float(special.stdtrit(units - 1, (1 + level) / 2) * error)
    return Interval(centre, centre - half, centre + half, level, "jackknife", unit, units)


def _finite(values: npt.NDArray[np.float64], what: str) -> npt.NDArray[np.float64]:
    if values.ndim != 1:
        raise DataError(f"The draws are of one quantity, shape (resamples,); got {values.shape}.")
    finite = values[np.isfinite(values)]
    if finite.size < 2:
        raise DataError(f"An interval needs at least 2 finite {what}.")
    if finite.min() == finite.max():
        raise DataError(
            f"All {finite.size} values are {finite[0]:g}: an interval of no width would pass "
            "chance for certainty. The data hold too few different units."
        )
    return finite


def _corrected(
    tails: npt.NDArray[np.float64],
    estimate: float,
    draws: npt.NDArray[np.float64],
    left_out: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Shift tail probabilities by bias and acceleration (Efron 1987, equations 2.3 and 6.6)."""
    below = np.sum(draws < estimate) + 0.5 * np.sum(draws == estimate)
    share = np.clip(below / draws.size, 0.5 / draws.size, 1 - 0.5 / draws.size)
    bias = special.ndtri(share)
    pull = left_out.mean() - left_out
    acceleration = np.sum(pull**3) / (6 * np.sum(pull**2) ** 1.5)
    moved = bias + special.ndtri(tails)
    # at 0 the correction has a pole, beyond which an upper tail would come out as a lower one
    room = np.maximum(1 - acceleration * moved, 1e-3)
    return np.asarray(special.ndtr(bias + moved / room))


def check_level(level: object) -> None:
    """Raise `DataError` unless a nominal coverage is a number between 0 and 1.

    Examples
    --------
    >>> check_level(0.95)
    """
    if not (isinstance(level, (int, float, np.floating)) and 0 < level < 1):
        raise DataError(f"level must lie between 0 and 1, for example 0.95; got {level!r}.")


def significant(value: float, digits: int = 4) -> str:
    """Write a number with `digits` significant digits, short and readable.

    Examples
    --------
    >>> significant(0.34731), significant(5.76e23), significant(2143.4)
    ('0.3473', '5.76e+23', '2143')
    """
    if not np.isfinite(value):
        return "not identified" if np.isnan(value) else f"{value:g}"
    if value != 0 and not 1e-4 <= abs(value) < 1e6:
        return f"{value:.{digits}g}"
    whole = abs(value) >= 10**digits - 0.5  # from here on, %g would switch to an exponent
    return f"{value:.0f}" if whole else f"{value:.{digits}g}"


@dataclass(frozen=True, slots=True)
class Summary:
    """A titled table with facts above and notes below, as plain text or HTML.

    Attributes
    ----------
    title : str
        First line.
    facts : sequence of (str, str)
        Label and value, one line each.
    table : DataFrame
        Cells are shown as they are: format numbers before.
    notes : sequence of str
        What the reader must know before using the numbers.
    """

    title: str
    facts: Sequence[tuple[str, str]]
    table: pd.DataFrame
    notes: Sequence[str] = ()

    def __repr__(self) -> str:
        return self.text()

    def text(self) -> str:
        """Return the summary as plain text."""
        width = max((len(label) for label, _ in self.facts), default=0)
        lines = [self.title, "=" * len(self.title)]
        lines += [f"{label:<{width}}  {value}" for label, value in self.facts]
        lines += ["", self.table.to_string()]
        if self.notes:
            lines += ["", *(f"- {note}" for note in self.notes)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        facts = "".join(
            f"<tr><th style='text-align:left'>{html.escape(label)}</th>"
            f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
            for label, value in self.facts
        )
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        return (
            f"<p><strong>{html.escape(self.title)}</strong></p><table>{facts}</table>"
            f"{self.table.to_html(border=0)}{f'<ul>{notes}</ul>' if notes else ''}"
        )
