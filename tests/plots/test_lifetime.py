"""Compute to train and to serve: lines and bands are those of the plan."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from toolkit.errors import DataError
from toolkit.plots import lifetime_compute
from toolkit.scaling import least_compute

SERVED = np.geomspace(1e9, 1e12, 7)


def test_lines_and_bands_are_the_plan(grouped, ax):
    assert lifetime_compute(grouped, 2.4, SERVED[::-1], ax=ax) is ax
    plan = least_compute(grouped, 2.4, inference_tokens=SERVED)
    for line, band, name in zip(
        ax.lines, ax.collections, ("flops", "flops_training"), strict=False
    ):
        assert_allclose(line.get_xdata(), SERVED)
        assert_allclose(line.get_ydata(), plan[name])
        corners = band.get_paths()[0].vertices
        for at, low, high in zip(SERVED, plan[f"{name}_lower"], plan[f"{name}_upper"], strict=True):
            there = corners[corners[:, 0] == at, 1]
            assert_allclose([there.min(), there.max()], [low, high])
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.get_xlabel() == "inference (tokens)"
    assert ax.get_legend().get_title().get_text() == "loss 2.4 nats per token"


def test_dotted_line_is_the_model_that_is_cheapest_to_train(plain, ax):
    lifetime_compute(plain, 2.4, SERVED, ax=ax)
    assert not ax.collections  # no bootstrap, no band
    both, training, unaware = ax.lines
    cheapest = least_compute(plain, 2.4).iloc[0]
    expected = cheapest["flops_training"] + 2 * cheapest["params"] * SERVED
    assert_allclose(unaware.get_ydata(), expected)
    assert (both.get_ydata() <= unaware.get_ydata() * (1 + 1e-9)).all()
    assert (training.get_ydata() >= cheapest["flops_training"] * (1 - 1e-9)).all()
    assert unaware.get_linestyle() == ":"


def test_size_cap_is_kept(plain, ax):
    lifetime_compute(plain, 2.6, SERVED, max_params=6e8, ax=ax)
    plan = least_compute(plain, 2.6, inference_tokens=SERVED, max_params=6e8)
    assert_allclose(ax.lines[0].get_ydata(), plan["flops"])


@pytest.mark.parametrize("served", [[1e10], [0.0, 1e10], [1e10, 1e10]])
def test_a_line_needs_two_positive_numbers(plain, ax, served):
    with pytest.raises(DataError, match="two or more numbers above zero"):
        lifetime_compute(plain, 2.4, served, ax=ax)
    assert not ax.has_data()
