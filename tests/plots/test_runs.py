"""Groups of runs that share a budget."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from toolkit.errors import DataError
from toolkit.plots.runs import OTHER, group_budgets, isoflop_groups, training_compute

SIZES = np.array([1.0, 2.0, 3.0])


def test_groups_are_numbered_by_budget_in_any_order_of_rows():
    flops = np.array([1e20, 1e19, 1e20, 1e19, 1e20, 1e19])
    params = np.repeat(SIZES, 2)
    assert_array_equal(isoflop_groups(flops, params), [1, 0, 1, 0, 1, 0])


def test_budgets_within_two_percent_are_one():
    flops = np.concatenate([[1e19, 1.01e19, 1.0199e19], 1e20 * np.ones(3)])
    assert_array_equal(isoflop_groups(flops, np.tile(SIZES, 2)), [0, 0, 0, 1, 1, 1])
    flops[2] = 1.03e19  # leaves a pair and a single run
    assert isoflop_groups(flops, np.tile(SIZES, 2)) is None


def test_few_strangers_are_set_apart_and_many_end_the_grouping():
    flops = np.concatenate([np.repeat([1e19, 1e20], 3), [5e19]])
    params = np.concatenate([np.tile(SIZES, 2), [1.0]])
    assert_array_equal(isoflop_groups(flops, params), [0, 0, 0, 1, 1, 1, OTHER])
    flops = np.concatenate([flops, [6e19]])
    assert isoflop_groups(flops, np.append(params, 2.0)) is None  # 6 of 8 are fewer than 80 %


def test_repeats_of_one_size_are_no_group():
    flops = np.repeat([1e19, 1e20], 3)
    assert isoflop_groups(flops, np.array([1.0, 1.0, 2.0, 1.0, 2.0, 3.0])) is None


def test_one_budget_is_no_design():
    assert isoflop_groups(np.full(3, 1e19), SIZES) is None


def test_budget_of_a_group_is_its_geometric_mean():
    flops = np.array([1e19, 1.02e19, 1e20, 7e25])
    assert_allclose(group_budgets(flops, np.array([0, 0, 1, OTHER])), [1e19 * np.sqrt(1.02), 1e20])


def test_compute_is_six_times_size_times_data(scattered, size_only):
    runs = scattered.runs
    assert_allclose(training_compute(scattered), 6 * runs["params"] * runs["tokens"])
    with pytest.raises(DataError, match="law of params; this picture needs"):
        training_compute(size_only)
