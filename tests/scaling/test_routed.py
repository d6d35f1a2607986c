"""The routed law on the published runs, and what its printed constants cost."""

import os
from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest

from tests.reference import clark2022
from toolkit import datasets
from toolkit.errors import IdentifiabilityWarning
from toolkit.scaling import fit, laws

ROUTED = laws.get("routed")
PRESETS = {"S-Base": "clark2022-s-base", "RL-R": "clark2022-rl-r", "Hash": "clark2022-hash"}


@pytest.fixture(scope="module")
def runs():
    if not os.environ.get("TOOLKIT_DATA_DIR"):
        pytest.skip("TOOLKIT_DATA_DIR is not set, so the published runs are not looked for")
    curves = datasets.load("clark_routed_curves").rename(columns={"num_experts": "experts"})
    chosen = (curves["k"] == 1) & (curves["routing_frequency"] == 0.5) & (curves["seed"] == 42)
    complete = curves[chosen].dropna(subset=["loss"]).sort_values("step")
    return complete.groupby("run").tail(1)


def fitted(runs, router, **options):
    """Fit the runs of a router; those of Hash do not tell where experts stop helping."""
    chosen = runs[runs["router_type"].isin([router, "Dense"])]
    expected = nullcontext()
    if router == "Hash":
        expected = pytest.warns(IdentifiabilityWarning, match="do not determine E_max")
    with expected:
        return fit("routed", chosen, loss="squared", cluster="run", **options)


@pytest.mark.parametrize("router", sorted(clark2022.REFIT))
def test_published_runs(runs, router):
    chosen = runs[runs["router_type"].isin([router, "Dense"])]
    found = fitted(runs, router)
    assert found.certified
    assert found.agreement == 1.0
    error = np.sqrt(np.mean((found.residuals / np.log(10)) ** 2))
    expected, printed = clark2022.ERROR[router]
    assert error == pytest.approx(expected, abs=5.1e-6)
    np.testing.assert_allclose(found.values, clark2022.REFIT[router], rtol=5e-3)
    values = ROUTED.presets[PRESETS[router]].values
    log_loss = np.log10(ROUTED.predict(values, chosen)) - np.log10(chosen["loss"])
    assert np.sqrt(np.mean(log_loss**2)) == pytest.approx(printed, abs=5.1e-6)


@pytest.mark.parametrize("router", sorted(PRESETS))
def test_presets_are_the_cited_digits_and_the_range_of_the_runs(runs, router):
    preset = ROUTED.presets[PRESETS[router]]
    assert preset.rounded
    assert tuple(preset.values.values()) == clark2022.CITED[router]
    chosen = runs[runs["router_type"].isin([router, "Dense"])]
    for column, (lowest, highest) in preset.fit_range.items():
        assert lowest <= chosen[column].min() < 1.01 * lowest
        assert highest / 1.01 < chosen[column].max() <= highest


def test_rounding_the_interaction_costs_more_than_twice_the_error(runs):
    worst = max(printed / refit for refit, printed in clark2022.ERROR.values())
    assert worst == pytest.approx(2.4, abs=0.01)
    chosen = runs[runs["router_type"].isin(["RL-R", "Dense"])]
    values = fitted(runs, "RL-R").params
    rounded = {**values, "c": round(values["c"], 3)}
    moved = np.log10(ROUTED.predict(rounded, chosen) / ROUTED.predict(dict(values), chosen))
    assert np.abs(moved).max() > clark2022.ERROR["RL-R"][0]


def test_the_ends_of_the_expert_curve_are_weakly_determined(runs):
    found = fitted(runs, "Hash", bootstrap=200, rng=0)
    assert not found.identifiability().identified["E_max"]
    bounds = found.conf_int()
    assert np.isnan(bounds.loc["E_max", "upper"])
    assert bounds.loc["E_start", "upper"] > 2 * bounds.loc["E_start", "lower"]
    low, high = found.draws["E_max"].quantile([0.025, 0.975])
    assert high > 10 * low


def test_a_bound_within_reach_does_not_make_a_parameter_unknown(runs):
    """E_start of RL-R cannot go below one, and is clearly worse there."""
    found = fitted(runs, "RL-R")
    assert found.identifiability().identified["E_start"]
    assert found.profile("E_start").identified
    assert 1.0 < found.profile("E_start").lower < 1.2


def test_dense_models_follow_a_power_of_size(runs):
    dense = runs[runs["router_type"] == "Dense"].drop(columns="params")
    dense = dense.rename(columns={"params_active": "params"})
    assert len(dense) == 5
    found = fit("kaplan_params", dense, loss="squared")
    assert found.params["alpha_N"] == pytest.approx(clark2022.DENSE_EXPONENT, abs=5e-5)
    assert found.params["N_c"] == pytest.approx(clark2022.DENSE_SIZE, rel=5e-3)


def test_effective_experts_go_from_start_to_maximum():
    values = {"a": 0.0, "b": 1.0, "c": 0.0, "d": 0.0, "E_start": 2.0, "E_max": 300.0}
    table = pd.DataFrame({"params_active": 1e8, "experts": [1.0, 2.0, 8.0, 1e6]})
    effective = ROUTED.predict(values, table)
    offset = 1 / (1 / 2 - 1 / 300)
    expected = 1 / (1 / (table["experts"] - 1 + offset) + 1 / 300)
    np.testing.assert_allclose(effective, expected, rtol=1e-12)
    assert effective[0] == pytest.approx(2.0)
    assert effective[-1] == pytest.approx(300.0, rel=1e-3)
