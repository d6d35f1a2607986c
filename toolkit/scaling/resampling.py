"""The fits of the resamples."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from toolkit.numerics.compiling import FloatArray, IntArray

__all__ = ["Bootstrap", "Scheme"]

Scheme = Literal["pairs", "residual", "wild"]


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Fits of the resamples.

    Attributes
    ----------
    theta : array, shape (resamples, p)
        Working coordinates.
    certified : array of bool, shape (resamples,)
        Which have a certified optimum.
    evaluations : array of int, shape (resamples,)
        Model evaluations.
    unit, units, distinct
        What was resampled, how many there are, how many resamples differ.
    scheme : {"pairs", "residual", "wild"}
        What was drawn: units, residuals, or signs of the residuals of a unit.
    """

    theta: FloatArray
    certified: npt.NDArray[np.bool_]
    evaluations: IntArray
    unit: str
    units: int
    distinct: int
    scheme: Scheme = "pairs"

    def __len__(self) -> int:
        return len(self.theta)

    @property
    def failed(self) -> int:
        """Number of resamples without a certified optimum."""
        return int((~self.certified).sum())
