"""Studies that cannot determine the law must say so; good ones must stay quiet."""

import warnings

import numpy as np
import pytest

from toolkit.datasets.simulate import isoflop_design, simulate_runs
from toolkit.errors import ConvergenceWarning, IdentifiabilityWarning
from toolkit.scaling import fit
from toolkit.scaling.identifiability import assess

SIZES = np.geomspace(5e7, 1e10, 40)
NO_FLOOR = {"A": 482.0, "B": 2085.0, "E": 1e-3, "alpha": 0.348, "beta": 0.366}
NO_SIZE_TERM = {"A": 1e-5, "B": 2085.0, "E": 1.8, "alpha": 0.348, "beta": 0.366}


def line(tokens, seed=0, params=SIZES, law="besiroglu2024", noise=0.005):
    return simulate_runs(
        "chinchilla", law, {"params": params, "tokens": tokens}, noise=noise, rng=seed
    )


def fit_doubtful(runs, **options):
    """Fit and return the result with the text of the IdentifiabilityWarning; no other kind."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = fit("chinchilla", runs, **options)
    doubts = [str(w.message) for w in caught if w.category is IdentifiabilityWarning]
    others = [w.message for w in caught if w.category is not IdentifiabilityWarning]
    assert len(doubts) == 1
    assert "do not determine" in doubts[0]
    assert all(isinstance(other, ConvergenceWarning) for other in others), others
    return found, doubts[0]


@pytest.mark.parametrize("seed", range(5))
def test_a_good_design_gives_no_warning(study, seed):
    known = fit("chinchilla", study(seed=seed)).identifiability()
    assert known.identified.all()
    assert not known.parameters["on_bound"].any()
    assert 10 < known.condition < 100


@pytest.mark.parametrize("noise", [0.0, 0.005])
def test_tokens_proportional_to_size_leave_coefficients_undetermined(noise):
    found, text = fit_doubtful(line(20 * SIZES, noise=noise))
    known = found.identifiability()
    assert not known.identified[["A", "B"]].any()
    assert known.condition > 1e5
    assert "A" in text
    assert "B" in text


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("power", [1.0, 0.7])
def test_exponents_of_columns_that_rise_together_are_refused(seed, power):
    """Any split between the two terms fits as well."""
    runs = line(20 * SIZES**power * 1e9 ** (1 - power), seed, noise=0.002)
    found, text = fit_doubtful(runs)
    known = found.identifiability()
    assert not known.identified[["A", "B", "alpha", "beta"]].any()
    assert known.confounded == [("params", "tokens")]
    assert "params and tokens rise together" in text
    assert "chinchilla_tied" in text
    assert "params and tokens" in known.summary().text()


def test_the_tied_law_keeps_its_exponent_where_columns_rise_together():
    runs = line(20 * SIZES, noise=0.002)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tied = fit("chinchilla_tied", runs).identifiability().identified
    assert any("params and tokens rise together" in str(w.message) for w in caught)
    assert tied["alpha"]
    assert not tied[["A", "B"]].any()


def test_a_known_exponent_takes_the_confusion_away():
    found = fit("chinchilla", line(20 * SIZES), fixed={"A": 482.0, "alpha": 0.348})
    assert found.identifiability().confounded == []
    assert found.identifiability().identified["beta"]


@pytest.mark.parametrize("spread", [0.01, 0.03])
@pytest.mark.parametrize("seed", range(3))
def test_nearly_constant_tokens_leave_their_term_undetermined(spread, seed):
    tokens = 2e10 * np.exp(np.random.default_rng(seed).normal(0, spread, 40))
    found, text = fit_doubtful(line(tokens, seed))
    assert not found.identifiability().identified[["B", "beta"]].any()
    assert "beta" in text


def test_a_floor_on_its_bound_is_flagged(study):
    runs = simulate_runs("chinchilla", NO_FLOOR, study()[["params", "tokens"]], rng=3)
    found, text = fit_doubtful(runs, bootstrap=50, rng=0)
    known = found.identifiability()
    assert known.parameters["on_bound"]["E"]
    assert known.identified.tolist() == [True, True, False, True, True]
    assert "determine E:" in text
    table = found.conf_int()
    assert table.loc["E"].isna().all()
    assert table.drop("E").notna().all(axis=None)
    assert "E: not identified by these data" in found.summary().text()


@pytest.mark.parametrize("seed", range(4))
def test_a_vanished_term_takes_its_exponent_and_the_split_with_it(study, seed):
    """Once A is nothing, alpha means nothing, and no best size follows from it."""
    design = study()[["params", "tokens"]]
    runs = simulate_runs("chinchilla", NO_SIZE_TERM, design, noise=0.005, rng=seed)
    found, text = fit_doubtful(runs, bootstrap=50, rng=0)
    known = found.identifiability().identified
    assert not known[["A", "alpha"]].any()
    assert known[["B", "beta"]].all()
    assert "alpha" in text
    table = found.conf_int()
    assert table.loc[["A", "alpha", "params_exponent"]].isna().all(axis=None)
    assert table.loc[["B", "beta"]].notna().all(axis=None)
    split = found.optimal_allocation([1e19, 1e20])
    assert split.drop(columns=["flops", "decades_beyond"]).isna().all(axis=None)


def test_noise_instead_of_losses_determines_nothing(runs):
    noise = runs.assign(loss=np.random.default_rng(0).uniform(1, 5, 60))
    found, _ = fit_doubtful(noise, bootstrap=50, rng=0)
    assert not found.identifiability().identified[["alpha", "beta"]].any()
    assert found.conf_int().loc["params_exponent"].isna().all()


def test_equal_losses_determine_no_exponent(runs):
    found, _ = fit_doubtful(runs.assign(loss=2.5))
    assert not found.identifiability().identified[["A", "B", "alpha", "beta"]].any()
    assert found.optimal_allocation(1e20)["params"].isna().all()


def test_standard_errors_are_the_scatter_of_estimates(study):
    """Over 100 studies with normal errors and squared loss, for which the formula is exact."""
    design = study()[["params", "tokens"]]
    estimates, errors = [], []
    for seed in range(100):
        runs = simulate_runs("chinchilla", "besiroglu2024", design, noise=0.004, rng=seed)
        found = fit("chinchilla", runs, loss="squared")
        estimates.append(np.r_[np.log(found.values[:3]), found.values[3:]])
        errors.append(found.identifiability().parameters["standard_error"].to_numpy())
    ratio = np.median(errors, axis=0) / np.std(estimates, axis=0, ddof=1)
    assert ((ratio > 0.75) & (ratio < 1.5)).all(), ratio


def test_the_report_names_every_parameter(runs):
    text = repr(fit("chinchilla", runs).identifiability())
    for name in ("A", "B", "E", "alpha", "beta", "condition number"):
        assert name in text


@pytest.mark.parametrize("seed", range(3))
def test_a_loss_below_the_floor_is_a_residual(study, seed):
    """A fit of log(loss - E) would have no number there, or push E below every loss."""
    law = {"A": 482.0, "B": 2085.0, "E": 1.7, "alpha": 0.348, "beta": 0.366}
    runs = simulate_runs("chinchilla", law, study()[["params", "tokens"]], noise=0.003, rng=seed)
    clean = fit("chinchilla", runs)
    low = runs["loss"].to_numpy().copy()
    low[-1] = 1.6
    found = fit("chinchilla", runs.assign(loss=low))
    assert found.params["E"] > 1.6
    assert found.params["E"] == pytest.approx(clean.params["E"], abs=0.05)
    assert found.residuals.iloc[-1] < -0.1
    assert found.identifiability().identified["E"]


def test_a_floor_that_collapses_along_the_ridge_is_told():
    """Few, close, noisy runs: the floor goes to nothing while the size term takes its place."""
    design = isoflop_design([1e19, 2e19], np.geomspace(10, 40, 8))
    runs = simulate_runs("chinchilla", "besiroglu2024", design, noise=0.01, rng=0)
    found, text = fit_doubtful(runs)
    assert not found.identifiability().identified["E"]
    assert "E" in text


def test_the_mean_of_the_losses_has_the_optimum_of_their_sum(runs):
    """A minimiser with absolute tolerances stops early on the mean of tiny Huber losses."""
    total = fit("chinchilla", runs)
    mean = fit("chinchilla", runs.assign(share=1 / len(runs)), weights="share")
    np.testing.assert_allclose(mean.values, total.values, rtol=1e-7)
    assert mean.objective == pytest.approx(total.objective / len(runs), rel=1e-11)
    assert mean.certified
    assert mean.identifiability().identified.equals(total.identifiability().identified)


def test_a_parameter_that_no_run_feels_does_not_drag_the_others_down(runs):
    """No run repeats data, so the decay of repeats has no effect: it is refused, alone."""
    once = runs.assign(tokens_unique=runs["tokens"])
    with warnings.catch_warnings():  # no certificate either, where the objective is flat
        warnings.simplefilter("ignore")
        found = fit("repeated_data", once)
    known = found.identifiability()
    lost = set(known.identified.index[~known.identified])
    assert "R_D" in lost
    assert not lost & {"A", "B", "E", "alpha", "beta"}
    assert known.condition < 1e6


def test_with_every_parameter_on_a_bound_or_pinned_there_is_nothing_to_condition():
    everything, nothing = np.array([True, False]), np.array([False, False])
    known = assess(
        ["a", "b"],
        positive=everything,
        jacobian=np.ones((5, 2)),
        residuals=np.ones(5),
        weights=np.ones(5),
        hessian=np.eye(2),
        objective=1.0,
        unit_change=np.eye(2),
        on_bound=everything,
        pinned=~everything,
        confounded=nothing,
        confounded_columns=(),
    )
    assert np.isnan(known.condition)
    assert known.identified.tolist() == [False, True]
