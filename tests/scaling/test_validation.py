"""Held-out predictions: what is fitted, what is predicted, and that no unit is in both."""

import dataclasses
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from toolkit.datasets.simulate import isoflop_design, simulate_runs
from toolkit.errors import ConvergenceWarning, DataError, SmallSampleWarning
from toolkit.scaling import backtest, fit, hold_out, laws, leave_one_group_out
from toolkit.scaling.validation.candidates import Trained
from toolkit.scaling.validation.held_out import validate
from toolkit.scaling.validation.splits import Runs, group_splits, largest_split, rolling_splits

TRUTH = "besiroglu2024-unrounded"


@pytest.fixture(scope="module")
def exact(study):
    return study(noise=0)


@pytest.fixture(scope="module")
def checkpoints():
    """12 runs with 4 checkpoints each, whose compute overlaps between runs."""
    params = np.geomspace(1e8, 3e9, 12)
    final = 20 * params * np.tile([0.5, 1.0, 4.0], 4)
    design = pd.DataFrame(
        {
            "run": np.repeat(np.arange(12), 4),
            "params": np.repeat(params, 4),
            "tokens": (final[:, None] * [0.25, 0.5, 0.75, 1.0]).ravel(),
        }
    )
    return simulate_runs("chinchilla", TRUTH, design, noise=0.003, rng=0)


def test_held_out_predictions_are_those_of_a_fit_to_the_rest(runs):
    validation = hold_out("chinchilla", runs, above=3e20)
    small = runs[runs["flops"] <= 3e20]
    large = runs[runs["flops"] > 3e20]
    expected = fit("chinchilla", small).predict(large[["params", "tokens"]])["loss"]
    predictions = validation.predictions
    assert_array_equal(predictions["row"], large.index)
    assert_allclose(predictions["predicted"], expected, rtol=1e-9)
    assert_allclose(predictions["residual"], np.log(large["loss"].to_numpy() / expected), atol=1e-9)
    assert_allclose(predictions["percent"], 100 * (large["loss"].to_numpy() / expected - 1))
    assert_allclose(predictions["decades"], np.log10(large["flops"] / small["flops"].max()))
    error = 100 * predictions["residual"].abs().mean()
    assert validation.table.loc["chinchilla", "error"] == pytest.approx(error)
    assert predictions["covered"].isna().all()


def test_true_law_without_noise_predicts_exactly(exact):
    table = hold_out("chinchilla", exact, share=0.5).table
    assert table.loc["chinchilla", "worst"] == pytest.approx(0.0, abs=1e-4)


def test_share_keeps_equal_budgets_together(runs):
    assert set(hold_out("chinchilla", runs).predictions["flops"].round(-12)) == {1e21}
    wide = hold_out("chinchilla", runs, share=0.3).predictions
    assert len(wide) == 20


def test_compute_of_integer_counts_does_not_overflow(runs):
    whole = runs[["params", "tokens", "loss"]].astype({"params": "int64", "tokens": "int64"})
    assert (6 * whole["params"] * whole["tokens"] < 0).any()
    predictions = hold_out("chinchilla", whole).predictions
    assert_allclose(predictions["flops"], 1e21, rtol=1e-6)


def test_mapping_and_any_other_target_and_position(runs):
    table = {"params": runs["params"], "tokens": runs["tokens"], "bits": runs["loss"] / np.log(2)}
    validation = hold_out("chinchilla", table, by="params", target="bits")
    assert_allclose(
        validation.predictions["observed"].min(),
        runs["loss"].iloc[-10:].min() / np.log(2),
        rtol=0.1,
    )
    assert validation.by == "params"
    assert validation.predictions["params"].min() > runs["params"].quantile(0.75)


@pytest.mark.parametrize("how", ["largest", "rolling", "groups"])
@pytest.mark.parametrize("cluster", [None, "run"])
def test_checkpoints_of_one_run_are_never_on_both_sides(checkpoints, how, cluster):
    size = pd.cut(np.log(checkpoints["tokens"]), 4, labels=False)
    runs = Runs.read(checkpoints.assign(band=size), "flops", "loss", cluster, "band")
    splits = {
        "largest": lambda: [largest_split(runs, 0.25, None)],
        "rolling": lambda: rolling_splits(runs, None, 1.0),
        "groups": lambda: group_splits(runs, "band"),
    }[how]()
    assert runs.unit == "run"
    for split in splits:
        run = checkpoints["run"]
        assert not set(run[split.train]) & set(run[split.test])
        assert split.test.any()
    assert any((~split.train & ~split.test).any() for split in splits)


def test_earlier_checkpoints_of_held_out_runs_are_left_out(checkpoints):
    validation = hold_out("chinchilla", checkpoints, share=0.25)
    record = validation.fits.iloc[0]
    assert record["fitted"] + record["predicted"] + record["left_out"] == 48
    assert record["left_out"] > 0
    assert validation.unit == "run"
    assert validation.table.loc["chinchilla", "units"] == validation.predictions["unit"].nunique()


def test_each_group_is_predicted_by_the_others(runs):
    grouped = runs.assign(budget=runs["flops"].map("{:.1e}".format))
    validation = leave_one_group_out("chinchilla", grouped, "budget")
    assert validation.fits["held_out"].tolist() == [
        f"budget {b}" for b in grouped["budget"].unique()
    ]
    assert_array_equal(np.sort(validation.predictions["row"]), np.arange(len(runs)))
    third = grouped["budget"] == grouped["budget"].unique()[2]
    expected = fit("chinchilla", runs[~third]).predict(runs.loc[third, ["params", "tokens"]])
    mine = validation.predictions[validation.predictions["fold"] == 2]
    assert_allclose(mine["predicted"], expected["loss"], rtol=1e-9)
    assert (mine["decades"] < 0).all()
    assert 0.0 in validation.by_decades().index.get_level_values("decades_up_to")


def test_rolling_levels_train_below_and_predict_above(runs):
    validation = backtest("chinchilla", runs, levels=[1e19, 1e20], horizon=1.0)
    assert (
        validation.fits["fitted"].tolist() == [20, 40]
        or validation.fits["fitted"].is_monotonic_increasing
    )
    for fold, level in enumerate([1e19, 1e20]):
        flops = validation.predictions.loc[validation.predictions["fold"] == fold, "flops"]
        assert flops.min() > level
        assert flops.max() <= 10 * level * (1 + 1e-5)


def test_errors_by_decades_follow_from_the_predictions(runs):
    validation = backtest("chinchilla", runs, levels=[1e19, 1e20])
    table = validation.by_decades(0.5)
    decades, residual = validation.predictions["decades"], validation.predictions["residual"]
    inside = (decades > 1.0 + 1e-9) & (decades <= 1.5 + 1e-9)
    by_unit = residual[inside].abs().groupby(validation.predictions["unit"][inside]).mean()
    assert table.loc[("chinchilla", 1.5), "error"] == pytest.approx(100 * by_unit.mean())
    assert table["predictions"].sum() == len(validation.predictions)


def test_levels_with_too_few_runs_give_a_reason(runs):
    five = runs.iloc[:5]
    few = pd.concat([five, runs[runs["flops"] > 1e20]])
    validation = backtest("chinchilla", few, levels=[1e18, 5e20])
    first, second = validation.fits["reason"]
    assert "At least 6 are needed" in first
    assert second == ""
    assert "no fit in 1 of 2 folds" in validation.table.loc["chinchilla", "reason"]
    assert "no fit in 1 of 2 folds" in validation.summary().text()


def test_intervals_of_new_runs_cover_held_out_runs():
    """E18: bounds carry the noise of a run; 30 studies of 14 held-out runs, 95 % nominal."""
    design = isoflop_design(np.geomspace(1e18, 3e21, 8), [2.0, 5, 10, 20, 40, 80, 200])
    inside, total = 0, 0
    for seed in range(30):
        runs = simulate_runs("chinchilla", TRUTH, design, noise=0.005, rng=seed)
        held = hold_out("chinchilla", runs, share=0.25, bootstrap=100, rng=seed).predictions
        inside, total = inside + int(held["covered"].sum()), total + len(held)
    assert total == 420
    assert 0.91 < inside / total < 0.985


def test_coverage_is_the_share_inside_the_bounds(runs):
    validation = hold_out("chinchilla", runs, bootstrap=50, rng=0, level=0.5)
    held = validation.predictions
    inside = (held["observed"] >= held["lower"]) & (held["observed"] <= held["upper"])
    assert validation.table.loc["chinchilla", "coverage"] == inside.mean()
    assert 0 < inside.mean() < 1
    assert validation.draws["chinchilla", 0].shape == (50, len(held))


def test_open_parameters_are_named():
    """E9: with D = 20 N the fit cannot tell size from data."""
    params = np.geomspace(1e8, 1e10, 20)
    runs = simulate_runs(
        "chinchilla", TRUTH, {"params": params, "tokens": 20 * params}, noise=0.001, rng=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        validation = hold_out("chinchilla", runs)
    assert "beta" in validation.fits["not_identified"].iloc[0]
    assert "beta" in validation.summary().text()


@pytest.mark.parametrize(("certified", "agreement"), [(False, 1.0), (True, 0.1)])
def test_poor_fits_are_said_once(runs, certified, agreement):
    """E1, E2: a fit that stopped early, or that few starts reach, is not passed over."""

    def poor(table):
        points = pd.DataFrame({"predicted": [3.0], "lower": [np.nan], "upper": [np.nan]})
        return Trained(
            lambda t: points.loc[np.zeros(len(t), dtype=int)].reset_index(drop=True),
            lambda t: np.empty((0, len(t))),
            5,
            certified,
            agreement,
            0,
            (),
        )

    checked = Runs.read(runs, "flops", "loss", None)
    splits = rolling_splits(checked, [1e19, 1e20])
    with pytest.warns(ConvergenceWarning, match="2 of 2 fits") as caught:
        validation = validate({"poor": poor}, checked, splits, 0.95, "later runs")
    assert len(caught) == 1
    assert ("NOT certified" in validation.summary().text()) is not certified


def test_good_fits_say_so(runs):
    record = hold_out("chinchilla", runs).fits.iloc[0]
    assert record["certified"]
    assert record["agreement"] > 0.5


def test_one_run_repeated_is_no_study(runs):
    """E11: one run, many rows: nothing to fit, and the error says so."""
    one = pd.concat([runs.iloc[[0]]] * 20 + [runs.iloc[[-1]]]).assign(run=[0] * 20 + [1])
    with pytest.raises(DataError, match="same value"):
        hold_out("chinchilla", one, above=1e20, bootstrap=20, rng=0)


def test_few_units_are_said_once(runs):
    with pytest.warns(SmallSampleWarning, match="warnings in") as caught:
        backtest(
            "chinchilla", runs.assign(band=runs.index // 10), levels=[1e19, 1e20], cluster="band",
            bootstrap=20, rng=0,
        )  # fmt: skip
    assert len([w for w in caught if w.category is SmallSampleWarning]) == 1


def test_same_seed_same_result(runs):
    first, second = (hold_out("chinchilla", runs, bootstrap=20, rng=3) for _ in range(2))
    pd.testing.assert_frame_equal(first.predictions, second.predictions)


def test_summary_has_html_and_frame(runs):
    validation = hold_out("chinchilla", runs)
    assert "Held-out errors" in validation._repr_html_()
    pd.testing.assert_frame_equal(validation.to_frame(), validation.table)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"share": 0.2, "above": 1e20}, "not both"),
        ({"share": 1.5}, "between 0 and 1"),
        ({"above": 1e30}, "span"),
        ({"above": 1.0}, "span"),
        ({"above": np.nan}, "must be a value"),
        ({"level": 2.0}, "level"),
        ({"by": "nothing"}, "nothing"),
        ({"target": "score"}, "score"),
        ({"cluster": "nobody"}, "nobody"),
    ],
)
def test_what_cannot_be_split_is_refused(runs, options, message):
    with pytest.raises(DataError, match=message):
        hold_out("chinchilla", runs, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"levels": [-1.0]}, "positive"),
        ({"levels": []}, "at least one"),
        ({"levels": [1e30]}, "No level"),
        ({"horizon": 0.0}, "horizon"),
    ],
)
def test_levels_that_do_not_part_the_runs_are_refused(runs, options, message):
    with pytest.raises(DataError, match=message):
        backtest("chinchilla", runs, **options)


def test_single_group_and_equal_runs_are_refused(runs):
    with pytest.raises(DataError, match="one group"):
        leave_one_group_out("chinchilla", runs.assign(family="a"), "family")
    with pytest.raises(DataError, match="equally large"):
        hold_out("chinchilla", runs[runs["flops"] > 9e20])


def test_missing_columns_of_a_single_law_are_an_error(runs):
    law = dataclasses.replace(laws.CHINCHILLA, columns=("params", "tokens_unique"))
    with pytest.raises(DataError, match="tokens_unique"):
        hold_out(law, runs)
