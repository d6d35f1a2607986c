"""Kernels: compiled, as plain Python, and against numpy; derivatives against differences."""

import numpy as np
import pytest

from tests.reference import plain
from toolkit.numerics.newton import _objective, cholesky_solve
from toolkit.scaling import CHINCHILLA, hoffmann_starts

THETA = np.array([-0.4, -0.7, 0.6, 0.35, 0.37])


def points(n=17, seed=0):
    return np.ascontiguousarray(np.random.default_rng(seed).uniform(-4, 4, size=(2, n)))


def evaluate(kernel, theta, x):
    value, jacobian = np.empty(x.shape[1]), np.empty((5, x.shape[1]))
    kernel(theta, x, value, jacobian)
    return value, jacobian


def test_the_chinchilla_kernel_is_its_source_and_its_formula():
    x = points()
    value, jacobian = evaluate(CHINCHILLA.model, THETA, x)
    as_python, jacobian_as_python = evaluate(CHINCHILLA.model.py_func, THETA, x)
    np.testing.assert_allclose(value, as_python, rtol=1e-15)
    np.testing.assert_allclose(jacobian, jacobian_as_python, rtol=1e-14)
    np.testing.assert_allclose(value, plain.residuals(THETA, *x, 0.0), rtol=1e-14)


@pytest.mark.parametrize("seed", range(4))
def test_the_chinchilla_jacobian_is_the_derivative(seed):
    rng = np.random.default_rng(seed)
    theta, x = THETA + rng.normal(0, 0.3, 5), points(seed=seed)
    _, jacobian = evaluate(CHINCHILLA.model, theta, x)
    for k in range(5):
        step = np.zeros(5)
        step[k] = 1e-6
        ahead, _ = evaluate(CHINCHILLA.model, theta + step, x)
        behind, _ = evaluate(CHINCHILLA.model, theta - step, x)
        np.testing.assert_allclose(jacobian[k], (ahead - behind) / 2e-6, rtol=1e-7, atol=1e-9)


def test_the_chinchilla_kernel_stays_finite_at_every_published_start():
    x = points()
    for theta in CHINCHILLA.to_working(hoffmann_starts(), np.array([20.0, 24.0]))[::50]:
        value, jacobian = evaluate(CHINCHILLA.model, theta, x)
        assert np.isfinite(value).all()
        assert np.isfinite(jacobian).all()


@pytest.mark.parametrize("band", [1e-3, 0.02, np.inf])
def test_the_banded_objective(band):
    rng = np.random.default_rng(0)
    value, y, w = rng.normal(0, 0.02, 40), rng.normal(0, 0.02, 40), rng.uniform(0.5, 2, 40)
    delta = np.inf if band == np.inf else 1e-3
    r = value - y
    slope = 1.0 if band == np.inf else delta / band
    expected = np.sum(w * plain.huber(r, band)) * slope if band < np.inf else 0.5 * np.sum(w * r**2)
    assert _objective(value, y, w, delta, band) == pytest.approx(expected, rel=1e-13)
    assert _objective.py_func(value, y, w, delta, band) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("solve", [cholesky_solve, cholesky_solve.py_func])
def test_cholesky_solves_positive_definite_systems_and_refuses_others(solve):
    rng = np.random.default_rng(0)
    for size in (1, 2, 5):
        root = rng.normal(size=(size, size))
        matrix, right = root @ root.T + 0.1 * np.eye(size), rng.normal(size=size)
        factor, solution = np.zeros((size, size)), np.empty(size)
        assert solve(matrix, right, factor, solution)
        np.testing.assert_allclose(matrix @ solution, right, atol=1e-10)
        assert not solve(-matrix, right, factor, solution)
        assert not solve(np.zeros((size, size)), right, factor, solution)
        assert not solve(np.full((size, size), np.nan), right, factor, solution)
    singular = np.array([[1.0, 1.0], [1.0, 1.0]])
    assert not solve(singular, np.ones(2), np.zeros((2, 2)), np.empty(2))
