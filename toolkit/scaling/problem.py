"""The numerical problem behind a fit: centred logarithms, weights, bounds, loss."""

from collections.abc import Mapping
from dataclasses import dataclass
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
        inputs = law.inputs(table)
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

    def own_starts(self) -> FloatArray:
        """Return the law's own starting points for these data."""
        return self.law.starts(self.x, self.y)

    def inputs(self, table: pd.DataFrame) -> FloatArray:
        """Columns of another table as the law takes them here, shape (m, d)."""
        return self.law.inputs(table) - self.centre

    def minimise(
        self,
        weights: FloatArray,
        starts: FloatArray,
        *,
        near: FloatArray | None = None,
        tolerance: float = TOLERANCE,
        threads: int = 1,
    ) -> Minima:
        """Minimise for a batch of weights or starts; see `toolkit.numerics.minimise`.

        `near` is the optimum of nearly the same problem, when the starts are close to it.
        """
        data = (self.law.model, self.x.T, self.y, weights, starts)
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

    def on_bound(self, theta: FloatArray) -> npt.NDArray[np.bool_]:
        """Tell which parameters sit on a bound or shape a term that has vanished, shape (p,)."""
        reached = (theta <= self.lower) | (theta >= self.upper)
        held: npt.NDArray[np.bool_] = reached & ~self.pinned
        for k, parameter in enumerate(self.law.parameters):
            if parameter.scales is not None and held[k] and theta[k] <= self.lower[k]:
                held[self.law.parameter_names.index(parameter.scales[1])] = True
        return held & ~self.pinned


def _centre(law: Law, inputs: FloatArray, fixed: Mapping[str, float]) -> FloatArray:
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
