"""The fit against known truth, and what must not change it."""

import numpy as np
import pandas as pd
import pytest

from toolkit import boundary
from toolkit.errors import IdentifiabilityWarning, SmallSampleWarning


@pytest.fixture(scope="module", params=[None, 60], ids=["continuous", "tied"])
def known(request, known_models):
    return known_models(values=request.param)


@pytest.fixture(scope="module")
def fitted(known):
    return boundary.fit(known, tau=0.98)


def test_the_truth_is_recovered(fitted, truth, budgets):
    error = fitted.attainable(budgets)["score"].to_numpy() - truth.attainable(budgets)
    assert abs(error.mean()) < 0.004
    assert abs(error).max() < 0.015


def test_coverage_is_the_level(fitted):
    quality = fitted.coverage().loc[0.98]
    assert 0.978 <= quality["coverage"] <= 0.982
    assert quality["lower"] < 0.98 < quality["upper"]
    assert quality["skill"] > 0.7


def test_the_loss_is_below_that_of_the_truth(fitted, known, truth):
    u = known["score"] - truth.attainable(known["flops"])
    assert fitted.coverage().loc[0.98, "pinball"] <= np.mean(u * (0.98 - (u < 0)))


def test_all_starts_agree_and_the_optimum_is_certified(fitted):
    assert fitted.agreement[0.98] == 1.0
    assert fitted.certified[0.98]
    assert len(fitted.starts) == 4


def test_the_mean_error_over_studies_is_small(known_models, truth):
    """The exact quantile has hardly any bias; the published recipe has one of 0.05."""
    fits = [boundary.fit(known_models(seed, n=3000), tau=0.98) for seed in range(20)]
    errors = [fit.curve().attainable(1e24) - truth.attainable(1e24) for fit in fits]
    assert abs(np.mean(errors)) < 0.002
    assert np.std(errors) < 0.006


def test_row_order_changes_no_bit(known, fitted):
    shuffled = boundary.fit(known.sample(frac=1, random_state=1), tau=0.98)
    np.testing.assert_array_equal(shuffled.values, fitted.values)


def test_integer_weights_equal_repeated_rows(known_models, budgets):
    models = known_models(1, n=600, tau=0.9).assign(
        count=np.random.default_rng(0).integers(1, 4, 600)
    )
    weighted = boundary.fit(models, tau=0.9, weights="count")
    repeated = boundary.fit(models.loc[models.index.repeat(models["count"])], tau=0.9)
    np.testing.assert_allclose(
        weighted.attainable(budgets)["score"], repeated.attainable(budgets)["score"], atol=1e-6
    )
    assert weighted.coverage()["coverage"][0.9] == pytest.approx(
        repeated.coverage()["coverage"][0.9]
    )


def test_compute_from_size_and_tokens_is_the_same_fit(known_models):
    models = known_models(2, n=500, tau=0.9)
    other = pd.DataFrame(
        {"params": 1e11, "tokens": models["flops"] / 6e11, "score": models["score"]}
    )
    one = boundary.fit(models, tau=0.9)
    two = boundary.fit(other, tau=0.9)
    assert two.values[0] == pytest.approx(one.values[0], rel=1e-6)


def test_whole_counts_do_not_overflow():
    """6 * params * tokens of 70e9 and 15e12 is beyond 64-bit integers."""
    models = {
        "params": [70_000_000_000] * 20 + [7_000_000_000] * 20,
        "tokens": [15_000_000_000_000] * 20 + [1_000_000_000_000] * 20,
        "score": [*np.linspace(0.5, 0.8, 20), *np.linspace(0.2, 0.5, 20)],
    }
    with pytest.warns((SmallSampleWarning, IdentifiabilityWarning)):
        fit = boundary.fit(models, tau=0.5)
    assert fit.models.flops.max() == pytest.approx(6.3e24)


def test_a_mixture_of_experts_counts_active_parameters(known_models):
    """DeepSeekMoE-16B: 2.8e9 active, 2e12 tokens."""
    models = known_models(3, n=100, tau=0.95)
    table = {
        "params": np.full(100, 16.4e9),
        "params_active": np.full(100, 2.8e9),
        "tokens": np.linspace(1e12, 2e12, 100),
        "score": models["score"].sort_values().to_numpy(),
    }
    fit = boundary.fit(table, tau=0.5)
    assert fit.models.flops.max() == pytest.approx(3.36e22)


def test_the_floor_holds_the_base(known_models):
    models = known_models(4, n=2000, tau=0.9)
    assert boundary.fit(models, tau=0.9).values[0, 0] < 0.25
    held = boundary.fit(models, tau=0.9, floor=0.25)
    assert held.values[0, 0] == pytest.approx(0.25)
    assert "base is at the floor" in held.summary().text()
    assert held.models.scores.min() < 0.25  # below chance, and kept


def test_a_ceiling_that_scores_reach_holds_the_top(known_models):
    models = known_models(5, n=2000, tau=0.9)
    models["score"] = np.minimum(models["score"], 0.6)
    fit = boundary.fit(models, tau=0.9, ceiling=0.6)
    assert fit.curve().top == pytest.approx(0.6)
    text = fit.summary().text()
    assert "top is at the ceiling" in text
    assert "exactly at the ceiling" in text


def test_curves_of_several_levels_do_not_cross(known_models, budgets):
    crossed = 0
    for seed in range(8):
        models = known_models(seed, n=250, tau=0.95)
        with pytest.warns(SmallSampleWarning):
            fit = boundary.fit(models, tau=[0.95, 0.9, 0.98])
        assert fit.tau == (0.9, 0.95, 0.98)
        crossed += fit.crosses
        scores = fit.attainable(budgets)["score"].to_numpy().reshape(-1, 3)
        assert (np.diff(scores, axis=1) >= 0).all()
        needed = fit.compute_needed([0.4, 0.6])["flops"].to_numpy().reshape(-1, 3)
        assert (needed[:, :-1] >= needed[:, 1:]).all()
        raw = np.sort([fit.curve(tau).attainable(budgets) for tau in fit.tau], axis=0)
        np.testing.assert_allclose(scores, raw.T, rtol=1e-12)
    assert crossed > 0


def test_rearranged_compute_is_the_inverse_of_rearranged_scores(known_models):
    models = known_models(0, n=250, tau=0.95)
    with pytest.warns(SmallSampleWarning):
        fit = boundary.fit(models, tau=[0.9, 0.95, 0.98])
    there = fit.attainable([3e22, 1e24])
    for row in there.itertuples():
        back = fit.compute_needed(row.score)
        assert back.loc[back["tau"] == row.tau, "flops"].item() == pytest.approx(row.flops)


def test_one_value_of_compute_gives_a_constant_without_shape():
    models = {"flops": np.full(200, 1e23), "score": np.linspace(0.1, 0.7, 200)}
    with pytest.warns(IdentifiabilityWarning, match="same compute"):
        fit = boundary.fit(models, tau=0.8)
    assert fit.curve().attainable(1e23) == pytest.approx(
        np.quantile(models["score"], 0.8), abs=4e-3
    )
    assert fit.params[["midpoint", "steepness"]].isna().all(axis=None)
    assert fit.coverage()["coverage"][0.8] == pytest.approx(0.8)


def test_equal_scores_give_a_constant():
    models = {"flops": np.logspace(20, 24, 500), "score": np.full(500, 0.5)}
    with pytest.warns(IdentifiabilityWarning, match="midpoint, steepness, slope"):
        fit = boundary.fit(models, tau=0.9)
    assert fit.values[0].tolist()[:2] == [0.5, 0.0]
    assert fit.certified[0.9]


def test_falling_scores_give_a_curve_that_does_not_fall(known_models, budgets):
    models = known_models(6, n=1000, tau=0.9)
    models["flops"] = 10 ** (46 - np.log10(models["flops"]))
    with pytest.warns(IdentifiabilityWarning, match="midpoint, steepness, slope"):
        fit = boundary.fit(models, tau=0.9)
    assert (np.diff(fit.curve().attainable(budgets)) >= 0).all()


def test_three_values_of_compute_reach_the_quantile_of_each():
    rng = np.random.default_rng(0)
    level = np.repeat([0.3, 0.5, 0.8], 200)
    models = {"flops": np.repeat([1e21, 1e23, 1e25], 200), "score": level * rng.beta(4, 2, 600)}
    fit = boundary.fit(models, tau=0.9)
    reached = fit.attainable([1e21, 1e23, 1e25])["score"].to_numpy()
    groups = pd.DataFrame(models).groupby("flops")["score"]
    expected = groups.quantile(0.9, interpolation="lower")
    np.testing.assert_allclose(reached, expected, atol=5e-3)
