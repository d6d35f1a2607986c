"""Held-out errors of several laws, their paired differences, and what these can tell."""

import numpy as np
import pandas as pd
from scipy import stats

from toolkit.numerics.compiling import FloatArray
from toolkit.scaling.validation.held_out import Validation, unit_errors

__all__ = ["LOWEST", "MISSING", "UNSURE", "WORSE", "shared_predictions", "tabulate"]

LOWEST, WORSE, UNSURE, MISSING = "lowest", "worse", "not told apart", "not fitted"


def shared_predictions(predictions: pd.DataFrame) -> pd.DataFrame:
    """Keep the predictions (run and fold) that every law with any prediction makes."""
    laws = predictions["law"].nunique()
    made = predictions.groupby(["fold", "row"])["law"].transform("nunique")
    return predictions[made == laws]


def tabulate(
    validation: Validation, whole: Validation, common: pd.DataFrame, level: float
) -> pd.DataFrame:
    """Lay out the table of a comparison; see `toolkit.scaling.validation.comparison.Comparison`.

    Parameters
    ----------
    validation, whole : Validation
        Held-out predictions, and the fit of all runs to all runs.
    common : DataFrame
        The predictions that all fitted laws share, with the unit of the intervals.
    level : float
        Joint nominal coverage of the bounds.
    """
    fits = whole.fits.set_index("law")
    held_out = validation.table
    errors = {str(law): unit_errors(mine) for law, mine in common.groupby("law", sort=False)}
    means = pd.Series({law: mine.mean() for law, mine in errors.items()}, dtype=float)
    best = "" if means.empty else str(means.idxmin())
    table = pd.DataFrame(
        {
            "parameters": fits["parameters"],
            "in_sample": whole.table["error"],
            "held_out": means,
            "predictions": held_out["predictions"],
            "units": {law: len(mine) for law, mine in errors.items()},
            "coverage": held_out["coverage"],
        },
        index=fits.index,
    )
    pairs = len(errors) * (len(errors) - 1) // 2
    rows = {
        law: _difference(
            errors[law] - errors[best],
            _training_spread(validation, common, law, best),
            level,
            pairs,
        )
        for law in errors
        if law != best
    }
    for k, name in enumerate(("difference", "lower", "upper")):
        table[name] = pd.Series({law: row[k] for law, row in rows.items()}, dtype=float)
    table["units"] = table["units"].fillna(0).astype(int)
    table["verdict"] = [_verdict(law, table.loc[law], best) for law in table.index]
    table["certified"] = fits["certified"]
    table["agreement"] = fits["agreement"]
    table["not_identified"] = fits["not_identified"]
    table["reason"] = fits["reason"].where(fits["reason"] != "", held_out["reason"])
    return table.sort_values("held_out", kind="stable")


def _difference(
    paired: pd.Series, training_spread: float, level: float, pairs: int
) -> tuple[float, float, float]:
    """Mean difference with its t interval over units, for many pairs at once.

    Its variance is that over the held-out units plus that from the training runs.
    """
    mean, units = float(paired.mean()), len(paired)
    if units < 2:
        return mean, np.nan, np.nan
    tail = (1 - level) / 2 / pairs
    error = np.hypot(paired.std(ddof=1) / np.sqrt(units), training_spread)
    reach = stats.t.ppf(1 - tail, units - 1) * error
    return mean, mean - reach, mean + reach


def _training_spread(validation: Validation, common: pd.DataFrame, law: str, best: str) -> float:
    """Give the standard deviation of the difference over resamples of the training runs.

    All laws see the same resamples. Folds share runs in unknown ways, so that their standard
    deviations are added: no correlation could give more.
    """
    rows = common[common["law"] == law]
    share = 1 / rows.groupby("unit")["row"].transform("size") / rows["unit"].nunique()
    spread = 0.0
    for fold in rows["fold"].unique():
        mine = rows[rows["fold"] == fold]
        weights = share[mine.index].to_numpy()
        sizes = [_resampled_error(validation, name, fold, mine, weights) for name in (law, best)]
        spread += float(np.std(sizes[0] - sizes[1]))
    return spread


def _resampled_error(
    validation: Validation, law: str, fold: int, rows: pd.DataFrame, weights: FloatArray
) -> FloatArray:
    """Weighted absolute residuals of some held-out rows, one sum per resample."""
    draws = validation.draws[law, fold]
    if not len(draws):  # without bootstrap, or a baseline without one
        return np.zeros(1)
    held_out = validation.predictions
    mine = (held_out["law"] == law) & (held_out["fold"] == fold)
    kept = np.isin(held_out.loc[mine, "row"], rows["row"])
    observed = np.log(rows["observed"].to_numpy(dtype=np.float64))
    sums: FloatArray = 100 * np.abs(observed - draws[:, kept]) @ weights
    return sums


def _verdict(law: str, row: pd.Series, best: str) -> str:
    if law == best:
        return LOWEST
    if np.isnan(row["held_out"]):
        return MISSING
    return WORSE if row["lower"] > 0 else UNSURE
