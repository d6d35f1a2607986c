"""The envelope of training curves: a known truth, its edges, and tables that are no curves."""

import numpy as np
import pandas as pd
import pytest

from toolkit.datasets.simulate import simulate_runs
from toolkit.errors import DataError
from toolkit.scaling import CHINCHILLA, fit_envelope

TRUTH = CHINCHILLA.values("besiroglu2024-unrounded")
EXPONENT = TRUTH[4] / (TRUTH[3] + TRUTH[4])


def training_curves(sizes=25, noise=0.0, checkpoints=40, seed=0):
    params, tokens = np.meshgrid(
        np.geomspace(1e7, 1e10, sizes), np.geomspace(1e8, 1e12, checkpoints)
    )
    names = [f"run {k}" for k in range(sizes)]
    design = pd.DataFrame(
        {"params": params.ravel(), "tokens": tokens.ravel(), "run": np.tile(names, checkpoints)}
    )
    return simulate_runs("chinchilla", TRUTH, design, noise=noise, rng=seed)


def test_the_envelope_follows_the_law():
    fit = fit_envelope(training_curves())
    assert fit.exponent == pytest.approx(EXPONENT, abs=0.005)
    assert fit.params["tokens_exponent"] == pytest.approx(1 - fit.exponent, abs=1e-9)
    params, tokens = CHINCHILLA.allocate(TRUTH, np.array(1e20 / 6))
    best = fit.optimal_allocation(1e20).iloc[0]
    assert best["params"] == pytest.approx(params, rel=0.05)
    assert best["tokens"] == pytest.approx(tokens, rel=0.05)


def test_every_point_is_the_lowest_curve_there():
    curves = training_curves(sizes=9)
    fit = fit_envelope(curves, points=60)
    used = fit.minima[fit.minima["used"]]
    assert len(fit.minima) == 60
    for row in used.itertuples():
        assert 6 * row.params * row.tokens == pytest.approx(row.flops, rel=1e-9)
        losses = [
            np.exp(
                np.interp(
                    np.log(row.flops), np.log(6 * c["params"] * c["tokens"]), np.log(c["loss"])
                )
            )
            for _, c in curves.groupby("run")
            if (6 * c["params"] * c["tokens"]).between(row.flops, np.inf).any()
            and (6 * c["params"] * c["tokens"]).between(0, row.flops).any()
        ]
        assert row.loss == pytest.approx(min(losses), rel=1e-12)


SMALL, LARGE = (
    "the fitted best size is below 2 x the smallest model",
    "the fitted best size is above 1/2 of the largest model",
)


def test_compute_whose_best_size_is_near_the_smallest_or_largest_model_is_refused():
    fit = fit_envelope(training_curves())
    assert set(fit.refused["reason"]) == {SMALL, LARGE}
    best = fit.params["params_coefficient"] * fit.minima["flops"] ** fit.exponent
    np.testing.assert_array_equal(fit.minima["used"], best.between(2e7, 5e9))
    np.testing.assert_array_equal(fit.minima["reason"] == SMALL, best < 2e7)
    np.testing.assert_array_equal(fit.minima["reason"] == LARGE, best > 5e9)
    assert fit.refused["params"].isna().all()
    assert f"points: {SMALL}" in fit.summary().text()


def test_a_model_at_the_edge_may_win_where_the_fitted_best_size_is_inside():
    curves = training_curves(sizes=13)
    smallest = curves["params"] == curves["params"].min()
    lucky = curves.assign(loss=curves["loss"] * np.where(smallest, 0.98, 1.0))
    used = fit_envelope(lucky).minima.query("used")
    assert used["params"].min() == pytest.approx(1e7)


@pytest.mark.parametrize("noise", ["of a run", "of a checkpoint"])
def test_noise_does_not_flatten_the_slope(noise):
    """12 studies; measured mean errors -0.005 and 0.003; a range by who wins: -0.017, -0.015."""
    errors = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        curves = training_curves(noise=0.0 if noise == "of a run" else 0.005, seed=rng)
        if noise == "of a run":
            luck = dict(zip(curves["run"].unique(), 0.005 * rng.standard_normal(25), strict=True))
            curves["loss"] *= np.exp(curves["run"].map(luck))
        errors.append(fit_envelope(curves, points=300).exponent - EXPONENT)
    assert abs(np.mean(errors)) < 0.009, f"mean error {np.mean(errors):.4f}"


def test_intervals_cover_the_truth():
    """10 studies, nominal 95 %; measured: all of them, 3 with a range by who wins."""
    hits = []
    for seed in range(10):
        curves = training_curves(noise=0.005, seed=seed)
        fit = fit_envelope(curves, points=200, bootstrap=60, rng=seed)
        lower, upper = fit.conf_int().loc["params_exponent", ["lower", "upper"]]
        hits.append(lower < EXPONENT < upper)
    assert np.mean(hits) >= 0.8, f"coverage {np.mean(hits):.2f}"


def test_compute_that_no_curve_reaches_is_refused():
    curves = training_curves()
    compute = 6 * curves["params"] * curves["tokens"]
    far = pd.DataFrame({"run": "far", "params": 2e10, "tokens": [1e14, 2e14], "loss": [2.0, 1.99]})
    fit = fit_envelope(pd.concat([curves, far]), points=300)
    gap = fit.minima[fit.minima["reason"] == "no curve reaches this compute"]
    assert gap["flops"].min() > compute.max()


def test_intervals_resample_runs_and_repeat():
    curves = training_curves(noise=0.002)
    fit = fit_envelope(curves, bootstrap=60, points=200, rng=1)
    again = fit_envelope(curves, bootstrap=60, points=200, rng=1)
    pd.testing.assert_frame_equal(fit.draws, again.draws)
    lower, upper = fit.conf_int().loc["params_exponent", ["lower", "upper"]]
    assert lower < fit.exponent < upper


def test_stated_compute_is_used_where_it_is_given():
    curves = training_curves()
    doubled = curves.assign(flops=12 * curves["params"] * curves["tokens"])
    once, twice = fit_envelope(curves), fit_envelope(doubled)
    np.testing.assert_allclose(twice.minima["flops"], 2 * once.minima["flops"])
    assert twice.exponent == pytest.approx(once.exponent, abs=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.assign(run="one"), "run 'one' has several sizes"),
        (lambda c: c.drop_duplicates("run"), "one checkpoint; a training curve needs two"),
        (lambda c: pd.concat([c, c]), "repeat an earlier row in 'run', 'tokens'"),
        (lambda c: c[c["params"] > 5e9], "the envelope needs 3 or more"),
        (lambda c: c.drop(columns="run"), "Missing 'run'"),
    ],
)
def test_tables_that_are_no_curves_are_refused(change, message):
    with pytest.raises(DataError, match=message):
        fit_envelope(change(training_curves()))


@pytest.mark.parametrize("options", [{"points": 1}, {"bootstrap": 1}])
def test_counts_below_two_are_refused(options):
    with pytest.raises(DataError, match="2"):
        fit_envelope(training_curves(), **options)
