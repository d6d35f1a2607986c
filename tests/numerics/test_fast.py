"""The vectorised exponential and logarithm against numpy."""

import numpy as np
import pytest
from numba import njit

from toolkit.numerics.fast import exp, log

EPS = np.finfo(float).eps


@njit
def exp_all(x):
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = exp(x[i])
    return out


@njit
def log_all(x):
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = log(x[i])
    return out


def test_exp_agrees_with_numpy():
    x = np.concatenate([np.linspace(-700, 700, 200_001), np.linspace(-1, 1, 200_001)])
    np.testing.assert_allclose(exp_all(x), np.exp(x), rtol=4 * EPS, atol=0)


def test_exp_saturates_and_never_overflows():
    x = np.array([701.0, 1e4, np.inf, -701.0, -1e4, -np.inf])
    expected = np.repeat(np.exp([700.0, -700.0]), 3)
    np.testing.assert_allclose(exp_all(x), expected, rtol=4 * EPS)


def test_log_agrees_with_numpy_over_the_range_of_doubles():
    x = np.concatenate([np.geomspace(1e-300, 1e300, 200_001), np.linspace(0.5, 2.0, 200_001)])
    truth = np.log(x)
    assert np.max(np.abs(log_all(x) - truth) / np.maximum(np.abs(truth), 1e-3)) < 4 * EPS


def test_log_and_exp_undo_each_other():
    x = np.linspace(-690, 690, 10_001)
    np.testing.assert_allclose(log_all(exp_all(x)), x, rtol=4 * EPS, atol=4 * EPS)


@pytest.mark.parametrize("function", [exp_all, log_all])
def test_nan_stays_nan(function):
    assert np.isnan(function(np.array([np.nan])))[0]
