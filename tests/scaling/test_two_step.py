"""Two steps to a score and their back-test, on runs whose truth is known."""

import warnings

import numpy as np
import pandas as pd
import pytest

from toolkit.datasets import isoflop_design, simulate_runs
from toolkit.errors import (
    ConvergenceWarning,
    DataError,
    ExtrapolationWarning,
    IdentifiabilityWarning,
)
from toolkit.scaling import fit, laws
from toolkit.scaling.downstream import backtest_scores, fit_score, two_step

TRUTH = "besiroglu2024"
BUDGETS = [1e19, 3e19, 1e20, 3e20, 1e21]


def score(loss):
    return 0.25 + 0.65 / (1 + np.exp(2.5 * (np.asarray(loss) - 2.7)))


def study(seed=0, noise=0.005, sd=0.01, budgets=BUDGETS):
    generator = np.random.default_rng(seed)
    design = isoflop_design(budgets, [4, 20, 60, 150])
    runs = simulate_runs("chinchilla", TRUTH, design, noise=noise, rng=generator)
    scatter = sd * generator.standard_normal(len(runs))
    return runs.assign(score=np.clip(score(runs["loss"]) + scatter, 0, 1))


POINT = {"params": [4e9], "tokens": [5e11]}  # 12 times the compute of the largest run


def true_score(point=POINT):
    values = dict(laws.CHINCHILLA.presets[TRUTH].values)
    return score(laws.CHINCHILLA.predict(values, point))


@pytest.fixture(scope="module")
def fitted():
    return two_step(study(), floor=0.25, bootstrap=200, rng=0)


def test_clean_runs_give_the_truth_back():
    clean = two_step(study(noise=0.0, sd=0.0), floor=0.25)
    with pytest.warns(ExtrapolationWarning, match="both steps are extrapolated"):
        at = clean.predict(POINT)
    assert at["score"].to_numpy() == pytest.approx(true_score(), abs=1e-6)
    assert clean.params["score", "L0"] == pytest.approx(2.7, abs=1e-4)
    assert clean.params["loss", "E"] == pytest.approx(1.8172, abs=1e-3)


def test_both_steps_draw_the_same_runs(fitted):
    """The draws of each step are those of its own fit on the same positions."""
    runs = study()
    positions = np.random.default_rng(0).integers(0, 20, size=(200, 20))
    first = fit("chinchilla", runs, cluster="run", bootstrap=positions)
    second = fit_score("sigmoid", runs, floor=0.25, cluster="run", bootstrap=positions)
    assert fitted.loss_fit.draws.to_numpy() == pytest.approx(first.draws.to_numpy())
    assert fitted.score_fit.draws.to_numpy() == pytest.approx(second.draws.to_numpy())


def test_prediction_carries_both_steps(fitted):
    at = fitted.predict({"params": [2e9], "tokens": [1e11]}).iloc[0]
    loss_draws = [
        np.exp(fitted.loss_fit.law.evaluate_working(theta, fitted.loss_fit.problem.inputs(
            pd.DataFrame({"params": [2e9], "tokens": [1e11]})
        ))[0][0])
        for theta in fitted.loss_fit.bootstrap.theta
    ]  # fmt: skip
    chained = [
        fitted.score_fit.law.evaluate(theta, np.array([[loss]]))[0][0]
        for theta, loss in zip(fitted.score_fit.theta_draws(), loss_draws, strict=True)
    ]
    assert [at["lower"], at["upper"]] == pytest.approx(np.quantile(chained, [0.025, 0.975]))
    assert at["run_lower"] < at["lower"] < at["score"] < at["upper"] < at["run_upper"]


@pytest.mark.filterwarnings("ignore::toolkit.errors.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::toolkit.errors.IdentifiabilityWarning")
def test_coverage_of_the_prediction():
    """25 studies; the figures in the docstring of two_step come from 200."""
    covered = 0
    for seed in range(25):
        study_fit = two_step(study(seed), floor=0.25, bootstrap=100, rng=seed)
        with pytest.warns(ExtrapolationWarning):
            at = study_fit.predict(POINT).iloc[0]
        covered += at["lower"] <= true_score()[0] <= at["upper"]
    assert covered >= 20


def test_order_of_the_checkpoints_does_not_matter():
    runs = study()
    marks = pd.concat([runs[["run", "loss", "score"]], study(1)[["run", "loss", "score"]]])
    shuffled = marks.sample(frac=1.0, random_state=0)
    at = {"params": [2e9], "tokens": [1e11]}
    first, second = (
        two_step(runs, checkpoints=table, floor=0.25, bootstrap=60, rng=0).predict(at)
        for table in (marks, shuffled)
    )
    pd.testing.assert_frame_equal(first, second, rtol=1e-6)


def test_checkpoints_of_other_runs_are_refused():
    runs = study()
    marks = runs[["run", "loss", "score"]].iloc[1:]
    with pytest.raises(DataError, match=r"1 values are in only one of runs and checkpoints \(0\)"):
        two_step(runs, checkpoints=marks)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"score_law": "compute"}, "one step"),
        ({"bootstrap": 1}, "at least 2 resamples"),
        ({"cluster": "model"}, "Missing 'model'"),
        ({"floor": 0.99}, "above every score"),
    ],
)
def test_bad_options_are_refused(options, message):
    runs = study().assign(flops=lambda t: 6 * t["params"] * t["tokens"])
    with pytest.raises(DataError, match=message):
        two_step(runs, **options)


def test_percent_is_refused_before_any_fit():
    with pytest.raises(DataError, match="divide percent by 100"):
        two_step(study().assign(score=lambda t: 100 * t["score"]))


def test_result_can_be_read(fitted):
    text = fitted.summary().text()
    assert "both steps from the same resample" in text
    assert "200 resamples of 20 units (run)" in text
    assert set(fitted.to_frame().index.get_level_values("step")) == {"loss", "score"}
    assert fitted.conf_int().loc[("score", "k"), "lower"] < 2.5
    assert "<table" in fitted._repr_html_()


@pytest.fixture(scope="module")
def backtest():
    with warnings.catch_warnings():
        # 16 runs are few for the seven parameters of the combined law.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        return backtest_scores(study(), train_flops=3.1e20, floor=0.25, bootstrap=100, rng=0)


def test_backtest_fits_the_small_and_predicts_the_large(backtest):
    assert (backtest.fitted, backtest.targets) == (16, 4)
    rows = backtest.predictions
    assert set(rows["method"]) == {"two-step", "compute", "combined"}
    assert (rows["flops"] > 3.1e20).all()
    assert rows["error"].to_numpy() == pytest.approx(rows["predicted"] - rows["score"])
    own = two_step(study().query("flops <= 3.1e20"), floor=0.25)
    large = study().query("flops > 3.1e20")
    expected = own.predict(large)["score"].to_numpy()
    found = rows.loc[rows["method"] == "two-step", "predicted"]
    assert found.to_numpy() == pytest.approx(expected, abs=1e-8)


def test_backtest_compares_the_methods(backtest):
    table = backtest.to_frame()
    assert table.loc["two-step", "mean_error"] < 0.03
    assert (table["mean_error"] <= table["worst_error"]).all()
    assert (table["bias"].abs() <= table["mean_error"]).all()
    assert backtest.params.to_dict() == table["mean_error"].to_dict()
    assert table["coverage"].between(0, 1).all()
    assert "larger runs" in backtest.summary().text()
    assert "<table" in backtest._repr_html_()


@pytest.mark.filterwarnings("ignore::toolkit.errors.IdentifiabilityWarning")
def test_backtest_takes_tasks_with_their_floors():
    runs = pd.concat([study().assign(task="a"), study(1).assign(task="b")])
    test = backtest_scores(
        runs, train_flops=3.1e20, methods=["two-step"], floor={"a": 0.25, "b": 0.2}
    )
    assert test.predictions.groupby("task").size().to_dict() == {"a": 4, "b": 4}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train_flops": 1e25}, "no run to predict"),
        ({"train_flops": 1e10}, "no run to fit"),
        ({"train_flops": 1e20, "methods": ["magic"]}, "methods is a list out of two-step"),
    ],
)
def test_bad_backtests_are_refused(options, message):
    with pytest.raises(DataError, match=message):
        backtest_scores(study(), **options)
