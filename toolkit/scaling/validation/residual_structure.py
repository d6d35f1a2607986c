"""Where the residuals of a fit are large, whether neighbours share them, and what that does."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray, IntArray
from toolkit.resampling import Resampling
from toolkit.results import Summary, significant
from toolkit.scaling.allocation import FLOPS_PER_PARAM_TOKEN, size_exponent
from toolkit.scaling.influence import leave_one_out
from toolkit.scaling.result import ScalingFit
from toolkit.scaling.validation.residual_signs import correlation_table, log_bins

__all__ = ["ResidualStructure", "residual_structure"]


@dataclass(frozen=True, slots=True)
class ResidualStructure:
    """Where the residuals of a fit are large, and what that does.

    Attributes
    ----------
    fit : ScalingFit
        The fit.
    positions : DataFrame
        Indexed by column and bin: ``low`` and ``high`` end, ``rows``, mean, mean absolute and
        standard deviation of the residuals (log of observed over fitted loss).
    correlations : DataFrame
        One row per grouping: number of ``groups``, intraclass correlation of the signs of the
        residuals inside them, its 95 % point when residuals are permuted over the rows
        (``reference``), and the share of permutations that reach it (``p``).
    influence : DataFrame
        One row per bin of compute, the most influential first: its ends, ``rows``, mean
        ``residual``, and the change of each parameter (and of ``params_exponent``) when the bin
        is left out.
    row_influence : DataFrame
        One row per run, in the order of ``fit.runs``: the same when that run is left out.
    spread : DataFrame or None
        One row per unit of resampling: number of ``units`` and the standard deviation of each
        parameter (and of ``params_exponent``) over resamples.
    """

    fit: ScalingFit = field(repr=False)
    positions: pd.DataFrame = field(repr=False)
    correlations: pd.DataFrame
    influence: pd.DataFrame = field(repr=False)
    row_influence: pd.DataFrame = field(repr=False)
    spread: pd.DataFrame | None = field(repr=False)

    @property
    def table(self) -> pd.DataFrame:
        """Residuals by bin of each column; see `positions`."""
        return self.positions

    def to_frame(self) -> pd.DataFrame:
        """Return the residuals by bin of each column; see `positions`."""
        return self.positions

    def summary(self) -> Summary:
        """Correlation of signs, the most influential bin and the spread, as text or HTML."""
        quantity = self.influence.columns[-1]
        first = self.influence.iloc[0]
        facts = [
            ("residuals", f"{self.fit.residuals.abs().median():.2%} of the loss (median)"),
            (
                "most influential",
                f"{first['rows']:.0f} rows, {self._binned} {first['low']:.2g} to "
                f"{first['high']:.2g}: {quantity} moves by {first[quantity]:+.4f} without them",
            ),
        ]
        if self.spread is not None:
            facts += [
                (f"spread of {quantity}", f"{row[quantity]:.4f} ({row['units']:.0f} units: {unit})")
                for unit, row in self.spread.iterrows()
            ]
        related = self.correlations.index[self.correlations["p"] < 0.05]
        notes = [
            "correlation: of the signs of residuals about their median, inside groups; reference: "
            "its 95 % point when residuals are permuted over the rows",
            *(
                f"residuals with the same {g} lie on the same side: not independent"
                for g in related
            ),
        ]
        table = self.correlations.map(
            lambda value: "-" if np.isnan(value) else significant(value, 3)
        )
        return Summary("Structure of the residuals", facts, table, notes)

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    @property
    def _binned(self) -> str:
        return str(self.influence.index.name)


def residual_structure(
    fit: ScalingFit,
    *,
    width: float = 0.25,
    resamples: int = 0,
    rng: np.random.Generator | int | None = None,
) -> ResidualStructure:
    """Look for structure in the residuals of a fit, by position of the runs.

    Exchangeable noise leaves none: bins have mean residuals around zero, runs of equal size lie
    on either side of the law, and it does not matter what a bootstrap resamples. Where that
    fails, intervals over single rows are too narrow: see ``cluster`` of `fit`.

    Parameters
    ----------
    fit : ScalingFit
        A fit of any law; the bins of influence are of compute where the law has size and data,
        else of its first column.
    width : float
        Width of the bins in natural logarithms; 0.25 is a factor of 1.28.
    resamples : int
        Bootstrap resamples for the spread by unit of resampling: rows, equal first column, bins
        of compute of `width` and of 1. 0: not computed.
    rng : Generator, int or None
        Source of permutations and resamples.

    Returns
    -------
    ResidualStructure

    Examples
    --------
    >>> import toolkit as tk
    >>> runs = tk.datasets.load("simulated_runs")
    >>> fit = tk.scaling.fit("chinchilla", runs)
    >>> structure = tk.scaling.residual_structure(fit, width=1.0, rng=0)
    >>> int(structure.influence["rows"].sum())
    56
    """
    generator = np.random.default_rng(rng)
    columns = _columns(fit)
    size, budget = fit.law.columns[0], list(columns)[-1]
    bins = {name: log_bins(values, width) for name, values in columns.items()}
    groups: dict[str, IntArray] = {size: pd.factorize(fit.runs[size])[0]}
    groups.update({f"{name}, bins of {width:g}": number for name, number in bins.items()})
    spread = None
    if resamples:
        wide = {f"{budget}, bins of 1": log_bins(columns[budget], 1.0)}
        near = {size: groups[size], f"{budget}, bins of {width:g}": bins[budget], **wide}
        spread = _spread(fit, near, resamples, generator)
    return ResidualStructure(
        fit,
        pd.concat({name: _by_bin(fit, columns[name], bins[name]) for name in columns}).rename_axis(
            ["column", "bin"]
        ),
        correlation_table(fit.residuals.to_numpy(), groups, generator),
        _influence(fit, columns[budget], bins[budget], budget),
        leave_one_out(replace(fit, cluster=None)).sort_index(),
        spread,
    )


def _columns(fit: ScalingFit) -> dict[str, FloatArray]:
    """Columns to lay the residuals out by; compute last, where the law has size and data."""
    positive = [name for name in fit.law.columns if (fit.runs[name] > 0).all()]
    if not positive:
        raise DataError(f"The {fit.law.title} has no column of positive numbers to bin.")
    columns = {name: fit.runs[name].to_numpy(dtype=np.float64) for name in positive}
    if {"params", "tokens"} <= set(positive):
        columns.pop("flops", None)
        columns["flops"] = FLOPS_PER_PARAM_TOKEN * columns["params"] * columns["tokens"]
    return columns


def _by_bin(fit: ScalingFit, values: FloatArray, bins: IntArray) -> pd.DataFrame:
    frame = pd.DataFrame({"value": values, "residual": fit.residuals, "bin": bins})
    groups = frame.groupby("bin")
    residual = groups["residual"]
    return pd.DataFrame(
        {
            "low": groups["value"].min(),
            "high": groups["value"].max(),
            "rows": groups.size(),
            "mean": residual.mean(),
            "mean_absolute": residual.agg(lambda part: part.abs().mean()),
            "sd": residual.std(),
        }
    )


def _influence(fit: ScalingFit, values: FloatArray, bins: IntArray, name: str) -> pd.DataFrame:
    """Leave out each bin; NaN where the rest are too few to fit the law."""
    if (bins == bins[0]).all():
        raise DataError(f"All runs lie in one bin of {name}; give a smaller width.")
    binned = replace(fit, runs=fit.runs.assign(bin=bins), cluster="bin", bootstrap=None)
    table = leave_one_out(binned)
    points = fit.runs[list(fit.law.columns)]
    enough = [len(points[bins != b].drop_duplicates()) > _free(fit) for b in table.index]
    changes = list(table.columns[2:])
    table[changes] = table[changes].where(pd.Series(enough, table.index), np.nan)
    ends = pd.Series(values).groupby(bins).agg(["min", "max"]).loc[table.index]
    table.insert(0, "low", ends["min"])
    table.insert(1, "high", ends["max"])
    return table.sort_values(changes[-1], key=np.abs, ascending=False, kind="stable").rename_axis(
        name
    )


def _free(fit: ScalingFit) -> int:
    return int((~fit.problem.pinned).sum())


def _spread(
    fit: ScalingFit, groups: Mapping[str, IntArray], resamples: int, generator: np.random.Generator
) -> pd.DataFrame:
    rows = {}
    for name, group in {"row": np.arange(len(fit.runs)), **groups}.items():
        units = len(np.unique(group))
        if units > 1:
            values = _resampled(fit, pd.Series(group, name=name), resamples, generator)
            rows[name] = {"units": units, **_deviations(fit, values)}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("unit")


def _deviations(fit: ScalingFit, values: FloatArray) -> dict[str, float]:
    names = fit.law.parameter_names
    deviations = dict(zip(names, values.std(axis=0).tolist(), strict=True))
    if fit.law.allocate is not None:
        deviations["params_exponent"] = float(np.nanstd(size_exponent(fit.law, values)))
    return deviations


def _resampled(
    fit: ScalingFit, units: pd.Series, resamples: int, generator: np.random.Generator
) -> FloatArray:
    """Parameter values of resamples of some unit, shape (resamples, p)."""
    problem = fit.problem
    plan = Resampling.plan(resamples, units, problem.weights, generator)
    theta = [
        problem.minimise(plan.weights(counts), fit.theta[None, :], near=fit.theta).theta
        for counts in plan.blocks()
    ]
    return problem.values_of(np.concatenate(theta))
