"""Pictures of scores: what is drawn is what the result holds."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from toolkit.datasets import isoflop_design, simulate_runs
from toolkit.errors import DataError
from toolkit.plots import emergence, score_backtest, score_vs_compute, score_vs_loss
from toolkit.scaling.downstream import backtest_scores, emergence_curves, fit_score, two_step


@pytest.fixture(scope="module")
def runs():
    design = isoflop_design([1e19, 3e19, 1e20, 1e21], [5, 20, 60, 200])
    table = simulate_runs("chinchilla", "besiroglu2024", design, noise=0.003, rng=0)
    scatter = 0.01 * np.random.default_rng(0).standard_normal(len(table))
    return table.assign(score=0.25 + 0.65 / (1 + np.exp(2.5 * (table["loss"] - 2.7))) + scatter)


@pytest.fixture(scope="module")
def fitted(runs):
    return two_step(runs, floor=0.25, bootstrap=50, rng=0)


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_score_against_loss_draws_points_curve_and_band(fitted, ax):
    fit = fitted.score_fit
    assert score_vs_loss(fit, ax=ax) is ax
    points, inside, beyond, floor = ax.lines
    assert_allclose(points.get_xdata(), fit.table["loss"])
    assert_allclose(points.get_ydata(), fit.table["score"])
    x, y = inside.get_data()
    assert_allclose(y, fit.predict({"loss": x})["score"])
    assert max(beyond.get_xdata()) <= fit.table["loss"].min()
    assert beyond.get_linestyle() == "--"
    assert_allclose(floor.get_ydata(), 0.25)
    assert ax.xaxis_inverted()
    assert "95 % interval" in labels(ax)


def test_score_against_loss_refuses_other_laws(runs, ax):
    flops = runs.assign(flops=6 * runs["params"] * runs["tokens"])
    fit = fit_score("compute", flops, floor=0.25, cluster="run")
    with pytest.raises(DataError, match="law of the loss"):
        score_vs_loss(fit, ax=ax)


def test_two_steps_draw_the_predicted_scores(fitted, ax):
    score_vs_compute(fitted, ax=ax)
    curve = ax.lines[0]
    flops, score = curve.get_data()
    size = fitted.runs["params"].min()
    inside = flops < 6e21
    expected = fitted.predict(
        {"params": np.full(inside.sum(), size), "tokens": flops[inside] / (6 * size)}
    )
    assert_allclose(score[inside], expected["score"])
    runs = ax.lines[-1]
    assert_allclose(runs.get_ydata(), fitted.runs["score"])
    assert ax.get_xlabel() == "training compute (FLOPs)"


def test_few_sizes_have_their_runs_in_their_colour(runs, ax):
    sizes = np.repeat([2e8, 8e8, 3e9], 4)
    tokens = np.tile([5e9, 2e10, 8e10, 3e11], 3)
    table = simulate_runs(
        "chinchilla", "besiroglu2024", {"params": sizes, "tokens": tokens}, noise=0.002, rng=1
    )
    table["score"] = 0.25 + 0.65 / (1 + np.exp(2.5 * (table["loss"] - 2.7)))
    score_vs_compute(two_step(table, floor=0.25), ax=ax)
    assert len(ax.lines) == 6
    assert ax.lines[0].get_color() == ax.lines[1].get_color()
    assert_allclose(ax.lines[1].get_ydata(), table["score"][:4])


def test_backtest_draws_predicted_against_observed(runs, ax):
    test = backtest_scores(
        runs, train_flops=2e20, methods=["two-step"], floor=0.25, bootstrap=40, rng=0
    )
    score_backtest(test, ax=ax)
    rows = test.predictions.query("method == 'two-step'")
    assert_allclose(ax.lines[1].get_xdata(), rows["score"])
    assert_allclose(ax.lines[1].get_ydata(), rows["predicted"])
    ends = np.array([segment[:, 1] for segment in ax.collections[0].get_segments()])
    assert_allclose(ends, rows[["lower", "upper"]])
    assert labels(ax)[0].startswith("two-step: off by")


def test_emergence_draws_three_metrics(ax):
    sizes = np.geomspace(1e7, 1e12, 60)
    curves = emergence_curves(sizes, scale=1e8, exponent=0.4, length=20, items=200)
    emergence(curves, ax=ax)
    smooth, sharp, hidden = ax.lines
    assert_allclose(smooth.get_ydata(), curves["token_accuracy"])
    assert_allclose(sharp.get_ydata(), curves["exact_match"])
    assert_allclose(hidden.get_xdata(), sizes[~curves["visible"]])
    assert_allclose(hidden.get_ydata(), 0.0)
    with pytest.raises(DataError, match="Missing exact_match"):
        emergence(pd.DataFrame(curves.drop(columns="exact_match")), ax=ax)
