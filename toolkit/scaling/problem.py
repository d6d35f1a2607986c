"""The numerical problem behind a fit: centred logarithms, weights, bounds, loss."""

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit.errors import DataError
from toolkit.numerics.absolute import minimise_absolute
from toolkit.numerics.compiling import FloatArray
from toolkit.numerics.minimise import Minima, minimise
from toolkit.scaling.law import Law

__all__ = ["TOLERANCE", "Problem", "check_fixed"]

TOLERANCE = 1e-10  # largest gap that counts as certified, as a share of the objective
RANK_LOST = 1e-9  # a direction that counts so little beside the first has no say
CONFOUNDED = 0.01  # share of its spread that a column has for itself, below which it has none
WARM_BAND = 2.5  # first Huber band of a start near the optimum, in thresholds


@dataclass(frozen=True, slots=True)
class Problem:
    """A law, data in working coordinates and the loss.

    Attributes
    ----------
    law : Law
    target : str
        Column that the law describes.
    x : array, shape (n, d)
        Columns as the law takes them, minus the centre.
    y : array, shape (n,)
        Logarithm of the target.
    weights : array, shape (n,)
        Row weights.
    centre : array, shape (d,)
        Mean of the log columns that the law lets us centre, 0 for the others.
    lower, upper : array, shape (p,)
        Bounds in working coordinates; equal for a pinned parameter.
    loss : str
        "huber", "squared" or "absolute".
    delta : float
        Huber threshold in log loss; ``inf`` for squared, 0 for absolute loss.
    """

    law: Law
    target: str
    x: FloatArray
    y: FloatArray
    weights: FloatArray
    centre: FloatArray
    lower: FloatArray
    upper: FloatArray
    loss: str
    delta: float

    @classmethod
    def build(
        cls,
        law: Law,
        table: pd.DataFrame,
        *,
        target: str,
        weights: str | None,
        loss: str,
        delta: float,
        fixed: Mapping[str, float],
    ) -> Self:
        """Centre the columns of a checked table and pin the fixed parameters."""
        inputs = law.checked_inputs(table)
        centre = _centre(law, inputs, fixed)
        row_weights = np.ones(len(table)) if weights is None else table[weights].to_numpy(float)
        y = np.log(table[target].to_numpy(dtype=np.float64))
        lower, upper = law.working_bounds(y, centre)
        values = np.array([fixed.get(name, 1.0) for name in law.parameter_names])
        pinned = [name in fixed for name in law.parameter_names]
        lower[pinned] = upper[pinned] = law.to_working(values, centre)[pinned]
        x = inputs - centre
        return cls(law, target, x, y, row_weights, centre, lower, upper, loss, delta)

    @property
    def pinned(self) -> npt.NDArray[np.bool_]:
        """Which parameters are fixed, shape (p,)."""
        pinned: npt.NDArray[np.bool_] = self.lower == self.upper
        return pinned

    def values_of(self, theta: FloatArray) -> FloatArray:
        """Turn working coordinates, shape (..., p), into parameter values."""
        return self.law.from_working(theta, self.centre)

    def in_unit_of(self, name: str) -> Self:
        """Return the same problem in units in which one parameter is itself a coordinate.

        A coefficient is, in working coordinates, mixed with its exponent where the column is
        centred.
        """
        names = self.law.parameter_names
        fixed = {names[k] for k in np.flatnonzero(self.pinned)} | {name}
        centre = _centre(self.law, self.x + self.centre, fixed)
        lower, upper = self.law.working_bounds(self.y, centre)
        values = self.values_of(np.where(self.pinned, self.lower, 0.0))
        pinned = self.law.to_working(values, centre)
        lower[self.pinned] = upper[self.pinned] = pinned[self.pinned]
        x = self.x + self.centre - centre
        return replace(self, x=x, centre=centre, lower=lower, upper=upper)

    def own_starts(self) -> FloatArray:
        """Return the law's own starting points for these data."""
        if self.law.starts_in_values:
            values = self.law.starts(self.x + self.centre, self.y)
            return self.law.to_working(values, self.centre)
        return self.law.starts(self.x, self.y)

    def inputs(self, table: pd.DataFrame) -> FloatArray:
        """Columns of another table as the law takes them here, shape (m, d)."""
        return self.law.inputs(table) - self.centre

    def minimise(
        self,
        weights: FloatArray,
        starts: FloatArray,
        *,
        targets: FloatArray | None = None,
        near: FloatArray | None = None,
        tolerance: float = TOLERANCE,
        threads: int = 1,
    ) -> Minima:
        """Minimise for a batch of weights, targets or starts; see `toolkit.numerics.minimise`.

        `targets`, shape (batch, n), replace y; `near` is the optimum of nearly the same problem,
        when the starts are close to it.
        """
        y = self.y if targets is None else targets
        data = (self.law.model, self.x.T, y, weights, starts)
        if self.loss != "absolute":
            band = np.inf if near is None else WARM_BAND * self.delta
            return minimise(
                *data,
                lower=self.lower,
                upper=self.upper,
                delta=self.delta,
                first_band=band,
                tolerance=tolerance,
                threads=threads,
            )
        smoothing = None
        if near is not None:
            smoothing = 0.1 * float(np.mean(np.abs(self.residuals(near)))) + 1e-12
        band = np.inf if smoothing is None else WARM_BAND * smoothing
        return minimise_absolute(
            *data,
            lower=self.lower,
            upper=self.upper,
            smoothing=smoothing,
            first_band=band,
            tolerance=tolerance,
            threads=threads,
        )

    def residuals(self, theta: FloatArray) -> FloatArray:
        """Log of predicted over observed loss, shape (n,)."""
        return self.law.evaluate_working(theta, self.x)[0] - self.y

    def leverage(self, theta: FloatArray) -> FloatArray:
        """Share of each row's error that the fit follows, from 0 to 1, shape (n,)."""
        basis = _column_space(self._weighted_jacobian(theta, self._moving(theta)))
        return np.asarray(np.sum(basis**2, axis=1))

    def own_direction(self, theta: FloatArray, k: int) -> FloatArray:
        """Return the unit vector of what only parameter k can do, shape (n,).

        Its column of the weighted Jacobian after regression on the others; where they can do
        all of it, the column itself.
        """
        others = self._moving(theta)
        others[k] = False
        basis = _column_space(self._weighted_jacobian(theta, others))
        column = self._weighted_jacobian(theta, np.arange(theta.size) == k)[:, 0]
        own = column - basis @ (basis.T @ column)
        if np.linalg.norm(own) < RANK_LOST * np.linalg.norm(column):
            own = column
        return np.asarray(own / (np.linalg.norm(own) or 1.0))

    def _moving(self, theta: FloatArray) -> npt.NDArray[np.bool_]:
        moving: npt.NDArray[np.bool_] = ~(self.pinned | self.on_bound(theta))
        return moving

    def _weighted_jacobian(self, theta: FloatArray, columns: npt.NDArray[np.bool_]) -> FloatArray:
        jacobian = self.law.evaluate_working(theta, self.x)[1]
        return np.asarray(np.sqrt(self.weights)[:, None] * jacobian[:, columns])

    def hessian(self, theta: FloatArray) -> FloatArray:
        """Curvature of the objective near theta, shape (p, p).

        Residuals within the Huber threshold, and for absolute loss the p smallest, count as a
        parabola; the second-order term comes from differences of the Jacobian.
        """
        value, jacobian = self.law.evaluate_working(theta, self.x)
        r = value - self.y
        delta = self.delta or float(np.sort(np.abs(r))[theta.size - 1]) + 1e-300
        slope = 1.0 if self.delta else 1.0 / delta
        score = slope * self.weights * np.clip(r, -delta, delta)
        inside = np.abs(r) <= delta
        hessian = slope * jacobian[inside].T @ (self.weights[inside, None] * jacobian[inside])
        for a in range(theta.size):
            step = np.zeros(theta.size)
            step[a] = 1e-5 * max(abs(theta[a]), 1.0)
            ahead = self.law.evaluate_working(theta + step, self.x)[1]
            behind = self.law.evaluate_working(theta - step, self.x)[1]
            hessian[a] += score @ (ahead - behind) / (2 * step[a])
        return 0.5 * (hessian + hessian.T)

    @property
    def confounded_columns(self) -> list[tuple[str, str]]:
        """Pairs of columns of which one is a power of the other here, with free exponents both."""
        names = np.array(self.law.parameter_names)
        pinned = set(names[self.pinned])
        scaled = [p.scales for p in self.law.parameters if p.scales is not None]
        columns = {column for column, exponent in scaled if exponent not in pinned}
        kept = [k for k, name in enumerate(self.law.columns) if name in columns]
        return [
            (self.law.columns[j], self.law.columns[k])
            for j, k in itertools.combinations(kept, 2)
            if _correlated(self.x[:, j], self.x[:, k])
        ]

    @property
    def confounded(self) -> npt.NDArray[np.bool_]:
        """Which parameters belong to terms that cannot be told apart, shape (p,).

        Coefficients of such terms, and their exponents unless they share one.
        """
        lost: set[str] = set()
        for pair in self.confounded_columns:
            terms = [p for p in self.law.parameters if p.scales and p.scales[0] in pair]
            lost |= {p.name for p in terms}
            exponents = {p.scales[1] for p in terms if p.scales}
            lost |= exponents if len(exponents) > 1 else set()
        return np.array([name in lost for name in self.law.parameter_names]) & ~self.pinned

    def on_bound(self, theta: FloatArray) -> npt.NDArray[np.bool_]:
        """Tell which parameters sit on a bound or shape only terms that vanished, shape (p,)."""
        reached = (theta <= self.lower) | (theta >= self.upper)
        held: npt.NDArray[np.bool_] = reached & ~self.pinned
        vanished = held & (theta <= self.lower)
        for k, exponent in enumerate(self.law.parameter_names):
            terms = [p.scales is not None and p.scales[1] == exponent for p in self.law.parameters]
            held[k] |= any(terms) and bool(vanished[terms].all())
        return held & ~self.pinned


def _centre(law: Law, inputs: FloatArray, fixed: Collection[str]) -> FloatArray:
    """Mean of each column that may be centred.

    A pinned coefficient whose exponent is free has a constant logarithm only in the column's own
    unit; pinned, it forms no ridge with its exponent, so that nothing is lost by that unit.
    """
    centre = np.where(law.centred, inputs.mean(axis=0), 0.0)
    for parameter in law.parameters:
        if parameter.name in fixed and parameter.scales is not None:
            column, exponent = parameter.scales
            if exponent not in fixed:
                centre[law.columns.index(column)] = 0.0
    return centre


def _column_space(matrix: FloatArray) -> FloatArray:
    """Orthonormal basis of the columns, shape (n, rank)."""
    length = np.linalg.norm(matrix, axis=0)
    basis, size, _ = np.linalg.svd(matrix / np.where(length > 0, length, 1.0), full_matrices=False)
    return np.asarray(basis[:, size > RANK_LOST * size.max(initial=0.0)])


def _correlated(u: FloatArray, v: FloatArray) -> bool:
    """Whether one column follows from the other by a straight line."""
    return bool(np.corrcoef(u, v)[0, 1] ** 2 > 1 - CONFOUNDED**2)


def check_fixed(law: Law, fixed: Mapping[str, float] | None) -> dict[str, float]:
    """Check pinned values: known parameters, allowed values, something left to fit."""
    pinned = dict(fixed or {})
    unknown = sorted(pinned.keys() - set(law.parameter_names), key=str)
    if unknown:
        raise DataError(
            f"fixed: the {law.title} has no {', '.join(map(str, unknown))}; its parameters are "
            f"{', '.join(law.parameter_names)}."
        )
    if len(pinned) == len(law.parameters):
        raise DataError("fixed: all parameters are pinned; leave at least one free.")
    for parameter in law.parameters:
        if parameter.name in pinned:
            pinned[parameter.name] = parameter.check(pinned[parameter.name])
    return pinned
