"""Train on some runs, predict others: predictions, the fits behind them, and their errors."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from toolkit.errors import ConvergenceWarning, DataError
from toolkit.numerics.compiling import FloatArray
from toolkit.results import Summary, significant
from toolkit.scaling.fit import FEW_AGREE
from toolkit.scaling.validation.candidates import Trained, Trainer
from toolkit.scaling.validation.splits import Runs, Split

__all__ = ["Validation", "unit_errors", "validate"]


@dataclass(frozen=True, slots=True)
class Validation:
    """Predictions of runs that were not fitted.

    Attributes
    ----------
    title : str
        How the runs were parted.
    by : str
        Column that says how large a run is.
    unit : str
        Column of the independent unit, or "row".
    level : float
        Nominal coverage of the bounds of the predictions.
    predictions : DataFrame
        One row per law, fold (numbered from 0) and held-out run: ``row`` of the table, its
        ``unit`` and position, ``decades`` (powers of ten beyond the largest fitted run; 0 or
        less: inside), ``observed`` and ``predicted``, ``residual`` (log of observed over
        predicted), ``percent`` (observed
        over predicted minus one), ``lower`` and ``upper`` of a single new run, and ``covered``.
    draws : mapping of (law, fold) to array, shape (resamples, held-out runs)
        Log predictions of the resamples, in the order of `predictions`; empty without bootstrap.
    fits : DataFrame
        One row per law and fold: what was ``held_out``; rows ``fitted``, ``predicted`` and
        ``left_out`` (their unit straddles); parameters, certified, agreement of starts,
        uncertified resamples, parameters not identified, and the ``reason`` where there is no fit.
    """

    title: str
    by: str
    unit: str
    level: float
    predictions: pd.DataFrame = field(repr=False)
    draws: Mapping[tuple[str, int], FloatArray] = field(repr=False)
    fits: pd.DataFrame = field(repr=False)

    @property
    def laws(self) -> list[str]:
        """Labels of the laws, in the order given."""
        return list(self.fits["law"].unique())

    @property
    def table(self) -> pd.DataFrame:
        """Errors of each law, in percent of the loss.

        ``error`` is the mean over units of the mean absolute residual of a unit, ``bias`` the
        mean residual alike (positive: the loss was higher than predicted), ``worst`` the largest
        residual, ``coverage`` the share of runs inside their bounds (NaN without bootstrap).
        """
        rows = {law: _errors(mine) for law, mine in self._by_law()}
        fits = self.fits.groupby("law", sort=False)
        table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("law")
        table.insert(0, "folds", fits["reason"].agg(lambda reasons: (reasons == "").sum()))
        table["reason"] = fits["reason"].agg(_first_reason)
        return table

    def by_decades(self, width: float = 1.0) -> pd.DataFrame:
        """Errors of each law by distance of extrapolation.

        Parameters
        ----------
        width : float
            Width of a bin in powers of ten beyond the largest fitted run. Runs inside the fitted
            range are a bin of their own.

        Returns
        -------
        DataFrame
            Indexed by law and the upper end of the bin (0: inside the range): mean distance
            ``decades`` of its predictions, then columns as in `table`.
        """
        if not 0 < width < np.inf:
            raise DataError(f"width must be a positive number of powers of ten; got {width!r}.")
        rows = {}
        for law, mine in self._by_law():
            ends = np.maximum(np.ceil(mine["decades"].to_numpy() / width - 1e-9), 0) * width
            for end in np.unique(ends):
                inside = mine[ends == end]
                distance = float(np.maximum(inside["decades"], 0.0).mean())
                rows[law, float(end)] = {"decades": distance, **_errors(inside)}
        index = pd.MultiIndex.from_tuples(list(rows), names=["law", "decades_up_to"])
        return pd.DataFrame(list(rows.values()), index=index)

    def to_frame(self) -> pd.DataFrame:
        """Errors of each law; see `table`."""
        return self.table

    def summary(self) -> Summary:
        """Errors, coverage and the fits behind them, as text or HTML."""
        table = self.table
        shown = table.drop(columns=["reason"]).map(_short)
        if table["coverage"].isna().all():
            shown = shown.drop(columns=["coverage"])
        folds = self.fits["fold"].nunique()
        held_out = self.predictions["row"].nunique()
        facts = [
            ("held out", f"{self.title}; {folds} fold{'s' if folds > 1 else ''}"),
            ("runs predicted", f"{held_out}, independent unit: {self.unit}"),
            ("farthest", f"{self.predictions['decades'].max():.1f} powers of ten of {self.by}"),
            ("errors", "% of the loss, mean over units of the mean absolute residual"),
        ]
        return Summary("Held-out errors", facts, shown, self._notes(table))

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def _by_law(self) -> list[tuple[str, pd.DataFrame]]:
        return [(law, self.predictions[self.predictions["law"] == law]) for law in self.laws]

    def _notes(self, table: pd.DataFrame) -> list[str]:
        notes = [f"{law}: {reason}" for law, reason in table["reason"].items() if reason]
        for law, fits in self.fits.groupby("law", sort=False):
            uncertified = int((fits["certified"] == False).sum())  # noqa: E712 - None: not fitted
            if uncertified:
                notes.append(f"{law}: {uncertified} of {len(fits)} fits are NOT certified")
            draws = int(fits["uncertified_draws"].sum())
            if draws:
                notes.append(f"{law}: {draws} resamples are NOT certified; they are kept")
            unsure = [names for names in fits["not_identified"] if names]
            if unsure:
                names = ", ".join(dict.fromkeys(", ".join(unsure).split(", ")))
                notes.append(f"{law}: {names} not identified in {len(unsure)} of {len(fits)} fits")
        return notes


def validate(
    trainers: Mapping[str, Trainer],
    runs: Runs,
    splits: Sequence[Split],
    level: float,
    title: str,
) -> Validation:
    """Train and predict every law on every split; what cannot be fitted is kept with its reason."""
    fits, predictions, draws = [], [], {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for label, trainer in trainers.items():
            for fold, split in enumerate(splits):
                names: dict[str, Any] = {"law": label, "fold": fold}
                record = {**names, "held_out": split.name, **_sizes(split)}
                try:
                    trained = _train(trainer, runs, split)
                    predictions.append(_predict(trained, runs, split).assign(**names))
                except DataError as error:
                    fits.append({**record, **_NO_FIT, "reason": str(error)})
                    continue
                fits.append({**record, **_record(trained)})
                draws[label, fold] = trained.draws(_test_runs(runs, split))
    _repeat(caught, len(fits))
    _warn_poor(pd.DataFrame(fits))
    columns = ["law", "fold", *_COLUMNS[:2], runs.by, *_COLUMNS[2:]]
    table = pd.DataFrame(columns=columns)
    if predictions:
        table = pd.concat(predictions, ignore_index=True)[columns]
    return Validation(title, runs.by, runs.unit, level, table, draws, pd.DataFrame(fits))


_COLUMNS = (
    "row",
    "unit",
    "decades",
    "observed",
    "predicted",
    "residual",
    "percent",
    "lower",
    "upper",
    "covered",
)


_NO_FIT = {
    "parameters": None,
    "certified": None,
    "agreement": np.nan,
    "uncertified_draws": 0,
    "not_identified": "",
}


def _train(trainer: Trainer, runs: Runs, split: Split) -> Trained:
    if not split.train.any():
        raise DataError(f"Without {split.name} no run is left to fit.")
    return trainer(runs.table[split.train].reset_index(drop=True))


def _test_runs(runs: Runs, split: Split) -> pd.DataFrame:
    return runs.table[split.test].reset_index(drop=True)


def _sizes(split: Split) -> dict[str, int]:
    return {
        "fitted": int(split.train.sum()),
        "predicted": int(split.test.sum()),
        "left_out": int((~split.train & ~split.test).sum()),
    }


def _record(trained: Trained) -> dict[str, Any]:
    return {
        "parameters": trained.parameters,
        "certified": trained.certified,
        "agreement": trained.agreement,
        "uncertified_draws": trained.uncertified_draws,
        "not_identified": ", ".join(trained.not_identified),
        "reason": "",
    }


def _predict(trained: Trained, runs: Runs, split: Split) -> pd.DataFrame:
    rows = np.flatnonzero(split.test)
    points = trained.predict(_test_runs(runs, split))
    observed = runs.observed[rows]
    residual = np.log(observed) - np.log(points["predicted"].to_numpy())
    inside = pd.Series((observed >= points["lower"]) & (observed <= points["upper"]))
    return points.assign(
        row=rows,
        unit=runs.units[runs.unit_of[rows]],
        **{runs.by: runs.position[rows]},
        decades=np.log10(runs.position[rows] / runs.position[split.train].max()),
        observed=observed,
        residual=residual,
        percent=100 * np.expm1(residual),
        covered=inside.astype("boolean").mask(points["lower"].isna()),
    )


def _repeat(caught: Sequence[warnings.WarningMessage], fits: int) -> None:
    """Give each kind of warning once, with how often it came."""
    for category in dict.fromkeys(message.category for message in caught):
        texts = [str(message.message) for message in caught if message.category is category]
        count = f"{len(texts)} warnings in {fits} fits; the first: " if len(texts) > 1 else ""
        warnings.warn(f"{count}{texts[0]}", category, stacklevel=4)


def _warn_poor(fits: pd.DataFrame) -> None:
    poor = fits[(fits["certified"] == False) | (fits["agreement"] < FEW_AGREE)]  # noqa: E712
    if len(poor):
        names = ", ".join(poor["law"].unique())
        warnings.warn(
            f"{len(poor)} of {len(fits)} fits ({names}) are not certified "
            "or few of their starts agree; a better optimum may exist. See `fits`.",
            ConvergenceWarning,
            stacklevel=4,
        )


def unit_errors(predictions: pd.DataFrame) -> pd.Series:
    """Mean absolute residual of each unit, in percent of the loss."""
    size = 100 * predictions["residual"].astype(float).abs()
    return size.groupby(predictions["unit"]).mean()


def _errors(predictions: pd.DataFrame) -> dict[str, float]:
    residual = 100 * predictions["residual"].astype(float)
    covered = predictions["covered"].dropna()
    return {
        "predictions": len(predictions),
        "units": predictions["unit"].nunique(),
        "error": unit_errors(predictions).mean(),
        "bias": residual.groupby(predictions["unit"]).mean().mean(),
        "worst": residual.iloc[int(residual.abs().argmax())] if len(residual) else np.nan,
        "coverage": float(covered.astype(float).mean()) if len(covered) else np.nan,
    }


def _first_reason(reasons: pd.Series) -> str:
    """Return why folds are missing: the first reason, and how many folds there are like it."""
    missing = reasons[reasons != ""]
    if missing.empty:
        return ""
    return f"no fit in {len(missing)} of {len(reasons)} folds: {missing.iloc[0]}"


def _short(value: float) -> str:
    return "-" if np.isnan(value) else significant(value, 3)
