"""Laws side by side: no law is dropped, and none is called better on noise."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from toolkit.errors import DataError
from toolkit.scaling import CHINCHILLA, compare, fit
from toolkit.scaling.validation.held_out import unit_errors

TWO = {"huber": "chinchilla", "squared": ("chinchilla", {"loss": "squared"})}


@pytest.fixture(scope="module")
def two(runs):
    return compare(TWO, runs, bootstrap=0)


def test_baselines_are_always_there_and_the_true_law_wins(runs):
    table = compare("chinchilla", runs, bootstrap=50, rng=0).table
    assert table.index.tolist()[0] == "chinchilla"
    assert set(table.index[1:]) == {"lowest loss so far", "power law in compute"}
    assert table["verdict"].tolist() == ["lowest", "worse", "worse"]
    assert table["parameters"].to_dict() == {
        "chinchilla": 5,
        "lowest loss so far": 1,
        "power law in compute": 2,
    }


def test_baselines_predict_what_they_say(two, runs):
    small, large = runs[runs["flops"] < 9e20], runs[runs["flops"] > 9e20]
    constant = 100 * np.log(large["loss"] / small["loss"].min()).abs().mean()
    assert two.table.loc["lowest loss so far", "held_out"] == pytest.approx(constant)
    slope, level = np.polyfit(np.log(small["flops"]), np.log(small["loss"]), 1)
    squared = compare("chinchilla", runs, bootstrap=0, loss="squared").predictions
    mine = squared[squared["law"] == "power law in compute"]
    assert_allclose(np.log(mine["predicted"]), level + slope * np.log(large["flops"]), rtol=1e-7)


def test_difference_is_paired_over_units(two):
    errors = {law: unit_errors(mine) for law, mine in two.predictions.groupby("law")}
    best = two.table.index[0]
    paired = errors["lowest loss so far"] - errors[best]
    reach = stats.t.ppf(1 - 0.025 / 6, len(paired) - 1) * paired.std() / np.sqrt(len(paired))
    row = two.table.loc["lowest loss so far"]
    assert_allclose(row["difference"], paired.mean())
    assert_allclose([row["lower"], row["upper"]], [paired.mean() - reach, paired.mean() + reach])
    assert np.isnan(two.table["difference"].iloc[0])


def test_in_sample_error_is_that_of_the_fit_to_all_runs(two, runs):
    expected = 100 * fit("chinchilla", runs).residuals.abs().mean()
    assert two.table.loc["huber", "in_sample"] == pytest.approx(expected)


def test_equal_laws_are_not_told_apart(runs):
    same = compare({"one": "chinchilla", "two": CHINCHILLA}, runs, bootstrap=20, rng=0).table
    assert same.loc["two", "difference"] == 0
    assert same.loc["two", "verdict"] == "not told apart"


def test_no_law_is_called_better_on_noise(study):
    """Two fits of the true law; without other training runs in mind one study is told apart."""
    verdicts = {0: [], 50: []}
    for seed in (1, 4, 7, 8, 9, 12):
        for bootstrap, seen in verdicts.items():
            table = compare(TWO, study(seed), bootstrap=bootstrap, rng=seed, share=0.3).table
            seen.append("worse" in set(table.loc[["huber", "squared"], "verdict"]))
    assert not any(verdicts[50])
    assert sum(verdicts[50]) <= sum(verdicts[0])


def test_bootstrap_widens_the_bounds(runs):
    plain = compare(TWO, runs, bootstrap=0).table
    wide = compare(TWO, runs, bootstrap=100, rng=np.random.default_rng(0)).table
    width = [(t["upper"] - t["lower"]).dropna() for t in (plain, wide)]
    assert (width[1] >= width[0].loc[width[1].index] - 1e-12).all()
    assert width[1].max() > width[0].max()


def test_bounds_do_not_shrink_when_runs_are_repeated(runs):
    """E12: ten rows of each run, named by run, say what one row says."""
    once = compare("chinchilla", runs, bootstrap=30, rng=0, loss="squared").table
    ten = pd.concat([runs] * 10)
    named = compare("chinchilla", ten, bootstrap=30, rng=0, loss="squared").table
    assert_allclose(named[["difference", "lower", "upper"]], once[["difference", "lower", "upper"]],
                    rtol=1e-5)  # fmt: skip
    assert named["units"].tolist() == once["units"].tolist()
    assert named["predictions"].tolist() == (10 * once["predictions"]).tolist()


def test_laws_that_cannot_be_fitted_stay_with_their_reason(runs):
    missing = dataclasses.replace(CHINCHILLA, name="unique", columns=("params", "tokens_unique"))
    constant = dataclasses.replace(CHINCHILLA, name="constant", columns=("params", "params_active"))
    six = runs.iloc[::10].assign(params_active=1e9)
    comparison = compare(["chinchilla", missing, constant], six, bootstrap=0)
    table = comparison.table
    assert set(table.index) >= {"chinchilla", "unique", "constant"}
    assert "At least 6 are needed" in table.loc["chinchilla", "reason"]  # E10
    assert "tokens_unique" in table.loc["unique", "reason"]
    assert "same value" in table.loc["constant", "reason"]
    unfit = ["chinchilla", "unique", "constant"]
    assert (table.loc[unfit, "verdict"] == "not fitted").all()
    assert table.loc[unfit, "held_out"].isna().all()
    text = comparison.summary().text()
    assert "unique: " in text
    assert "constant: " in text


def test_power_law_without_compute_has_a_reason(runs):
    table = compare("chinchilla", runs.drop(columns="flops")[["params", "loss"]], by="params",
                    bootstrap=0).table  # fmt: skip
    assert "flops" in table.loc["power law in compute", "reason"]
    assert "tokens" in table.loc["chinchilla", "reason"]
    assert table.loc["lowest loss so far", "verdict"] == "lowest"


def test_laws_of_other_columns_and_pinned_parameters(runs):
    laws = {
        "compute": "kaplan_flops",
        "free": "chinchilla",
        "pinned": ("chinchilla", {"fixed": {"alpha": 0.34781}}),
    }
    table = compare(laws, runs, bootstrap=0).table
    assert table.loc["pinned", "parameters"] == 4
    assert table.loc["compute", "held_out"] == table.loc["power law in compute", "held_out"]


def test_starts_of_the_law_are_not_forced_on_the_baseline(runs):
    start = [[482.0, 2085.0, 1.8, 0.35, 0.37]]
    table = compare("chinchilla", runs, starts=start, bootstrap=0).table
    assert (table["reason"] == "").all()


def test_shared_predictions_of_rolling_levels(runs):
    few = pd.concat([runs.iloc[:5], runs[runs["flops"] > 1e19]])
    comparison = compare("chinchilla", few, how="rolling", bootstrap=0)
    table = comparison.table
    own = table.loc["chinchilla", "predictions"]
    assert table.loc["lowest loss so far", "predictions"] > own
    common = comparison.predictions.groupby(["fold", "row"])["law"].nunique()
    assert 0 < comparison.shared == (common == 3).sum() < own


def test_groups_are_the_unit_when_they_are_held_out(runs):
    grouped = runs.assign(budget=runs["flops"].map("{:.1e}".format))
    comparison = compare("chinchilla", grouped, how="groups", group="budget", bootstrap=0)
    assert comparison.unit == "budget"
    assert (comparison.table["units"] == 6).all()
    assert "only 6 units" in comparison.summary().text()


def test_real_points_show_what_the_toolkit_can_tell(kept_points):
    """Huber and squared loss are not told apart beyond 1e21 FLOP; the baselines are worse."""
    comparison = compare(TWO, kept_points, above=1e21, rng=0)
    verdict = comparison.table["verdict"]
    assert verdict["huber"] == "lowest"
    assert verdict["squared"] == "not told apart"
    assert (verdict[["lowest loss so far", "power law in compute"]] == "worse").all()
    assert comparison.table.loc["huber", "held_out"] == pytest.approx(1.05, abs=0.01)
    assert comparison.table.loc["huber", "coverage"] < 0.85  # lack of fit at the largest runs


@pytest.mark.parametrize(
    ("laws", "options", "message"),
    [
        (["chinchilla", CHINCHILLA], {}, "given twice"),
        ("nobody", {}, "No law"),
        (("chinchilla", {"cluster": "run"}), {}, "for all laws alike"),
        ([3], {}, "a pair"),
        ("chinchilla", {"how": "somehow"}, "'largest', 'groups' or 'rolling'"),
        ("chinchilla", {"how": "groups"}, "needs group"),
    ],
)
def test_what_cannot_be_compared_is_refused(runs, laws, options, message):
    with pytest.raises(DataError, match=message):
        compare(laws, runs, bootstrap=0, **options)
