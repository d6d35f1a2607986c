"""Laws of the catalogue against what their papers printed, on the papers' own runs."""

import os

import numpy as np
import pytest
from scipy.optimize import curve_fit

import toolkit as tk
from tests.reference import caballero2023, gadre2024, muennighoff2023
from tests.reference.plain import huber
from toolkit.errors import IdentifiabilityWarning
from toolkit.scaling import laws
from toolkit.scaling.laws.broken import broken


def registered(name):
    if not os.environ.get("TOOLKIT_DATA_DIR"):
        pytest.skip("TOOLKIT_DATA_DIR is not set, so the registered points are not looked for")
    return tk.datasets.load(name)


REPEATED_DATA = laws.get("repeated_data")


@pytest.fixture(scope="module")
def repeated_runs():
    return registered("datablations_182")


@pytest.fixture(scope="module")
def base():
    published = REPEATED_DATA.presets["muennighoff2023"].values
    return {name: published[name] for name in muennighoff2023.PINNED}


def objective(values, runs):
    log_ratio = np.log(REPEATED_DATA.predict(values, runs) / runs["loss"].to_numpy())
    return np.sum(huber(log_ratio, 1e-3))


def test_repeated_data_objective_of_the_published_values(repeated_runs):
    published = dict(REPEATED_DATA.presets["muennighoff2023"].values)
    assert objective(published, repeated_runs) == pytest.approx(muennighoff2023.OBJECTIVE, rel=1e-6)


def test_repeated_data_objective_of_other_values(repeated_runs, base):
    for (repeats, oversize), expected in muennighoff2023.OTHER_OBJECTIVES.items():
        values = base | {"R_D": repeats, "R_N": oversize}
        assert objective(values, repeated_runs) == pytest.approx(expected, rel=1e-7)


def test_repeated_data_fit_goes_below_the_best_known(repeated_runs, base):
    with pytest.warns(IdentifiabilityWarning, match="do not determine R_D"):
        fit = tk.scaling.fit("repeated_data", repeated_runs, fixed=base)
    assert fit.certified
    assert fit.objective < muennighoff2023.BEST_KNOWN
    assert fit.objective == pytest.approx(0.0158046625, rel=1e-7)
    assert fit.params["R_D"] == pytest.approx(95.4, abs=0.5)
    assert fit.agreement > 0.5


def test_repeated_data_does_not_determine_the_repeats(repeated_runs, base):
    """Resamples scatter from 7 repeats to the bound, where repeated data are as good as new."""
    with pytest.warns(IdentifiabilityWarning, match="do not determine R_D"):
        fit = tk.scaling.fit("repeated_data", repeated_runs, fixed=base, bootstrap=400, rng=0)
    low, high = fit.draws["R_D"].quantile([0.025, 0.975])
    assert low == pytest.approx(7, abs=1.5)
    assert high > 2000
    assert fit.bootstrap.failed <= 4
    profile = fit.profile("R_D")
    assert not profile.identified
    assert profile.lower < 10
    assert profile.upper == pytest.approx(1e4)


OVERTRAINING = laws.get("overtraining")
presets = pytest.mark.parametrize(
    ("preset", "recipe"),
    [
        ("gadre2024-redpajama", "rpj"),
        ("gadre2024-c4", "c4_original"),
        ("gadre2024-refinedweb", "rw_original"),
    ],
)


@pytest.fixture(scope="module")
def overtrained_runs():
    return registered("gadre_overtraining")


def smallest(runs, recipe):
    table = runs[runs["recipe"] == recipe]
    chosen = [
        (table["cc_mult"] == multiple) & table["params"].between(*sizes)
        for multiple, sizes in gadre2024.FITTED
    ]
    return table[np.logical_or(*chosen)]


@presets
def test_overtraining_presets_are_the_published_fit(overtrained_runs, preset, recipe):
    """Refit in plain scipy, as the published code does: least squares of the loss."""
    runs = smallest(overtrained_runs, recipe)
    assert len(runs) == 5
    flops = 6.0 * runs["params"] * runs["tokens"]
    ratio = runs["tokens"] / runs["params"]

    def loss(_, a, b, floor, eta):
        return floor + (a * ratio**eta + b * ratio**-eta) * flops**-eta

    found, _ = curve_fit(loss, flops, runs["loss"], p0=[100, 100, 1.8, 0.13], maxfev=100_000)
    np.testing.assert_allclose(OVERTRAINING.values(preset), found, rtol=1e-4)


def test_overtraining_published_errors(overtrained_runs):
    values = dict(OVERTRAINING.presets["gadre2024-redpajama"].values)
    for name, percent in gadre2024.ERRORS_IN_PERCENT.items():
        run = overtrained_runs[overtrained_runs["run"] == name]
        error = OVERTRAINING.predict(values, run) / run["loss"].to_numpy() - 1
        assert 100 * abs(error[0]) == pytest.approx(percent, abs=5e-5)


def test_overtraining_fit_of_log_loss_is_near(overtrained_runs):
    fit = tk.scaling.fit("overtraining", smallest(overtrained_runs, "rpj"), loss="squared")
    published = OVERTRAINING.presets["gadre2024-redpajama"].values
    assert fit.params["eta"] == pytest.approx(published["eta"], rel=0.05)
    assert fit.params["E"] == pytest.approx(published["E"], rel=0.05)


BROKEN = broken(column="examples")


@pytest.fixture(scope="module")
def points():
    return registered("four_digit_addition")


def errors(predicted, points):
    log_ratio = np.log(predicted / points["loss"].to_numpy())
    cut = caballero2023.FITTED
    return [np.sqrt(np.mean(part**2)) for part in (log_ratio[:cut], log_ratio[cut:])]


def test_broken_known_values(points):
    found = errors(BROKEN.predict(caballero2023.VALUES, points), points)
    expected = [caballero2023.ERROR_FITTED, caballero2023.ERROR_EXTRAPOLATED]
    np.testing.assert_allclose(found, expected, atol=6e-7)


def test_broken_fit_goes_below_the_known_values(points):
    """The optimum fits the 14 points better, and extrapolates a little less well."""
    known, _ = errors(BROKEN.predict(caballero2023.VALUES, points), points)
    with pytest.warns(IdentifiabilityWarning, match="c1"):
        fit = tk.scaling.fit(BROKEN, points[: caballero2023.FITTED], loss="squared")
    assert fit.certified
    fitted, extrapolated = errors(fit.predict(points)["loss"], points)
    assert fitted < known
    assert fitted == pytest.approx(0.00059833, abs=1e-8)
    assert extrapolated == pytest.approx(0.01114, abs=1e-5)
    assert fit.params["d1"] == pytest.approx(caballero2023.VALUES["d1"], rel=1e-3)


def test_skaling_with_power_one_is_chinchilla():
    runs = tk.datasets.load("simulated_runs")
    one = tk.scaling.fit("skaling", runs, fixed={"k": 1.0})
    chinchilla = tk.scaling.fit("chinchilla", runs)
    assert one.objective == pytest.approx(chinchilla.objective, rel=1e-10)
    np.testing.assert_allclose(one.values[:5], chinchilla.values, rtol=1e-6)


def test_skaling_on_the_published_points(kept_points):
    chinchilla = tk.scaling.fit("chinchilla", kept_points)
    one = tk.scaling.fit("skaling", kept_points, fixed={"k": 1.0})
    np.testing.assert_allclose(one.values[:5], chinchilla.values, rtol=1e-6)
    free = tk.scaling.fit("skaling", kept_points)
    assert free.objective < chinchilla.objective
