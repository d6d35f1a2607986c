"""Least absolute deviations against linear programming."""

import numpy as np
import pytest
from scipy import optimize

from toolkit.numerics.absolute import minimise_absolute


def by_linear_programming(x, y, weights, lower=None, upper=None):
    """Least sum of weighted absolute deviations of a plane."""
    p, n = x.shape
    lower = np.full(p, -np.inf) if lower is None else lower
    upper = np.full(p, np.inf) if upper is None else upper
    cost = np.concatenate([np.zeros(p), weights, weights])
    bounds = [*zip(lower, upper, strict=True), *[(0, None)] * (2 * n)]
    solved = optimize.linprog(
        cost, A_eq=np.hstack([x.T, np.eye(n), -np.eye(n)]), b_eq=y, bounds=bounds, method="highs"
    )
    return solved.fun, solved.x[:p]


def fit(plane, x, y, weights, free, **options):
    p = len(x)
    return minimise_absolute(
        plane, x, y, np.atleast_2d(weights), np.zeros((1, p)), **(free(p) | options)
    )


@pytest.mark.parametrize("p", [1, 2, 4])
@pytest.mark.parametrize("seed", range(6))
def test_the_optimum_is_that_of_the_linear_programme(plane, noisy_plane, free, seed, p):
    x, y = noisy_plane(seed, n=35, p=p)
    weights = np.random.default_rng(seed).uniform(0.5, 3.0, y.size)  # no ties: one optimum
    expected, where = by_linear_programming(x, y, weights)
    found = fit(plane, x, y, weights, free)
    assert found.certified[0]
    assert found.objective[0] == pytest.approx(expected, rel=1e-11)
    assert found.objective[0] == pytest.approx(
        np.sum(weights * np.abs(found.theta[0] @ x - y)), rel=1e-12
    )
    np.testing.assert_allclose(found.theta[0], where, atol=1e-7)


@pytest.mark.parametrize("seed", range(6))
def test_integer_targets_with_ties_are_solved(plane, free, seed):
    rng = np.random.default_rng(seed)
    x = np.vstack([np.ones(30), rng.integers(0, 4, 30)]).astype(float)
    y = rng.integers(0, 3, 30).astype(float)
    expected, _ = by_linear_programming(x, y, np.ones(30))
    found = fit(plane, x, y, np.ones(30), free)
    assert found.objective[0] == pytest.approx(expected, rel=1e-9)
    assert found.certified[0]


@pytest.mark.parametrize("seed", range(6))
def test_active_bounds_agree_with_the_linear_programme(plane, noisy_plane, free, seed):
    x, y = noisy_plane(seed)
    _, inside = by_linear_programming(x, y, np.ones(y.size))
    lower, upper = inside - 1.0, inside + 1.0
    lower[1] = inside[1] + 0.3
    expected, _ = by_linear_programming(x, y, np.ones(y.size), lower, upper)
    found = fit(plane, x, y, np.ones(y.size), free, lower=lower, upper=upper)
    assert found.objective[0] >= expected * (1 - 1e-12)
    assert not found.certified[0] or found.objective[0] == pytest.approx(expected, rel=1e-9)
    assert found.objective[0] == pytest.approx(expected, rel=1e-6)


def test_weights_equal_repeated_rows(plane, noisy_plane, free):
    x, y = noisy_plane(7)
    counts = np.random.default_rng(7).integers(0, 4, y.size)
    weighted = fit(plane, x, y, counts.astype(float), free)
    repeated = fit(
        plane, np.repeat(x, counts, axis=1), np.repeat(y, counts), np.ones(counts.sum()), free
    )
    assert weighted.objective[0] == pytest.approx(repeated.objective[0], rel=1e-11)
    assert repeated.certified[0]


def test_an_exact_fit_is_certified(plane, noisy_plane, free):
    x, _ = noisy_plane(8)
    truth = np.array([1.0, -2.0, 3.0])
    found = fit(plane, x, truth @ x, np.ones(x.shape[1]), free)
    assert found.certified[0]
    np.testing.assert_allclose(found.theta[0], truth, rtol=1e-9)


def test_threads_change_no_bit(plane, noisy_plane, free):
    x, y = noisy_plane(5)
    weights = np.random.default_rng(0).multinomial(y.size, np.full(y.size, 1 / y.size), 11) * 1.0
    one, two = (fit(plane, x, y, weights, free, threads=t) for t in (1, 2))
    for name in ("theta", "objective", "gap", "evaluations", "certified"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
