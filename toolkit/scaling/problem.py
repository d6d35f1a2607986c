"""The numerical problem behind a fit: centred logarithms, weights, bounds, loss."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit.numerics.absolute import minimise_absolute
from toolkit.numerics.compiling import FloatArray
from toolkit.numerics.minimise import Minima, minimise
from toolkit.scaling.law import Law

__all__ = ["TOLERANCE", "Problem"]

TOLERANCE = 1e-10  # largest gap that counts as certified, as a share of the objective
WARM_BAND = 2.5  # first Huber band of a start near the optimum, in thresholds


@dataclass(frozen=True, slots=True)
class Problem:
    """A law, data in working coordinates and the loss.

    Attributes
    ----------
    law : Law
    x : array, shape (n, d)
        Log columns minus their mean.
    y : array, shape (n,)
        Log loss.
    weights : array, shape (n,)
        Row weights.
    centre : array, shape (d,)
        Mean of the log columns.
    loss : str
        "huber", "squared" or "absolute".
    delta : float
        Huber threshold in log loss; ``inf`` for squared, 0 for absolute loss.
    """

    law: Law
    x: FloatArray
    y: FloatArray
    weights: FloatArray
    centre: FloatArray
    loss: str
    delta: float

    @classmethod
    def build(
        cls, law: Law, table: pd.DataFrame, weights: str | None, loss: str, delta: float
    ) -> Self:
        """Centre the columns of a checked table."""
        logs = np.log(table[list(law.columns)].to_numpy(dtype=np.float64))
        centre = logs.mean(axis=0)
        row_weights = np.ones(len(table)) if weights is None else table[weights].to_numpy(float)
        y = np.log(table["loss"].to_numpy(dtype=np.float64))
        return cls(law, logs - centre, y, row_weights, centre, loss, delta)

    def own_starts(self) -> FloatArray:
        """Return the law's own starting points for these data."""
        return self.law.starts(self.x, self.y)

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
        lower, upper = self.law.working_bounds(self.y)
        data = (self.law.model, self.x.T, self.y, weights, starts)
        if self.loss != "absolute":
            band = np.inf if near is None else WARM_BAND * self.delta
            return minimise(
                *data,
                lower=lower,
                upper=upper,
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
            lower=lower,
            upper=upper,
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
        lower, upper = self.law.working_bounds(self.y)
        held: npt.NDArray[np.bool_] = (theta <= lower) | (theta >= upper)
        for k, parameter in enumerate(self.law.parameters):
            if parameter.scales is not None and theta[k] <= lower[k]:
                held[self.law.parameter_names.index(parameter.scales[1])] = True
        return held
