"""Simulated studies whose truth is known, and the registered points where they can be had."""

import os

import numpy as np
import pytest
from scipy import stats

from tests.reference import besiroglu2024
from toolkit import datasets
from toolkit.datasets.simulate import isoflop_design, simulate_runs


def design(groups=6, ratios=10):
    return isoflop_design(np.geomspace(1e18, 1e21, groups), np.geomspace(2, 200, ratios))


def study(seed=1, noise=0.003, **size):
    """60 runs by default, with heavy-tailed errors (noise is the scale of a t with 3 degrees)."""
    error = stats.t(3, scale=noise) if noise else 0.0
    return simulate_runs(
        "chinchilla", "besiroglu2024-unrounded", design(**size), noise=error, rng=seed
    )


@pytest.fixture(scope="session", name="study")
def study_function():
    return study


@pytest.fixture(scope="session")
def runs():
    return study()


@pytest.fixture(scope="session")
def all_points():
    """Load the 245 points of Hoffmann et al. 2022, figure 4, in the order of the file."""
    if not os.environ.get("TOOLKIT_DATA_DIR"):
        pytest.skip("TOOLKIT_DATA_DIR is not set, so the registered points are not looked for")
    return datasets.load("chinchilla_points")


@pytest.fixture(scope="session")
def positions():
    """Rows of the published resamples, shape (4000, 240)."""
    random = np.random.RandomState(besiroglu2024.SEED)
    n = besiroglu2024.KEPT
    return np.array([random.choice(n, n, replace=True) for _ in range(besiroglu2024.RESAMPLES)])


@pytest.fixture(scope="session")
def kept_points(all_points):
    """Drop the five highest losses; the rest stays in the order of the file."""
    dropped = all_points["loss"].nlargest(len(all_points) - besiroglu2024.KEPT).index
    return all_points.drop(dropped)
