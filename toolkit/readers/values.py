"""Which recorded values are scores: numbers from 0 to 1, higher is better, never a guess."""

import math
import re
from collections.abc import Mapping
from functools import cache

__all__ = ["UNSCORED", "Unfit", "not_a_score", "to_score"]

UNSCORED = math.nan

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_TRUTH = {"true": 1.0, "false": 0.0}

# Names that tools give to what is no score, or a score where lower is better.
_NO_SCORE = re.compile(
    r"(.*_)?(perplexity|ppl|brier_score|nll|loss|ter|wer|cer|mae|mse|rmse)"
    r"|bits_per_byte.*|logits_per_.*|sum_logits.*|logprob.*|num_.*|.*_stderr"
    r"|predicted_index_.*|correct_choice|no_answer|primary_metric"
    r"|ece_.*|max_prob|prompt_truncated|batch_size|finish_reason_.*"
    r"|inference_.*|training_.*|estimated_.*"
)


class Unfit(Exception):
    """The value is there, but it is no score; the text says what it is."""


def to_score(value: object, words: Mapping[str, float] = _TRUTH) -> float:
    """Turn one recorded value into a score, NaN when the answer was not scored.

    Parameters
    ----------
    value : object
        As the file gives it.
    words : mapping of str to float
        Texts, in lower case, that the tool uses for scores. No other text counts, except that
        of a plain number.

    Returns
    -------
    float

    Raises
    ------
    Unfit
        If the value is other text, a list, an object or infinite.

    Examples
    --------
    >>> to_score(True), to_score("0.5"), to_score("False"), to_score(None)
    (1.0, 0.5, 0.0, nan)
    """
    if value is None:
        return UNSCORED
    if isinstance(value, int | float):  # truth values are numbers in Python
        try:
            number = float(value)
        except OverflowError:  # a whole number beyond 1e308
            number = math.inf
        if math.isinf(number):
            raise Unfit("infinite")
        return number
    if isinstance(value, str):
        return _text_to_score(value.strip(), words)
    if isinstance(value, list | tuple):
        raise Unfit("a list of values, for a metric of the whole task")
    raise Unfit(f"a value of type {type(value).__name__}")


def _text_to_score(text: str, words: Mapping[str, float]) -> float:
    lower = text.lower()
    if lower in words:
        return words[lower]
    if lower in ("", "nan", "none", "null"):
        return UNSCORED
    if _NUMBER.fullmatch(text):
        return to_score(float(text))
    raise Unfit("text that is no score")


@cache
def not_a_score(metric: str, higher_is_better: bool | None = None) -> str:
    """Say why a metric is no score; empty when nothing speaks against it.

    Parameters
    ----------
    metric : str
        Name of the metric, without the filter.
    higher_is_better : bool, optional
        What the file says, where it does.

    Examples
    --------
    >>> not_a_score("word_perplexity"), not_a_score("acc"), not_a_score("acc", False)
    ('not a score by its name', '', 'lower is better')
    """
    if higher_is_better is False:
        return "lower is better"
    return "not a score by its name" if _NO_SCORE.fullmatch(metric) else ""
