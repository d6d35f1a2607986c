"""Kaplan's laws and rules against the figures of the paper."""

import numpy as np
import pytest

from toolkit.errors import DataError
from toolkit.scaling import laws
from toolkit.scaling.laws.kaplan import (
    FLOPS_PER_PETAFLOP_DAY,
    critical_batch_size,
    minimum_steps,
    tokens_without_overfitting,
)


def test_doubling_the_size_takes_the_loss_to_95_percent():
    law = laws.get("kaplan_params")
    one, two = law.predict("kaplan2020", {"params": [1e8, 2e8]})
    assert two / one == pytest.approx(2**-0.076)
    assert one == pytest.approx((8.8e13 / 1e8) ** 0.076)


def test_compute_is_in_flops():
    law = laws.get("kaplan_flops")
    at_one_day = law.predict("kaplan2020", {"flops": [FLOPS_PER_PETAFLOP_DAY]})
    assert at_one_day[0] == pytest.approx(3.1e8**0.050)


def test_joint_law_has_the_single_laws_as_limits():
    law = laws.get("kaplan")
    values = dict(law.presets["kaplan2020"].values)
    ample = law.predict(values, {"params": [1e6], "tokens": [9e16]})[0]
    assert ample == pytest.approx((6.4e13 / 1e6) ** 0.076, rel=1e-4)
    large = law.predict(values, {"params": [9e14], "tokens": [1e7]})[0]
    assert large == pytest.approx((1.8e13 / 1e7) ** 0.103, rel=1e-4)


def test_critical_batch_size_doubles_for_13_percent_less_loss():
    assert critical_batch_size(0.87) / critical_batch_size(1.0) == pytest.approx(2, rel=0.04)
    assert critical_batch_size(1.0) == pytest.approx(2.1e8)
    np.testing.assert_allclose(critical_batch_size([10.0, 4.0]), [3.6e3, 2.85e5], rtol=0.02)


def test_a_batch_far_below_the_critical_size_needs_more_steps():
    assert minimum_steps(1e5, 1e12, 3.0) == pytest.approx(1e5, rel=1e-4)
    ratio = critical_batch_size(3.0) / 2**19
    assert minimum_steps(1e5, 2**19, 3.0) == pytest.approx(1e5 / (1 + ratio))


def test_overfitting_stays_small_at_the_rule():
    """The paper's rule allows 0.02 nats; its own law says so for sizes within its runs."""
    law = laws.get("kaplan")
    values = dict(law.presets["kaplan2020"].values)
    params = np.array([1e7, 1e8, 1e9])
    tokens = tokens_without_overfitting(params)
    limited = law.predict(values, {"params": params, "tokens": tokens})
    ample = law.predict(values, {"params": params, "tokens": np.full(3, 9e16)})
    assert np.all(limited / ample - 1 < 0.025)
    assert np.all(limited / ample - 1 > 0.01)


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf])
def test_values_that_make_no_sense_are_refused(wrong):
    with pytest.raises(DataError, match="loss must be finite and positive"):
        critical_batch_size(wrong)
    with pytest.raises(DataError, match="batch_tokens must be"):
        minimum_steps(1.0, wrong, 3.0)
    with pytest.raises(DataError, match="params must be"):
        tokens_without_overfitting([1e9, wrong])
