"""The task law: exact likelihood, intervals that hold, and what samples can show."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from toolkit.errors import DataError, IdentifiabilityWarning
from toolkit.scaling.downstream import (
    fit_task_law,
    pass_rate_until,
    samples_needed,
    smallest_visible,
)

SIZES = np.geomspace(1e8, 3e9, 6)
ALPHA = 0.596
C = 9.2 * 1e8**ALPHA  # pass rates from 1e-4 to 0.3


def rate(params):
    return np.exp(-C * np.asarray(params, dtype=float) ** -ALPHA)


def study(seed=0, samples=2000):
    passes = np.random.default_rng(seed).binomial(samples, rate(SIZES))
    return {"params": SIZES, "passes": passes, "samples": np.full(6, samples)}


def test_expected_counts_of_many_samples_give_the_truth_back():
    samples = 10**9
    passes = np.round(samples * rate(SIZES))
    fit = fit_task_law({"params": SIZES, "passes": passes, "samples": [samples] * 6})
    assert fit.params["alpha"] == pytest.approx(ALPHA, rel=1e-4)
    assert fit.params["c"] == pytest.approx(C, rel=2e-3)
    assert fit.predict(3e10)["pass_rate"][0] == pytest.approx(float(rate(3e10)), rel=1e-4)


def test_optimum_is_that_of_a_plain_minimiser():
    table = study()

    def minus_log_likelihood(theta):
        p = np.exp(-np.exp(theta[0] - theta[1] * np.log(SIZES / 1e9)))
        return -np.sum(table["passes"] * np.log(p) + (2000 - table["passes"]) * np.log1p(-p))

    plain = minimize(minus_log_likelihood, [1.0, 0.5], method="Nelder-Mead",
                     options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 4000})  # fmt: skip
    fit = fit_task_law(table)
    assert fit.log_likelihood == pytest.approx(-plain.fun, rel=1e-9)
    assert fit.params["alpha"] == pytest.approx(plain.x[1], rel=1e-5)


def test_models_without_a_pass_inform_the_fit():
    with_zero = {"params": [1e8, 1e9, 1e10], "passes": [0, 12, 340], "samples": [5000, 1000, 1000]}
    without = {name: values[1:] for name, values in with_zero.items()}
    steeper, plain = fit_task_law(with_zero), fit_task_law(without)
    assert steeper.params["alpha"] > plain.params["alpha"]
    widths = [np.ptp(f.conf_int().loc["alpha", ["lower", "upper"]]) for f in (steeper, plain)]
    assert widths[0] < widths[1]
    assert np.isfinite(steeper.conf_int().to_numpy()).all()


def test_coverage_of_the_profile_interval():
    """80 studies; the figure in the docstring of fit_task_law comes from 1,000."""
    truth = float(rate(3e10))
    covered = 0
    for seed in range(80):
        at = fit_task_law(study(seed)).predict(3e10).iloc[0]
        covered += at["lower"] <= truth <= at["upper"]
    assert 0.87 <= covered / 80 <= 1.0


def test_ends_of_the_interval_lie_where_the_likelihood_has_fallen():
    """With alpha held at a bound, the best log likelihood is 1.92 lower."""
    fit = fit_task_law(study())
    for bound in fit.conf_int().loc["alpha", ["lower", "upper"]]:
        grid = np.linspace(-2, 4, 20001)
        eta = grid[:, None] - bound * np.log(SIZES / 1e9)
        p = np.exp(-np.exp(eta))
        passes = fit.table["passes"].to_numpy()
        with np.errstate(divide="ignore"):
            likelihood = passes * -np.exp(eta) + (2000 - passes) * np.log1p(-p)
        assert fit.log_likelihood - likelihood.sum(axis=1).max() == pytest.approx(1.9207, abs=1e-3)


def test_one_size_with_passes_is_announced():
    table = {"params": [1e8, 1e9], "passes": [0, 30], "samples": [1000, 1000]}
    with pytest.warns(IdentifiabilityWarning, match="one size only"):
        fit = fit_task_law(table)
    alpha = fit.conf_int().loc["alpha"]
    assert alpha["lower"] > 0
    assert alpha["upper"] == np.inf


def test_overdispersed_passes_are_noticed():
    table = study()
    table["passes"] = np.array([0, 40, 5, 300, 150, 900])
    fit = fit_task_law(table)
    assert fit.dispersion > 10
    assert "fit items one by one" in fit.summary().text()
    assert fit_task_law(study()).dispersion < 4


def test_result_can_be_read():
    fit = fit_task_law(study())
    assert "binomial, exact" in fit.summary().text()
    assert list(fit.to_frame()) == ["estimate", "lower", "upper", "meaning"]
    assert "<table" in fit._repr_html_()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"passes": [0, 0, 0]}, r"lies below 0\.003 "),
        ({"passes": [1000, 1000, 1000]}, "Every sample"),
        ({"passes": [0.1, 0.2, 0.3]}, "not rates"),
        ({"passes": [1, 2, 2000]}, "more passes than samples"),
        ({"params": [1e9, 1e9, 1e9]}, "at least 2 sizes"),
        ({"samples": [0, 1000, 1000]}, "not whole counts"),
    ],
)
def test_bad_counts_are_refused(change, message):
    table = {"params": [1e8, 1e9, 1e10], "passes": [1, 12, 340], "samples": [1000] * 3} | change
    with pytest.raises(DataError, match=message):
        fit_task_law(table)


def test_smallest_visible_rate_shows_a_pass_with_the_confidence():
    visible = smallest_visible([1, 20, 1000])
    assert 1 - (1 - visible) ** np.array([1, 20, 1000]) == pytest.approx(0.95)
    assert visible[2] == pytest.approx(3e-3, rel=5e-3)
    assert samples_needed(smallest_visible(500) * 1.0001) == 500
    with pytest.raises(DataError, match="at least 1"):
        smallest_visible(0)
    with pytest.raises(DataError, match="between 0 and 1"):
        samples_needed(0.0)


def test_pass_rate_until_is_unbiased_and_the_plain_share_is_not():
    """Expectation over the negative binomial distribution of the samples until r passes."""
    p, r = 0.05, 2
    counts = np.arange(r, 4000)
    chance = np.array([math.comb(k - 1, r - 1) * p**r * (1 - p) ** (k - r) for k in counts])
    assert chance.sum() == pytest.approx(1.0)
    assert (chance * pass_rate_until(r, counts)).sum() == pytest.approx(p)
    assert (chance * r / counts).sum() > 1.5 * p
    with pytest.raises(DataError, match="at least 2"):
        pass_rate_until(1, 10)
