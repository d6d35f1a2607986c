"""Which model to fine-tune: predict the loss at full size from small trials, and rank.

Small trials mislead when models bend at different sizes: one that already falls as a power law
passes one that is still flat. The predictors here are those of Lin et al. 2024 (arXiv:2402.02314).
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from toolkit import tables
from toolkit.errors import DataError, IdentifiabilityWarning
from toolkit.numerics.compiling import FloatArray
from toolkit.scaling.fit import fit
from toolkit.scaling.laws.finetuning import finetuning_law

__all__ = ["Selection", "select_model"]

FEWEST = 3  # points of one model behind a straight line; a rectified fit needs two more
NOTHING = 1e-6  # examples that stand for none in a law of the logarithm
JUMP = 5.0  # standardised residual of a point that no longer belongs to the line


@dataclass(frozen=True, slots=True)
class Selection:
    """Models ranked by predicted loss.

    Attributes
    ----------
    table : DataFrame
        One row per model, the best first: ``model``, ``predicted``, ``trials`` (number of
        points used), ``largest`` (their largest size).
    by : str
        How it was predicted.
    size : float
        Size at which the loss is predicted.
    """

    table: pd.DataFrame
    by: str
    size: float

    @property
    def best(self) -> str:
        """Name of the model with the lowest predicted loss."""
        return str(self.table["model"].iloc[0])

    def evaluate(self, losses: pd.Series) -> pd.Series:
        """Compare with the losses that full fine-tuning gave.

        Parameters
        ----------
        losses : Series
            Loss of every model, by its name.

        Returns
        -------
        Series
            ``pearson`` and ``spearman``: correlations of predicted and true loss;
            ``relative_accuracy``: where the chosen model stands between the worst, 0, and the
            best, 1 (Lin et al. 2024).

        Raises
        ------
        DataError
            If the loss of a model is missing.
        """
        missing = sorted(set(self.table["model"]) - set(losses.index))
        if missing:
            raise DataError(f"The loss of {', '.join(map(repr, missing))} is missing.")
        true = losses.loc[self.table["model"]].to_numpy(dtype=np.float64)
        predicted = self.table["predicted"].to_numpy()
        ranks = [rankdata(values) for values in (predicted, true)]
        return pd.Series(
            {
                "pearson": _correlation(predicted, true),
                "spearman": _correlation(ranks[0], ranks[1]),
                "relative_accuracy": float((true.max() - true[0]) / (true.max() - true.min())),
            }
        )


def select_model(
    trials: pd.DataFrame,
    size: float,
    *,
    by: str = "accept_then_stop",
    column: str = "examples",
    target: str = "loss",
) -> Selection:
    """Rank models by the loss that full fine-tuning will give, from trials on small subsets.

    Parameters
    ----------
    trials : DataFrame
        One row per trial: ``model``, `column` (0 for the model as it is), `target`, and
        ``params`` for ``by="size"``.
    size : float
        Examples of the full fine-tuning.
    by : {"accept_then_stop", "rectified", "small_subset", "zero_shot", "size"}
        ``accept_then_stop``: a straight line, in logarithms, through the trials of a model from
        its largest downwards, until one departs by more than 5 standard deviations of the
        others (the flat part begins); ``rectified``: the rectified law (`finetuning_law`) fitted
        to each model by least squares; baselines: the loss of the largest trial, of the model as
        it is, or minus the logarithm of its size (the largest model is the best).
    column, target : str
        Names of the columns.

    Returns
    -------
    Selection

    Raises
    ------
    DataError
        If a column is missing, a trial is repeated, or a model has too few trials.

    Notes
    -----
    On the 30 models of ``finetuning_losses``, trials on up to an eighth of the data, the
    correlation with the true loss is 0.91 (FLAN) and 0.99 (Gigaword) for ``accept_then_stop``,
    against 0.61 and 0.93 for the largest trial alone; it falls with the size of the trials.

    Examples
    --------
    >>> import pandas as pd
    >>> from toolkit.scaling import select_model
    >>> trials = pd.DataFrame({
    ...     "model": ["flat"] * 4 + ["steep"] * 4,
    ...     "examples": [200, 400, 800, 1600] * 2,
    ...     "loss": [2.0, 1.98, 1.96, 1.94, 3.0, 2.7, 2.43, 2.19],
    ... })
    >>> select_model(trials, 50_000).best, select_model(trials, 50_000, by="small_subset").best
    ('steep', 'flat')
    """
    if by not in _PREDICTORS:
        raise DataError(f"by must be one of {', '.join(_PREDICTORS)}; got {by!r}.")
    if not 0 < size < np.inf:
        raise DataError(f"size must be a positive number of {column}; got {size!r}.")
    table = _check(trials, column, target, needs_params=by == "size")
    rows = []
    for model, own in table.groupby("model", sort=False):
        own = own.sort_values("data")
        predicted = _PREDICTORS[by](own, size, str(model))
        rows.append((str(model), predicted, len(own), float(own["data"].max())))
    ranked = pd.DataFrame(rows, columns=["model", "predicted", "trials", "largest"])
    ranked = ranked.sort_values("predicted", kind="stable").reset_index(drop=True)
    return Selection(ranked, by, float(size))


def _check(trials: pd.DataFrame, column: str, target: str, needs_params: bool) -> pd.DataFrame:
    names = ["model", column, target, *(["params"] if needs_params else [])]
    table = tables.check(trials, names)
    data = table[column]
    if not (pd.api.types.is_numeric_dtype(data) and np.all(np.isfinite(data) & (data >= 0))):
        raise DataError(f"Column {column!r} must hold numbers, 0 for the model as it is.")
    table[target] = tables.check_positive(table[target], target)
    mend = f"Average repeated trials: one row per model and {column}."
    tables.check_keys(table, ["model", column], mend)
    return table.rename(columns={column: "data", target: "loss"})


def _line(trials: pd.DataFrame, size: float, model: str) -> float:
    """Extrapolate a line through the last points; walk down until one does not belong to it."""
    used = trials[trials["data"] > 0]
    x, y = np.log(used["data"].to_numpy(float)), np.log(used["loss"].to_numpy(float))
    if len(x) < FEWEST:
        raise DataError(
            f"Model {model!r} has {len(x)} trials with data; at least {FEWEST} are needed to see "
            "where its loss begins to fall. Add trials, or use by='small_subset'."
        )
    count = FEWEST
    while count < len(x):
        slope, level = np.polyfit(x[-count:], y[-count:], 1)
        spread = np.std(y[-count:] - (slope * x[-count:] + level))
        departure = abs(y[-count - 1] - (slope * x[-count - 1] + level))
        if departure > JUMP * spread:
            break
        count += 1
    slope, level = np.polyfit(x[-count:], y[-count:], 1)
    return float(np.exp(slope * np.log(size) + level))


def _rectified(trials: pd.DataFrame, size: float, model: str) -> float:
    """Extrapolate the rectified law; the model as it is counts as fine-tuned on next to nothing."""
    used = trials.assign(data=trials["data"].clip(lower=NOTHING))[["data", "loss"]]
    if len(used) < FEWEST + 2:
        raise DataError(
            f"Model {model!r} has {len(used)} trials; the rectified law needs "
            f"{FEWEST + 2}. Add trials, or use by='accept_then_stop'."
        )
    law = finetuning_law("data")
    with warnings.catch_warnings():  # only the prediction counts, not what each parameter is
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        found = fit(law, used, loss="squared")
    return float(law.predict(found.values, {"data": [size]})[0])


def _small_subset(trials: pd.DataFrame, size: float, model: str) -> float:
    return float(trials["loss"].iloc[-1])


def _zero_shot(trials: pd.DataFrame, size: float, model: str) -> float:
    if trials["data"].iloc[0] != 0:
        raise DataError(f"Model {model!r} has no row with 0 examples, its loss as it is.")
    return float(trials["loss"].iloc[0])


def _size(trials: pd.DataFrame, size: float, model: str) -> float:
    return -float(np.log(trials["params"].iloc[0]))


_PREDICTORS: Mapping[str, Callable[[pd.DataFrame, float, str], float]] = {
    "accept_then_stop": _line,
    "rectified": _rectified,
    "small_subset": _small_subset,
    "zero_shot": _zero_shot,
    "size": _size,
}


def _correlation(a: FloatArray, b: FloatArray) -> float:
    return float(np.corrcoef(a, b)[0, 1])
