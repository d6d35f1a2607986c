"""Choosing a model to fine-tune: the published correlations, and what each method needs."""

import os

import numpy as np
import pandas as pd
import pytest

from tests.reference import lin2024
from toolkit import datasets
from toolkit.errors import DataError
from toolkit.scaling import select_model


@pytest.fixture(scope="module")
def losses():
    if not os.environ.get("TOOLKIT_DATA_DIR"):
        pytest.skip("TOOLKIT_DATA_DIR is not set, so the published losses are not looked for")
    return datasets.load("finetuning_losses")


def quality(losses, task, by, fraction):
    own = losses[losses["task"] == task]
    full = own[own["examples"] == lin2024.FULL].set_index("model")["loss"]
    trials = own[own["examples"] <= lin2024.FULL // fraction]
    return 100 * select_model(trials, lin2024.FULL, by=by).evaluate(full)


@pytest.mark.parametrize(("task", "by"), sorted(lin2024.PEARSON))
def test_published_correlations(losses, task, by):
    found = [quality(losses, task, by, part)["pearson"] for part in lin2024.FRACTIONS]
    # accept_then_stop keeps the smallest trial, too, where no trial departs from the line
    within = 2.0 if by == "accept_then_stop" else 0.11
    np.testing.assert_allclose(found, lin2024.PEARSON[task, by], atol=within)


@pytest.mark.parametrize(("task", "by"), sorted(lin2024.RELATIVE_ACCURACY))
def test_published_relative_accuracies(losses, task, by):
    found = [quality(losses, task, by, part)["relative_accuracy"] for part in lin2024.FRACTIONS]
    np.testing.assert_allclose(found, lin2024.RELATIVE_ACCURACY[task, by], atol=0.051)


def test_laws_beat_the_baselines_on_an_eighth_of_the_data(losses):
    for task in ("flan", "gigaword"):
        line, law, small, zero = (
            quality(losses, task, by, 8)
            for by in ("accept_then_stop", "rectified", "small_subset", "zero_shot")
        )
        assert min(line["spearman"], law["spearman"]) > max(small["spearman"], zero["spearman"])
        assert law["relative_accuracy"] == pytest.approx(100.0)


TRIALS = pd.DataFrame(
    {
        "model": ["flat"] * 6 + ["steep"] * 6,
        "examples": [0, 200, 400, 800, 1600, 3200] * 2,
        "loss": [2.0, 1.9, 1.88, 1.86, 1.84, 1.82, 4.0, 3.9, 3.0, 2.7, 2.43, 2.187],
        "params": [1e9] * 6 + [1e8] * 6,
    }
)


def test_each_method_ranks_in_its_own_way():
    best = {
        by: select_model(TRIALS, 1e6, by=by).best for by in ("accept_then_stop", "small_subset")
    }
    assert best == {"accept_then_stop": "steep", "small_subset": "flat"}
    assert select_model(TRIALS, 1e6, by="zero_shot").best == "flat"
    assert select_model(TRIALS, 1e6, by="size").best == "flat"
    table = select_model(TRIALS, 1e6).table
    assert table["trials"].tolist() == [6, 6]
    assert table["largest"].tolist() == [3200.0, 3200.0]


def test_the_line_stops_where_the_flat_part_begins():
    steep = TRIALS[TRIALS["model"] == "steep"]
    predicted = select_model(steep, 6400).table["predicted"][0]
    assert predicted == pytest.approx(2.187 * 0.9, rel=2e-3)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda t: t, {"by": "luck"}, "by must be one of accept_then_stop"),
        (lambda t: t, {"size": -1}, "size must be a positive number"),
        (lambda t: t[t["examples"] > 0], {"by": "zero_shot"}, "'flat' has no row with 0 examples"),
        (lambda t: t[t["examples"] < 500], {}, "'flat' has 2 trials with data; at least 3"),
        (lambda t: t[t["examples"] < 900], {"by": "rectified"}, "'flat' has 4 trials"),
        (lambda t: pd.concat([t, t.iloc[:1]]), {}, "Average repeated trials"),
        (lambda t: t.assign(examples=-1), {}, "'examples' must hold numbers"),
        (lambda t: t.assign(loss=0.0), {}, "'loss'"),
        (lambda t: t.drop(columns="params"), {"by": "size"}, "Missing 'params'"),
    ],
)
def test_unfit_trials_are_refused(change, options, message):
    arguments = {"size": 1e6, **options}
    with pytest.raises(DataError, match=message):
        select_model(change(TRIALS), **arguments)


def test_evaluation_needs_every_model():
    with pytest.raises(DataError, match="loss of 'steep' is missing"):
        select_model(TRIALS, 1e6).evaluate(pd.Series({"flat": 1.0}))
