"""Every law of the catalogue: right derivatives, one law in any unit, its own truth found again."""

import re

import matplotlib
import numpy as np
import pytest
from matplotlib.mathtext import MathTextParser
from scipy.optimize import minimize_scalar

import toolkit as tk
from tests.scaling.laws_truth import TRUTHS
from toolkit.scaling.laws import LAWS

matplotlib.use("agg")

every_law = pytest.mark.parametrize("name", sorted(LAWS))
every_split = pytest.mark.parametrize(
    "name", sorted(law.name for law in LAWS.values() if law.allocate is not None)
)
every_preset = pytest.mark.parametrize(
    ("name", "preset"), [(law.name, preset) for law in LAWS.values() for preset in law.presets]
)
every_preset_with_ranges = pytest.mark.parametrize(
    ("name", "preset"),
    [
        (law.name, name)
        for law in LAWS.values()
        for name, preset in law.presets.items()
        if preset.fit_range.keys() == set(law.columns)  # some sources leave a column out
    ],
)


def simulate(name, noise, rng=0):
    truth = TRUTHS[name]
    return tk.datasets.simulate_runs(name, truth.values, truth.design, noise=noise, rng=rng)


def test_every_law_has_a_truth():
    assert LAWS.keys() == TRUTHS.keys()
    assert all(name == law.name for name, law in LAWS.items())


@every_law
def test_gradient_is_the_derivative(name):
    law, truth = LAWS[name], TRUTHS[name]
    values, design = law.values(truth.values), truth.design[::7]
    gradient = law.gradient(values, design)
    assert gradient.shape == (len(design), len(values))
    for k in range(len(values)):
        step = np.zeros(len(values))
        step[k] = 1e-5 * values[k]
        ahead, behind = (law.predict(values + s, design) for s in (step, -step))
        expected = (ahead - behind) / (2 * step[k])
        scale = np.abs(expected).max()
        np.testing.assert_allclose(gradient[:, k], expected, rtol=1e-6, atol=1e-7 * scale)


@every_law
@pytest.mark.parametrize("move", [-3.0, 0.5, 20.0])
def test_the_law_is_the_same_in_any_unit(name, move):
    law, truth = LAWS[name], TRUTHS[name]
    values, inputs = law.values(truth.values), law.inputs(truth.design)
    centre = np.where(law.centred, move + np.arange(inputs.shape[1]), 0.0)
    theta = law.to_working(values, centre)
    np.testing.assert_allclose(law.from_working(theta, centre), values, rtol=1e-12)
    log_loss, _ = law.evaluate_working(theta, inputs - centre)
    np.testing.assert_allclose(log_loss, np.log(law.predict(values, truth.design)), atol=1e-11)


@every_law
def test_fit_finds_the_truth_without_noise(name):
    truth = TRUTHS[name]
    fit = tk.scaling.fit(name, simulate(name, noise=0.0), fixed=truth.fixed)
    assert fit.certified
    np.testing.assert_allclose(fit.values, LAWS[name].values(truth.values), rtol=1e-6)


@every_law
def test_intervals_hold_the_truth_with_noise(name):
    truth = TRUTHS[name]
    runs = simulate(name, noise=truth.noise, rng=2)
    fit = tk.scaling.fit(name, runs, fixed=truth.fixed, bootstrap=200, rng=0)
    assert fit.certified
    bounds = fit.conf_int(level=0.99)
    for parameter, value in truth.values.items():
        if parameter not in truth.fixed:
            lower, upper = bounds.loc[parameter, ["lower", "upper"]]
            assert lower < value < upper, parameter
    assert truth.headline in bounds.index


@every_split
def test_best_split_is_the_numerical_minimum(name):
    law, truth = LAWS[name], TRUTHS[name]
    values = law.values(truth.values)
    for budget in (1e19, 1e22):
        size, data = law.allocate(values, np.array(budget / 6))
        assert size * data == pytest.approx(budget / 6)

        def log_loss(log_size, budget=budget):
            at = np.array([[log_size, np.log(budget / 6) - log_size]])
            return law.evaluate_working(law.to_working(values, np.zeros(2)), at)[0][0]

        around = np.log(size) + np.array([-3.0, 3.0])
        found = minimize_scalar(log_loss, bounds=around, method="bounded", options={"xatol": 1e-9})
        assert found.x == pytest.approx(np.log(size), abs=1e-5)


@every_law
def test_words_are_complete(name):
    law = LAWS[name]
    assert re.search(r"\d{4}", law.reference)
    assert law.title
    for parameter in law.parameters:
        assert parameter.meaning
        assert parameter.unit
        assert re.search(rf"\b{re.escape(parameter.name)}\b", law.formula), parameter.name
        if parameter.positive and parameter.lower > 0:
            assert parameter.upper < np.inf
    for column in law.columns:
        assert column in law.formula


@every_law
def test_equation_can_be_drawn(name):
    box = MathTextParser("path").parse(f"${LAWS[name].equation}$")
    assert box.width > 0


@every_preset
def test_presets_are_valid(name, preset):
    law, published = LAWS[name], LAWS[name].presets[preset]
    law.values(preset)
    assert re.search(r"arXiv:\d{4}\.\d{5}", published.source)
    assert published.fit_range.keys() <= set(law.columns)
    assert all(0 <= low < high for low, high in published.fit_range.values())


@every_preset_with_ranges
def test_presets_predict_a_loss_in_their_range(name, preset):
    law, published = LAWS[name], LAWS[name].presets[preset]
    ends = [published.fit_range[column] for column in law.columns]
    middle = {c: [np.sqrt(low * high)] for c, (low, high) in zip(law.columns, ends, strict=True)}
    assert 1.0 < law.predict(preset, middle)[0] < 10.0
