"""The picture of a profile: what is drawn is what the profile holds."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from toolkit import scaling
from toolkit.datasets.simulate import simulate_runs
from toolkit.plots import profile, style


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize(("name", "scale"), [("B", "log"), ("beta", "linear")])
def test_curve_threshold_interval_and_estimate(plain, ax, name, scale):
    result = plain.profile(name)
    assert profile(result, ax=ax) is ax
    threshold, curve, star = ax.lines
    band = ax.patches[0]
    assert_allclose(threshold.get_ydata(), 1.0)
    assert_allclose(curve.get_xydata(), result.table[[name, "rise"]])
    assert star.get_xdata()[0] == pytest.approx(plain.params[name])
    assert band.get_x() == pytest.approx(result.lower)
    assert band.get_x() + band.get_width() == pytest.approx(result.upper)
    assert ax.get_xscale() == scale
    assert legend(ax) == ["threshold at 95 %", "interval", "estimate"]


def test_a_flat_profile_says_so_and_has_another_colour(ax):
    sizes = np.geomspace(5e7, 1e10, 40)
    design = {"params": sizes, "tokens": 20 * sizes}
    runs = simulate_runs("chinchilla", "besiroglu2024", design, rng=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = scaling.fit("chinchilla", runs)
    profile(fit.profile("beta"), ax=ax)
    assert legend(ax)[1] == "not identified: no worse than noise explains"
    assert ax.lines[1].get_color() == style.COLORS[3]
    assert ax.get_ylim()[1] >= 1.5
