"""The exact sigmoid boundary against other optimisers, plain formulas and known truth."""

import numpy as np
import pytest
from scipy import optimize, special

from toolkit.numerics import pinball, sigmoid
from toolkit.numerics.pinball import Sample, minimise_pinball

STARTS = np.array([[0.1, 0.8, 0.0, slope] for slope in (2.0, 6.0)])


def curve(theta, x):
    base, top, logit, slope = theta
    return base + (top - base) * special.expit(logit + slope * x)


def loss(theta, sample, z, y, w, tau):
    u = y - curve(theta, (z - sample.centre) / sample.half_range)
    return np.sum(w * u * (tau - (u < 0)))


def sorted_scores(seed, n=300, values=None, decimals=None):
    """Scores below a sigmoid of 4 decades, tied in compute or rounded on request."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(21, 25, n) if values is None else rng.choice(np.linspace(21, 25, values), n)
    y = (0.2 + 0.6 * special.expit(1.9 * (z - 23.2))) * rng.beta(4, 2, n)
    y = y if decimals is None else np.round(y, decimals)
    order = np.lexsort((y, z))
    return z[order], y[order]


def fit(z, y, weights=None, starts=STARTS, tau=0.9, **options):
    sample = Sample.of(z, y, tau)
    weights = np.ones((1, len(y))) if weights is None else weights
    return sample, minimise_pinball(sample, weights, starts, tau=tau, **({"band": 0.1} | options))


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("shape", [{}, {"values": 30}, {"decimals": 2}])
def test_the_objective_is_the_plain_loss_and_no_optimiser_finds_lower(tau, shape):
    z, y = sorted_scores(0, **shape)
    sample, found = fit(z, y, tau=tau)
    best = found.theta[np.argmin(found.objective)]
    assert found.certified.all()
    assert found.objective.min() == pytest.approx(
        loss(best, sample, z, y, np.ones(len(y)), tau), rel=1e-12
    )
    other = optimize.minimize(
        loss,
        best + 1e-3,
        args=(sample, z, y, np.ones(len(y)), tau),
        method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 4000, "maxfev": 4000},
    )
    assert found.objective.min() <= other.fun * (1 + 1e-9)


def test_four_rows_lie_on_the_curve_at_a_vertex():
    z, y = sorted_scores(1)
    sample, found = fit(z, y)
    u = y - curve(found.theta[0], (z - sample.centre) / sample.half_range)
    assert np.sum(np.abs(u) < 1e-9) == 4
    assert np.mean(u > 1e-9) <= 0.1


def test_resamples_reach_the_best_known_optimum():
    z, y = sorted_scores(2, n=2000)
    weights = np.random.default_rng(0).multinomial(2000, np.full(2000, 1 / 2000), 200) * 1.0
    _, first = fit(z, y, tau=0.95)
    _, warm = fit(z, y, weights, first.theta[:1], tau=0.95, band=0.0)
    _, cold = fit(z, y, weights, STARTS[:1], tau=0.95)
    best = np.minimum(warm.objective, cold.objective)
    gap = warm.objective / best - 1
    assert warm.certified.all()
    assert gap.max() <= 1e-6
    assert np.mean(gap <= 1e-9) >= 0.99


def test_an_optimum_that_is_no_vertex_is_certified():
    """Among these resamples some hold fewer than four rows at zero; an edge has a curved bottom."""
    z, y = sorted_scores(3, values=40)
    weights = np.random.default_rng(1).multinomial(300, np.full(300, 1 / 300), 300) * 1.0
    _, first = fit(z, y)
    sample, found = fit(z, y, weights, first.theta[:1], band=0.0)
    x = (z - sample.centre) / sample.half_range
    on_curve = np.array([np.sum(np.abs(y - curve(t, x)) < 1e-9) for t in found.theta])
    inside = (found.theta[:, 0] > 1e-9) & (found.theta[:, 1] < 1 - 1e-9)
    loose = np.flatnonzero((on_curve < 4) & inside)
    assert loose.size > 0
    assert found.certified.all()
    for k in loose[:5]:
        other = optimize.minimize(
            loss,
            found.theta[k] * (1 + 1e-4),
            args=(sample, z, y, weights[k], 0.9),
            method="Nelder-Mead",
            options={"xatol": 1e-11, "fatol": 1e-13, "maxiter": 4000, "maxfev": 4000},
        )
        assert found.objective[k] <= other.fun * (1 + 1e-9)


def test_weights_equal_repeated_rows():
    z, y = sorted_scores(4)
    counts = np.random.default_rng(4).integers(0, 4, len(y))
    _, weighted = fit(z, y, counts[None, :] * 1.0)
    _, repeated = fit(np.repeat(z, counts), np.repeat(y, counts))
    grid = np.linspace(21, 25, 50)
    one, two = (
        curve(found.theta[0], (grid - s.centre) / s.half_range)
        for found, s in ((weighted, Sample.of(z, y, 0.9)), (repeated, _cells(z, y, counts)))
    )
    np.testing.assert_allclose(one, two, atol=1e-9)
    assert weighted.objective[0] == pytest.approx(repeated.objective[0], rel=1e-12)


def _cells(z, y, counts):
    return Sample.of(np.repeat(z, counts), np.repeat(y, counts), 0.9)


def test_another_unit_or_base_of_the_logarithm_changes_no_curve():
    z, y = sorted_scores(5)
    curves = []
    for scaled in (z, z - 21, z * np.log(10)):
        sample, found = fit(scaled, y)
        curves.append(curve(found.theta[0], (scaled - sample.centre) / sample.half_range))
    np.testing.assert_allclose(curves[1], curves[0], atol=1e-9)
    np.testing.assert_allclose(curves[2], curves[0], atol=1e-9)


@pytest.mark.parametrize(("floor", "ceiling"), [(0.3, 1.0), (0.0, 0.6), (0.3, 0.6)])
def test_limits_hold_and_bind(floor, ceiling):
    z, y = sorted_scores(6)
    y = np.minimum(y, ceiling)
    order = np.lexsort((y, z))
    _, found = fit(z[order], y[order], floor=floor, ceiling=ceiling)
    base, top, _, slope = found.theta[np.argmin(found.objective)]
    assert floor <= base <= top <= ceiling
    assert slope >= 0
    assert found.certified.any()
    free = fit(z[order], y[order])[1].objective.min()
    assert found.objective.min() >= free * (1 - 1e-12)


def test_falling_scores_give_a_curve_that_does_not_fall():
    z, y = sorted_scores(7)
    order = np.lexsort((y[::-1], z))
    sample, found = fit(z, y[::-1][order])
    theta = found.theta[np.argmin(found.objective)]
    assert (np.diff(curve(theta, sample.x)) >= -1e-12).all()


def test_screening_changes_nothing(monkeypatch):
    z, y = sorted_scores(8, n=3000)
    screened, one = fit(z, y, tau=0.98)
    monkeypatch.setattr(pinball, "FEWEST_TO_SCREEN", 10**9)
    whole, two = fit(z, y, tau=0.98)
    assert len(screened.near) < 0.2 * len(whole.near)
    np.testing.assert_allclose(one.objective, two.objective, rtol=1e-10)


def test_rows_that_the_screening_hid_are_found_again(monkeypatch):
    z, y = sorted_scores(9, n=3000)
    expected = fit(z, y, tau=0.9)[1].objective.min()
    monkeypatch.setattr(pinball, "KEPT_ABOVE", 0.2)  # of every window, 2 or 5 % are kept
    screened, found = fit(z, y, tau=0.9)
    assert len(screened.near) < 0.1 * len(y)
    assert found.objective.min() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("use", ["kernel", "py_func"])
def test_values_of_the_curve_agree_with_the_formula(use):
    function = sigmoid.curve_values if use == "kernel" else sigmoid.curve_values.py_func
    theta, x = np.array([0.2, 0.9, 0.5, 3.0]), np.linspace(-1, 1, 17)
    share, values = np.empty(17), np.empty(17)
    function(theta, x, share, values)
    np.testing.assert_allclose(values, curve(theta, x), rtol=1e-14)


def test_curvature_agrees_with_differences():
    theta, x = np.array([0.2, 0.9, 0.5, 3.0]), np.linspace(-1, 1, 17)
    mass, sums, hessian = np.linspace(1, 2, 17), np.empty(7), np.zeros((4, 4))
    sigmoid.node_sums(theta, x, mass, sums)
    sigmoid.add_curvature(theta, sums, 1.0, hessian)

    def gradient(at):
        found = np.empty(4)
        sigmoid.node_sums(at, x, mass, sums)
        sigmoid.smooth_loss(at, sums, 0.0, 0.0, found)
        return found.copy()

    step = 1e-5 * np.eye(4)
    expected = [(gradient(theta + s) - gradient(theta - s)) / 2e-5 for s in step]
    np.testing.assert_allclose(hessian, expected, atol=1e-7)


def test_wrong_shapes_and_unsorted_rows_are_refused():
    z, y = sorted_scores(10)
    sample = Sample.of(z, y, 0.9)
    with pytest.raises(ValueError, match="do not match"):
        minimise_pinball(sample, np.ones((1, 3)), STARTS, tau=0.9)
    with pytest.raises(ValueError, match="3 weight vectors do not match 2 starts"):
        minimise_pinball(sample, np.ones((3, len(y))), STARTS, tau=0.9)
    with pytest.raises(ValueError, match="sorted"):
        Sample.of(z[::-1], y, 0.9)
