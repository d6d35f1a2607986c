"""Fit some runs, predict others: how wrong a law is where it was not fitted."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit.errors import DataError
from toolkit.results import check_level
from toolkit.scaling.validation.candidates import (
    Candidate,
    Trainer,
    baselines,
    law_trainer,
    read_laws,
)
from toolkit.scaling.validation.held_out import Validation, validate
from toolkit.scaling.validation.splits import Runs, group_splits, largest_split, rolling_splits

__all__ = ["backtest", "hold_out", "leave_one_group_out", "prepare"]

Table = pd.DataFrame | Mapping[str, npt.ArrayLike]


def hold_out(
    law: Candidate,
    runs: Table,
    by: str = "flops",
    *,
    share: float | None = None,
    above: float | None = None,
    cluster: str | None = None,
    target: str = "loss",
    level: float = 0.95,
    **fit_options: Any,
) -> Validation:
    """Fit without the largest runs, and predict them.

    Parameters
    ----------
    law : str, Law or (law, options of `fit`)
    runs : DataFrame or mapping
        One row per run or checkpoint.
    by : str
        Column of positive numbers that says how large a run is; ``flops`` is ``6 N D`` where the
        table has no such column.
    share : float, optional
        Share of the units held out, in (0, 1); 0.2 by default. Units that tie stay together.
    above : float, optional
        Hold out what lies above this value instead.
    cluster : str, optional
        Column of the independent unit; it is never both fitted and predicted. By default ``run``
        where some run has several rows. Earlier rows of a unit held out are left out.
    target : str
        Column that is predicted.
    level : float
        Nominal coverage of the bounds of the predictions, in (0, 1).
    **fit_options
        Options of `fit`; with ``bootstrap`` the predictions have bounds.

    Returns
    -------
    Validation

    Raises
    ------
    DataError
        If nothing is left to fit or to predict, or the law cannot be fitted.

    Warns
    -----
    ConvergenceWarning
        If fits are not certified or few starts agree; which, and what is not identified, is in
        ``fits``.
    SmallSampleWarning
        If a bootstrap has fewer than 10 independent units.

    Examples
    --------
    >>> import toolkit as tk
    >>> runs = tk.datasets.load("simulated_runs")
    >>> held_out = tk.scaling.hold_out("chinchilla", runs, above=1e21)
    >>> bool(held_out.table.loc["chinchilla", "error"] < 1.0)  # percent; the noise is 0.5 %
    True
    """
    checked = Runs.read(runs, by, target, cluster)
    trainers = prepare([law], checked, level, fit_options)
    splits = [largest_split(checked, share, above)]
    return _must_fit(validate(trainers, checked, splits, level, splits[0].name))


def leave_one_group_out(
    law: Candidate,
    runs: Table,
    group: str,
    by: str = "flops",
    *,
    cluster: str | None = None,
    target: str = "loss",
    level: float = 0.95,
    **fit_options: Any,
) -> Validation:
    """Fit without each group of runs in turn, and predict it.

    Parameters
    ----------
    law, runs, by, cluster, target, level, **fit_options
        See `hold_out`. Units that have rows in the group are left out with it.
    group : str
        Column that names the group of each row: a size, a family, a recipe.

    Returns
    -------
    Validation
        One fold per group. Groups without which the law cannot be fitted give a reason.

    Examples
    --------
    >>> import toolkit as tk
    >>> runs = tk.datasets.load("simulated_runs")
    >>> runs["budget"] = runs["flops"].map("{:.0e}".format)
    >>> len(tk.scaling.leave_one_group_out("chinchilla", runs, "budget").fits)
    8
    """
    checked = Runs.read(runs, by, target, cluster, group)
    trainers = prepare([law], checked, level, fit_options)
    splits = group_splits(checked, group)
    return _must_fit(validate(trainers, checked, splits, level, f"each {group} in turn"))


def backtest(
    laws: Candidate | Sequence[Candidate] | Mapping[str, Candidate],
    runs: Table,
    by: str = "flops",
    *,
    levels: npt.ArrayLike | None = None,
    horizon: float | None = None,
    cluster: str | None = None,
    target: str = "loss",
    level: float = 0.95,
    **fit_options: Any,
) -> Validation:
    """Fit the runs up to a level of compute, predict the later ones, and move the level up.

    Parameters
    ----------
    laws : law, sequence or mapping of label to law
        Each a name, a `Law`, or a pair of it and options of `fit`.
    runs, by, cluster, target, level, **fit_options
        See `hold_out`.
    levels : array_like, optional
        Levels of `by`; every half power of ten by default.
    horizon : float, optional
        Powers of ten above the level that are predicted: 1 is the next one. All by default.

    Returns
    -------
    Validation
        One fold per level; `Validation.by_decades` gives the error by distance. A law that
        cannot be fitted to few runs gives a reason for those folds.

    Examples
    --------
    >>> import toolkit as tk
    >>> runs = tk.datasets.load("simulated_runs")
    >>> rolling = tk.scaling.backtest("chinchilla", runs, levels=[1e20, 1e21])
    >>> rolling.by_decades().index.get_level_values("decades_up_to").tolist()
    [1.0, 2.0]
    """
    checked = Runs.read(runs, by, target, cluster)
    trainers = prepare(laws, checked, level, fit_options)
    splits = rolling_splits(checked, levels, horizon)
    reach = "all later runs" if horizon is None else f"the next {horizon:g} powers of ten"
    return validate(trainers, checked, splits, level, f"{reach} above a rising level of {by}")


def prepare(
    laws: Candidate | Sequence[Candidate] | Mapping[str, Candidate],
    runs: Runs,
    level: float,
    fit_options: Mapping[str, Any],
    *,
    with_baselines: bool = False,
) -> dict[str, Trainer]:
    """Turn laws into what can be trained, by label; options of one law override shared ones."""
    check_level(level)
    shared = {**fit_options, "cluster": runs.cluster}
    shared["target"] = runs.target
    if shared.get("bootstrap"):  # one seed: every law sees the same resamples of a training set
        rng = shared.get("rng")
        whole = isinstance(rng, (int, np.integer))
        shared["rng"] = rng if whole else int(np.random.default_rng(rng).integers(2**62))
    read = read_laws(laws)
    trainers = {
        label: law_trainer(law, {**shared, **own}, level) for label, (law, own) in read.items()
    }
    if not with_baselines:
        return trainers
    return {**trainers, **baselines(runs.target, shared, level)}


def _must_fit(validation: Validation) -> Validation:
    if validation.predictions.empty:
        raise DataError(f"No fold can be fitted. {validation.fits['reason'].iloc[0]}")
    return validation
