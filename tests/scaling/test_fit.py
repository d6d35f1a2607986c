"""Recovery of the truth, invariances, weights, starts, threads, exact data."""

import warnings

import numpy as np
import pytest

from toolkit.errors import ConvergenceWarning, IdentifiabilityWarning
from toolkit.scaling import CHINCHILLA, fit, hoffmann_starts

TRUTH = CHINCHILLA.values("besiroglu2024-unrounded")


@pytest.mark.parametrize("loss", ["huber", "squared", "absolute"])
def test_runs_without_noise_give_back_the_law(study, loss):
    found = fit("chinchilla", study(noise=0.0), loss=loss)
    np.testing.assert_allclose(found.values, TRUTH, rtol=1e-6)
    assert found.certified
    assert found.agreement == 1.0
    assert found.residuals.abs().max() < 1e-12


@pytest.mark.parametrize("loss", ["huber", "squared", "absolute"])
def test_estimates_scatter_around_the_truth(study, loss):
    """Mean of 40 studies within 4 standard errors, and no single one far off."""
    exponents = np.array([fit("chinchilla", study(seed=s), loss=loss).values for s in range(40)])
    for k, name in enumerate(CHINCHILLA.parameter_names):
        values = np.log(exponents[:, k]) if name in "ABE" else exponents[:, k]
        truth = np.log(TRUTH[k]) if name in "ABE" else TRUTH[k]
        error = values.std(ddof=1) / np.sqrt(len(values))
        assert abs(values.mean() - truth) < 4 * error, name
        assert np.abs(values - truth).max() < 8 * values.std(ddof=1), name


def test_more_noise_gives_wider_intervals_and_more_runs_narrower(study):
    widths = {
        name: fit("chinchilla", runs, bootstrap=200, rng=0).params_exponent().width
        for name, runs in {
            "quiet": study(noise=0.001),
            "loud": study(noise=0.004),
            "many": study(noise=0.004, groups=12, ratios=20),
        }.items()
    }
    assert 2 < widths["loud"] / widths["quiet"] < 8
    assert 1.3 < widths["loud"] / widths["many"] < 4


def test_weights_equal_repeated_rows(study):
    runs = study().assign(count=np.random.default_rng(0).integers(1, 5, 60))
    weighted = fit("chinchilla", runs, weights="count")
    repeated = fit("chinchilla", runs.loc[runs.index.repeat(runs["count"])], cluster="run")
    np.testing.assert_allclose(weighted.values, repeated.values, rtol=1e-7)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-11)


def test_weights_enter_the_bootstrap(study):
    """Weighting rows and repeating them draws the same fits, given the same drawn runs."""
    runs = study().assign(count=np.random.default_rng(0).integers(1, 5, 60))
    drawn = np.random.default_rng(1).integers(0, 60, (50, 60))
    weighted = fit("chinchilla", runs, weights="count", bootstrap=drawn)
    rows = runs.loc[runs.index.repeat(runs["count"])]
    repeated = fit("chinchilla", rows, cluster="run", bootstrap=drawn)
    unweighted = fit("chinchilla", runs, bootstrap=drawn)
    np.testing.assert_allclose(weighted.draws, repeated.draws, rtol=1e-3)
    assert not np.allclose(weighted.draws, unweighted.draws, rtol=1e-3)


@pytest.mark.parametrize("loss", ["huber", "squared", "absolute"])
def test_threads_change_no_bit(runs, loss):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # about 1 % of absolute resamples
        one, two = (
            fit("chinchilla", runs, loss=loss, bootstrap=100, rng=3, threads=t) for t in (1, 2)
        )
    np.testing.assert_array_equal(one.draws.to_numpy(), two.draws.to_numpy())
    np.testing.assert_array_equal(one.values, two.values)
    assert one.conf_int().equals(two.conf_int())


def test_a_seed_decides_the_draws(runs):
    first, again = (fit("chinchilla", runs, bootstrap=50, rng=5).draws for _ in range(2))
    generator = fit("chinchilla", runs, bootstrap=50, rng=np.random.default_rng(5)).draws
    other = fit("chinchilla", runs, bootstrap=50, rng=6).draws
    assert first.equals(again)
    assert first.equals(generator)
    assert not first.equals(other)


def test_each_draw_is_the_fit_of_its_resample(runs):
    drawn = np.random.default_rng(2).integers(0, len(runs), (3, len(runs)))
    found = fit("chinchilla", runs, bootstrap=drawn)
    for k, rows in enumerate(drawn):
        alone = fit("chinchilla", runs.iloc[rows], cluster="run")
        np.testing.assert_allclose(found.draws.iloc[k], alone.values, rtol=2e-4)


def test_given_starts_are_used_and_counted(runs):
    own = fit("chinchilla", runs)
    found = fit("chinchilla", runs, starts=hoffmann_starts()[::900])
    one = fit("chinchilla", runs, starts=TRUTH)
    assert len(found.starts) == 5
    assert len(one.starts) == 1
    np.testing.assert_allclose(found.values, own.values, rtol=1e-6)
    np.testing.assert_allclose(one.values, own.values, rtol=1e-6)


def test_the_published_grid_is_the_published_grid():
    grid = hoffmann_starts()
    assert grid.shape == (4500, 5)
    assert len(np.unique(grid, axis=0)) == 4500
    np.testing.assert_allclose(np.unique(np.log(grid[:, 0])), np.arange(0, 26, 5), atol=1e-12)
    np.testing.assert_allclose(np.unique(np.log(grid[:, 2])), np.arange(-1, 1.1, 0.5), atol=1e-12)
    np.testing.assert_array_equal(np.unique(grid[:, 3]), np.arange(0, 2.1, 0.5))


def test_starts_that_end_elsewhere_do_not_agree(runs):
    """Random losses of eight runs have many optima; a fit that hid it would look certain."""
    poor = runs.iloc[:8].assign(loss=np.random.default_rng(4).uniform(1.5, 5, 8))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = fit("chinchilla", poor)
    at_best = found.starts["objective"] <= found.starts["objective"].min() * (1 + 1e-6)
    assert (found.starts["agrees"] == (at_best & found.starts["certified"])).all()
    assert found.agreement < 1.0
    assert caught


def test_leaving_a_unit_out_is_a_fit_without_it(study):
    runs = study(seed=3)
    runs["run"] = [f"r{k // 2}" for k in range(60)]
    found = fit("chinchilla", runs, cluster="run")
    table = found.influence()
    assert len(table) == 30
    assert (table["rows"] == 2).all()
    for name in (table.index[0], table.index[-1]):
        without = fit("chinchilla", runs[runs["run"] != name], cluster="run")
        change = without.params - found.params
        np.testing.assert_allclose(
            table.loc[name, change.index].astype(float), change, rtol=1e-3, atol=1e-4
        )
        ours = found.residuals[runs["run"] == name].mean()
        assert table.loc[name, "residual"] == pytest.approx(ours)
    assert table["params_exponent"].abs().is_monotonic_decreasing


def test_residuals_are_observed_over_predicted(runs):
    found = fit("chinchilla", runs)
    predicted = CHINCHILLA.predict(found.params, runs)
    np.testing.assert_allclose(found.residuals, np.log(runs["loss"] / predicted), atol=1e-13)


def test_an_uncertified_fit_warns_and_says_so(runs):
    """Tokens in step with size leave a ridge without an end."""
    line = runs.assign(tokens=20 * runs["params"])
    error = np.random.default_rng(0).normal(0, 0.003, 60)
    line["loss"] = CHINCHILLA.predict(TRUTH, line) * np.exp(error)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = fit("chinchilla", line, cluster="run")
    kinds = {w.category for w in caught}
    assert IdentifiabilityWarning in kinds
    assert found.certified == (ConvergenceWarning not in kinds)
    assert ("NOT certified" in found.summary().text()) != found.certified
