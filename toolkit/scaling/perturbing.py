"""Bootstraps that keep every run and draw its error anew: residual and wild.

A resample of pairs leaves a third of the runs out. Where each run holds a place in the design that
no other fills, or where there are few, the runs stay and new losses are made: the fitted curve
times the exponential of a residual. Sources: Davison and Hinkley 1997, section 6.2.3 (residual);
Wu 1986, Annals of Statistics 14, and Liu 1988, Annals of Statistics 16 (wild); Cameron, Gelbach
and Miller 2008, Review of Economics and Statistics 90 (wild, by cluster); Webb 2023, Canadian
Journal of Economics 56 (six sizes instead of two signs where clusters are few).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import pandas as pd

from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray, IntArray
from toolkit.resampling import block_height, check_resamples
from toolkit.scaling.problem import Problem

__all__ = ["Perturbation"]

LEAST_FREEDOM = 0.01  # of a run's own residual that the fit leaves it; less is not blown up more
SIGNS = np.array([-1.0, 1.0])
# Few units have few combinations of signs; six sizes with the same mean and variance have more.
WEBB_SIGNS = np.sqrt([0.5, 1.0, 1.5, 0.5, 1.0, 1.5]) * np.repeat([-1.0, 1.0], 3)
WEBB_BELOW = 12  # units


@dataclass(frozen=True, slots=True)
class Perturbation:
    """A bootstrap plan that makes new targets for the same rows.

    Attributes
    ----------
    scheme : {"residual", "wild"}
        Residuals drawn with replacement, or each one's sign at random.
    unit, units, unit_of
        What shares a sign: name, number, and the unit of every row.
    row_weights : array, shape (n,)
    curve : array, shape (n,)
        Log of the fitted target.
    residuals : array, shape (n,)
        Of the log target, enlarged by what the fit took from them: divided by the root of one
        minus the leverage.
    resamples : int
    generator : Generator
    """

    scheme: Literal["residual", "wild"]
    unit: str
    units: int
    unit_of: IntArray
    row_weights: FloatArray
    curve: FloatArray
    residuals: FloatArray
    resamples: int
    generator: np.random.Generator

    @classmethod
    def plan(
        cls,
        scheme: Literal["residual", "wild"],
        bootstrap: object,
        clusters: pd.Series | None,
        problem: Problem,
        theta: FloatArray,
        rng: np.random.Generator | int | None,
    ) -> Self:
        """Take curve and residuals from a fit, and check that they can be exchanged.

        Raises
        ------
        DataError
            If `bootstrap` is not a number; if residuals are to be drawn where rows have weights
            or share a cluster, so that they are not alike or not independent; if there are too
            few units for signs.
        """
        unit_of, unit = np.arange(problem.y.size), "row"
        if clusters is not None:
            unit_of, unit = pd.factorize(clusters)[0], str(clusters.name)
        units = int(unit_of.max()) + 1
        if scheme == "residual" and (units < problem.y.size or np.ptp(problem.weights) > 0):
            raise DataError(
                "resample='residual' draws residuals across rows as if they were alike and "
                "independent; with weights or clusters of several rows use 'wild' or 'pairs'."
            )
        resamples = check_resamples(bootstrap)
        if scheme == "wild" and units < WEBB_BELOW and WEBB_SIGNS.size**units < resamples:
            raise DataError(
                f"{units} units ({unit}) have {WEBB_SIGNS.size**units} combinations of signs, too "
                f"few for {resamples} resamples; use method='jackknife', which needs no bootstrap."
            )
        residuals = -problem.residuals(theta)
        curve = problem.y - residuals
        residuals = residuals / np.sqrt(np.maximum(1 - problem.leverage(theta), LEAST_FREEDOM))
        if scheme == "residual":
            residuals = residuals - residuals.mean()
        return cls(
            *(scheme, unit, units, unit_of, problem.weights),
            *(curve, residuals, resamples, np.random.default_rng(rng)),
        )

    def samples(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield the row weights, shape (1, n), and new log targets, shape (some resamples, n)."""
        rows = self.curve.size
        height = block_height(rows)
        for first in range(0, self.resamples, height):
            count = min(height, self.resamples - first)
            if self.scheme == "residual":
                errors = self.residuals[self.generator.integers(0, rows, (count, rows), np.int32)]
            else:
                signs = SIGNS if self.units >= WEBB_BELOW else WEBB_SIGNS
                drawn = signs[self.generator.integers(0, signs.size, (count, self.units), np.int8)]
                errors = drawn[:, self.unit_of] * self.residuals
            yield self.row_weights[None, :], self.curve + errors
