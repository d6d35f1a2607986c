"""Simulated runs: the design is the design, the truth is the truth, the noise is the noise."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from toolkit.datasets import isoflop_design, simulate_runs
from toolkit.errors import DataError
from toolkit.scaling import CHINCHILLA

HOFFMANN = CHINCHILLA.values("hoffmann2022")  # values, so that no range is warned of
DESIGN = isoflop_design([1e19, 1e20, 1e21], [5, 20, 80])


def test_an_isoflop_design_spends_each_budget_at_each_ratio():
    assert len(DESIGN) == 9
    np.testing.assert_allclose(6 * DESIGN["params"] * DESIGN["tokens"], DESIGN["flops"])
    assert DESIGN["flops"].round(-15).value_counts().to_dict() == {1e19: 3, 1e20: 3, 1e21: 3}
    np.testing.assert_allclose(DESIGN["tokens"] / DESIGN["params"], [5, 20, 80] * 3)


@pytest.mark.parametrize("budgets", [[0], [-1e19], [np.nan], [np.inf]])
def test_budgets_and_ratios_must_be_positive(budgets):
    with pytest.raises(DataError, match="finite and positive"):
        isoflop_design(budgets, [20])
    with pytest.raises(DataError, match="finite and positive"):
        isoflop_design([1e20], budgets)


def test_runs_without_noise_lie_on_the_law():
    runs = simulate_runs("chinchilla", "hoffmann2022", DESIGN, noise=0.0)
    np.testing.assert_array_equal(runs["loss"], CHINCHILLA.predict(HOFFMANN, DESIGN))
    assert runs["run"].tolist() == list(range(9))
    assert runs.attrs["truth"] == dict(CHINCHILLA.presets["hoffmann2022"].values)
    assert runs["flops"].equals(DESIGN["flops"])


@pytest.mark.parametrize(
    ("noise", "law"),
    [(0.01, stats.norm(scale=0.01)), (stats.t(3, scale=0.003), stats.t(3, scale=0.003))],
    ids=["standard deviation", "distribution"],
)
def test_the_error_of_the_log_loss_has_the_distribution_asked_for(noise, law):
    many = isoflop_design(np.geomspace(1e18, 1e22, 100), np.geomspace(2, 200, 30))
    runs = simulate_runs("chinchilla", "hoffmann2022", many, noise=noise, rng=0)
    error = np.log(runs["loss"] / CHINCHILLA.predict(HOFFMANN, many))
    assert stats.kstest(error, law.cdf).pvalue > 0.01


def test_a_seed_decides_the_noise_and_the_design_is_left_alone():
    before = DESIGN.copy()
    first, again, other = (
        simulate_runs("chinchilla", "hoffmann2022", DESIGN, rng=seed)["loss"] for seed in (1, 1, 2)
    )
    assert first.equals(again)
    assert not first.equals(other)
    pd.testing.assert_frame_equal(DESIGN, before)


def test_the_index_of_the_design_does_not_misalign_the_losses():
    shuffled = DESIGN.sample(frac=1, random_state=0)
    runs = simulate_runs("chinchilla", "hoffmann2022", shuffled, noise=0.0)
    np.testing.assert_array_equal(runs["params"], shuffled["params"])
    np.testing.assert_array_equal(runs["loss"], CHINCHILLA.predict(HOFFMANN, runs))


def test_a_mapping_with_whole_numbers_is_a_design():
    runs = simulate_runs(
        "chinchilla", "hoffmann2022", {"params": [10**9], "tokens": [2 * 10**10]}, noise=0
    )
    assert runs["loss"].item() == pytest.approx(2.58, abs=0.01)


@pytest.mark.parametrize("noise", [-0.1, np.nan, np.inf, "small", None])
def test_noise_that_is_no_scale_is_refused(noise):
    with pytest.raises(DataError, match="noise must be a standard deviation"):
        simulate_runs("chinchilla", "hoffmann2022", DESIGN, noise=noise)


def test_designs_and_parameters_are_checked():
    with pytest.raises(DataError, match="Missing 'tokens'"):
        simulate_runs("chinchilla", "hoffmann2022", DESIGN[["params"]])
    with pytest.raises(DataError, match="no preset"):
        simulate_runs("chinchilla", "hoffmann", DESIGN)
    with pytest.raises(DataError, match=r"'params'.*NaN"):
        simulate_runs("chinchilla", "hoffmann2022", DESIGN.assign(params=np.nan))


def test_runs_can_be_simulated_over_the_design_of_real_runs():
    """A table that already names its runs is the usual design of a coverage study."""
    named = DESIGN.assign(run=[f"r{k}" for k in range(9)], loss=9.9)
    runs = simulate_runs("chinchilla", "hoffmann2022", named, noise=0.0)
    assert runs["run"].tolist() == named["run"].tolist()
    np.testing.assert_array_equal(runs["loss"], CHINCHILLA.predict(HOFFMANN, DESIGN))
