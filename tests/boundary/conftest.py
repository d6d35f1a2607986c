"""Models whose boundary is known, and the registered table where it can be had."""

import os

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from toolkit import datasets
from toolkit.boundary import Curve

TRUTH = Curve(base=0.22, rise=0.60, midpoint=23.2, steepness=1.9)
RANGE = (21.0, 25.0)


def known_models(seed=0, n=5000, tau=0.98, values=None):
    """Scores whose tau-quantile is exactly the truth: ``0.2 + (q - 0.2) W / F_W^-1(tau)``."""
    rng = np.random.default_rng(seed)
    z = rng.uniform(*RANGE, n) if values is None else rng.choice(np.linspace(*RANGE, values), n)
    beta = stats.beta(4, 2)
    share = beta.rvs(n, random_state=rng) / beta.ppf(tau)
    score = 0.2 + (TRUTH.attainable(10**z) - 0.2) * share
    return pd.DataFrame({"flops": 10**z, "score": score})


@pytest.fixture(scope="session", name="known_models")
def known_models_function():
    return known_models


@pytest.fixture(scope="session", name="truth")
def truth_curve():
    return TRUTH


@pytest.fixture(scope="session")
def budgets():
    """Compute over the range of the known models, FLOPs."""
    return np.logspace(*RANGE, 101)


@pytest.fixture(scope="session")
def leaderboard():
    """Load 1,828 models of the Open LLM Leaderboard v2 with their training compute."""
    if not os.environ.get("TOOLKIT_DATA_DIR"):
        pytest.skip("TOOLKIT_DATA_DIR is not set, so the registered models are not looked for")
    models = datasets.load("oll_v2_compute")
    return models.assign(flops=10 ** models["log10_flops"])
