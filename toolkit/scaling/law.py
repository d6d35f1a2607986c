"""What a scaling law is: an equation, parameters with meaning, a kernel, starts and presets."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit import tables
from toolkit.errors import DataError, ExtrapolationWarning
from toolkit.numerics.compiling import FloatArray, compile_once
from toolkit.numerics.minimise import MODEL_SIGNATURE

__all__ = ["Law", "Parameter", "Preset"]

ROUNDING = 1e-9  # of a logarithm


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a law.

    Attributes
    ----------
    name, meaning, unit : str
        Symbol, what it says, unit of its value.
    positive : bool
        Whether the fit works on its logarithm.
    lower, upper : float
        Bounds of the value. A positive parameter without a lower bound is a term of the loss,
        which may vanish.
    scales : tuple of (column, exponent), optional
        Set for a coefficient that multiplies ``column ** -exponent``: with it, a fit can use
        any unit of the column and turn the result back.
    unit_of : str, optional
        Set for a positive parameter that is compared with a column, for the same reason: its
        value is in the unit of that column.
    """

    name: str
    meaning: str
    unit: str
    positive: bool = False
    lower: float = -np.inf
    upper: float = np.inf
    scales: tuple[str, str] | None = None
    unit_of: str | None = None

    def check(self, value: Any) -> Any:
        """Return a value, or an array of them, as it is; raise `DataError` out of bounds."""
        numbers = np.asarray(value, dtype=np.float64)
        # a fit on a bound returns its exponential of its logarithm, which may miss the last digit
        lower, upper = (b - s * ROUNDING * abs(b) for b, s in ((self.lower, 1), (self.upper, -1)))
        wrong = ~np.isfinite(numbers) | (numbers < lower) | (numbers > upper)
        if np.any(wrong | (self.positive & (numbers <= 0))):
            raise DataError(f"Parameter {self.name} must be finite and {self._allowed}.")
        return value

    @property
    def _allowed(self) -> str:
        if np.isfinite([self.lower, self.upper]).any():
            return f"from {self.lower:g} to {self.upper:g}"
        return "positive" if self.positive else "real"


@dataclass(frozen=True, slots=True)
class Preset:
    """Published values of a law's parameters.

    Attributes
    ----------
    values : mapping of parameter name to value
    source : str
        Paper, and where in it.
    rounded : bool
        Whether the values were rounded for print. Rounding can move an answer a lot: at the
        compute of Chinchilla it turns 59 tokens per parameter into 93.
    fit_range : mapping of column to (lowest, highest)
        Range of the runs behind the values.
    """

    values: Mapping[str, float]
    source: str
    rounded: bool
    fit_range: Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Law:
    """A scaling law: loss as a function of the columns of a table of runs.

    Attributes
    ----------
    name, title : str
        Short name for `fit`, and how to call it in text.
    formula : str
        The equation in plain text, in the names of the parameters and columns.
    equation : str
        The same in LaTeX, in the symbols of the literature.
    reference : str
        Where it was proposed.
    columns : tuple of str
        Columns it needs: out of `toolkit.tables.COLUMNS`, or any column of positive numbers.
    parameters : tuple of Parameter
    model : kernel
        Log loss and its Jacobian in working coordinates (logarithms of the positive parameters)
        as a function of the logarithms of the columns (fractions as they are); see
        `toolkit.numerics.minimise`.
    starts : callable
        ``starts(x, y)`` gives starting points, shape (starts, p), in working coordinates, from
        columns x (n, d), centred where `centred` says so, and log losses y (n,).
    starts_in_values : bool
        Whether `starts` takes the columns uncentred and gives values instead.
    absolute : tuple of str
        Columns that the equation needs in their own unit. The others can be centred: a change
        of their unit is a change of the parameters that scale with them.
    presets : mapping of name to Preset
    allocate : callable, optional
        ``allocate(values (..., p), budget)`` gives the columns that minimise the loss where
        their product is `budget`.
    """

    name: str
    title: str
    formula: str
    equation: str
    reference: str
    columns: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    model: Any = field(repr=False)
    starts: Callable[[FloatArray, FloatArray], FloatArray] = field(repr=False)
    starts_in_values: bool = field(default=False, repr=False, kw_only=True)
    absolute: tuple[str, ...] = ()
    presets: Mapping[str, Preset] = field(default_factory=dict, repr=False)
    allocate: Callable[[FloatArray, FloatArray], tuple[FloatArray, ...]] | None = field(
        default=None, repr=False
    )

    @property
    def parameter_names(self) -> list[str]:
        """Names of the parameters, in the order of every array."""
        return [parameter.name for parameter in self.parameters]

    def values(
        self, params: str | Mapping[str, float] | Sequence[float] | FloatArray
    ) -> FloatArray:
        """Return parameter values as an array in the law's order.

        Parameters
        ----------
        params : str, mapping or sequence
            Name of a preset, values by name, or values in order, shape (..., p).

        Raises
        ------
        DataError
            If a preset or parameter is unknown, one is missing, or a value is out of bounds.

        Examples
        --------
        >>> from toolkit.scaling import laws
        >>> laws.CHINCHILLA.values("hoffmann2022").tolist()
        [406.4, 410.7, 1.69, 0.34, 0.28]
        """
        names = self.parameter_names
        if isinstance(params, str):
            if params not in self.presets:
                raise DataError(
                    f"The {self.title} has no preset {params!r}; it has {', '.join(self.presets)}."
                )
            params = self.presets[params].values
        if isinstance(params, (Mapping, pd.Series)):
            params = dict(params)
            unknown = sorted(params.keys() ^ set(names), key=str)
            if unknown:
                raise DataError(
                    f"The {self.title} has the parameters {', '.join(names)}; "
                    f"missing or unknown here: {', '.join(map(str, unknown))}."
                )
            params = [params[name] for name in names]
        values = np.asarray(params, dtype=np.float64)
        if values.shape[-1:] != (len(names),):
            raise DataError(f"{len(names)} values are needed ({', '.join(names)}).")
        for k, parameter in enumerate(self.parameters):
            parameter.check(values[..., k])
        return values

    def predict(
        self,
        params: str | Mapping[str, float] | Sequence[float] | FloatArray,
        table: pd.DataFrame | Mapping[str, npt.ArrayLike],
    ) -> FloatArray:
        """Loss that the law gives, in nats per token.

        Parameters
        ----------
        params : str, mapping or sequence
            See `values`.
        table : DataFrame or mapping
            The law's columns, n rows.

        Returns
        -------
        array, shape (n,)

        Warns
        -----
        ExtrapolationWarning
            If `params` names a preset and a row lies outside the range of its runs.

        Examples
        --------
        >>> from toolkit.scaling import laws
        >>> point = {"params": [7e9], "tokens": [1.4e11]}
        >>> round(float(laws.CHINCHILLA.predict("hoffmann2022", point)[0]), 4)
        2.1835
        """
        values, x = self.values(params), self.inputs(table)
        if isinstance(params, str):
            self._warn_outside(params, x)
        return np.exp(self._evaluate(values, x)[0])

    def gradient(
        self,
        params: str | Mapping[str, float] | Sequence[float] | FloatArray,
        table: pd.DataFrame | Mapping[str, npt.ArrayLike],
    ) -> FloatArray:
        """Return the derivative of the loss by each parameter, shape (n, p)."""
        values = self.values(params)
        log_loss, jacobian = self._evaluate(values, self.inputs(table))
        inner = np.where([p.positive for p in self.parameters], 1 / values, 1.0)
        return np.exp(log_loss)[:, None] * jacobian * inner

    def inputs(self, table: pd.DataFrame | Mapping[str, npt.ArrayLike]) -> FloatArray:
        """Columns of a table as the kernel takes them, checked, shape (n, d).

        Logarithms; fractions, which may be zero, stay as they are.
        """
        if isinstance(table, Mapping):
            table = {name: np.atleast_1d(np.asarray(v)) for name, v in table.items()}
        return self.checked_inputs(tables.check(table, self.columns))

    def checked_inputs(self, table: pd.DataFrame) -> FloatArray:
        """Columns as the kernel takes them, of a table that `tables.check` has returned."""
        columns = [
            _as_input(table[name] if name in tables.COLUMNS else _number(table, name))
            for name in self.columns
        ]
        return np.column_stack(columns)

    @property
    def centred(self) -> npt.NDArray[np.bool_]:
        """Which columns a fit may centre, shape (d,)."""
        scaled = {p.scales[0] for p in self.parameters if p.scales is not None}
        scaled |= {p.unit_of for p in self.parameters if p.unit_of is not None}
        return np.array([name in scaled - set(self.absolute) for name in self.columns])

    def evaluate_working(self, theta: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log loss (n,) and Jacobian (n, p) in working coordinates at log columns x."""
        compile_once(self.model, MODEL_SIGNATURE)
        value, jacobian = np.empty(len(x)), np.empty((len(self.parameters), len(x)))
        self.model(np.ascontiguousarray(theta), np.ascontiguousarray(x.T), value, jacobian)
        return value, jacobian.T

    def _evaluate(self, values: FloatArray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.evaluate_working(self.to_working(values, np.zeros(x.shape[1])), x)

    def _warn_outside(self, preset: str, x: FloatArray) -> None:
        for name, (lowest, highest) in self.presets[preset].fit_range.items():
            column = x[:, self.columns.index(name)]
            low, high = _as_input(pd.Series([lowest, highest], name=name))
            if np.any((column < low - ROUNDING) | (column > high + ROUNDING)):
                warnings.warn(
                    f"The runs behind {preset!r} have {name} from {lowest:g} to {highest:g}; "
                    "outside, the law is extrapolated.",
                    ExtrapolationWarning,
                    stacklevel=3,
                )

    def to_working(self, values: FloatArray, centre: FloatArray) -> FloatArray:
        """Turn values, shape (..., p), into working coordinates for columns centred so.

        Working in units where the mean log column is zero takes the ridge between a coefficient
        and its exponent out of the problem; the law itself is the same in any unit.
        """
        theta = values.astype(np.float64, copy=True)
        for k, parameter in enumerate(self.parameters):
            if parameter.positive:
                theta[..., k] = np.log(values[..., k]) - self._shift(parameter, values, centre)
        return theta

    def from_working(self, theta: FloatArray, centre: FloatArray) -> FloatArray:
        """Turn working coordinates, shape (..., p), back into values."""
        values = theta.copy()
        for k, parameter in enumerate(self.parameters):
            if parameter.positive:
                values[..., k] = np.exp(theta[..., k] + self._shift(parameter, theta, centre))
        return values

    def unit_change(self, centre: FloatArray) -> FloatArray:
        """Return the matrix, shape (p, p), from working coordinates to those of ``centre = 0``.

        Parameters in the unit of a column move by a constant besides.
        """
        change = np.eye(len(self.parameters))
        for k, parameter in enumerate(self.parameters):
            if parameter.scales is not None:
                column, exponent = parameter.scales
                change[k, self.parameter_names.index(exponent)] = centre[self.columns.index(column)]
        return change

    def _shift(self, parameter: Parameter, array: FloatArray, centre: FloatArray) -> FloatArray:
        shift: FloatArray = np.zeros(array.shape[:-1])
        if parameter.scales is not None:
            column, exponent = parameter.scales
            k = self.parameter_names.index(exponent)
            shift = array[..., k] * centre[self.columns.index(column)]
        if parameter.unit_of is not None:
            shift = shift + centre[self.columns.index(parameter.unit_of)]
        return shift

    def working_bounds(self, y: FloatArray, centre: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Bounds in working coordinates for log losses y, each of shape (p,).

        A term may vanish, but not further than a millionth of the smallest loss: below that it
        is zero for every purpose, and the fit reports it as sitting on its bound.
        """
        lower, upper = np.array([(p.lower, p.upper) for p in self.parameters]).T
        vanishing = np.min(y) + np.log(1e-6)
        for k, parameter in enumerate(self.parameters):
            if parameter.positive:
                shift = 0.0
                if parameter.unit_of is not None:
                    shift = centre[self.columns.index(parameter.unit_of)]
                lower[k] = np.log(lower[k]) - shift if lower[k] > 0 else vanishing
                upper[k] = np.log(upper[k]) - shift
        return lower, upper


def _number(table: pd.DataFrame, name: str) -> pd.Series:
    return tables.check_positive(table[name], name)


def _as_input(values: pd.Series) -> FloatArray:
    numbers: FloatArray = values.to_numpy(dtype=np.float64)
    column = tables.COLUMNS.get(str(values.name))
    return numbers if column is not None and column.kind == "fraction" else np.log(numbers)
