"""What counts as a score."""

import math

import pytest

from toolkit.readers.values import Unfit, not_a_score, to_score


@pytest.mark.parametrize(
    ("value", "score"),
    [
        (True, 1.0),
        (False, 0.0),
        (0, 0.0),
        (0.25, 0.25),
        ("True", 1.0),
        ("False", 0.0),
        ("false", 0.0),
        ("1.0", 1.0),
        (" .5 ", 0.5),
        ("1e-1", 0.1),
    ],
)
def test_numbers_and_truth_values_are_scores(value, score):
    assert to_score(value) == score


@pytest.mark.parametrize("value", [None, math.nan, "", "nan", "NaN", "None", "null"])
def test_nothing_is_unscored_and_not_zero(value):
    assert math.isnan(to_score(value))


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("C", "text"),
        ("yes", "text"),
        ("1_000", "text"),
        ("[invalid]", "text"),
        ([1.0], "a list"),
        ((0, 1), "a list"),
        ({"acc": 1}, "type dict"),
        (math.inf, "infinite"),
        (10**400, "infinite"),
        ("1e999", "infinite"),
    ],
)
def test_everything_else_is_left_out(value, told):
    with pytest.raises(Unfit, match=told):
        to_score(value)


@pytest.mark.parametrize(
    "metric",
    ["acc", "acc_norm", "exact_match", "f1", "pass@1", "quasi_exact_match", "alter", "closer"],
)
def test_names_of_scores(metric):
    assert not_a_score(metric) == ""


@pytest.mark.parametrize(
    "metric",
    [
        *("perplexity", "word_perplexity", "bits_per_byte", "ter", "wer", "brier_score"),
        *("predicted_index_raw", "acc_stderr", "logprob", "inference_runtime"),
        "num_output_tokens",
    ],
)
def test_names_of_what_is_no_score(metric):
    assert not_a_score(metric) == "not a score by its name"


def test_a_stated_direction_counts():
    assert not_a_score("acc", False) == "lower is better"
    assert not_a_score("acc", True) == ""
