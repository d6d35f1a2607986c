"""What a boundary fit found, how sure it is, and what follows from it."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit import tables
from toolkit.boundary.curve import (
    PARAMETERS,
    QUANTITIES,
    Curve,
    attainable,
    log_compute_needed,
    quantities,
)
from toolkit.boundary.draws import quantile_bounds, sorted_levels
from toolkit.boundary.models import Models, training_compute
from toolkit.boundary.quality import coverage_table
from toolkit.boundary.report import summarise
from toolkit.boundary.search import Found
from toolkit.errors import DataError, ExtrapolationWarning
from toolkit.numerics.compiling import FloatArray
from toolkit.results import Summary, check_level

__all__ = ["FEW_IN_TAIL", "TAIL_FOR_INTERVALS", "BoundaryFit"]

# Measured with known truth: 95 % bounds cover in 91 to 96 % of studies from 40 models beyond the
# curve on, in 85 % at 10 and in 55 % at 4.
FEW_IN_TAIL = 40.0
TAIL_FOR_INTERVALS = 10.0
FAR = 10.0  # compute outside that of the models, as a factor, from which a warning is due
NEGLIGIBLE = 1e-6  # a rise below it is none
STEEPEST = 300.0  # steepness times half the range of compute: a step between two models


@dataclass(frozen=True, slots=True)
class BoundaryFit:
    """Fitted capability boundaries, one for each level tau.

    Attributes
    ----------
    models : Models
        The checked models, sorted by compute, then score.
    tau : tuple of float
        Levels, rising.
    floor, ceiling : float
        Limits of the curves.
    recipe : {"exact", "prescriptive"}
        How the curves were fitted.
    searches : tuple of Found
        How the search of each level ended.
    draws : array, shape (resamples, levels, 4), or None
        Parameters of the resamples; NaN for levels whose tail is too thin for bounds.
    failed : int
        Resamples without certificate.
    unit : str or None
        What was resampled.
    units : int
        How many there are.
    """

    models: Models = field(repr=False)
    tau: tuple[float, ...]
    floor: float
    ceiling: float
    recipe: str
    searches: tuple[Found, ...] = field(repr=False)
    draws: FloatArray | None = field(repr=False)
    failed: int
    unit: str | None
    units: int

    @property
    def params(self) -> pd.DataFrame:
        """Parameters of each level: base, rise, midpoint, steepness; NaN where not identified."""
        known = np.where(self._identified[:, : len(PARAMETERS)], self.values, np.nan)
        return pd.DataFrame(known, columns=list(PARAMETERS), index=self._levels)

    @property
    def tail(self) -> pd.Series:
        """Models beyond each curve: effective number times the smaller of tau and 1 - tau."""
        return pd.Series(self.tails, index=self._levels, name="tail")

    @property
    def tails(self) -> FloatArray:
        """The same as an array, shape (levels,)."""
        levels = np.array(self.tau)
        return np.asarray(self.models.effective * np.minimum(levels, 1 - levels))

    @property
    def values(self) -> FloatArray:
        """base, rise, midpoint, steepness of each level, shape (levels, 4)."""
        return np.array([found.params for found in self.searches])

    @property
    def certified(self) -> pd.Series:
        """Whether the gap is within 1e-10 of the objective, by level."""
        certified = [bool(found.certified[found.best]) for found in self.searches]
        return pd.Series(certified, index=self._levels, name="certified")

    @property
    def agreement(self) -> pd.Series:
        """Share of the starts that end, certified, at the best optimum, by level."""
        shares = [float(found.agrees.mean()) for found in self.searches]
        return pd.Series(shares, index=self._levels, name="agreement")

    @property
    def starts(self) -> pd.DataFrame:
        """One row per level and start: objective, gap, certified, agrees, evaluations."""
        columns = ("objective", "gap", "certified", "agrees", "evaluations")
        parts = [
            pd.DataFrame({name: getattr(found, name) for name in columns})
            for found in self.searches
        ]
        return pd.concat(parts, keys=self.tau, names=["tau", "start"])

    @property
    def unidentified(self) -> str:
        """What the data do not determine, in a sentence; empty where they determine all."""
        if self.models.flops[0] == self.models.flops[-1]:
            return "All models have the same compute: the curve is the quantile of their scores."
        lost = ~self._identified
        if not lost.any():
            return ""
        names = [name for k, name in enumerate(QUANTITIES) if lost[:, k].any()]
        levels = ", ".join(f"{t:g}" for t, row in zip(self.tau, lost, strict=True) if row.any())
        return f"The data do not determine {', '.join(names)} at tau={levels}."

    def curve(self, tau: float | None = None) -> Curve:
        """Return the curve of one level, as fitted; `tau` may be left out where there is one."""
        if tau is None and len(self.tau) > 1:
            raise DataError(f"Which level? curve(tau=...) with tau out of {self._named_levels}.")
        k = 0 if tau is None else self._position(tau)
        return Curve(*(float(value) for value in self.values[k]))

    def attainable(self, flops: npt.ArrayLike, *, level: float = 0.95) -> pd.DataFrame:
        """Score that compute can buy.

        Parameters
        ----------
        flops : array_like
            Compute budgets in FLOPs, m of them.
        level : float
            Nominal coverage of the bounds, in (0, 1).

        Returns
        -------
        DataFrame
            One row per budget and level: flops, tau, score, after a bootstrap ``lower`` and
            ``upper``, and ``decades_beyond``, the distance from the range of the models in powers
            of ten of compute. Several levels are rearranged so that they do not cross.

        Warns
        -----
        ExtrapolationWarning
            If a budget lies outside the range of the models by more than a factor of 10.
        """
        budgets = tables.check({"flops": np.atleast_1d(flops)}, ["flops"])["flops"].to_numpy()
        self._warn_far(np.log10(budgets))
        table = self._grid("flops", budgets)
        table["score"] = self._scores(self.values[None], np.log10(budgets))[0].T.ravel()
        if self.draws is not None:
            draws = self._scores(self.draws, np.log10(budgets))
            table["lower"], table["upper"] = self._bounds(draws, level)
        table["decades_beyond"] = self._decades_beyond(np.log10(table["flops"].to_numpy()))
        return table

    def compute_needed(self, score: npt.ArrayLike, *, level: float = 0.95) -> pd.DataFrame:
        """Compute that a score needs at least.

        Parameters
        ----------
        score : array_like
            Scores, fractions from 0 to 1, m of them.
        level : float
            Nominal coverage of the bounds, in (0, 1).

        Returns
        -------
        DataFrame
            One row per score and level: score, tau, flops, after a bootstrap ``lower`` and
            ``upper``, and ``decades_beyond``. 0 FLOPs where any compute reaches the score,
            infinite where the curve stays below it.

        Warns
        -----
        ExtrapolationWarning
            If an answer lies outside the range of the models by more than a factor of 10.
        """
        wanted = tables.check({"score": np.atleast_1d(score)}, ["score"])["score"].to_numpy()
        logs = self._needed(self.values[None], wanted)
        self._warn_far(logs[np.isfinite(logs)])
        table = self._grid("score", wanted)
        with np.errstate(over="ignore"):
            table["flops"] = 10.0 ** logs[0].T.ravel()
            if self.draws is not None:
                low, high = self._bounds(self._needed(self.draws, wanted), level)
                table["lower"], table["upper"] = 10.0**low, 10.0**high
        table["decades_beyond"] = self._decades_beyond(logs[0].T.ravel())
        return table

    def predict(
        self, models: pd.DataFrame | Mapping[str, npt.ArrayLike], *, level: float = 0.95
    ) -> pd.DataFrame:
        """Boundary at the compute of models, one row per model and level; see `attainable`.

        Parameters
        ----------
        models : DataFrame or mapping
            With ``flops``, or ``tokens`` and ``params`` or ``params_active``.
        level : float
            Nominal coverage of the bounds, in (0, 1).
        """
        frame = pd.DataFrame(models)
        size = "params_active" if "params_active" in frame else "params"
        sources = ["flops"] if "flops" in frame else [size, "tokens"]
        return self.attainable(training_compute(tables.check(frame, sources)), level=level)

    def coverage(self, *, level: float = 0.95) -> pd.DataFrame:
        """How well each curve keeps its promise on the models that it was fitted to.

        Parameters
        ----------
        level : float
            Nominal coverage of the binomial interval, in (0, 1).

        Returns
        -------
        DataFrame
            One row per level: ``coverage``, the weighted share of models at or below the curve,
            with its exact binomial interval ``lower`` and ``upper``; ``error``, its difference
            from tau; ``pinball``, the mean exact loss; ``skill``, how much of the loss of the
            best constant the curve saves; ``height``, the mean of the curve. A curve above all
            models covers 1 and has no skill.
        """
        check_level(level)
        curves = self._scores(self.values[None], self.models.log_flops)[0]
        return coverage_table(self.models, self.tau, curves, level)

    def conf_int(self, level: float = 0.95) -> pd.DataFrame:
        """Percentile intervals of the parameters and of top, slope and headroom.

        Parameters
        ----------
        level : float
            Nominal coverage, in (0, 1).

        Returns
        -------
        DataFrame
            Indexed by tau and quantity; columns: estimate, lower, upper. NaN where not
            identified, and bounds NaN where fewer than 10 models are beyond the curve.

        Raises
        ------
        DataError
            If the fit has no bootstrap.
        """
        if self.draws is None:
            raise DataError("This fit has no intervals; fit with bootstrap=1000 and an rng.")
        flat = self.draws.reshape(-1, len(PARAMETERS))
        draws = quantities(flat, self.ceiling).reshape(len(self.draws), len(self.tau), -1)
        lost = ~self._identified_by(flat).reshape(draws.shape)
        low, high = quantile_bounds(np.where(lost, np.nan, draws), level)
        table = pd.DataFrame(
            {"estimate": self._quantities.ravel(), "lower": low.ravel(), "upper": high.ravel()},
            index=self._rows,
        )
        table.loc[table["estimate"].isna(), ["lower", "upper"]] = np.nan
        return table

    def to_frame(self) -> pd.DataFrame:
        """Parameters and what follows from them: estimate, bounds after a bootstrap, unit."""
        if self.draws is not None:
            table = self.conf_int()
        else:
            index = pd.MultiIndex.from_product(
                [self._levels, QUANTITIES], names=["tau", "quantity"]
            )
            table = pd.DataFrame({"estimate": self._quantities.ravel()}, index=index)
        names = table.index.get_level_values("quantity")
        table["unit"] = [QUANTITIES[name][0] for name in names]
        table["meaning"] = [QUANTITIES[name][1] for name in names]
        return table

    def summary(self) -> Summary:
        """Everything a reader needs before using the numbers, as text or HTML."""
        return summarise(self)

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    @property
    def crosses(self) -> bool:
        """Whether the fitted curves cross within the range of the models."""
        z = np.linspace(self.models.log_flops[0], self.models.log_flops[-1], 200)
        return bool((np.diff(attainable(self.values, z), axis=0) < -1e-9).any())

    @property
    def _levels(self) -> pd.Index:
        return pd.Index(self.tau, name="tau")

    @property
    def _rows(self) -> pd.MultiIndex:
        """One row per level and quantity."""
        return pd.MultiIndex.from_product([self._levels, QUANTITIES], names=["tau", "quantity"])

    @property
    def _named_levels(self) -> str:
        return ", ".join(f"{level:g}" for level in self.tau)

    @property
    def _quantities(self) -> FloatArray:
        return np.where(self._identified, quantities(self.values, self.ceiling), np.nan)

    @property
    def _identified(self) -> npt.NDArray[np.bool_]:
        return self._identified_by(self.values)

    def _identified_by(self, params: FloatArray) -> npt.NDArray[np.bool_]:
        """Which quantities have a meaning, shape (k, 7).

        A flat curve has a level only; a step has no steepness and, between two models, a midpoint
        within their distance; a top or base far outside the data is not seen.
        """
        _, rise, _, steepness = params.T
        flat = (rise < NEGLIGIBLE) | (steepness == 0)
        z = self.models.log_flops
        step = steepness * (z[-1] - z[0]) / 2 > STEEPEST
        known = np.ones((len(params), len(QUANTITIES)), dtype=np.bool_)
        for k, name in enumerate(QUANTITIES):
            if name in ("midpoint", "steepness", "slope"):
                known[flat, k] = False
            if name in ("steepness", "slope"):
                known[step, k] = False
        return known

    def _position(self, tau: float) -> int:
        for k, level in enumerate(self.tau):
            if abs(level - tau) < 1e-12:
                return k
        raise DataError(f"tau={tau!r} was not fitted; levels: {self._named_levels}.")

    def _scores(self, params: FloatArray, log_flops: FloatArray) -> FloatArray:
        """Rearranged scores, shape (draws, levels, m), for params of shape (draws, levels, 4)."""
        flat = attainable(params.reshape(-1, len(PARAMETERS)), log_flops)
        return sorted_levels(flat.reshape(*params.shape[:2], -1))

    def _needed(self, params: FloatArray, scores: FloatArray) -> FloatArray:
        """Rearranged log10 FLOPs, shape (draws, levels, m): the inverse of sorted curves."""
        flat = log_compute_needed(params.reshape(-1, len(PARAMETERS)), scores)
        return -sorted_levels(-flat.reshape(*params.shape[:2], -1))

    def _bounds(self, draws: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
        low, high = quantile_bounds(draws, level)
        return low.T.ravel(), high.T.ravel()

    def _grid(self, name: str, values: FloatArray) -> pd.DataFrame:
        return pd.DataFrame(
            {
                name: np.repeat(values, len(self.tau)),
                "tau": np.tile(self.tau, len(values)),
            }
        )

    def _decades_beyond(self, log_flops: FloatArray) -> FloatArray:
        z = self.models.log_flops
        beyond = np.maximum(np.maximum(log_flops - z[-1], z[0] - log_flops), 0.0)
        return np.where(np.isfinite(log_flops), beyond, np.nan)

    def _warn_far(self, log_flops: FloatArray) -> None:
        beyond = self._decades_beyond(log_flops)
        if beyond.size and beyond.max() > np.log10(FAR):
            z = self.models.log_flops
            warnings.warn(
                f"{beyond.max():.1f} powers of ten outside the compute of the models "
                f"({10 ** z[0]:.2g} to {10 ** z[-1]:.2g} FLOPs): the curve is extrapolated.",
                ExtrapolationWarning,
                stacklevel=3,
            )
