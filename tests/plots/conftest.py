"""Fits to draw, and a fresh figure for each test."""

import dataclasses
from collections.abc import Iterator

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from toolkit import scaling
from toolkit.datasets.simulate import isoflop_design, simulate_runs
from toolkit.scaling import ScalingFit

mpl.use("agg")

BUDGETS = np.array([1e19, 1e20, 1e21])
TRUTH = "besiroglu2024"


@pytest.fixture(autouse=True)
def unchanged_settings() -> Iterator[None]:
    """Fail a test after which a global setting of matplotlib differs; close its figures."""
    before = dict(mpl.rcParams)
    yield
    plt.close("all")
    assert dict(mpl.rcParams) == before


@pytest.fixture
def ax() -> Axes:
    return plt.figure(figsize=(6, 4)).subplots()


@pytest.fixture(scope="session")
def grouped_runs() -> pd.DataFrame:
    """Three budgets of five sizes, and two runs that share their budget with no other."""
    groups = isoflop_design(BUDGETS, np.geomspace(4, 200, 5))
    others = pd.DataFrame({"params": [2e8, 3e9], "tokens": [9e9, 7e10]})
    return simulate_runs("chinchilla", TRUTH, pd.concat([groups, others]), rng=0)


@pytest.fixture(scope="session")
def grouped(grouped_runs: pd.DataFrame) -> ScalingFit:
    """Fit with a bootstrap over runs."""
    return scaling.fit("chinchilla", grouped_runs, bootstrap=100, cluster="run", rng=0)


@pytest.fixture(scope="session")
def plain(grouped_runs: pd.DataFrame) -> ScalingFit:
    """Fit the same runs by squared loss, without bootstrap."""
    return scaling.fit("chinchilla", grouped_runs, loss="squared")


@pytest.fixture(scope="session")
def scattered() -> ScalingFit:
    """Fit runs that share no budget, by Huber loss, without bootstrap."""
    generator = np.random.default_rng(1)
    params, tokens = np.exp(generator.uniform(np.log([1e8, 2e9]), np.log([9e9, 3e11]), (30, 2))).T
    runs = simulate_runs("chinchilla", TRUTH, {"params": params, "tokens": tokens}, rng=2)
    return scaling.fit("chinchilla", runs)


@pytest.fixture(scope="session")
def size_only(plain: ScalingFit) -> ScalingFit:
    """Make a fit of a law without tokens, which cannot speak of compute."""
    law = dataclasses.replace(plain.law, columns=("params",), allocate=None)
    problem = dataclasses.replace(plain.problem, law=law)
    return dataclasses.replace(plain, problem=problem, runs=plain.runs[["params", "loss"]])
