"""The boundary curve: what score compute can buy, and how much compute a score needs."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray

__all__ = ["PARAMETERS", "QUANTITIES", "Curve", "attainable", "log_compute_needed", "quantities"]

#: Name, unit and meaning of the parameters of the curve.
PARAMETERS = {
    "base": ("score", "score that needs hardly any compute"),
    "rise": ("score", "height of the sigmoid"),
    "midpoint": ("log10 FLOPs", "compute at which half of the rise is reached"),
    "steepness": ("per decade", "rate of the sigmoid"),
}
#: The same for what follows from them.
QUANTITIES = PARAMETERS | {
    "top": ("score", "score that no compute exceeds: base + rise"),
    "slope": ("score per decade", "gain per tenfold compute at the midpoint: rise * steepness / 4"),
    "headroom": ("score", "ceiling of the benchmark minus top"),
}


@dataclass(frozen=True, slots=True)
class Curve:
    """A sigmoid boundary ``q(z) = base + rise / (1 + exp(-steepness (z - midpoint)))``.

    z is log10 of training compute in FLOPs. The form follows Zhang, Jin, Syrgkanis and Kakade
    2026 (arXiv:2602.15327), with compute in FLOPs.

    Attributes
    ----------
    base : float
        Score that needs hardly any compute, a fraction.
    rise : float
        Height of the sigmoid, at least 0.
    midpoint : float
        Compute at which half of the rise is reached, log10 FLOPs.
    steepness : float
        Rate of the sigmoid per tenfold compute, at least 0.

    Raises
    ------
    DataError
        If a value is not finite, or the rise or the steepness is negative.

    Examples
    --------
    >>> curve = Curve(base=0.25, rise=0.6, midpoint=23.0, steepness=2.0)
    >>> float(curve.attainable(1e23)), curve.top, curve.slope
    (0.55, 0.85, 0.3)
    >>> round(float(curve.compute_needed(0.55)) / 1e23, 9)
    1.0
    """

    base: float
    rise: float
    midpoint: float
    steepness: float

    def __post_init__(self) -> None:
        if not np.isfinite(self.values).all() or self.rise < 0 or self.steepness < 0:
            raise DataError(
                "A boundary has finite parameters, with rise and steepness of at least 0; got "
                f"base={self.base!r}, rise={self.rise!r}, midpoint={self.midpoint!r}, "
                f"steepness={self.steepness!r}."
            )

    @property
    def values(self) -> FloatArray:
        """base, rise, midpoint, steepness: shape (4,)."""
        return np.array([self.base, self.rise, self.midpoint, self.steepness], dtype=np.float64)

    @property
    def top(self) -> float:
        """Score that no compute exceeds."""
        return self.base + self.rise

    @property
    def slope(self) -> float:
        """Gain in score per tenfold compute at the midpoint, where it is largest."""
        return self.rise * self.steepness / 4

    def headroom(self, ceiling: float = 1.0) -> float:
        """Return what separates the top from the ceiling of the benchmark."""
        return ceiling - self.top

    def attainable(self, flops: npt.ArrayLike) -> FloatArray:
        """Score at compute budgets in FLOPs, of the shape of `flops`."""
        budgets = np.asarray(flops, dtype=np.float64)
        if not (np.isfinite(budgets) & (budgets > 0)).all():
            raise DataError("flops must be positive and finite: training compute in FLOPs.")
        scores = attainable(self.values[None, :], np.log10(budgets).ravel())
        return scores.reshape(budgets.shape)

    def compute_needed(self, score: npt.ArrayLike) -> FloatArray:
        """Training compute in FLOPs that scores need, of the shape of `score`.

        0 where the base exceeds the score already, infinite where the curve never reaches it.
        """
        scores = np.asarray(score, dtype=np.float64)
        logs = log_compute_needed(self.values[None, :], scores.ravel())[0]
        with np.errstate(over="ignore"):  # beyond 1e308 FLOPs is never
            return np.asarray(10.0**logs).reshape(scores.shape)


def attainable(params: FloatArray, log_flops: FloatArray) -> FloatArray:
    """Scores of many curves.

    Parameters
    ----------
    params : array, shape (k, 4)
        base, rise, midpoint, steepness of each curve.
    log_flops : array, shape (m,)
        Compute, log10 FLOPs.

    Returns
    -------
    array, shape (k, m)
    """
    base, rise, midpoint, steepness = (column[:, None] for column in params.T)
    return np.asarray(base + rise * special.expit(steepness * (log_flops - midpoint)))


def log_compute_needed(params: FloatArray, scores: FloatArray) -> FloatArray:
    """Compute that scores need, for many curves.

    Parameters
    ----------
    params : array, shape (k, 4)
        base, rise, midpoint, steepness of each curve.
    scores : array, shape (m,)
        Scores, fractions.

    Returns
    -------
    array, shape (k, m)
        log10 FLOPs; minus infinity where every budget reaches the score, infinite where none
        does.
    """
    base, rise, midpoint, steepness = (column[:, None] for column in params.T)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (scores - base) / rise
        logs = midpoint + special.logit(np.clip(share, 0.0, 1.0)) / steepness
    flat = (rise == 0) | (steepness == 0)
    logs = np.where(flat, np.where(base + rise / 2 >= scores, -np.inf, np.inf), logs)
    return np.asarray(logs)


def quantities(params: FloatArray, ceiling: float) -> FloatArray:
    """Parameters and what follows from them, in the order of `QUANTITIES`.

    Parameters
    ----------
    params : array, shape (k, 4)
        base, rise, midpoint, steepness of each curve.
    ceiling : float
        Highest score that the benchmark allows.

    Returns
    -------
    array, shape (k, 7)
    """
    base, rise, _, steepness = params.T
    top = base + rise
    return np.column_stack([params, top, rise * steepness / 4, ceiling - top])
