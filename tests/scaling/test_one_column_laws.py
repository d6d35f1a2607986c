"""Laws of one column: broken power laws with any number of breaks, and M1 to M4."""

import numpy as np
import pytest
from scipy.optimize import brentq

import toolkit as tk
from toolkit.errors import DataError
from toolkit.scaling.laws.broken import broken
from toolkit.scaling.laws.extrapolation import extrapolation_law

X = np.geomspace(1e6, 1e11, 40)


def broken_in_numpy(x, values, breaks):
    above = values["b"] * x ** -values["c0"]
    for i in range(1, breaks + 1):
        c, d, f = (values[f"{name}{i}"] for name in "cdf")
        above = above * (1 + (x / d) ** (1 / f)) ** (-c * f)
    return values["a"] + above


TWO_BREAKS = {
    **{"a": 0.3, "b": 20.0, "c0": 0.05},
    **{"c1": 0.5, "d1": 3e7, "f1": 0.3},
    **{"c2": -0.4, "d2": 5e9, "f2": 0.5},
}


@pytest.mark.parametrize("breaks", [0, 1, 2])
def test_broken_law_is_the_equation(breaks):
    law = broken(breaks)
    values = {name: TWO_BREAKS[name] for name in law.parameter_names}
    expected = broken_in_numpy(X, values, breaks)
    np.testing.assert_allclose(law.predict(values, {"tokens": X}), expected, rtol=1e-12)


def test_two_breaks_are_found():
    law = broken(breaks=2)
    design = {"tokens": np.geomspace(1e5, 1e12, 120)}
    runs = tk.datasets.simulate_runs(law, TWO_BREAKS, design, noise=0.0)
    fit = tk.scaling.fit(law, runs)
    np.testing.assert_allclose(fit.values, law.values(TWO_BREAKS), rtol=1e-6)


def test_a_break_may_be_sharp():
    law = broken()
    sharp = {"a": 0.3, "b": 5.0, "c0": 0.02, "c1": 1.0, "d1": 1e8, "f1": 1e-3}
    predicted = law.predict(sharp, {"tokens": [1e6, 1e8, 1e10]})
    far_past = 0.3 + 5.0 * 1e10**-0.02 * (1e10 / 1e8) ** -1.0
    assert predicted[2] == pytest.approx(far_past, rel=1e-9)
    assert predicted[0] == pytest.approx(0.3 + 5.0 * 1e6**-0.02, rel=1e-9)


@pytest.mark.parametrize("wrong", [-1, 6, 1.5, True, "two"])
def test_breaks_are_a_small_whole_number(wrong):
    with pytest.raises(DataError, match="breaks must be a whole number from 0 to 5"):
        broken(breaks=wrong)


def test_m4_solves_its_equation():
    law = extrapolation_law("m4")
    for p in (1e-3, 0.3, 1.0, 3.0):
        values = {"a": 1.8, "b": 3e3, "c": 0.5, "top": 10.8, "p": p}

        def gap(loss, x, p=p):
            return np.log(loss - 1.8) - p * np.log(10.8 - loss) - np.log(3e3) + 0.5 * np.log(x)

        x = np.geomspace(1e6, 1e11, 9)
        roots = [brentq(gap, 1.8 + 1e-13, 10.8 - 1e-13, args=(at,), xtol=1e-13) for at in x]
        np.testing.assert_allclose(law.predict(values, {"tokens": x}), roots, rtol=1e-9)


def test_m4_with_the_top_below_the_floor_predicts_nothing():
    law = extrapolation_law("m4")
    values = {"a": 5.0, "b": 3e3, "c": 0.5, "top": 4.0, "p": 1.0}
    assert np.isnan(law.predict(values, {"tokens": X})).all()


def test_m2_is_the_unbroken_law():
    values = {"a": 1.8, "b": 400.0, "c": 0.3}
    same = broken(0).predict([1.8, 400.0, 0.3], {"tokens": X})
    np.testing.assert_array_equal(extrapolation_law("m2").predict(values, {"tokens": X}), same)
    np.testing.assert_allclose(same, 1.8 + 400.0 * X**-0.3, rtol=1e-13)


def test_m3_levels_off():
    values = {"b": 60.0, "c": 0.15, "s": 1e8}
    predicted = extrapolation_law("m3").predict(values, {"tokens": [1e5, 1e15]})
    np.testing.assert_allclose(predicted, 60.0 * np.array([1e5, 1e8]) ** -0.15, rtol=1e-3)


def test_forms_are_known_by_name():
    with pytest.raises(DataError, match="No form 'm5'; the forms are m1, m2, m3, m4"):
        extrapolation_law("m5")


def test_any_column_will_do():
    law = extrapolation_law("m2", column="examples")
    runs = {"examples": np.geomspace(10, 1e6, 30)}
    runs["loss"] = 0.5 + 3.0 * runs["examples"] ** -0.4
    np.testing.assert_allclose(tk.scaling.fit(law, runs).values, [0.5, 3.0, 0.4], rtol=1e-6)
