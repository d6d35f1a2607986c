"""A model that everything is known about: a plane, whose robust fits are convex problems."""

import numpy as np
import pytest
from numba import njit


@njit(nogil=True)
def plane(theta, x, value, jacobian):
    for i in range(value.size):
        value[i] = 0.0
        for k in range(theta.size):
            value[i] += theta[k] * x[k, i]
            jacobian[k, i] = x[k, i]


@pytest.fixture(scope="session", name="plane")
def plane_kernel():
    return plane


def noisy_plane(seed, n=40, p=3):
    """Draw inputs (p, n), the first of them constant, and targets with heavy-tailed errors."""
    rng = np.random.default_rng(seed)
    x = np.vstack([np.ones(n), rng.normal(size=(p - 1, n))])
    return x, rng.normal(size=p) @ x + 0.1 * rng.standard_t(2, size=n)


@pytest.fixture(name="noisy_plane")
def noisy_plane_function():
    return noisy_plane


@pytest.fixture
def free():
    """Bounds that bind nothing, for p parameters."""
    return lambda p: {"lower": np.full(p, -np.inf), "upper": np.full(p, np.inf)}
