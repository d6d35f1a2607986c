"""How the noise of a benchmark and of checkpoints reaches a predicted score."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit import tables
from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray
from toolkit.scaling.downstream.score_fit import ScoreProblem
from toolkit.scaling.downstream.score_result import ScoreFit

__all__ = ["prediction_noise", "sampling_error"]

DRAWS = 300


def sampling_error(score: npt.ArrayLike, items: npt.ArrayLike) -> FloatArray:
    """Return the standard error of a score that comes from a finite number of questions.

    Parameters
    ----------
    score : array_like
        True scores, fractions in [0, 1].
    items : array_like
        Independent questions, at least 1; broadcast against the score.

    Returns
    -------
    array
        ``sqrt(score * (1 - score) / items)``.

    Examples
    --------
    >>> from toolkit.scaling.downstream import sampling_error
    >>> sampling_error(0.5, [100, 10_000]).tolist()
    [0.05, 0.005]
    """
    rate, count = np.asarray(score, float), np.asarray(items, float)
    if not np.all((rate >= 0) & (rate <= 1)):
        raise DataError(f"score is a fraction from 0 to 1; got {score!r}.")
    if not np.all(count >= 1):
        raise DataError(f"items is a number of questions, at least 1; got {items!r}.")
    error: FloatArray = np.sqrt(rate * (1 - rate) / count)
    return error


def prediction_noise(
    fit: ScoreFit,
    target: Mapping[str, float],
    *,
    items: Sequence[int],
    checkpoint_sd: float = 0.0,
    averaged: int = 1,
    draws: int = DRAWS,
    rng: np.random.Generator | int | None = None,
) -> pd.DataFrame:
    """How far a predicted score would move if the benchmark had other, or fewer, questions.

    The fitted curve is taken for the truth. Scores of the same runs are drawn again with the
    noise of so many questions and of checkpoints, fitted again, and the prediction is compared.

    Parameters
    ----------
    fit : ScoreFit
        A fit of scores; its curve and its inputs are used, not its scores.
    target : mapping
        The law's columns at the point to predict, one value each.
    items : sequence of int
        Numbers of questions to try.
    checkpoint_sd : float
        Standard deviation of the score over neighbouring checkpoints of one run.
    averaged : int
        Checkpoints that are averaged in each score. Averaging lowers the noise of checkpoints
        and not that of the questions, which all of them share.
    draws : int
        Simulated studies for each number of questions.
    rng : Generator, int or None
        Source of the noise.

    Returns
    -------
    DataFrame
        One row for each number of questions: ``items``, ``score_sd`` (noise of a score, root
        mean square over the rows), ``prediction``, ``prediction_sd`` and ``prediction_bias`` of
        the target, and ``target_sd``, the noise of measuring the target itself once.

    Examples
    --------
    >>> import numpy as np
    >>> from toolkit.scaling.downstream import fit_score, prediction_noise
    >>> loss = np.linspace(0.6, 1.4, 12)
    >>> score = 0.25 + 0.7 / (1 + np.exp(6 * (loss - 1)))
    >>> fit = fit_score("sigmoid", {"loss": loss, "score": score}, floor=0.25)
    >>> noise = prediction_noise(fit, {"loss": 0.5}, items=[100, 10_000], rng=0)
    >>> bool(noise["prediction_sd"][0] > 5 * noise["prediction_sd"][1])
    True
    """
    if not 0 <= checkpoint_sd < np.inf or averaged < 1 or draws < 2:
        raise DataError("checkpoint_sd must be 0 or more, averaged at least 1, draws at least 2.")
    generator = np.random.default_rng(rng)
    point = fit.law.inputs(tables.check({k: [v] for k, v in target.items()}, fit.law.columns))
    truth = fit.law.evaluate(fit.theta, fit.law.inputs(fit.table))[0]
    prediction = float(fit.law.evaluate(fit.theta, point)[0][0])
    rows = []
    for count in items:
        error = sampling_error(np.clip(truth, 0, 1), count)
        sd = np.sqrt(error**2 + checkpoint_sd**2 / averaged)
        scores = truth + sd * generator.standard_normal((draws, len(truth)))
        moved = np.array([_refit(fit, row, point) for row in scores]) - prediction
        own = sampling_error(np.clip(prediction, 0, 1), count)
        rows.append(
            {
                "items": count,
                "score_sd": float(np.sqrt(np.mean(sd**2))),
                "prediction": prediction,
                "prediction_sd": float(moved.std()),
                "prediction_bias": float(moved.mean()),
                "target_sd": float(np.sqrt(own**2 + checkpoint_sd**2 / averaged)),
            }
        )
    return pd.DataFrame(rows)


def _refit(fit: ScoreFit, scores: FloatArray, point: FloatArray) -> float:
    """Prediction of a fit to other scores, searched from the old optimum."""
    problem = ScoreProblem.build(
        fit.law,
        fit.table.assign(score=np.clip(scores, 0.0, 1.0)),
        delta=fit.delta,
        floor=fit.floor,
        perfect_at_zero=fit.perfect_at_zero,
    )
    found = problem.minimise(np.ones((1, len(scores))), fit.theta[None, :])
    return float(fit.law.evaluate(found.theta[0], point)[0][0])
