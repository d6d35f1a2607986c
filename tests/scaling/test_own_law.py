"""A law from a plain function: same optimum as the catalogue's, checked gradient, clear errors."""

import math
import time

import numpy as np
import pytest

from toolkit.errors import DataError
from toolkit.scaling import fit, own_law
from toolkit.scaling.laws.units import Unit, unit_changes

RANGES = {"A": 400, "B": 400, "E": (0.5, 3), "alpha": (0.1, 0.9), "beta": (0.1, 0.9)}


def loss(params, tokens, A, B, E, alpha, beta):
    return E + A / params**alpha + B / tokens**beta


def slopes(params, tokens, A, B, E, alpha, beta):
    size, data = params**-alpha, tokens**-beta
    return size, data, 1.0, -A * size * math.log(params), -B * data * math.log(tokens)


@pytest.fixture(scope="module")
def law():
    return own_law(loss, RANGES)


def test_it_reaches_the_optimum_of_the_catalogue_quickly(kept_points, law):
    fit(law, kept_points)
    began = time.process_time()
    own = fit(law, kept_points, bootstrap=200, rng=0)
    seconds = time.process_time() - began
    known = fit("chinchilla", kept_points, bootstrap=200, rng=0)
    assert own.certified
    assert own.agreement == 1.0
    assert own.objective == pytest.approx(known.objective, rel=1e-12)
    np.testing.assert_allclose(own.draws, known.draws[list(RANGES)], rtol=1e-6)
    assert own.bootstrap.evaluations.mean() < 12
    assert seconds < 2.0  # 0.55 measured


def test_the_fit_can_be_used_like_any_other(runs, law):
    own, known = fit(law, runs, bootstrap=50, rng=1), fit("chinchilla", runs, bootstrap=50, rng=1)
    point = {"params": 1e9, "tokens": 2e10}
    np.testing.assert_allclose(own.predict(**point), known.predict(**point), rtol=1e-6)
    assert own.identifiability().condition == pytest.approx(
        known.identifiability().condition, rel=1e-3
    )
    assert "loss(params, tokens, A, B, E, alpha, beta)" in own.summary().text()
    pinned = fit(law, runs, fixed={"E": 1.8})
    assert pinned.params["E"] == pytest.approx(1.8)


def test_the_jacobian_is_the_derivative(law):
    values = {"A": 482.0, "B": 2085.0, "E": 1.8, "alpha": 0.35, "beta": 0.37}
    table = {"params": np.array([7e7, 1e10]), "tokens": np.array([3e9, 1e12])}
    expected = np.array([slopes(*point, *values.values()) for point in zip(*table.values())])  # noqa: B905
    np.testing.assert_allclose(law.gradient(values, table), expected, rtol=1e-8)


def test_the_unit_of_a_column_is_recognised(law):
    scales = {p.name: p.scales for p in law.parameters}
    assert scales["A"] == ("params", "alpha")
    assert scales["B"] == ("tokens", "beta")
    assert scales["E"] is None
    assert law.centred.all()


def test_a_parameter_in_the_unit_of_a_column_is_recognised():
    law = own_law(
        lambda tokens, start, half, power: start / (1 + (tokens / half) ** power),
        {"start": 4.0, "half": 1e9, "power": (0.1, 1.0)},
    )
    assert {p.name: p.unit_of for p in law.parameters}["half"] == "tokens"
    assert law.centred.all()


@pytest.mark.parametrize(
    "function",
    [
        lambda x, v: v[1] + v[0] * np.log(x[0]) ** -v[2],
        lambda x, v: v[1] + v[0] * x[0] ** -v[2] * (0.5 if x[0] > 1e12 else 1.0),
        lambda x, v: v[1] + v[0] * x[0] ** -0.3,
        lambda x, v: np.nan,
    ],
)
def test_a_column_needed_in_its_own_unit_is_left_in_it(function):
    ranges = [(0.0, 3.0), (0.0, 1.0), (0.1, 0.9)]
    assert unit_changes(function, ranges, [True, True, False], 1) == []


def test_several_terms_share_the_change_of_unit():
    found = unit_changes(
        lambda x, v: v[0] * x[0] ** -v[1] + v[2] * x[0] ** -v[3] + v[4] / x[1],
        [(0.0, 3.0), (0.1, 0.9), (0.0, 3.0), (0.1, 0.9), (0.0, 3.0)],
        [True, False, True, False, True],
        2,
    )
    assert found == [Unit(0, 0, 1), Unit(0, 2, 3), Unit(1, 4, None)]


def test_a_gradient_is_used_and_checked(runs):
    own = fit(own_law(loss, RANGES, gradient=slopes), runs)
    np.testing.assert_allclose(own.params, fit("chinchilla", runs).params[list(RANGES)], rtol=1e-6)

    def wrong(params, tokens, A, B, E, alpha, beta):
        return params**-alpha, tokens**-beta, 1.0, -A * params**-alpha, 0.0

    with pytest.raises(DataError, match=r"gradient by alpha is wrong: in row \d+ it says"):
        fit(own_law(loss, RANGES, gradient=wrong), runs)


def test_columns_can_have_other_names_and_fractions_come_as_they_are():
    law = own_law(
        lambda N, s, A, a, c: A / (N * (1 - s) ** c) ** a,
        {"A": 50, "a": (0.05, 0.5), "c": (0.1, 2.0)},
        columns={"N": "params", "s": "sparsity"},
    )
    assert law.columns == ("params", "sparsity")
    table = {"params": [1e8, 1e9], "sparsity": [0.0, 0.75]}
    values = {"A": 30.0, "a": 0.2, "c": 0.5}
    expected = [30 / 1e8**0.2, 30 / (1e9 * 0.25**0.5) ** 0.2]
    np.testing.assert_allclose(law.predict(values, table), expected, rtol=1e-12)


def test_a_function_without_a_file_works(runs):
    space: dict = {}
    exec("def typed(params, A, alpha):\n    return A / params**alpha", space)
    found = fit(own_law(space["typed"], {"A": 20.0, "alpha": 0.1}), runs)
    assert found.certified


def test_a_function_that_is_not_defined_everywhere_gives_no_silent_number(runs):
    def logarithm(params, A, alpha):
        return A - math.log(params) * alpha

    nowhere = own_law(logarithm, {"A": (0.1, 0.2), "alpha": (1.0, 2.0)})
    with pytest.raises(
        DataError, match=r"not positive and finite .* A=0.1414, alpha=1.414, params"
    ):
        fit(nowhere, runs)
    partly = fit(own_law(logarithm, {"A": (1.0, 10.0), "alpha": (0.01, 1.0)}), runs)
    assert partly.certified
    assert np.isfinite(partly.residuals).all()


def test_an_exception_in_the_function_counts_as_not_defined(runs):
    def choosy(params, A, alpha):
        if A > 50:
            raise ValueError("too large")
        return A / params**alpha

    found = fit(own_law(choosy, {"A": (1.0, 1e3), "alpha": (0.01, 0.5)}), runs)
    plain = fit(
        own_law(lambda params, A, alpha: A / params**alpha, {"A": 10.0, "alpha": 0.1}), runs
    )
    np.testing.assert_allclose(found.params, plain.params, rtol=1e-6)


def uses_unknown(params, A):
    return A * undefined_name / params  # noqa: F821


def uses_text(params, A):
    return (
        A * float("nan" + str(params)[:0].strip().title().zfill(3)) * len({}.items() or open("x"))
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: own_law(uses_unknown, {"A": 1}), "cannot be compiled.*'undefined_name'"),
        (lambda: own_law(uses_text, {"A": 1}), "cannot be compiled. It gets one number"),
        (lambda: own_law(loss, {**RANGES, "gamma": 1}), "gamma is not an argument"),
        (lambda: own_law(loss, {**RANGES, "E": (3, 1)}), r"range of E must be \(low, high\)"),
        (lambda: own_law(loss, {**RANGES, "E": "big"}), "E needs a guess or a range"),
        (lambda: own_law(loss, {**RANGES, "E": np.nan}), "E needs a guess or a range"),
        (lambda: own_law(loss, RANGES, real=["F"]), "real: F is not among"),
        (lambda: own_law(loss, RANGES, columns={"N": "params"}), "N is not among the arguments"),
        (lambda: own_law(loss, RANGES, columns={"params": "tokens"}), "stand for one column"),
        (lambda: own_law(lambda A: A, {"A": 1}), "at least one of each"),
        (lambda: own_law(lambda params, A=1: A, {"A": 1}), "plain arguments"),
        (lambda: own_law(min, {"A": 1}), "plain"),
    ],
)
def test_what_cannot_be_a_law_is_refused(make, message):
    with pytest.raises(DataError, match=message):
        make()


def test_guesses_and_ranges_decide_what_is_positive():
    law = own_law(
        lambda params, a, b, c, d: a + b + c + d + params,
        {"a": 2.0, "b": -1.0, "c": (0.0, 1.0), "d": (1.0, 2.0)},
        real=["d"],
    )
    assert [p.positive for p in law.parameters] == [True, False, False, False]
