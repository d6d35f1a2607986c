"""What a fit of benchmark scores found, how sure it is, and what it predicts."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit import tables
from toolkit.errors import DataError, ExtrapolationWarning
from toolkit.numerics.compiling import FloatArray
from toolkit.results import Summary, bootstrap_interval, check_level, significant
from toolkit.scaling.downstream.score_laws import ScoreLaw
from toolkit.scaling.resampling import Bootstrap

__all__ = ["ScoreFit"]

FAR = 0.5  # distance beyond the fitted inputs, in widths of their range, that deserves a warning


@dataclass(frozen=True, slots=True)
class ScoreFit:
    """A fitted law of a benchmark score.

    Attributes
    ----------
    law : ScoreLaw
        The law that was fitted.
    table : DataFrame
        The checked table: the law's columns, ``score`` and the cluster column.
    theta : array, shape (p,)
        Optimum in working coordinates.
    objective, gap : float
        Sum of losses at the optimum, and how far above its minimum it may be.
    certified : bool
        Whether the gap is within 1e-10 of the objective.
    starts : DataFrame
        One row per start: objective, certified, agrees with the best.
    bootstrap : Bootstrap or None
        Fits of the resamples.
    loss : str
        "squared" or "huber".
    delta : float
        Huber threshold of the score; infinite for squared loss.
    floor : float or None
        Known score of guessing; fitted where it is None.
    perfect_at_zero : bool
        Whether the curve was tied to a perfect score at zero loss.
    on_bound : array of bool, shape (p,)
        Which fitted parameters ended on a bound.
    """

    law: ScoreLaw
    table: pd.DataFrame = field(repr=False)
    theta: FloatArray = field(repr=False)
    objective: float
    gap: float
    certified: bool
    starts: pd.DataFrame = field(repr=False)
    bootstrap: Bootstrap | None = field(repr=False)
    loss: str
    delta: float
    floor: float | None
    perfect_at_zero: bool
    on_bound: npt.NDArray[np.bool_] = field(repr=False)

    @property
    def params(self) -> pd.Series:
        """Parameter values by name."""
        values = self.law.values(self.theta)
        return pd.Series(values, index=self.law.parameter_names, name="estimate")

    @property
    def draws(self) -> pd.DataFrame:
        """Parameter values of the resamples, one row each.

        Raises
        ------
        DataError
            If the fit has no bootstrap.
        """
        values = self.law.values(self.theta_draws())
        return pd.DataFrame(values, columns=self.law.parameter_names)

    @property
    def agreement(self) -> float:
        """Share of starts that end, certified, at the best optimum."""
        return float(self.starts["agrees"].mean())

    @property
    def residuals(self) -> pd.Series:
        """Observed minus fitted score, one per row."""
        fitted = self.law.evaluate(self.theta, self.law.inputs(self.table))[0]
        return pd.Series(self.table["score"].to_numpy() - fitted, name="residual")

    @property
    def spread(self) -> float:
        """Standard deviation of the scores around the curve, freed of the fitted parameters."""
        free = len(self.law.parameters) - (self.floor is not None)
        rows = len(self.table)
        return float(np.sqrt(np.sum(self.residuals**2) / max(rows - free, 1)))

    @property
    def bend_reached(self) -> bool:
        """Whether the midpoint of the curve lies among the fitted inputs.

        Short of it the curve shows one end only: any ceiling, or any floor, fits as well.
        """
        if not self.law.bends:
            return True
        x, midpoint = self.law.inputs(self.table)[0], self.theta[-1]
        return bool(x.min() <= midpoint <= x.max())

    @property
    def identified(self) -> pd.Series:
        """Which parameters the data determine, as truth values by name.

        Not determined are parameters whose 95 % interval is wider than a quarter either way
        (scores) or a factor of ten either way (slopes and amplitudes), from the bootstrap where
        there is one; those on a bound that is no score; and, short of the bend, the midpoint and
        the end that was not reached.
        """
        widest = np.array([parameter.widest for parameter in self.law.parameters])
        is_score = np.array(
            [p.unit == "fraction" and p.working == "value" for p in self.law.parameters]
        )
        known = pd.Series(
            (self._half_widths() < widest) & (is_score | ~self.on_bound),
            index=self.law.parameter_names,
        )
        if self.floor is not None:
            known.iloc[0] = True
        if not self.bend_reached and not self.perfect_at_zero:
            x = self.law.inputs(self.table)[0]
            hidden = "ceiling" if self.theta[-1] < x.min() else "floor"
            known[self.law.parameter_names[-1]] = False
            known[hidden] = hidden == "floor" and self.floor is not None
        return known

    def _half_widths(self) -> FloatArray:
        """Half-widths of 95 % intervals in working coordinates, shape (p,)."""
        if self.bootstrap is not None:
            low, high = np.quantile(self.bootstrap.theta, [0.025, 0.975], axis=0)
            halves: FloatArray = 0.5 * (high - low)
            return halves
        x = self.law.inputs(self.table)
        anchored = np.append(x, [[0.0]], axis=1) if self.perfect_at_zero else x
        jacobian = self.law.evaluate(self.theta, anchored)[1]
        length = np.maximum(np.linalg.norm(jacobian, axis=1), 1e-300)
        first = 1 if self.floor is not None else 0
        scaled = jacobian[first:] / length[first:, None]
        singular, direction = np.linalg.svd(scaled.T, full_matrices=False)[1:]
        reach = np.linalg.norm(direction / np.maximum(singular, 1e-12)[:, None], axis=0)
        return np.append(np.zeros(first), 1.96 * self.spread * reach / length[first:])

    def conf_int(self, level: float = 0.95) -> pd.DataFrame:
        """Percentile intervals of the parameters.

        Parameters
        ----------
        level : float
            Nominal coverage, in (0, 1).

        Returns
        -------
        DataFrame
            One row per parameter: estimate, lower, upper. NaN where not identified; no bounds
            where every resample ends on the same bound; equal ones for a floor that was given.

        Raises
        ------
        DataError
            If the fit has no bootstrap.
        """
        rows = []
        draws = self.law.values(self.theta_draws())
        for k, (estimate, column) in enumerate(zip(self.params, draws.T, strict=True)):
            if k == 0 and self.floor is not None:
                rows.append((estimate, estimate, estimate))
            elif np.ptp(column) == 0:  # on a bound in every resample: no interval, no certainty
                rows.append((estimate, np.nan, np.nan))
            else:
                bounds = bootstrap_interval(estimate, column, level=level)
                rows.append((bounds.estimate, bounds.lower, bounds.upper))
        table = pd.DataFrame(
            rows, index=self.law.parameter_names, columns=["estimate", "lower", "upper"]
        )
        table.loc[~self.identified.to_numpy()] = np.nan
        return table

    def predict(
        self, table: pd.DataFrame | Mapping[str, npt.ArrayLike], *, level: float = 0.95
    ) -> pd.DataFrame:
        """Score at given losses, or at given compute or sizes for a law of those.

        Parameters
        ----------
        table : DataFrame or mapping
            The law's columns, m rows.
        level : float
            Nominal coverage of the bounds, in (0, 1).

        Returns
        -------
        DataFrame
            m rows: the law's columns, ``score`` and, after a bootstrap, ``lower`` and ``upper``
            of the curve and ``run_lower`` and ``run_upper`` for one new measurement, which also
            carry the residuals of the fitted ones.

        Warns
        -----
        ExtrapolationWarning
            If an input lies beyond the fitted ones by more than half of their range.

        Examples
        --------
        >>> import numpy as np
        >>> from toolkit.scaling.downstream import fit_score
        >>> loss = np.linspace(0.6, 1.4, 12)
        >>> score = 0.25 + 0.7 / (1 + np.exp(6 * (loss - 1)))
        >>> fit = fit_score("sigmoid", {"loss": loss, "score": score})
        >>> fit.predict({"loss": [1.0]})["score"].round(6).tolist()
        [0.6]
        """
        points = tables.check(_as_columns(table), self.law.columns)
        x = self.law.inputs(points)
        self._warn_far(x)
        points["score"] = self.law.evaluate(self.theta, x)[0]
        if self.bootstrap is None:
            return points
        check_level(level)
        curves = np.array([self.law.evaluate(theta, x)[0] for theta in self.bootstrap.theta])
        free = len(self.law.parameters) - (self.floor is not None)
        inflation = np.sqrt(len(self.table) / max(len(self.table) - free, 1))
        return add_bounds(points, curves, inflation * self.residuals.to_numpy(), level)

    def to_frame(self) -> pd.DataFrame:
        """Parameters as a table: estimate, unit, meaning, and bounds after a bootstrap."""
        table = pd.DataFrame(
            {
                "estimate": self.params,
                "unit": [p.unit for p in self.law.parameters],
                "meaning": [p.meaning for p in self.law.parameters],
            }
        )
        if self.bootstrap is not None:
            bounds = self.conf_int()
            table.insert(1, "lower", bounds["lower"])
            table.insert(2, "upper", bounds["upper"])
        return table

    def summary(self) -> Summary:
        """Everything a reader needs before using the numbers, as text or HTML."""
        table = pd.DataFrame({"estimate": self.params.where(self.identified)})
        if self.bootstrap is not None:
            table = self.conf_int()
        loss = self.loss if self.loss == "squared" else f"huber, delta {self.delta:g}"
        facts = [
            ("law", self.law.formula),
            ("loss", f"{loss}, on the score, summed"),
            ("objective", f"{self.objective:.8g} ({'' if self.certified else 'NOT '}certified)"),
            ("starts that agree", f"{self.starts['agrees'].sum()} of {len(self.starts)}"),
            ("spread of the scores", f"{self.spread:.2g}"),
        ]
        if self.floor is not None:
            facts.append(("floor", f"{self.floor:g}, given"))
        if self.bootstrap is not None:
            facts.append(("bootstrap", describe_bootstrap(self.bootstrap)))
            facts.append(("bounds", "95 %, percentile"))
        title = f"{self.law.title[0].upper()}{self.law.title[1:]}, {len(self.table)} rows"
        return Summary(title, facts, table.map(significant), self._notes())

    def _notes(self) -> list[str]:
        known = self.identified
        notes = [f"{name}: not identified by these data" for name in known.index[~known]]
        notes += [f"{name}: on its bound" for name in known.index[known.to_numpy() & self.on_bound]]
        if not self.bend_reached:
            notes.append("the fitted range does not reach the bend of the curve")
        if self.perfect_at_zero:
            notes.append("tied to a perfect score at zero loss, an assumption and not a datum")
        return notes

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def theta_draws(self) -> FloatArray:
        """Working coordinates of the resamples, shape (resamples, p)."""
        if self.bootstrap is None:
            raise DataError("This fit has no intervals; fit with bootstrap=1000 and an rng.")
        return self.bootstrap.theta

    def _warn_far(self, x: FloatArray) -> None:
        fitted = self.law.inputs(self.table)
        low, high = fitted.min(axis=1), fitted.max(axis=1)
        beyond = np.maximum(low[:, None] - x, x - high[:, None]) / (high - low)[:, None]
        if beyond.max() > FAR:
            warnings.warn(
                f"An input lies {beyond.max():.1f} times the fitted range of "
                f"{', '.join(self.law.columns)} beyond its end: the score is extrapolated.",
                ExtrapolationWarning,
                stacklevel=3,
            )


def add_bounds(
    points: pd.DataFrame, curves: FloatArray, residuals: FloatArray, level: float
) -> pd.DataFrame:
    """Add quantiles of curves (resamples, m), alone and with every residual added, to a table.

    A score cannot leave [0, 1], so neither do the bounds of a new measurement.
    """
    tails = [(1 - level) / 2, (1 + level) / 2]
    points["lower"], points["upper"] = np.quantile(curves, tails, axis=0)
    mixed = [np.quantile(curve[:, None] + residuals, tails) for curve in curves.T]
    points["run_lower"], points["run_upper"] = np.clip(np.transpose(mixed), 0.0, 1.0)
    return points


def describe_bootstrap(draws: Bootstrap) -> str:
    """Say what was resampled, how often, and what went wrong."""
    return (
        f"{len(draws)} resamples of {draws.units} units ({draws.unit}), "
        f"{draws.distinct} distinct, {draws.failed} not certified"
    )


def _as_columns(
    table: pd.DataFrame | Mapping[str, npt.ArrayLike],
) -> pd.DataFrame | Mapping[str, npt.ArrayLike]:
    if isinstance(table, Mapping):
        return {name: np.atleast_1d(np.asarray(values)) for name, values in table.items()}
    return table
