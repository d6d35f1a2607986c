"""Back-test of score predictions: fit small runs, predict the large ones, in two steps and one."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit import tables
from toolkit.errors import DataError, ExtrapolationWarning
from toolkit.results import Summary, significant
from toolkit.scaling.allocation import FLOPS_PER_PARAM_TOKEN
from toolkit.scaling.downstream.score_fit import fit_score
from toolkit.scaling.downstream.score_laws import SCORE_LAWS, ScoreLaw
from toolkit.scaling.downstream.two_step import two_step
from toolkit.scaling.law import Law

__all__ = ["ScoreBacktest", "backtest_scores"]

TWO_STEP = "two-step"
ONE_STEP = tuple(name for name, law in SCORE_LAWS.items() if law.columns != ("loss",))


@dataclass(frozen=True, slots=True)
class ScoreBacktest:
    """Predicted and observed scores of runs that were not fitted.

    Attributes
    ----------
    predictions : DataFrame
        One row per task, method and target run: ``task`` (where there are several), ``method``,
        the run, ``params``, ``tokens``, ``flops``, ``score``, ``predicted``, ``error`` (predicted
        minus observed), ``relative_error``, and after a bootstrap ``lower``, ``upper`` (of a new
        run) and ``covered``.
    train_flops : float
        Largest compute that was fitted.
    fitted, targets : int
        Numbers of runs on either side, over all tasks.
    """

    predictions: pd.DataFrame = field(repr=False)
    train_flops: float
    fitted: int
    targets: int

    @property
    def params(self) -> pd.Series:
        """Mean absolute error of each method, as a fraction of score."""
        return self.to_frame()["mean_error"]

    def to_frame(self) -> pd.DataFrame:
        """One row per method: errors over all targets and, after a bootstrap, the coverage."""
        grouped = self.predictions.groupby("method", sort=False)
        table = pd.DataFrame(
            {
                "targets": grouped.size(),
                "mean_error": grouped["error"].apply(lambda e: e.abs().mean()),
                "median_error": grouped["error"].apply(lambda e: e.abs().median()),
                "worst_error": grouped["error"].apply(lambda e: e.abs().max()),
                "bias": grouped["error"].mean(),
                "relative_error": grouped["relative_error"].apply(lambda e: e.abs().mean()),
            }
        )
        if "covered" in self.predictions:
            table["coverage"] = grouped["covered"].mean()
        return table

    def summary(self) -> Summary:
        """Text or HTML for reading."""
        facts = [
            ("fitted", f"{self.fitted} runs up to {self.train_flops:.3g} FLOPs"),
            ("predicted", f"{self.targets} larger runs"),
        ]
        notes = ["errors are absolute, as fractions of score; bias is predicted minus observed"]
        if "covered" in self.predictions:
            notes.append("coverage: share of observed scores inside the interval of a new run")
        return Summary(
            "Back-test of score predictions", facts, self.to_frame().map(significant), notes
        )

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


def backtest_scores(
    runs: pd.DataFrame | Mapping[str, npt.ArrayLike],
    *,
    train_flops: float,
    methods: Sequence[str] = (TWO_STEP, *ONE_STEP),
    law: str | Law = "chinchilla",
    score_law: str | ScoreLaw = "sigmoid",
    checkpoints: pd.DataFrame | Mapping[str, npt.ArrayLike] | None = None,
    floor: float | Mapping[str, float] | None = None,
    perfect_at_zero: bool = False,
    cluster: str = "run",
    bootstrap: int = 0,
    level: float = 0.95,
    rng: np.random.Generator | int | None = None,
) -> ScoreBacktest:
    """Fit the runs up to a compute, predict the scores of the larger ones, and compare.

    Parameters
    ----------
    runs : DataFrame or mapping
        One row per run, and per task where there is a column ``task``: `cluster`, ``params``,
        ``tokens``, ``loss``, ``score``. Compute is ``6 N D``, or ``flops`` where it is given.
    train_flops : float
        Runs with at most this compute are fitted, the larger ones are predicted.
    methods : sequence of {"two-step", "compute", "combined"}
        Two steps through the loss, or one of the laws in one step (see `fit_score`).
    law, score_law, checkpoints, perfect_at_zero
        Of the two steps, see `two_step`. Checkpoints of large runs are left out.
    floor : float or mapping of task to float, optional
        Known score of guessing.
    cluster : str
        Column that names the run.
    bootstrap : int
        Number of resamples of runs (0: no intervals).
    level : float
        Nominal coverage of the intervals, in (0, 1).
    rng : Generator, int or None
        Source of the bootstrap draws.

    Returns
    -------
    ScoreBacktest

    Raises
    ------
    DataError
        If no run lies on one of the sides, or a table cannot support a fit.

    Examples
    --------
    >>> import numpy as np
    >>> from toolkit import datasets, scaling
    >>> runs = datasets.load("simulated_runs")
    >>> runs["score"] = 0.25 + 0.75 / (1 + np.exp(3 * (runs["loss"] - 2.6)))
    >>> test = scaling.downstream.backtest_scores(
    ...     runs, train_flops=5e20, methods=["two-step"], floor=0.25
    ... )
    >>> bool(test.params["two-step"] < 0.02)
    True
    """
    _check_methods(methods)
    frame = _with_compute(runs, cluster)
    marks = None if checkpoints is None else pd.DataFrame(checkpoints)
    generator = np.random.default_rng(rng)
    options: dict[str, Any] = {"cluster": cluster, "bootstrap": bootstrap, "rng": generator}
    parts = []
    tasks = frame["task"].unique() if "task" in frame else [None]
    for task in tasks:
        part = frame if task is None else frame[frame["task"] == task]
        known = floor[str(task)] if isinstance(floor, Mapping) else floor
        small, large = _split(part, train_flops)
        for method in methods:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ExtrapolationWarning)  # it is the purpose
                if method == TWO_STEP:
                    fitted = two_step(
                        small,
                        law=law,
                        score_law=score_law,
                        checkpoints=_of_runs(marks, task, small[cluster], cluster),
                        floor=known,
                        perfect_at_zero=perfect_at_zero,
                        **options,
                    )
                    predicted = fitted.predict(large, level=level)
                else:
                    one = fit_score(method, small, floor=known, **options)
                    predicted = one.predict(large, level=level)
            parts.append(_compare(large, predicted, method, cluster))
    predictions = pd.concat(parts, ignore_index=True)
    train = frame["flops"] <= train_flops
    return ScoreBacktest(
        predictions,
        float(frame.loc[train, "flops"].max()),
        int(frame.loc[train, cluster].nunique()),
        int(frame.loc[~train, cluster].nunique()),
    )


def _check_methods(methods: Sequence[str]) -> None:
    known = (TWO_STEP, *ONE_STEP)
    unknown = [method for method in methods if method not in known]
    if isinstance(methods, str) or not methods or unknown:
        raise DataError(f"methods is a list out of {', '.join(known)}; got {methods!r}.")


def _with_compute(runs: pd.DataFrame | Mapping[str, npt.ArrayLike], cluster: str) -> pd.DataFrame:
    optional = ["flops", "task"]
    frame = tables.check(runs, [cluster, "params", "tokens", "loss", "score"], optional=optional)
    if "flops" not in frame:
        frame["flops"] = FLOPS_PER_PARAM_TOKEN * frame["params"] * frame["tokens"]
    return frame


def _split(frame: pd.DataFrame, train_flops: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    train = frame["flops"] <= train_flops
    if train.all() or not train.any():
        low, high = frame["flops"].min(), frame["flops"].max()
        raise DataError(
            f"train_flops={train_flops:.3g} leaves no run to {'predict' if train.all() else 'fit'}:"
            f" the runs have {low:.3g} to {high:.3g} FLOPs. Choose a value between."
        )
    return frame[train].reset_index(drop=True), frame[~train].reset_index(drop=True)


def _of_runs(
    marks: pd.DataFrame | None, task: Any, names: pd.Series, cluster: str
) -> pd.DataFrame | None:
    """Return the checkpoints of the named runs, of one task."""
    if marks is None:
        return None
    if cluster not in marks:
        raise DataError(f"The checkpoints need the column {cluster!r}.")
    kept = marks[cluster].isin(names)
    if task is not None and "task" in marks:
        kept &= marks["task"] == task
    return marks[kept]


def _compare(
    large: pd.DataFrame, predicted: pd.DataFrame, method: str, cluster: str
) -> pd.DataFrame:
    named = [name for name in ("task", cluster, "params", "tokens", "flops") if name in large]
    table = large[named].copy()
    table.insert(0, "method", method)
    table["score"], table["predicted"] = large["score"], predicted["score"]
    table["error"] = table["predicted"] - table["score"]
    table["relative_error"] = table["error"] / table["score"].where(table["score"] > 0)
    if "run_lower" in predicted:
        table["lower"], table["upper"] = predicted["run_lower"], predicted["run_upper"]
        table["covered"] = table["score"].between(table["lower"], table["upper"])
    return table
