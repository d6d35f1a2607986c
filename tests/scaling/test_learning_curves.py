"""Learning curves: the shapes, the average over families, levels, and when to stop."""

import os

import numpy as np
import pandas as pd
import pytest

from toolkit import datasets
from toolkit.errors import DataError
from toolkit.scaling import CURVES, forecast_curve, learning_curve

X = np.geomspace(1e8, 1e12, 9)
VALUES = {"A": 3.0, "c": 1.5, "S": 3e9, "alpha": 0.6}
A, C, S, P = VALUES.values()
SHAPES = {
    "pow2": lambda x: A * x**-P,
    "pow3": lambda x: C + A * x**-P,
    "pow4": lambda x: C + A * (1 + x / S) ** -P,
    "exp3": lambda x: C + A * np.exp(-x / S),
    "weibull": lambda x: C + A * np.exp(-((x / S) ** P)),
    "vapor": lambda x: A * np.exp(S / x) * x**-P,
    "ilog2": lambda x: C + A / np.log(x),
    "log_power": lambda x: A / (1 + (x / S) ** P),
    "mmf": lambda x: C + A / (1 + (x / S) ** P),
    "gompertz": lambda x: C + A * (1 - np.exp(-((x / S) ** -P))),
    "logistic": lambda x: C + 2 * A / (1 + np.exp(x / S)),
    "bertalanffy": lambda x: C + A * (1 - (1 - np.exp(-x / S)) ** 3),
}


def test_every_family_has_a_shape():
    assert set(SHAPES) == set(CURVES)


@pytest.mark.parametrize("family", CURVES)
def test_families_are_their_equation_and_fall(family):
    law = learning_curve(family)
    values = {p.name: VALUES[p.name] for p in law.parameters}
    with np.errstate(over="ignore"):
        expected = SHAPES[family](X)
    # below 1e-13 of a curve without floor, the exponential saturates
    np.testing.assert_allclose(law.predict(values, {"tokens": X}), expected, rtol=1e-11)
    assert (np.diff(expected) <= 0).all()


def test_the_column_can_be_chosen():
    law = learning_curve("exp3", "steps")
    assert law.columns == ("steps",)
    assert law.formula == "loss = c + A exp(-steps / S)"
    with pytest.raises(DataError, match=r"No family 'spline'\. Known families: pow2"):
        learning_curve("spline")


def curve(floor=2.0, noise=0.0, last=1e11, seed=0):
    tokens = np.geomspace(1e9, last, 24)
    loss = floor + 4e3 / tokens**0.4
    loss *= np.exp(noise * np.random.default_rng(seed).standard_normal(24))
    return pd.DataFrame({"tokens": tokens, "loss": loss})


FAMILIES = ["pow2", "pow3", "exp3", "ilog2"]


@pytest.fixture(scope="module")
def forecast():
    return forecast_curve(curve(noise=0.001), families=FAMILIES, resamples=60, rng=1)


def test_the_family_that_predicts_the_end_has_the_weight(forecast):
    families = forecast.families
    assert families["weight"].idxmax() == "pow3"
    assert families["weight"].sum() == pytest.approx(1.0)
    product = families["weight"] * families["error"] ** 2
    np.testing.assert_allclose(product, product.iloc[0], rtol=1e-9)
    assert families["weight"]["pow3"] > 0.9


def test_the_forecast_holds_the_continuation(forecast):
    predicted = forecast.predict([1e11, 1e12])
    truth = 2 + 4e3 / np.array([1e11, 1e12]) ** 0.4
    np.testing.assert_allclose(predicted["loss"], truth, rtol=5e-3)
    assert (predicted["lower"] <= truth).all()
    assert (truth <= predicted["upper"]).all()


def test_probabilities_follow_the_level(forecast):
    truth = 2 + 4e3 / 1e12**0.4
    levels = [truth - 0.3, truth - 0.002, truth, truth + 0.002, truth + 0.5]
    probabilities = [forecast.probability_below(level, 1e12) for level in levels]
    assert probabilities == sorted(probabilities)
    assert probabilities[0] < 0.05
    assert probabilities[-1] > 0.95
    assert forecast.should_stop(levels[0], 1e12)
    assert not forecast.should_stop(levels[-1], 1e12)
    assert forecast.weights.sum() == pytest.approx(1.0)


def test_the_lower_curve_beats_the_other(forecast):
    worse = forecast_curve(curve(2.2, 0.001), families=FAMILIES, resamples=60, rng=2)
    same = forecast_curve(curve(2.0, 0.001, seed=5), families=FAMILIES, resamples=60, rng=3)
    assert forecast.probability_beats(worse, 1e12) > 0.95
    assert worse.probability_beats(forecast, 1e12) < 0.05
    even = forecast.probability_beats(same, 1e12)
    assert even + same.probability_beats(forecast, 1e12) == pytest.approx(1.0, abs=1e-9)


def test_where_a_level_is_reached(forecast):
    level = 2 + 4e3 / 3e11**0.4
    reached = forecast.reaches(level, until=1e14)
    assert reached["estimate"] == pytest.approx(3e11, rel=0.1)
    assert reached["lower"] < 3e11 < reached["upper"]
    never = forecast.reaches(1.0, until=1e12)
    assert never["estimate"] == np.inf
    assert never["probability"] < 0.05
    early = forecast.reaches(10.0, until=1e12)
    assert early["estimate"] == pytest.approx(1e9)
    with pytest.raises(DataError, match="until must lie above"):
        forecast.reaches(2.5, until=1e8)


def test_the_same_seed_gives_the_same_forecast():
    table = curve(noise=0.002)
    first, second = (
        forecast_curve(table, families=["pow3"], resamples=20, rng=4).draws(1e12) for _ in "ab"
    )
    np.testing.assert_array_equal(first, second)
    shuffled = table.sample(frac=1.0, random_state=0)
    third = forecast_curve(shuffled, families=["pow3"], resamples=20, rng=4).draws(1e12)
    np.testing.assert_array_equal(first, third)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda t: t[:7], {}, "has 7 points; at least 8"),
        (lambda t: pd.concat([t, t[:1]]), {}, "One curve has one loss at each tokens"),
        (lambda t: t.assign(loss=-1.0), {}, "'loss'"),
        (lambda t: t, {"held_out": 0.9}, "held_out must be a share"),
        (lambda t: t, {"families": []}, "at least one of pow2"),
        (lambda t: t, {"families": ["spline"]}, "No family 'spline'"),
        (lambda t: t, {"column": "steps"}, "Missing 'steps'"),
    ],
)
def test_unfit_curves_are_refused(change, options, message):
    with pytest.raises(DataError, match=message):
        forecast_curve(change(curve()), resamples=10, rng=0, **options)


def test_published_split_of_language_curves():
    if not os.environ.get("TOOLKIT_DATA_DIR"):
        pytest.skip("TOOLKIT_DATA_DIR is not set, so the published curves are not looked for")
    curves = datasets.load("revisiting_language")
    quick = ["pow2", "pow3", "vapor"]
    errors, single, held = [], [], 0
    for _, points in curves[curves["domain"] == "BB"].groupby("task"):
        known = points[points["used_for_fit"] == 1]
        later = points[points["used_for_fit"] == 0].sort_values("examples")
        options = {"column": "examples", "target": "value", "families": quick, "resamples": 20}
        found = forecast_curve(known, rng=0, **options)
        predicted = found.predict(later["examples"], level=0.9)
        truth = later["value"].to_numpy()
        errors.append(np.sqrt(np.mean(np.log(predicted["value"] / truth) ** 2)))
        plain = found.fits[0].law.predict(found.fits[0].values, {"examples": later["examples"]})
        single.append(np.sqrt(np.mean(np.log(plain / truth) ** 2)))
        held += predicted["lower"].iloc[-1] <= truth[-1] <= predicted["upper"].iloc[-1]
    assert len(errors) == 10
    assert np.mean(errors) < 0.02
    assert np.mean(errors) < np.mean(single)
    assert held >= 6
