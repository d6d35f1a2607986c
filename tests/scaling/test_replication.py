"""The published Chinchilla refit, number by number, on the registered points."""

import numpy as np
import pytest

from tests.reference import besiroglu2024 as published
from tests.reference import plain
from toolkit.scaling import CHINCHILLA, fit, hoffmann_starts


def raw(params):
    """Parameters as the published code has them: three logarithms, two exponents."""
    values = np.asarray(params, dtype=float)
    return np.concatenate([np.log(values[:3]), values[3:]])


def logs(points):
    return [np.log(points[name].to_numpy()) for name in ("params", "tokens", "loss")]


@pytest.fixture(scope="module")
def fitted(kept_points):
    return fit("chinchilla", kept_points)


@pytest.fixture(scope="module")
def resampled(kept_points, positions):
    return fit("chinchilla", kept_points, bootstrap=positions)


def test_objective_to_ten_digits(fitted, kept_points):
    assert f"{fitted.objective:.9e}" == f"{published.OBJECTIVE_240:.9e}"
    recomputed = plain.objective(raw(fitted.params), *logs(kept_points))
    assert recomputed == pytest.approx(published.OBJECTIVE_240, rel=1e-11)
    assert fitted.certified
    assert fitted.gap <= 1e-10 * fitted.objective


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("A", "477.8259"),
        ("B", "2143.417"),
        ("E", "1.8172181"),
        ("alpha", "0.34731050"),
        ("beta", "0.36717243"),
    ],
)
def test_parameters_to_the_printed_digits(fitted, name, printed):
    decimals = len(printed.split(".")[1])
    assert f"{fitted.params[name]:.{decimals}f}" == printed
    assert fitted.params[name] == pytest.approx(published.OPTIMUM_240[name], rel=5e-8)


def test_nothing_lower_is_found_by_bfgs_and_simplex(fitted, kept_points):
    theta, lowest = plain.thorough_fit(raw(fitted.params) + 1e-3, *logs(kept_points))
    assert fitted.objective <= lowest * (1 + 1e-10)
    np.testing.assert_allclose(theta, raw(fitted.params), rtol=1e-5)


def test_tokens_per_parameter_at_the_compute_of_chinchilla(fitted):
    with pytest.warns(UserWarning, match="powers of ten beyond"):
        row = fitted.optimal_allocation(published.COMPUTE).iloc[0]
    assert f"{row['tokens_per_param']:.3f}" == f"{published.TOKENS_PER_PARAM_240:.3f}"
    assert row["params"] == pytest.approx(7.319e10, rel=1e-4)
    assert row["tokens"] == pytest.approx(1.312e12, rel=1e-3)
    assert 6 * row["params"] * row["tokens"] == pytest.approx(published.COMPUTE, rel=1e-12)


def test_all_245_points(all_points):
    found = fit("chinchilla", all_points)
    assert found.certified
    assert f"{found.params['A']:.2f}" == "495.73"
    assert f"{found.params['B']:.0f}" == "12846"
    assert f"{found.params['E']:.5f}" == "1.89134"
    assert f"{found.params['alpha']:.5f}" == "0.34931"
    assert f"{found.params['beta']:.5f}" == "0.45305"
    _, lowest = plain.thorough_fit(raw(found.params) + 1e-3, *logs(all_points))
    assert found.objective <= lowest * (1 + 1e-10)


def test_every_start_of_the_published_grid_ends_at_the_optimum_or_is_reported(fitted, kept_points):
    """Measured: all 4,500; with the optimisers of the published fits it is 9 % to 60 %.

    Every ninth start: the exponents vary fastest and in fives, so all values occur.
    """
    grid = hoffmann_starts()
    assert grid.shape == (4500, 5)
    found = fit("chinchilla", kept_points, starts=grid[::9])
    share = found.agreement
    assert found.objective == pytest.approx(fitted.objective, rel=1e-10)
    assert share == 1.0, f"share of starts that agree: {share:.3f}"
    at_optimum = found.starts["objective"] <= found.objective * (1 + 1e-6)
    assert (found.starts["agrees"] == (at_optimum & found.starts["certified"])).all()


def test_a_weight_on_every_row_is_the_mean_instead_of_the_sum(fitted, kept_points):
    mean = fit("chinchilla", kept_points.assign(share=1 / len(kept_points)), weights="share")
    np.testing.assert_allclose(mean.values, fitted.values, rtol=1e-7)
    assert mean.objective * len(kept_points) == pytest.approx(fitted.objective, rel=1e-11)
    assert mean.agreement == 1.0


def test_order_of_rows_changes_nothing(fitted, kept_points):
    shuffled = fit("chinchilla", kept_points.sample(frac=1, random_state=0))
    np.testing.assert_allclose(shuffled.values, fitted.values, rtol=1e-7)
    assert shuffled.objective == pytest.approx(fitted.objective, rel=1e-11)


def test_units_change_the_coefficients_as_they_must(fitted, kept_points):
    other = kept_points.assign(params=kept_points["params"] * 1e3, tokens=kept_points["tokens"] / 7)
    found = fit("chinchilla", other)
    expected = fitted.params.copy()
    expected["A"] *= 1e3 ** expected["alpha"]
    expected["B"] *= 7.0 ** -expected["beta"]
    np.testing.assert_allclose(found.params, expected, rtol=1e-6)
    assert found.objective == pytest.approx(fitted.objective, rel=1e-11)


def test_integer_weights_are_repeated_rows(kept_points):
    counts = np.random.default_rng(0).integers(1, 4, len(kept_points))
    weighted = fit("chinchilla", kept_points.assign(count=counts), weights="count")
    repeated = kept_points.loc[kept_points.index.repeat(counts)]
    rows = fit("chinchilla", repeated, cluster="point")
    np.testing.assert_allclose(weighted.values, rows.values, rtol=1e-7)
    assert weighted.objective == pytest.approx(rows.objective, rel=1e-11)


@pytest.mark.parametrize("name", ["A", "B", "E", "alpha", "beta"])
def test_bootstrap_bounds_to_the_printed_digits(resampled, name):
    """All but one of the ten printed bounds; for that one see the next test."""
    digits = {"A": 1, "B": 0, "E": 3, "alpha": 3, "beta": 3}[name]
    found = resampled.conf_int(method="percentile").loc[name, ["lower", "upper"]]
    found = found.to_numpy().round(digits)
    expected = np.array(published.BOUNDS_240[name])
    if name == "A":
        expected[0] = 286.1
    np.testing.assert_array_equal(found, expected)
    assert resampled.bootstrap.failed == 0


def test_the_lower_bound_of_a_is_an_early_stop_in_the_published_fits(
    resampled, positions, kept_points
):
    """Printed 285.2; the optima give 286.1. One resample of 4,000 decides it.

    The bound lies just below the 101st smallest value. All ten printed bounds come out, to the
    four decimals of the notebook, when each resample is fitted by BFGS on raw logarithms from
    the unrounded constants of Hoffmann et al. (48 s, so not repeated here). It reports success
    throughout, but ends more than 1e-6 above the optimum in 86 resamples. In number 2260 it stops
    at A = 282.6, below the bound, where the optimum, 6e-5 lower, is at A = 290.1; this alone
    moves the bound. From other starts it stops elsewhere: 285.21 from the rounded constants,
    286.85 from the best point of the grid, 287.03 from the constants of the refit itself.
    """
    start = raw(CHINCHILLA.values("hoffmann2022-unrounded"))
    data = np.array(logs(kept_points))
    for k in [*range(0, published.RESAMPLES, 40), 2260]:
        sample = data[:, positions[k]]
        theirs = plain.published_refit(start, *sample)
        ours = plain.objective(raw(resampled.draws.iloc[k]), *sample)
        assert theirs.success
        assert ours <= theirs.fun * (1 + 2e-10)
    assert ours < theirs.fun * (1 - 5e-5)
    assert resampled.draws["A"][2260] == pytest.approx(290.09, abs=0.01)
    stopped = resampled.draws["A"].to_numpy().copy()
    stopped[2260] = np.exp(theirs.x[0])
    assert stopped[2260] == pytest.approx(282.6, abs=0.5)
    assert f"{np.quantile(stopped, 0.025):.1f}" == "285.2"


def test_least_absolute_deviations_reach_below_the_published_sum(kept_points):
    found = fit("chinchilla", kept_points, loss="absolute")
    summed = np.abs(plain.residuals(raw(found.params), *logs(kept_points))).sum()
    assert found.objective == pytest.approx(summed, rel=1e-12)
    assert found.objective <= 1.1294946537
    assert found.objective < published.SUM_OF_ABSOLUTE_240
    assert found.objective == pytest.approx(published.SUM_OF_ABSOLUTE_240, rel=1e-7)
    assert found.certified
    assert f"{found.objective / 1.1294946536:.9f}" == "1.000000000"
