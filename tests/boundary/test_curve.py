"""The curve: values, inverse, what follows from it."""

import numpy as np
import pytest

from toolkit.boundary import Curve
from toolkit.boundary.curve import attainable, log_compute_needed, quantities
from toolkit.errors import DataError

CURVE = Curve(base=0.2, rise=0.6, midpoint=23.0, steepness=2.0)


def test_values_at_the_midpoint_and_far_away():
    np.testing.assert_allclose(CURVE.attainable([1e23, 1e60, 1e-20]), [0.5, 0.8, 0.2], atol=1e-12)
    assert CURVE.attainable(1e23).shape == ()
    assert CURVE.attainable(10 ** (23 + np.log(3) / 2)) == pytest.approx(0.2 + 0.6 * 0.75)


def test_compute_needed_is_the_inverse():
    flops = np.logspace(21, 25, 9).reshape(3, 3)
    np.testing.assert_allclose(CURVE.compute_needed(CURVE.attainable(flops)), flops, rtol=1e-9)


def test_scores_at_and_beyond_the_ends():
    np.testing.assert_array_equal(
        CURVE.compute_needed([0.1, 0.2, 0.8, 0.9]), [0.0, 0.0, np.inf, np.inf]
    )


def test_slope_is_the_derivative_at_the_midpoint():
    difference = CURVE.attainable(10**23.001) - CURVE.attainable(10**22.999)
    assert CURVE.slope == pytest.approx(difference / 0.002, rel=1e-6)
    assert CURVE.slope == pytest.approx(0.3)


def test_top_and_headroom():
    assert CURVE.top == pytest.approx(0.8)
    assert CURVE.headroom() == pytest.approx(0.2)
    assert CURVE.headroom(0.9) == pytest.approx(0.1)


def test_a_flat_curve_needs_any_compute_or_none_suffices():
    flat = Curve(0.4, 0.0, 23.0, 0.0)
    np.testing.assert_array_equal(flat.compute_needed([0.3, 0.4, 0.5]), [0.0, 0.0, np.inf])
    assert flat.attainable(1e25) == 0.4


@pytest.mark.parametrize(
    "values", [(0.2, -0.1, 23.0, 1.0), (0.2, 0.1, 23.0, -1.0), (0.2, 0.1, np.nan, 1.0)]
)
def test_impossible_curves_are_refused(values):
    with pytest.raises(DataError, match="finite parameters"):
        Curve(*values)


@pytest.mark.parametrize("flops", [0.0, -1e20, np.nan, np.inf])
def test_impossible_compute_is_refused(flops):
    with pytest.raises(DataError, match="positive and finite"):
        CURVE.attainable(flops)


def test_many_curves_at_once():
    params = np.array([CURVE.values, [0.1, 0.5, 22.0, 1.0]])
    assert attainable(params, np.array([22.0, 23.0, 24.0])).shape == (2, 3)
    np.testing.assert_allclose(attainable(params, np.array([22.0]))[1], 0.35)
    np.testing.assert_allclose(log_compute_needed(params, np.array([0.35]))[1], 22.0)
    np.testing.assert_allclose(
        quantities(params, 1.0)[1], [0.1, 0.5, 22.0, 1.0, 0.6, 0.125, 0.4], rtol=1e-12
    )
