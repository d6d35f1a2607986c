"""A law of one's own: a plain Python function of columns and parameters, compiled for the fit."""

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import float64

from toolkit import tables
from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray
from toolkit.numerics.minimise import MODEL_SIGNATURE
from toolkit.scaling.law import Law, Parameter
from toolkit.scaling.laws.own_kernels import (
    compile_for,
    model_by_differences,
    model_by_gradient,
    scalar_kernel,
)
from toolkit.scaling.laws.starts import spread
from toolkit.scaling.laws.units import Unit, unit_changes

__all__ = ["own_law"]

STEP = 2e-6  # of the differences; their error is near 4e-10 even where log columns reach 30
AROUND = 10.0  # a positive guess stands for a range from a tenth to ten times its value
BEYOND = 1e6  # how far, as a factor, a positive parameter may leave its range
STARTS, TRIED = 64, 12  # drawn from the ranges; followed, those that begin nearest to the data
WRONG = 1e-4  # largest error of the user's gradient, as a share of the loss

Range = float | tuple[float, float]


@dataclass(frozen=True, slots=True)
class _Search:
    """Where to look for one parameter.

    Attributes
    ----------
    name : str
    low, high : float
        Range of the starts; ends included.
    positive : bool
        Whether the fit works on the logarithm.
    bounded : bool
        Whether the value is positive.
    """

    name: str
    low: float
    high: float
    positive: bool
    bounded: bool

    @classmethod
    def of(cls, name: str, given: Any, real: bool) -> "_Search":
        """Read a guess or a range."""
        try:
            ends = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            ends = np.array(np.nan)
        if ends.shape not in {(), (2,)} or not np.isfinite(ends).all():
            raise DataError(f"parameters: {name} needs a guess or a range (low, high), not {given}")
        if ends.shape == (2,):
            if not ends[0] < ends[1]:
                raise DataError(f"parameters: the range of {name} must be (low, high), not {given}")
            positive = bool(ends[0] > 0) and not real
            return cls(name, float(ends[0]), float(ends[1]), positive, positive)
        guess = float(ends)
        if guess > 0 and not real:
            return cls(name, guess / AROUND, guess * AROUND, True, True)
        reach = max(abs(guess), 1.0)
        return cls(name, guess - reach, guess + reach, False, False)

    @property
    def working(self) -> tuple[float, float]:
        """The range in working coordinates."""
        ends = (self.low, self.high)
        return (float(np.log(self.low)), float(np.log(self.high))) if self.positive else ends

    @property
    def step(self) -> float:
        """Step of the differences in working coordinates."""
        return STEP if self.positive else STEP * (self.high - self.low)

    def parameter(self) -> Parameter:
        """State the parameter, without regard to units of columns."""
        meaning = f"searched from {self.low:g} to {self.high:g}"
        if not self.bounded:
            return Parameter(self.name, meaning, "not stated")
        lower, upper = self.low / BEYOND, self.high * BEYOND
        return Parameter(self.name, meaning, "not stated", self.positive, lower, upper)


def own_law(
    function: Callable[..., float],
    parameters: Mapping[str, Range],
    *,
    columns: Mapping[str, str] | None = None,
    real: Collection[str] = (),
    gradient: Callable[..., Sequence[float]] | None = None,
    name: str | None = None,
) -> Law:
    """Make a law of a plain function, to be fitted like those of the catalogue.

    The function is compiled with numba (about a second, each time the law is made). It sees one
    run at a time: numbers, not arrays.

    Parameters
    ----------
    function : callable
        Loss (or other positive target) of one run, in the unit of the target, from columns and
        parameters in any order: ``loss(params, tokens, A, B, E, alpha, beta)``. Allowed is
        arithmetic, ``if``, and what numba knows of ``math`` and ``numpy``.
    parameters : mapping of name to guess or (low, high)
        Which arguments are parameters, and where the search begins. A guess stands for a range
        from a tenth to ten times its value, or, if it is not positive, from 1 (or its size) below
        to as much above. A parameter with a positive range is positive, and may go a million
        times beyond it; others are free.
    columns : mapping of argument to column, optional
        Names of the columns where they differ from those of the arguments.
    real : collection of str
        Parameters that may be negative although their range is positive.
    gradient : callable, optional
        Derivatives of the function by the parameters, in the order of `parameters`, from the same
        arguments. Checked against differences when the law is fitted. Without it, derivatives
        are central differences.
    name : str, optional
        Short name; that of the function when missing.

    Returns
    -------
    Law

    Raises
    ------
    DataError
        If a parameter is not an argument, a range is no range, or numba cannot compile the
        function; in a fit, if the function is not positive and finite at any start, or the
        gradient is wrong.

    Examples
    --------
    >>> import toolkit as tk
    >>> def loss(params, tokens, A, B, E, alpha, beta):
    ...     return E + A / params**alpha + B / tokens**beta
    >>> law = tk.scaling.own_law(
    ...     loss, {"A": 400, "B": 400, "E": (0.5, 3), "alpha": (0.1, 0.9), "beta": (0.1, 0.9)}
    ... )
    >>> fit = tk.scaling.fit(law, tk.datasets.load("simulated_runs"))
    >>> bool(fit.certified), round(float(fit.params["alpha"]), 2)
    (True, 0.36)
    """
    arguments = _arguments(function)
    _check_names(arguments, parameters, real)
    inputs = [argument for argument in arguments if argument not in parameters]
    names = tuple((columns or {}).get(argument, argument) for argument in inputs)
    _check_columns(columns or {}, inputs, names)
    searches = [_Search.of(n, given, n in real) for n, given in parameters.items()]
    order = [*inputs, *parameters]
    place = np.array([order.index(argument) for argument in arguments])
    fraction = np.array([_is_fraction(column) for column in names])
    loss_of = scalar_kernel(function)
    compile_for(loss_of, float64(*[float64] * len(place)), function)
    units = _units(loss_of, searches, place, fraction)
    for unit in units:
        if unit.exponent is not None:  # its value itself appears in the change of unit
            searches[unit.exponent] = replace(searches[unit.exponent], positive=False)
    positive = np.array([search.positive for search in searches])
    step = np.array([search.step for search in searches])
    by_differences = model_by_differences(loss_of, place, fraction, positive, step)
    compile_for(by_differences, MODEL_SIGNATURE, function)
    model = by_differences
    if gradient is not None:
        model = model_by_gradient(loss_of, scalar_kernel(gradient), place, fraction, positive)
        compile_for(model, MODEL_SIGNATURE, gradient)
    title = name or function.__name__
    return Law(
        name=title,
        title=f"own law {title}",
        formula=f"loss = {title}({', '.join(arguments)})",
        equation=rf"L = \mathrm{{{title}}}({', '.join(names)})".replace("_", r"\_"),
        reference="the user's own function",
        columns=names,
        parameters=_parameters(searches, names, units),
        model=model,
        starts=_Starts(searches, names, model, by_differences),
        starts_in_values=True,
    )


def _parameters(
    searches: list[_Search], columns: tuple[str, ...], units: list[Unit]
) -> tuple[Parameter, ...]:
    parameters = [search.parameter() for search in searches]
    for unit in units:
        column, k = columns[unit.column], unit.parameter
        if unit.exponent is None:
            parameters[k] = replace(parameters[k], unit_of=column)
        else:  # a bound would be for one unit of the column only
            scales = (column, searches[unit.exponent].name)
            parameters[k] = replace(parameters[k], lower=-np.inf, upper=np.inf, scales=scales)
    return tuple(parameters)


def _units(
    loss_of: Any,
    searches: list[_Search],
    place: npt.NDArray[np.int64],
    fraction: npt.NDArray[np.bool_],
) -> list[Unit]:
    """Find which parameters absorb the unit of a column; fractions have none."""

    def loss(x: FloatArray, values: FloatArray) -> float:
        columns = np.where(fraction, np.minimum(x / 1e14, 0.9), x)
        try:
            return float(loss_of(*np.concatenate([columns, values])[place]))
        except Exception:  # whatever the user's function raises says that it is not defined here
            return np.nan

    ranges = [search.working for search in searches]
    found = unit_changes(loss, ranges, [s.positive for s in searches], len(fraction))
    return [unit for unit in found if not fraction[unit.column]]


def _arguments(function: Callable[..., float]) -> list[str]:
    try:
        given = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise DataError(
            "own_law needs a plain Python function written with def or lambda."
        ) from None
    if any(a.kind is not a.POSITIONAL_OR_KEYWORD or a.default is not a.empty for a in given):
        raise DataError(
            "own_law: the function needs plain arguments, without defaults, *args or **kwargs."
        )
    return [argument.name for argument in given]


def _check_names(
    arguments: list[str], parameters: Mapping[str, Range], real: Collection[str]
) -> None:
    shown = ", ".join(arguments)
    for wrong in [*(n for n in parameters if n not in arguments)]:
        raise DataError(f"parameters: {wrong} is not an argument of the function ({shown}).")
    for wrong in [*(n for n in real if n not in parameters)]:
        raise DataError(f"real: {wrong} is not among the parameters ({', '.join(parameters)}).")
    if not parameters or len(parameters) == len(arguments):
        raise DataError(
            f"own_law: of the arguments {shown}, {len(parameters)} are parameters; the others are "
            "columns, and there must be at least one of each."
        )


def _check_columns(columns: Mapping[str, str], inputs: list[str], names: tuple[str, ...]) -> None:
    unknown = sorted(columns.keys() - set(inputs))
    if unknown:
        raise DataError(
            f"columns: {', '.join(unknown)} is not among the arguments that are columns "
            f"({', '.join(inputs)})."
        )
    if len(set(names)) < len(names):
        raise DataError(f"columns: two arguments stand for one column ({', '.join(names)}).")


def _is_fraction(column: str) -> bool:
    return column in tables.COLUMNS and tables.COLUMNS[column].kind == "fraction"


@dataclass(frozen=True, slots=True)
class _Starts:
    """Starting points from the ranges, without those where the function is not a positive number.

    Attributes
    ----------
    searches : list of _Search
    columns : tuple of str
    model, by_differences : kernel
        The model of the fit, and the same with a Jacobian by differences.
    """

    searches: list[_Search]
    columns: tuple[str, ...]
    model: Any
    by_differences: Any

    def __call__(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Values to start from: of a Halton sequence in the ranges those nearest to the data."""
        ranges = [search.working for search in self.searches]
        middle = np.mean(ranges, axis=1)
        points = np.ascontiguousarray(np.vstack([middle, spread(ranges, STARTS - 1)]))
        inputs = np.ascontiguousarray(x.T)
        misfit = np.array([self._misfit(theta, inputs, y) for theta in points])
        if not np.isfinite(misfit).any():
            raise DataError(self._nowhere(points[0], inputs))
        order = np.argsort(misfit, kind="stable")[:TRIED]
        points = points[order[np.isfinite(misfit[order])]]
        if self.model is not self.by_differences:
            self._check_gradient(points[0], inputs)
        values: FloatArray = np.where([s.positive for s in self.searches], np.exp(points), points)
        return values

    def _evaluate(
        self, model: Any, theta: FloatArray, inputs: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Log loss and Jacobian; not a number where the function raises an exception."""
        value = np.full(inputs.shape[1], np.nan)
        jacobian = np.full((theta.size, value.size), np.nan)
        try:
            model(theta, inputs, value, jacobian)
        except Exception:  # whatever the user's function raises says that it is not defined here
            value[:] = np.nan
        return value, jacobian

    def _misfit(self, theta: FloatArray, inputs: FloatArray, y: FloatArray) -> float:
        value, jacobian = self._evaluate(self.by_differences, theta, inputs)
        misfit = float(np.mean(np.abs(value - y)))
        return misfit if np.isfinite(jacobian).all() else np.nan

    def _nowhere(self, theta: FloatArray, inputs: FloatArray) -> str:
        row = int(np.argmin(np.isfinite(self._evaluate(self.by_differences, theta, inputs)[0])))
        at = [
            f"{s.name}={np.exp(t) if s.positive else t:.4g}"
            for s, t in zip(self.searches, theta, strict=True)
        ]
        at += [
            f"{c}={v if _is_fraction(c) else np.exp(v):.4g}"
            for c, v in zip(self.columns, inputs[:, row], strict=True)
        ]
        return (
            f"own law: the function is not positive and finite on every row at any of {STARTS} "
            f"starts; for example not at {', '.join(at)} (row {row}). Give other ranges, or change "
            "the function so that it is defined there."
        )

    def _check_gradient(self, theta: FloatArray, inputs: FloatArray) -> None:
        expected = self._evaluate(self.by_differences, theta, inputs)[1]
        given = self._evaluate(self.model, theta, inputs)[1]
        for k, search in enumerate(self.searches):
            error = np.abs(given[k] - expected[k])
            if not np.all(error <= WRONG * max(1.0, float(np.abs(expected[k]).max()))):
                row = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
                raise DataError(
                    f"own law: the gradient by {search.name} is wrong: in row {row} it says "
                    f"{given[k, row]:.4g} of the loss where differences of the function give "
                    f"{expected[k, row]:.4g}. It must return the derivatives by "
                    f"{', '.join(s.name for s in self.searches)}, in this order."
                )
