"""Runs grouped into isoFLOP curves: one budget, several sizes, and how clearly the losses bend."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit import tables
from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray, IntArray
from toolkit.scaling.allocation import FLOPS_PER_PARAM_TOKEN

__all__ = ["FEWEST_SIZES", "Bend", "IsoflopCurve", "isoflop_curves"]

FEWEST_SIZES = 4  # a parabola through three points leaves nothing to tell a minimum from noise
SAME_SIZE = 0.01  # sizes nearer than this, relative, are one size trained again
SAME_RUN = 0.1  # losses of one size and budget that differ by more cannot be repeats
CLEAR = 2.0  # curvature in standard errors from which a curve is not flat


@dataclass(frozen=True, slots=True)
class IsoflopCurve:
    """Runs of one budget, by size: log params, loss, log tokens."""

    flops: float
    x: FloatArray
    loss: FloatArray
    log_tokens: FloatArray

    @property
    def size_of(self) -> IntArray:
        """Number of each run's size, smallest first."""
        return np.concatenate([[0], np.cumsum(np.diff(self.x) > SAME_SIZE)]).astype(np.int64)

    @property
    def sizes(self) -> int:
        """How many different sizes there are."""
        return int(self.size_of[-1]) + 1

    def by_size(self, y: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Means over the runs of each size that has weight: log sizes (s,), values (batch, s)."""
        total = np.bincount(self.size_of, weights)
        member = (self.size_of == np.arange(len(total))[:, None]) * weights
        share = member[total > 0] / total[total > 0, None]
        return share @ self.x, y @ share.T


def isoflop_curves(
    runs: pd.DataFrame | Mapping[str, npt.ArrayLike], tolerance: float
) -> tuple[pd.DataFrame, list[IsoflopCurve]]:
    """Check the runs, group them by compute, and sort each group by size."""
    if not 0 <= tolerance <= 0.5:
        raise DataError(f"tolerance is a share of compute from 0 to 0.5; got {tolerance!r}.")
    table = tables.check(runs, ["params", "loss"], optional=["flops", "tokens"])
    if "flops" not in table:
        table = tables.check(runs, ["params", "tokens", "loss"])
        table["flops"] = FLOPS_PER_PARAM_TOKEN * table["params"] * table["tokens"]
    if "tokens" not in table:
        table["tokens"] = table["flops"] / (FLOPS_PER_PARAM_TOKEN * table["params"])
    order = np.argsort(table["flops"].to_numpy(), kind="stable")
    groups = np.empty(len(table), dtype=np.int64)
    start, number = -np.inf, -1
    for row, flops in zip(order, table["flops"].to_numpy()[order], strict=True):
        if flops > (1 + tolerance) * start:
            start, number = flops, number + 1
        groups[row] = number
    table["budget"] = np.exp(np.log(table["flops"]).groupby(groups).transform("mean"))
    curves = []
    for _, group in table.groupby("budget"):
        rows = group.sort_values("params", kind="stable")
        logs = np.log(rows[["params", "tokens"]].to_numpy(dtype=np.float64))
        curve = IsoflopCurve(
            float(rows["budget"].iloc[0]), logs[:, 0], rows["loss"].to_numpy(), logs[:, 1]
        )
        _check_repeats(curve, rows.index.to_numpy())
        curves.append(curve)
    return table, curves


def _check_repeats(curve: IsoflopCurve, rows: IntArray) -> None:
    """Refuse losses of one size and budget that are not of one kind: two axes, two data sets."""
    losses = pd.Series(np.log(curve.loss)).groupby(curve.size_of)
    spread = (losses.max() - losses.min()).to_numpy()
    if spread.max() > SAME_RUN:
        worst = curve.size_of == spread.argmax()
        mine = rows[worst]
        raise DataError(
            f"Column 'loss': rows {', '.join(map(str, mine[:5]))} are one size "
            f"({np.exp(curve.x[worst][0]):.3g} parameters) at one "
            f"budget ({curve.flops:.3g} FLOPs), yet their losses differ by "
            f"{np.expm1(spread.max()):.0%}. Mend: keep one data set, set-up and loss axis."
        )


@dataclass(frozen=True, slots=True)
class Bend:
    """Least-squares parabola of a budget: curvature, its standard error, rms residual."""

    curvature: float
    error: float
    scatter: float

    @classmethod
    def of(cls, curve: IsoflopCurve) -> Self:
        """Fit the parabola; all NaN with fewer than four sizes."""
        if curve.sizes < FEWEST_SIZES:
            return cls(np.nan, np.nan, np.nan)
        design = np.vander((curve.x - curve.x.mean()) / np.ptp(curve.x), 3)
        inverse = np.linalg.pinv(design)
        coefficients = inverse @ curve.loss
        residuals = curve.loss - design @ coefficients
        scatter = np.sqrt(residuals @ residuals / (len(curve.x) - 3))
        error = scatter * np.sqrt((inverse @ inverse.T)[0, 0])
        return cls(float(coefficients[0]), float(error), float(scatter))

    @property
    def clear(self) -> bool:
        """Whether the curvature is above zero, beyond its error and beyond rounding."""
        return self.curvature > CLEAR * self.error + 1e-12
