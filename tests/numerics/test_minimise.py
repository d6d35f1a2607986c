"""The minimiser on problems with a known answer, and its certificate against the truth."""

import numpy as np
import pytest
from numba import njit
from scipy import optimize

from tests.reference import plain
from toolkit.numerics.minimise import minimise


def huber_objective(theta, x, y, weights, delta):
    return float(np.sum(weights * plain.huber(theta @ x - y, delta)))


def huber_gradient(theta, x, y, weights, delta):
    return x @ (weights * np.clip(theta @ x - y, -delta, delta))


def fit_plane(plane, x, y, free, *, weights=None, starts=None, delta=0.05, **options):
    """Fit to the last digits, so that parameters can be compared with other methods."""
    n, p = y.size, len(x)
    return minimise(
        plane,
        x,
        y,
        np.ones((1, n)) if weights is None else np.atleast_2d(weights),
        np.zeros((1, p)) if starts is None else np.atleast_2d(starts),
        **({"tolerance": 1e-18} | free(p) | options),
        delta=delta,
    )


@pytest.mark.parametrize("seed", range(5))
def test_squared_loss_is_least_squares(plane, noisy_plane, free, seed):
    x, y = noisy_plane(seed)
    found = fit_plane(plane, x, y, free, delta=np.inf)
    expected = np.linalg.lstsq(x.T, y)[0]
    np.testing.assert_allclose(found.theta[0], expected, rtol=1e-9)
    assert found.objective[0] == pytest.approx(0.5 * np.sum((expected @ x - y) ** 2), rel=1e-12)
    assert found.certified[0]


@pytest.mark.parametrize("delta", [1e-3, 0.05, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_huber_loss_reaches_the_minimum_of_a_convex_problem(plane, noisy_plane, free, seed, delta):
    x, y = noisy_plane(seed)
    found = fit_plane(plane, x, y, free, delta=delta)
    theta = found.theta[0]
    assert found.certified[0]
    assert found.objective[0] == pytest.approx(huber_objective(theta, x, y, 1.0, delta), rel=1e-12)
    # A bounded score makes the gradient a difference of large sums; zero up to that.
    assert np.abs(huber_gradient(theta, x, y, 1.0, delta)).max() < 1e-4 * delta
    peer = optimize.least_squares(
        lambda t: t @ x - y, np.zeros(len(x)), loss="huber", f_scale=delta, xtol=1e-15, ftol=1e-15
    )
    assert found.objective[0] <= peer.cost * (1 + 1e-10)


def test_weights_equal_repeated_rows(plane, noisy_plane, free):
    x, y = noisy_plane(0)
    counts = np.random.default_rng(1).integers(0, 4, y.size)
    weighted = fit_plane(plane, x, y, free, weights=counts)
    repeated = fit_plane(plane, np.repeat(x, counts, axis=1), np.repeat(y, counts), free)
    np.testing.assert_allclose(weighted.theta, repeated.theta, rtol=1e-7)
    np.testing.assert_allclose(weighted.objective, repeated.objective, rtol=1e-10)


def test_weight_zero_is_a_dropped_row_even_where_the_row_is_wild(plane, noisy_plane, free):
    x, y = noisy_plane(0)
    weights = np.ones(y.size)
    weights[::5] = 0.0
    kept = weights > 0
    wild = np.where(kept, y, 1e30)
    with_zero = fit_plane(plane, x, wild, free, weights=weights)
    dropped = fit_plane(plane, x[:, kept], y[kept], free)
    np.testing.assert_array_equal(with_zero.theta, dropped.theta)
    np.testing.assert_array_equal(with_zero.objective, dropped.objective)


@pytest.mark.parametrize("factor", [1 / 40, 1e-6, 1e6])
def test_scaling_all_weights_moves_nothing(plane, noisy_plane, free, factor):
    x, y = noisy_plane(2)
    once = fit_plane(plane, x, y, free)
    scaled = fit_plane(plane, x, y, free, weights=np.full(y.size, factor))
    np.testing.assert_allclose(scaled.theta, once.theta, rtol=1e-6)
    np.testing.assert_allclose(scaled.objective, factor * once.objective, rtol=1e-9)
    assert scaled.certified[0]


def test_an_active_bound_agrees_with_scipy(plane, noisy_plane, free):
    x, y = noisy_plane(3)
    inside = np.linalg.lstsq(x.T, y)[0]
    lower, upper = inside - 1.0, inside + 1.0
    lower[1], upper[2] = inside[1] + 0.5, inside[2] - 0.25
    expected = optimize.lsq_linear(x.T, y, (lower, upper), tol=1e-14)
    found = fit_plane(plane, x, y, free, lower=lower, upper=upper, delta=np.inf)
    np.testing.assert_allclose(found.theta[0], expected.x, atol=1e-8)
    assert found.theta[0, 1] == lower[1]
    assert found.theta[0, 2] == upper[2]
    assert found.objective[0] == pytest.approx(expected.cost, rel=1e-9)
    assert found.certified[0]


def test_a_start_outside_the_box_is_moved_into_it(plane, noisy_plane, free):
    x, y = noisy_plane(3)
    box = {"lower": np.zeros(3), "upper": np.full(3, 0.1)}
    far = fit_plane(plane, x, y, free, starts=[100.0, -100.0, 100.0], **box)
    near = fit_plane(plane, x, y, free, starts=[0.05, 0.05, 0.05], **box)
    assert np.all((far.theta >= 0.0) & (far.theta <= 0.1))
    np.testing.assert_allclose(far.theta, near.theta, atol=1e-7)


@pytest.mark.parametrize("delta", [1e-3, np.inf])
def test_an_exact_fit_is_certified(plane, noisy_plane, free, delta):
    x, _ = noisy_plane(4)
    truth = np.array([1.0, -2.0, 3.0])
    found = fit_plane(plane, x, truth @ x, free, delta=delta)
    assert found.certified[0]
    np.testing.assert_allclose(found.theta[0], truth, rtol=1e-7)
    assert found.objective[0] < 1e-18


def test_fewer_points_than_parameters_are_never_certified_as_determined(plane, free):
    x, y = np.array([[1.0, 1.0], [0.0, 1.0], [0.5, 0.2]]), np.array([1.0, 2.0])
    found = fit_plane(plane, x, y, free)
    assert np.isfinite(found.theta).all()
    assert found.objective[0] < 1e-8
    assert not found.certified[0]


def test_running_out_of_evaluations_is_reported(plane, noisy_plane, free):
    x, y = noisy_plane(0)
    found = fit_plane(plane, x, y, free, delta=1e-3, max_evaluations=2)
    assert found.evaluations[0] <= 2
    assert not found.certified[0]
    assert found.objective[0] == pytest.approx(
        huber_objective(found.theta[0], x, y, 1.0, 1e-3), rel=1e-12
    )


def test_a_start_that_is_not_finite_spoils_itself_only(plane, noisy_plane, free):
    x, y = noisy_plane(0)
    starts = np.array([[0.0, 0.0, 0.0], [np.nan, 0.0, 0.0], [1.0, 1.0, 1.0]])
    found = fit_plane(plane, x, y, free, starts=starts)
    assert found.certified.tolist() == [True, False, True]
    assert found.objective[1] == np.inf
    np.testing.assert_allclose(found.theta[0], found.theta[2], rtol=1e-6)


def test_each_problem_of_a_batch_is_solved_as_if_alone(plane, noisy_plane, free):
    x, y = noisy_plane(5)
    weights = np.random.default_rng(0).multinomial(y.size, np.full(y.size, 1 / y.size), 20)
    together = fit_plane(plane, x, y, free, weights=weights)
    for k, row in enumerate(weights):
        alone = fit_plane(plane, x, y, free, weights=row)
        np.testing.assert_array_equal(together.theta[k], alone.theta[0])
        assert together.objective[k] == alone.objective[0]
        assert together.evaluations[k] == alone.evaluations[0]


@pytest.mark.parametrize("threads", [2, 3, 64])
def test_threads_change_no_bit(plane, noisy_plane, free, threads):
    x, y = noisy_plane(5)
    weights = np.random.default_rng(0).multinomial(y.size, np.full(y.size, 1 / y.size), 37)
    one = fit_plane(plane, x, y, free, weights=weights, threads=1)
    many = fit_plane(plane, x, y, free, weights=weights, threads=threads)
    for name in ("theta", "objective", "gap", "evaluations", "certified"):
        np.testing.assert_array_equal(getattr(one, name), getattr(many, name))


def test_each_problem_can_have_its_own_targets(plane, noisy_plane, free):
    x, y = noisy_plane(6)
    targets = y + np.random.default_rng(0).normal(0, 0.05, (5, y.size))
    box = free(3) | {"delta": 0.1}
    one, start = np.ones((1, y.size)), np.zeros((1, 3))
    together = minimise(plane, x, targets, one, start, **box)
    for k, row in enumerate(targets):
        alone = minimise(plane, x, row, one, start, **box)
        np.testing.assert_array_equal(together.theta[k], alone.theta[0])
        assert together.certified[k]


def test_weight_vectors_and_starts_must_match(plane, noisy_plane, free):
    x, y = noisy_plane(0)
    with pytest.raises(ValueError, match="2 weight vectors and 3 starts do not match"):
        fit_plane(plane, x, y, free, weights=np.ones((2, 40)), starts=np.zeros((3, 3)))


@pytest.mark.parametrize("wrong", ["x", "y", "weights", "starts"])
def test_arrays_of_the_wrong_shape_are_refused(plane, noisy_plane, free, wrong):
    """Kernels check no index: a transposed array would read foreign memory."""
    x, y = noisy_plane(0)
    arrays = {"x": x, "y": y, "weights": np.ones((1, y.size)), "starts": np.zeros((1, 3))}
    arrays[wrong] = arrays[wrong][..., :-1] if wrong != "x" else x.T
    with pytest.raises(ValueError, match="shape"):
        minimise(plane, *arrays.values(), **free(3), delta=0.1)


def test_a_kernel_used_on_its_own_first_still_works(noisy_plane, free):
    @njit(nogil=True)
    def line(theta, x, value, jacobian):
        for i in range(value.size):
            value[i] = theta[0] + theta[1] * x[1, i]
            jacobian[0, i] = 1.0
            jacobian[1, i] = x[1, i]

    x, y = noisy_plane(0, p=2)
    value, jacobian = np.empty(y.size), np.empty((2, y.size))
    line(np.zeros(2), np.asfortranarray(x), value, jacobian)
    found = fit_plane(line, x, y, free, delta=np.inf)
    np.testing.assert_allclose(found.theta[0], np.linalg.lstsq(x.T, y)[0], rtol=1e-9)


@pytest.mark.parametrize("bend", [0.9, 0.98])
def test_large_residuals_need_the_second_order_term(bend):
    """Residuals ``theta + 1`` and ``bend theta**2 + theta - 1`` with an optimum at 0.

    Both residuals are 1 there, so Gauss-Newton takes the curvature for 2 where it is
    ``2 - 2 bend``: alone it gains only ``1 - bend`` of the way per step.
    """

    @njit(nogil=True)
    def bent(theta, x, value, jacobian):
        for i in range(value.size):
            value[i] = x[0, i] * theta[0] ** 2 + theta[0]
            jacobian[0, i] = 2.0 * x[0, i] * theta[0] + 1.0

    found = minimise(
        bent,
        np.array([[0.0, bend]]),
        np.array([-1.0, 1.0]),
        np.ones((1, 2)),
        np.array([[0.5]]),
        lower=np.array([-1e-2]),
        upper=np.array([np.inf]),
        delta=np.inf,
        tolerance=1e-16,
    )
    assert found.certified[0]
    assert abs(found.theta[0, 0]) < 1e-6
    assert found.evaluations[0] < 45
