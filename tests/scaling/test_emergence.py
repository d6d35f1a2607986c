"""One ability under several metrics, and the capacity for knowledge."""

import numpy as np
import pytest

from toolkit.errors import DataError, ExtrapolationWarning
from toolkit.scaling.downstream import (
    choice_metrics,
    emergence_curves,
    exact_match,
    knowledge_capacity,
    multiple_choice_accuracy,
)


def test_exact_match_is_the_product_of_its_tokens():
    assert exact_match(0.9, [1, 2, 10]).tolist() == pytest.approx([0.9, 0.81, 0.9**10])
    with pytest.raises(DataError, match="from 0 to 1"):
        exact_match(1.2, 3)
    with pytest.raises(DataError, match="at least 1"):
        exact_match(0.5, 0)


@pytest.mark.parametrize("choices", [2, 4, 10])
def test_accuracy_of_choices_is_that_of_drawn_questions(choices):
    draws = np.random.default_rng(0).standard_normal((400_000, choices))
    for advantage in (0.0, 0.7, 2.0):
        won = (draws[:, 0] + advantage > draws[:, 1:].max(axis=1)).mean()
        assert multiple_choice_accuracy(advantage, choices) == pytest.approx(won, abs=3e-3)
    assert multiple_choice_accuracy(0.0, choices) == pytest.approx(1 / choices, abs=1e-10)


def test_two_choices_have_a_closed_form():
    from scipy.stats import norm

    assert multiple_choice_accuracy(1.3, 2) == pytest.approx(norm.cdf(1.3 / np.sqrt(2)), abs=1e-10)
    with pytest.raises(DataError, match="at least 2"):
        multiple_choice_accuracy(1.0, 1)


def test_choice_metrics_follow_the_definition():
    logs = np.log([[0.2, 0.1, 0.1], [0.02, 0.01, 0.01], [0.1, 0.1, 0.05]])
    table = choice_metrics(logs, [0, 1, 0])
    assert table["probability"].tolist() == pytest.approx([0.2, 0.01, 0.1])
    assert table["share"].tolist() == pytest.approx([0.5, 0.25, 0.4])
    assert table["brier"].tolist() == pytest.approx([0.375, 0.875, 0.56])
    assert table["accuracy"].tolist() == [1.0, 0.0, 0.5]


def test_choice_metrics_keep_tiny_probabilities():
    table = choice_metrics([[-900.0, -901.0]], [0])
    assert table["share"][0] == pytest.approx(1 / (1 + np.exp(-1)))
    assert table["log_probability"][0] == -900.0


@pytest.mark.parametrize(
    ("logs", "right", "message"),
    [
        ([-1.0, -2.0], [0], "shape"),
        ([[0.5, -1.0]], [0], "at most 0"),
        ([[-1.0, -2.0]], [2], "from 0 to 1"),
        ([[-1.0, -2.0]], [0.0], "position"),
        ([[-np.inf, -np.inf]], [0], "one finite"),
    ],
)
def test_choice_metrics_refuse_bad_input(logs, right, message):
    with pytest.raises(DataError, match=message):
        choice_metrics(logs, right)


def test_smooth_and_sharp_metrics_of_one_series():
    sizes = np.geomspace(1e7, 1e12, 200)
    curves = emergence_curves(sizes, scale=1e8, exponent=0.4, length=20, items=200)
    assert curves["token_accuracy"].to_numpy() == pytest.approx(np.exp(-((sizes / 1e8) ** -0.4)))
    assert curves["exact_match"].to_numpy() == pytest.approx(curves["token_accuracy"] ** 20)
    steepest = [np.argmax(np.diff(curves[m])) for m in ("token_accuracy", "exact_match")]
    assert sizes[steepest[1]] > 50 * sizes[steepest[0]]
    first = sizes[curves["visible"]].min()
    more = emergence_curves(sizes, scale=1e8, exponent=0.4, length=20, items=20_000)
    assert sizes[more["visible"]].min() < first / 2
    scores = np.random.default_rng(0).binomial(200, curves["exact_match"], (4000, 200)) / 200
    inside = (scores >= curves["lower"].to_numpy()) & (scores <= curves["upper"].to_numpy())
    assert inside.mean(axis=0).min() > 0.93
    with pytest.raises(DataError, match="positive"):
        emergence_curves(sizes, scale=1e8, exponent=-0.4, length=20, items=200)


def test_capacity_is_two_bits_or_one():
    assert knowledge_capacity(7e9).at_least == knowledge_capacity(7e9).at_most == 14e9
    few = knowledge_capacity(7e9, exposures=100)
    assert (few.at_least, few.at_most) == (7e9, 7e9)
    between = knowledge_capacity(7e9, exposures=300)
    assert (between.at_least, between.at_most) == (7e9, 14e9)
    assert knowledge_capacity(7e9, weight_bits=8).at_most == 14e9
    assert knowledge_capacity(1e9, weight_bits=4).at_most == pytest.approx(0.7e9)
    assert "several times less" in few.summary().text()
    assert few.to_frame().loc["at most", "gigabytes"] == pytest.approx(0.875)
    assert "<table" in few._repr_html_()


def test_capacity_outside_what_was_measured():
    with pytest.warns(ExtrapolationWarning, match="100 to 1,000"):
        rare = knowledge_capacity(1e9, exposures=10)
    assert np.isnan(rare.at_least)
    assert rare.at_most == 1e9
    with pytest.warns(ExtrapolationWarning):
        assert knowledge_capacity(1e9, exposures=5000).at_most == 2e9
    for wrong in ({"weight_bits": 3}, {"weight_bits": 4, "exposures": 200}, {"exposures": 0}):
        with pytest.raises(DataError):
            knowledge_capacity(1e9, **wrong)
    with pytest.raises(DataError, match="params"):
        knowledge_capacity(-1)
