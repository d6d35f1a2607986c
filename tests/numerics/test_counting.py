"""Counts of drawn units against numpy, and fingerprints of rows."""

import numpy as np
import pytest

from toolkit.numerics.counting import count_draws, fingerprints


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_counts_are_those_of_bincount(dtype):
    drawn = np.random.default_rng(0).integers(0, 7, (50, 11), dtype)
    expected = [np.bincount(row, minlength=7) for row in drawn]
    np.testing.assert_array_equal(count_draws(drawn, 7), expected)


@pytest.mark.parametrize("wrong", [-1, 3])
def test_positions_outside_the_units_are_refused(wrong):
    """The kernel checks no index: it would write to foreign memory."""
    with pytest.raises(ValueError, match="from 0 to 2"):
        count_draws(np.array([[0, wrong]]), 3)


def test_fingerprints_tell_rows_of_small_counts_apart():
    counts = np.random.default_rng(1).poisson(1.0, (20_000, 30)).astype(float)
    rows = np.unique(counts, axis=0)
    assert len(np.unique(fingerprints(rows))) == len(rows)
    twice = fingerprints(np.vstack([rows, rows[::-1]]))
    np.testing.assert_array_equal(twice[: len(rows)], twice[len(rows) :][::-1])
