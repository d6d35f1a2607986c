"""One ability under several metrics: what looks sudden can be the metric or its resolution."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import ndtr
from scipy.stats import binom

from toolkit import tables
from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray
from toolkit.scaling.downstream.resolution import smallest_visible

__all__ = ["choice_metrics", "emergence_curves", "exact_match", "multiple_choice_accuracy"]

NODES = 200  # of the quadrature over the normal distribution; errors below 1e-10


def exact_match(token_probability: npt.ArrayLike, length: npt.ArrayLike) -> FloatArray:
    """Probability that all tokens of an answer are right, if they are right independently.

    Parameters
    ----------
    token_probability : array_like
        Probability of each right token, in [0, 1].
    length : array_like
        Tokens of the answer, at least 1; broadcast against the probability.

    Returns
    -------
    array
        ``token_probability ** length``. The expected number of wrong tokens, a smooth metric of
        the same answers, is ``length * (1 - token_probability)``.

    References
    ----------
    Schaeffer, Miranda and Koyejo 2023, arXiv:2304.15004, section 2.

    Examples
    --------
    >>> from toolkit.scaling.downstream import exact_match
    >>> exact_match([0.5, 0.9, 0.99], 10).round(3).tolist()
    [0.001, 0.349, 0.904]
    """
    probability, tokens = np.asarray(token_probability, float), np.asarray(length, float)
    if not np.all((probability >= 0) & (probability <= 1)):
        raise DataError(f"token_probability must lie from 0 to 1; got {token_probability!r}.")
    if not np.all(tokens >= 1):
        raise DataError(f"length is a number of tokens, at least 1; got {length!r}.")
    matched: FloatArray = probability**tokens
    return matched


def multiple_choice_accuracy(advantage: npt.ArrayLike, choices: int) -> FloatArray:
    """Accuracy of picking the most probable choice, by the advantage of the right one.

    The log probability of each choice varies over questions like a normal variable with one
    standard deviation; that of the right choice is higher by `advantage` standard deviations on
    average. Guessing is an advantage of zero.

    Parameters
    ----------
    advantage : array_like
        Mean log probability of the right choice minus that of a wrong one, in standard
        deviations over questions.
    choices : int
        Choices of a question, at least 2.

    Returns
    -------
    array
        Accuracy, a fraction, of the shape of `advantage`.

    Examples
    --------
    >>> from toolkit.scaling.downstream import multiple_choice_accuracy
    >>> multiple_choice_accuracy([0.0, 1.0, 3.0], 4).round(3).tolist()
    [0.25, 0.552, 0.956]
    """
    if isinstance(choices, bool) or not isinstance(choices, (int, np.integer)) or choices < 2:
        raise DataError(f"choices is a whole number, at least 2; got {choices!r}.")
    shift = np.asarray(advantage, dtype=np.float64)
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    beaten = ndtr(shift[..., None] + nodes) ** (choices - 1)
    accuracy: FloatArray = beaten @ weights / np.sqrt(2 * np.pi)
    return accuracy


def choice_metrics(log_probability: npt.ArrayLike, right: npt.ArrayLike) -> pd.DataFrame:
    """Follow every question from the probability of its right answer to accuracy.

    Each step throws away something that scales smoothly: from the log probability of the right
    choice over its probability, its share among the choices and the Brier score to whether it is
    the most probable one. The mass on particular wrong choices decides the last steps.

    Parameters
    ----------
    log_probability : array_like, shape (questions, choices)
        Log probability that the model gives to each choice, at most 0.
    right : array_like of int, shape (questions,)
        Position of the right choice.

    Returns
    -------
    DataFrame
        One row per question: ``log_probability`` and ``probability`` of the right choice,
        ``share`` (its probability over that of all choices), ``brier`` (squared distance of the
        shares from the truth, lower is better) and ``accuracy`` (a tie counts as its share).

    References
    ----------
    Schaeffer et al. 2024, "Why Has Predicting Downstream Capabilities of Frontier AI Models with
    Scale Remained Elusive?", arXiv:2406.04391.

    Examples
    --------
    >>> import numpy as np
    >>> from toolkit.scaling.downstream import choice_metrics
    >>> questions = np.log([[0.2, 0.1, 0.1], [0.01, 0.02, 0.001]])
    >>> choice_metrics(questions, [0, 0])["accuracy"].tolist()
    [1.0, 0.0]
    """
    logs, truth = np.asarray(log_probability, dtype=np.float64), np.asarray(right)
    _check_choices(logs, truth)
    at = np.arange(len(logs)), truth
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    aim = np.zeros_like(shares)
    aim[at] = 1.0
    best = logs == logs.max(axis=1, keepdims=True)
    return pd.DataFrame(
        {
            "log_probability": logs[at],
            "probability": np.exp(logs[at]),
            "share": shares[at],
            "brier": np.sum((shares - aim) ** 2, axis=1),
            "accuracy": best[at] / best.sum(axis=1),
        }
    )


def emergence_curves(
    params: npt.ArrayLike, *, scale: float, exponent: float, length: int, items: int
) -> pd.DataFrame:
    """One model series under a smooth metric, a sharp one, and a sharp one seen through few items.

    The token loss is a power law of size, ``(params / scale) ** -exponent`` in nats, so that
    every right token has the probability ``exp(-loss)``.

    Parameters
    ----------
    params : array_like
        Model sizes, m of them.
    scale : float
        Size at which the token loss is one nat.
    exponent : float
        Exponent of size, positive.
    length : int
        Tokens of an answer, all of which must be right for an exact match.
    items : int
        Questions of the benchmark.

    Returns
    -------
    DataFrame
        m rows: ``params``, ``loss``, ``token_accuracy``, ``exact_match``, ``lower`` and
        ``upper`` (where 95 % of the scores of such a benchmark lie), and ``visible``: whether
        the exact match is above the smallest rate that the items show.

    References
    ----------
    Schaeffer, Miranda and Koyejo 2023, arXiv:2304.15004, section 2; the resolution after Hu et
    al. 2024, arXiv:2310.03262.

    Examples
    --------
    >>> from toolkit.scaling.downstream import emergence_curves
    >>> table = emergence_curves([1e8, 1e10], scale=1e9, exponent=0.5, length=20, items=500)
    >>> table["visible"].tolist()
    [False, False]
    """
    if not (0 < exponent < np.inf and 0 < scale < np.inf):
        raise DataError(f"scale and exponent must be positive; got {scale!r} and {exponent!r}.")
    table = tables.check({"params": np.atleast_1d(params)}, ["params"])
    table["loss"] = (table["params"] / scale) ** -exponent
    table["token_accuracy"] = np.exp(-table["loss"])
    table["exact_match"] = exact_match(table["token_accuracy"], length)
    for name, tail in (("lower", 0.025), ("upper", 0.975)):
        table[name] = binom.ppf(tail, items, table["exact_match"].to_numpy()) / items
    table["visible"] = table["exact_match"] >= float(smallest_visible(items))
    return table


def _check_choices(logs: FloatArray, truth: npt.NDArray[Any]) -> None:
    if logs.ndim != 2 or logs.shape[1] < 2:
        raise DataError(
            f"log_probability has the shape (questions, choices), 2 choices or more; "
            f"got {logs.shape}."
        )
    if not np.all(logs <= 1e-9) or np.isneginf(logs).all(axis=1).any():
        raise DataError("log_probability must be at most 0, with one finite choice per question.")
    questions, choices = logs.shape
    whole = np.issubdtype(truth.dtype, np.integer) and truth.shape == (questions,)
    if not (whole and truth.min() >= 0 and truth.max() < choices):
        raise DataError(
            f"right is one position from 0 to {choices - 1} for each of {questions} questions."
        )
