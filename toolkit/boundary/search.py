"""The search for one boundary: starts, optimum, resamples."""

import itertools
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from toolkit.boundary.curve import attainable
from toolkit.boundary.models import Models
from toolkit.numerics.compiling import FloatArray, IntArray
from toolkit.numerics.minimise import Minima
from toolkit.numerics.pinball import Sample, minimise_pinball

__all__ = ["Found", "Search", "pinball", "weighted_quantile"]

AGREE = 1e-6  # starts whose objective is within this share of the best found the same optimum
ROUNDING = 1e-12  # of the total weight: objectives below it are rounding
FIRST_BAND = 0.5  # half-width of the first smoothing, in standard deviations of the scores
# Slope per half range of compute, and midpoint in half ranges: gentle, early and late.
FIRST_SHAPES = ((2.0, 0.0), (6.0, 0.0), (4.0, -0.5), (4.0, 0.5))
# For few rows, and where the first do not agree on a gentle curve: scores in steps, piled up at
# 0, without trend.
MORE_SHAPES = tuple(
    itertools.product((4.0, 20.0, 100.0, 300.0), (-0.95, -0.8, -0.4, 0.0, 0.4, 0.8, 0.95))
)
GENTLE = 15.0  # slope per half range
FEW_ROWS = 1000  # up to here local minima are common, and many starts cost little


@dataclass(frozen=True, slots=True)
class Found:
    """Where the search of one level ended.

    Attributes
    ----------
    params : array, shape (4,)
        base, rise, midpoint, steepness.
    best : int
        The start that ended lowest.
    objective, gap : array, shape (starts,)
        Sum of exact pinball losses at the end, and how far above a minimum it may be.
    certified, agrees : array of bool, shape (starts,)
        Whether the gap is small enough, and the end as low as the best.
    evaluations : array of int, shape (starts,)
        Evaluations of the curve.
    """

    params: FloatArray
    best: int
    objective: FloatArray
    gap: FloatArray
    certified: npt.NDArray[np.bool_]
    agrees: npt.NDArray[np.bool_]
    evaluations: IntArray


@dataclass(frozen=True, slots=True)
class Search:
    """The problem of one level tau: models, limits and, unless all compute is equal, the sample."""

    models: Models
    tau: float
    floor: float
    ceiling: float
    sample: Sample | None

    @classmethod
    def of(cls, models: Models, tau: float, floor: float, ceiling: float) -> Self:
        """Arrange the models for a level."""
        z = models.log_flops
        sample = Sample.of(z, models.scores, tau) if z[0] < z[-1] else None
        return cls(models, tau, floor, ceiling, sample)

    @property
    def tail(self) -> float:
        """Models beyond the curve: effective number times the smaller of tau and 1 - tau."""
        return self.models.effective * min(self.tau, 1 - self.tau)

    def run(self) -> Found:
        """Search from all starts."""
        y, w = self.models.scores, self.models.weights
        if self.sample is None or y.min() == y.max():
            level = weighted_quantile(y, w, self.tau)
            return self.judge(self._flat(np.clip(level, self.floor, self.ceiling)))
        found = self._minimise(FIRST_SHAPES)
        if len(y) < FEW_ROWS or not self._is_plain(found):
            more = self._minimise(MORE_SHAPES)
            pairs = zip(astuple(found), astuple(more), strict=True)
            found = Minima(*(np.concatenate(pair) for pair in pairs))
        best = int(np.argmin(found.objective))
        return Found(
            params=self._params(found.theta[best : best + 1])[0],
            best=best,
            objective=found.objective,
            gap=found.gap,
            certified=found.certified,
            agrees=found.certified & (found.objective <= self._enough(found)),
            evaluations=found.evaluations,
        )

    def judge(self, params: FloatArray) -> Found:
        """Evaluate given parameters: one start, of no certificate unless the curve is constant."""
        curve = attainable(params[None, :], self.models.log_flops)[0]
        objective = pinball(self.models.scores - curve, self.models.weights, self.tau)
        constant = bool(params[1] == 0)
        return Found(
            params=params,
            best=0,
            objective=np.array([objective]),
            gap=np.array([0.0 if constant else np.nan]),
            certified=np.array([constant]),
            agrees=np.array([True]),
            evaluations=np.array([1]),
        )

    def refit(
        self, weights: FloatArray, params: FloatArray
    ) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """Fit resamples from the optimum; parameters, shape (resamples, 4), and certificates."""
        if self.sample is None or params[1] == 0:
            levels = [weighted_quantile(self.models.scores, w, self.tau) for w in weights]
            flat = [self._flat(np.clip(level, self.floor, self.ceiling)) for level in levels]
            return np.array(flat), np.ones(len(weights), dtype=np.bool_)
        found = minimise_pinball(
            self.sample,
            weights,
            self._theta(params)[None, :],
            tau=self.tau,
            floor=self.floor,
            ceiling=self.ceiling,
        )
        return self._params(found.theta), found.certified

    def _minimise(self, shapes: Sequence[tuple[float, float]]) -> Minima:
        assert self.sample is not None
        y, w = self.models.scores, self.models.weights
        return minimise_pinball(
            self.sample,
            w[None, :],
            self._starts(shapes),
            tau=self.tau,
            floor=self.floor,
            ceiling=self.ceiling,
            band=FIRST_BAND * float(np.sqrt(np.cov(y, aweights=w))),
        )

    def _is_plain(self, found: Minima) -> bool:
        """Whether all starts agree on a curve that rises, and not in a step."""
        base, top, _, slope = found.theta[np.argmin(found.objective)]
        agree = found.certified.all() and found.objective.max() <= self._enough(found)
        return bool(agree and top - base > AGREE and slope < GENTLE)

    def _enough(self, found: Minima) -> float:
        """Objective up to which a start found the best optimum."""
        rounding = ROUNDING * float(self.models.weights.sum())
        return float(found.objective.min()) * (1 + AGREE) + rounding

    def _starts(self, shapes: Sequence[tuple[float, float]]) -> FloatArray:
        """Levels from the tau-quantiles of the outer compute, left and right of each midpoint."""
        assert self.sample is not None
        y, w = self.models.scores, self.models.weights
        x = (self.models.log_flops - self.sample.centre) / self.sample.half_range
        middles = {middle for _, middle in shapes}
        # x is sorted, so that what lies left or right of a place is a slice.
        ends = {e: int(np.searchsorted(x, e, "right")) for e in {min(m, -1 / 3) for m in middles}}
        begins = {b: int(np.searchsorted(x, b)) for b in {max(m, 1 / 3) for m in middles}}
        low = {e: weighted_quantile(y[:k], w[:k], self.tau) for e, k in ends.items()}
        high = {b: weighted_quantile(y[k:], w[k:], self.tau) for b, k in begins.items()}
        starts = []
        for slope, middle in shapes:
            base = max(low[min(middle, -1 / 3)], self.floor)
            top = max(high[max(middle, 1 / 3)], base + 0.05)
            starts.append([base, min(top, self.ceiling), -slope * middle, slope])
        return np.array(starts)

    def _flat(self, level: float) -> FloatArray:
        z = self.models.log_flops
        return np.array([level, 0.0, (z[0] + z[-1]) / 2, 0.0])

    def _params(self, theta: FloatArray) -> FloatArray:
        """Turn (base, top, logit at the centre, slope per half range) into parameters."""
        assert self.sample is not None
        base, top, logit, slope = theta.T
        flat = (slope == 0) | (top == base)
        share = 1 / (1 + np.exp(-logit))
        with np.errstate(divide="ignore", invalid="ignore"):
            midpoint = self.sample.centre - self.sample.half_range * logit / slope
        return np.column_stack(
            [
                np.where(flat, base + (top - base) * share, base),
                np.where(flat, 0.0, top - base),
                np.where(flat, self.sample.centre, midpoint),
                np.where(flat, 0.0, slope / self.sample.half_range),
            ]
        )

    def _theta(self, params: FloatArray) -> FloatArray:
        assert self.sample is not None
        base, rise, midpoint, steepness = params
        slope = steepness * self.sample.half_range
        logit = steepness * (self.sample.centre - midpoint)
        return np.array([base, base + rise, logit, slope])


def pinball(residuals: FloatArray, weights: FloatArray, tau: float) -> float:
    """Sum of weighted pinball losses of residuals, score minus curve."""
    return float(np.sum(weights * residuals * (tau - (residuals < 0))))


def weighted_quantile(values: FloatArray, weights: FloatArray, tau: float) -> float:
    """Lowest value at or below which a share tau of the weight lies: minimises the pinball loss."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    k = np.searchsorted(reached, tau * reached[-1] * (1 - 1e-12))
    return float(values[order[min(int(k), len(order) - 1)]])
