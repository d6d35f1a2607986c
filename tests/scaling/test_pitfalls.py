"""Known mistakes of scaling-law fits, each as a small input with the behaviour that is right.

The cases are real: they were found in published analyses, in issue trackers of fitting packages
and in the behaviour of general optimisers.
"""

import warnings

import numpy as np
import pandas as pd
import pytest

import toolkit as tk
from toolkit.datasets import isoflop_design, simulate_runs
from toolkit.errors import (
    DataError,
    ExtrapolationWarning,
    IdentifiabilityWarning,
    SmallSampleWarning,
)
from toolkit.scaling import CHINCHILLA, fit

TRUTH = "besiroglu2024-unrounded"


def test_a_tiny_mean_objective_does_not_stop_early(runs):
    summed = fit("chinchilla", runs)
    mean = fit("chinchilla", runs.assign(share=1e-6), weights="share")
    assert mean.certified
    np.testing.assert_allclose(mean.params, summed.params, rtol=1e-6)


def test_a_start_in_the_wrong_basin_is_not_called_success(runs):
    """From (0, 0, -1, 0, 0) common optimisers report success far above the optimum."""
    everywhere = fit("chinchilla", runs)
    poor = np.exp([[0.0, 0.0, -1.0]])
    one = fit("chinchilla", runs, starts=np.column_stack([poor, [[0.0, 0.0]]]))
    ends_at_optimum = one.objective <= everywhere.objective * (1 + 1e-9)
    assert ends_at_optimum or not one.certified or one.objective > everywhere.objective
    assert {"objective", "certified", "agrees"} <= set(one.starts.columns)
    assert everywhere.agreement > 0.9


def test_intervals_do_not_depend_on_the_unit_of_a_column(runs):
    other = runs.assign(params=1e3 * runs["params"], tokens=runs["tokens"] / 10)
    here, there = (fit("chinchilla", r, bootstrap=100, rng=0) for r in (runs, other))
    for name in ("alpha", "beta", "E", "params_exponent"):
        np.testing.assert_allclose(there.conf_int().loc[name], here.conf_int().loc[name], rtol=1e-5)


def test_integer_counts_do_not_overflow():
    params, tokens = np.array([816_341_493]), np.array([1_897_148_783])
    with np.errstate(over="ignore"):
        assert (6 * params * tokens < 0).all()
    assert tk.scaling.flops.training_flops(params, tokens) == pytest.approx(9.2924e18, rel=1e-3)


def test_millions_are_not_taken_for_counts(runs):
    with pytest.raises(DataError, match="to_counts"):
        fit("chinchilla", runs.assign(params=runs["params"] / 1e6))


@pytest.mark.parametrize("tokens", ["one count", "twenty per parameter"])
def test_exponents_that_the_runs_cannot_show_are_refused(tokens):
    size = np.geomspace(1e8, 1e10, 12)
    data = np.full(12, 2e10) if tokens == "one count" else 20 * size
    runs = simulate_runs("chinchilla", TRUTH, {"params": size, "tokens": data}, noise=0.003, rng=0)
    if tokens == "one count":
        with pytest.raises(DataError, match="'tokens' has the same value"):
            fit("chinchilla", runs)
        return
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = fit("chinchilla", runs)
    doubts = [str(w.message) for w in said if w.category is IdentifiabilityWarning]
    assert "chinchilla_tied" in doubts[0]
    assert not found.identifiability().identified[["alpha", "beta"]].any()
    with pytest.warns(ExtrapolationWarning):
        assert found.optimal_allocation(1e24)["params"].isna().all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # A and B stay inseparable
        tied = fit("chinchilla_tied", runs)
    assert tied.params["alpha"] == pytest.approx(0.357, abs=0.03)
    assert not tied.identifiability().identified[["A", "B"]].any()


def test_as_many_parameters_as_points_is_no_fit():
    three = pd.DataFrame({"tokens": [1e9, 1e10, 1e11], "loss": [3.0, 2.5, 2.2]})
    with pytest.raises(DataError, match="3 parameters to fit; 3 different points"):
        fit("m2", three)


def test_pinned_values_stand_in_the_result(runs):
    assert fit("chinchilla", runs, fixed={"E": 1.8}).fixed == {"E": pytest.approx(1.8)}


def test_a_repeated_run_is_no_certainty(runs):
    once = runs.head(12)
    with pytest.raises(DataError, match="repeat an earlier row"):
        fit("chinchilla", pd.concat([once, once]), bootstrap=50, rng=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ten = pd.concat([once] * 10, ignore_index=True)
        repeated = fit("chinchilla", ten, bootstrap=100, cluster="run", rng=0)
        single = fit("chinchilla", once, bootstrap=100, cluster="run", rng=0)
    width = [f.params_exponent(method="percentile").width for f in (repeated, single)]
    assert width[0] == pytest.approx(width[1], rel=1e-6)
    assert repeated.bootstrap.units == 12


def test_few_units_are_said(runs):
    few = runs.assign(batch=np.arange(len(runs)) % 5)
    with pytest.warns(SmallSampleWarning, match="5 independent units"):
        fit("chinchilla", few, bootstrap=50, cluster="batch", rng=0)


def test_a_loss_below_the_floor_is_a_residual_not_an_error(runs):
    noisy = runs.copy()
    noisy.loc[noisy["loss"].idxmin(), "loss"] = 1.6
    found = fit("chinchilla", noisy)
    assert found.certified
    assert np.isfinite(found.residuals).all()
    assert found.residuals.min() < -0.05


def test_rounded_constants_are_marked():
    assert CHINCHILLA.presets["hoffmann2022"].rounded
    assert not CHINCHILLA.presets["hoffmann2022-unrounded"].rounded


def test_single_runs_that_decide_are_shown(runs):
    wrong = runs.copy()
    wrong.loc[5, "loss"] *= 1.2
    influence = fit("chinchilla", wrong, loss="squared").influence()
    assert influence["residual"].idxmax() == 5
    assert 5 in influence.index[:3]
    assert len(influence) == len(runs)


def test_predictions_carry_the_noise_of_runs_and_presets_their_range():
    design = isoflop_design(np.geomspace(1e18, 1e21, 8), np.geomspace(3, 100, 8))
    runs = simulate_runs("chinchilla", TRUTH, design, noise=0.01, rng=3)
    inside = fit("chinchilla", runs, bootstrap=200, rng=0).predict(1e9, 2e10).iloc[0]
    curve = inside["upper"] - inside["lower"]
    run = inside["run_upper"] - inside["run_lower"]
    assert run > 2 * curve
    assert run == pytest.approx(2 * 1.96 * 0.01 * inside["loss"], rel=0.25)
    with pytest.warns(ExtrapolationWarning, match="hoffmann2022"):
        CHINCHILLA.predict("hoffmann2022", {"params": [7e10], "tokens": [1.4e12]})
