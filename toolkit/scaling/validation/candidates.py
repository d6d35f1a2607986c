"""What a validation trains: laws with their options, and the baselines that every law must beat."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from toolkit.errors import (
    ConvergenceWarning,
    DataError,
    ExtrapolationWarning,
    IdentifiabilityWarning,
)
from toolkit.numerics.compiling import FloatArray
from toolkit.scaling import laws as catalogue
from toolkit.scaling.fit import fit
from toolkit.scaling.law import Law
from toolkit.scaling.laws.kaplan import KAPLAN_FLOPS
from toolkit.scaling.result import ScalingFit

__all__ = [
    "Candidate",
    "Trained",
    "Trainer",
    "baselines",
    "law_trainer",
    "read_laws",
]

Candidate = str | Law | tuple[str | Law, Mapping[str, Any]]
OWN = ("starts", "fixed")  # options of one law, which make no sense for another
SHARED = ("target", "cluster", "bootstrap", "rng")  # options without which laws do not compare


@dataclass(frozen=True, slots=True)
class Trained:
    """What a training set gave.

    Attributes
    ----------
    predict : callable
        From a table of runs to a table of ``predicted``, ``lower`` and ``upper`` (NaN without
        bootstrap; bounds of a single new run), one row per run.
    draws : callable
        From a table of m runs to the log predictions of the resamples, shape (resamples, m);
        no resamples without bootstrap.
    parameters : int
        Numbers taken from the data.
    certified : bool
        Whether the optimum is certified.
    agreement : float
        Share of starts that reach it; NaN where nothing is searched.
    uncertified_draws : int
        Resamples without a certified optimum.
    not_identified : tuple of str
        Parameters that the data leave open.
    """

    predict: Callable[[pd.DataFrame], pd.DataFrame]
    draws: Callable[[pd.DataFrame], FloatArray]
    parameters: int
    certified: bool
    agreement: float
    uncertified_draws: int
    not_identified: tuple[str, ...]


Trainer = Callable[[pd.DataFrame], Trained]


def read_laws(
    laws: Candidate | Sequence[Candidate] | Mapping[str, Candidate],
) -> dict[str, tuple[Law, dict[str, Any]]]:
    """Turn names, laws, and laws with options into laws and options by label."""
    if isinstance(laws, Mapping):
        return {str(label): _read_law(given) for label, given in laws.items()}
    if isinstance(laws, (str, Law)) or _has_options(laws):
        laws = [laws]  # type: ignore[list-item]
    read = [_read_law(given) for given in laws]  # type: ignore[arg-type]
    labels = [law.name for law, _ in read]
    doubled = sorted({label for label in labels if labels.count(label) > 1})
    if doubled:
        raise DataError(
            f"The law {', '.join(doubled)} is given twice; tell the two apart by a mapping of "
            "label to law."
        )
    return dict(zip(labels, read, strict=True))


def _has_options(given: object) -> bool:
    return isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], Mapping)


def _read_law(given: Candidate) -> tuple[Law, dict[str, Any]]:
    if isinstance(given, (str, Law)):
        return catalogue.get(given), {}
    if not _has_options(given):
        raise DataError(f"A law is a name, a Law, or a pair (law, options of fit); got {given!r}.")
    shared = [name for name in SHARED if name in given[1]]
    if shared:
        raise DataError(f"Give {', '.join(shared)} for all laws alike, not as an option of one.")
    return catalogue.get(given[0]), dict(given[1])


def law_trainer(law: Law, options: Mapping[str, Any], level: float) -> Trainer:
    """Return what fits a law with options of `fit`; predictions carry bounds at a level."""

    def train(table: pd.DataFrame) -> Trained:
        with warnings.catch_warnings():
            # The table of fits tells both for each fit; a warning for each would drown it.
            warnings.simplefilter("ignore", IdentifiabilityWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            result = fit(law, table, **options)
        identified = result.identifiability().identified
        return Trained(
            lambda points: _predict(result, points, level),
            lambda points: _draws(result, points),
            len(law.parameters) - len(options.get("fixed") or ()),
            result.certified,
            result.agreement,
            0 if result.bootstrap is None else result.bootstrap.failed,
            tuple(identified.index[~identified]),
        )

    return train


def _predict(result: ScalingFit, points: pd.DataFrame, level: float) -> pd.DataFrame:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)  # extrapolating is the purpose
        predicted = result.predict(points[list(result.law.columns)], level=level)
    nothing = np.full(len(points), np.nan)
    return pd.DataFrame(
        {
            "predicted": predicted[result.problem.target].to_numpy(),
            "lower": predicted.get("run_lower", nothing),
            "upper": predicted.get("run_upper", nothing),
        }
    )


def _draws(result: ScalingFit, points: pd.DataFrame) -> FloatArray:
    if result.bootstrap is None:
        return np.empty((0, len(points)))
    x = result.problem.inputs(points)
    curves = [result.law.evaluate_working(theta, x)[0] for theta in result.bootstrap.theta]
    return np.array(curves)


def baselines(target: str, options: Mapping[str, Any], level: float) -> dict[str, Trainer]:
    """Return the two baselines: no progress beyond the best run, and a line in log compute."""
    shared = {name: value for name, value in options.items() if name not in OWN}
    return {
        f"lowest {target} so far": _lowest_trainer(target),
        "power law in compute": law_trainer(KAPLAN_FLOPS, shared, level),
    }


def _lowest_trainer(target: str) -> Trainer:
    def train(table: pd.DataFrame) -> Trained:
        lowest = float(table[target].min())

        def predict(points: pd.DataFrame) -> pd.DataFrame:
            nothing = np.full(len(points), np.nan)
            return pd.DataFrame({"predicted": lowest, "lower": nothing, "upper": nothing})

        return Trained(predict, lambda points: np.empty((0, len(points))), 1, True, np.nan, 0, ())

    return train
