"""The compute-optimal frontier as two power laws: best size and best data against compute."""

import warnings
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit import tables
from toolkit.errors import DataError, ExtrapolationWarning, SmallSampleWarning
from toolkit.numerics.compiling import FloatArray
from toolkit.results import Summary, bootstrap_interval, significant

__all__ = ["FEW_BUDGETS", "FrontierFit", "power_laws"]

FEW_BUDGETS = 4  # below this, nothing shows whether the frontier is straight
FAR = 10.0  # compute beyond the largest budget, as a factor, from which a warning is due
REASONS_NAMED = 4
OFTEN = 0.8  # share of resamples in which the minimum of a budget should lie inside its sizes


def power_laws(flops: FloatArray, params: FloatArray, tokens: FloatArray) -> FloatArray:
    """Fit ``params = G flops**a`` and ``tokens = H flops**b`` by least squares on logarithms.

    Parameters
    ----------
    flops : array, shape (m,)
        Budgets in FLOPs.
    params, tokens : array, shape (..., m)
        Optima; NaN where a budget has none, in both alike.

    Returns
    -------
    array, shape (..., 4)
        a, G, b, H; NaN where fewer than two budgets have an optimum.
    """
    logs = np.log(flops)
    found = np.isfinite(params) & np.isfinite(tokens)
    number = found.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        centred = np.where(found, logs - (found * logs).sum(-1, keepdims=True) / number, 0.0)
        spread = np.where(number >= 2, (centred**2).sum(-1, keepdims=True), np.nan)
        middle = (found * logs).sum(-1, keepdims=True) / number
        parts = []
        for optimum in (params, tokens):
            y = np.where(found, np.log(optimum), 0.0)
            exponent = (centred * y).sum(-1, keepdims=True) / spread
            intercept = y.sum(-1, keepdims=True) / number - exponent * middle
            parts += [exponent, np.exp(intercept)]
    laws: FloatArray = np.concatenate(parts, axis=-1)
    return laws


@dataclass(frozen=True, slots=True)
class FrontierFit:
    """Best model size and best data as powers of training compute.

    Attributes
    ----------
    approach : str
        How the optima were found.
    runs : DataFrame
        The checked runs, with ``budget``, the nominal compute of their group, where they have one.
    minima : DataFrame
        One row per budget: flops, sizes (how many different ones), params, tokens, loss, ``used``
        and, where it is refused, ``reason``. After a bootstrap also bounds of params (95 %) and
        ``kept``, the share of resamples in which its minimum lay inside the sizes.
    estimates : array, shape (4,)
        Exponent and coefficient of params, then of tokens.
    curves : DataFrame or None
        What the minima were read from: flops, params, loss, along the curve of every budget.
    draws : DataFrame or None
        The same of every resample; NaN where fewer than two budgets showed a minimum.
    unit : str
        What was resampled.
    """

    approach: str
    runs: pd.DataFrame = field(repr=False)
    minima: pd.DataFrame = field(repr=False)
    estimates: FloatArray = field(repr=False)
    curves: pd.DataFrame | None = field(repr=False, default=None)
    draws: pd.DataFrame | None = field(repr=False, default=None)
    unit: str = "run"

    def __post_init__(self) -> None:
        used = self.minima["used"].sum()
        if "budget" in self.runs and used < FEW_BUDGETS:
            warnings.warn(
                f"The exponent rests on {used} budgets: nothing shows whether it is constant.",
                SmallSampleWarning,
                stacklevel=4,
            )

    @property
    def params(self) -> pd.Series:
        """Exponents and coefficients by name; ``params = coefficient * flops ** exponent``."""
        return pd.Series(self.estimates, index=NAMES, name="estimate")

    @property
    def exponent(self) -> float:
        """Power of compute with which the best size grows (a of Hoffmann et al. 2022)."""
        return float(self.estimates[0])

    @property
    def refused(self) -> pd.DataFrame:
        """Budgets without a minimum that can be trusted, with the reason."""
        return self.minima[~self.minima["used"]]

    @property
    def doubtful(self) -> pd.DataFrame:
        """Budgets that are used although ``kept`` is below 0.8; none without a bootstrap."""
        if "kept" not in self.minima:
            return self.minima.iloc[:0]
        return self.minima[self.minima["used"] & (self.minima["kept"] < OFTEN)]

    @property
    def largest_flops(self) -> float:
        """Largest budget that was used."""
        return float(self.minima.loc[self.minima["used"], "flops"].max())

    def conf_int(self, level: float = 0.95) -> pd.DataFrame:
        """Percentile intervals of exponents and coefficients.

        Parameters
        ----------
        level : float
            Nominal coverage, in (0, 1).

        Returns
        -------
        DataFrame
            Columns estimate, lower, upper.

        Raises
        ------
        DataError
            If the fit has no bootstrap, or too few resamples have an exponent.
        """
        draws = self._draws()
        rows = {
            name: bootstrap_interval(value, draws[name].to_numpy(), level=level, unit=self.unit)
            for name, value in self.params.items()
        }
        return pd.DataFrame(
            {name: (i.estimate, i.lower, i.upper) for name, i in rows.items()},
            index=["estimate", "lower", "upper"],
        ).T

    def optimal_allocation(self, flops: npt.ArrayLike, *, level: float = 0.95) -> pd.DataFrame:
        """Best model size and tokens at compute budgets.

        Parameters
        ----------
        flops : array_like
            Budgets in FLOPs, m of them.
        level : float
            Nominal coverage of the bounds, in (0, 1).

        Returns
        -------
        DataFrame
            m rows: flops, params, tokens, tokens_per_param, the last three with ``_lower`` and
            ``_upper`` after a bootstrap, and ``decades_beyond``, the distance from the largest
            budget in powers of ten. There is no loss: these approaches fit none.

        Warns
        -----
        ExtrapolationWarning
            If a budget is more than 10 times the largest that was used.
        """
        table = tables.check({"flops": np.atleast_1d(flops)}, ["flops"])
        budgets = table["flops"].to_numpy()
        factor = budgets.max() / self.largest_flops
        if factor > FAR:
            warnings.warn(
                f"{np.log10(factor):.1f} powers of ten beyond the largest budget "
                f"({self.largest_flops:.2g} FLOPs): the power law is extrapolated.",
                ExtrapolationWarning,
                stacklevel=2,
            )
        point = _allocate(self.estimates[None, :], budgets)
        draws = None if self.draws is None else _allocate(self.draws.to_numpy(), budgets)
        for name, value in point.items():
            table[name] = value[0]
            if draws is not None:
                bounds = [
                    bootstrap_interval(estimate, column, level=level)
                    for estimate, column in zip(value[0], draws[name].T, strict=True)
                ]
                table[f"{name}_lower"] = [i.lower for i in bounds]
                table[f"{name}_upper"] = [i.upper for i in bounds]
        table["decades_beyond"] = np.maximum(np.log10(budgets / self.largest_flops), 0.0)
        return table

    def to_frame(self) -> pd.DataFrame:
        """Exponents and coefficients as a table, with bounds after a bootstrap."""
        return self.params.to_frame() if self.draws is None else self.conf_int()

    def summary(self) -> Summary:
        """Return the estimates, what they rest on, and every budget that was refused."""
        used = self.minima[self.minima["used"]]
        facts = [
            ("approach", self.approach),
            ("runs", str(len(self.runs))),
            ("points used", f"{len(used)} of {len(self.minima)}"),
            ("compute", f"{used['flops'].min():.3g} to {used['flops'].max():.3g} FLOPs"),
        ]
        if self.draws is not None:
            whole = int(self.draws.notna().all(axis=1).sum())
            facts.append(("bootstrap", f"{len(self.draws)} resamples ({self.unit}), {whole} fits"))
        return Summary(
            "Compute-optimal frontier", facts, self.to_frame().map(significant), self._notes()
        )

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def _notes(self) -> list[str]:
        groups = self.refused.groupby("reason", sort=False)["flops"]
        notes = []
        for reason, flops in groups:
            many = len(flops) > REASONS_NAMED
            which = f"{len(flops)} points" if many else ", ".join(f"{c:.3g}" for c in flops)
            notes.append(f"refused {which}: {reason}")
        return notes + [
            f"doubtful {row.flops:.3g}: the minimum lies inside the sizes in only {row.kept:.0%} "
            "of resamples, so it may be beyond them; add sizes on both sides"
            for row in self.doubtful.itertuples()
        ]

    def _draws(self) -> pd.DataFrame:
        if self.draws is None:
            raise DataError("This fit has no intervals; fit with bootstrap=1000 and an rng.")
        return self.draws


NAMES = ("params_exponent", "params_coefficient", "tokens_exponent", "tokens_coefficient")


def _allocate(laws: FloatArray, budgets: FloatArray) -> dict[str, FloatArray]:
    """Size, tokens and ratio, shape (draws, m) each, from laws of shape (draws, 4)."""
    exponent, coefficient, data_exponent, data_coefficient = laws.T[:, :, None]
    size = coefficient * budgets**exponent
    data = data_coefficient * budgets**data_exponent
    return {"params": size, "tokens": data, "tokens_per_param": data / size}
