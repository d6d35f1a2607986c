"""Minima of isoFLOP curves and exponents: what is drawn is what the fits found."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from toolkit.datasets.simulate import isoflop_design, simulate_runs
from toolkit.errors import DataError
from toolkit.plots import exponents, isoflop_minima
from toolkit.scaling import fit_envelope, fit_isoflops


@pytest.fixture(scope="module")
def runs():
    """Four budgets with a minimum and one whose sizes lie to one side of it."""
    good = isoflop_design([1e18, 1e19, 1e20, 1e21], np.geomspace(4, 150, 6))
    lopsided = isoflop_design([1e22], np.geomspace(300, 3000, 5))
    design = pd.concat([good, lopsided])
    return simulate_runs("chinchilla", "besiroglu2024", design, noise=0.001, rng=0)


@pytest.fixture(scope="module")
def fitted(runs):
    return fit_isoflops(runs, bootstrap=50, rng=0)


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_runs_curves_and_minima_are_those_of_the_fit(fitted, ax):
    assert isoflop_minima(fitted, ax=ax) is ax
    lines = [line for line in ax.lines if line.get_marker() not in ("*", "|")]  # not the minima
    curves, points = lines[::2], lines[1::2]
    assert len(curves) == len(points) == 5
    order = [*fitted.minima.loc[fitted.minima["used"], "flops"], *fitted.refused["flops"]]
    for flops, curve, point in zip(order, curves, points, strict=True):
        mine = fitted.runs[np.isclose(fitted.runs["budget"], flops)]
        assert_allclose(point.get_xdata(), mine["params"])
        assert_allclose(point.get_ydata(), mine["loss"])
        expected = fitted.curves[np.isclose(fitted.curves["flops"], flops)]
        assert_allclose(curve.get_xdata(), expected["params"])
        assert_allclose(curve.get_ydata(), expected["loss"])
    (container,) = ax.containers
    used = fitted.minima[fitted.minima["used"]]
    assert_allclose(container[0].get_xdata(orig=False), used["params"])
    assert_allclose(container[0].get_ydata(orig=False), used["loss"])
    segments = np.array(container[2][0].get_segments())
    assert_allclose(segments[:, 0, 0], used["params_lower"])
    assert_allclose(segments[:, 1, 0], used["params_upper"])
    assert ax.get_xscale() == "log"


def test_refused_budgets_are_grey_and_counted(fitted, ax):
    isoflop_minima(fitted, ax=ax)
    assert len(fitted.refused) == 1
    grey = [line for line in ax.lines if line.get_color() == "0.6"]
    assert [line.get_linestyle() for line in grey] == [":", "None"]
    assert grey[1].get_marker() == "x"
    assert labels(ax)[-1] == "refused (1)"
    assert labels(ax)[:2] == ["$10^{18}$", "$10^{19}$"]


def test_curve_of_the_interpolant_passes_through_the_runs(runs, ax):
    fit = fit_isoflops(runs, method="akima")
    isoflop_minima(fit, ax=ax)
    curve = fit.curves[np.isclose(fit.curves["flops"], 1e19)]
    mine = fit.runs[np.isclose(fit.runs["budget"], 1e19)].sort_values("params")
    there = np.interp(np.log(mine["params"]), np.log(curve["params"]), curve["loss"])
    assert_allclose(there, mine["loss"], rtol=1e-9)
    assert "95 % interval" not in " ".join(labels(ax))
    lowest = fit.minima[fit.minima["used"]]
    for row in lowest.itertuples():
        near = fit.curves[np.isclose(fit.curves["flops"], row.flops)]["loss"].min()
        assert row.loss <= near * (1 + 1e-12)


def test_an_envelope_has_no_isoflop_curves(ax):
    params, tokens = np.meshgrid(np.geomspace(1e7, 1e10, 13), np.geomspace(1e8, 1e12, 20))
    design = {"params": params.ravel(), "tokens": tokens.ravel(), "run": params.ravel()}
    curves = simulate_runs("chinchilla", "besiroglu2024", design, noise=0.0)
    with pytest.raises(DataError, match="envelope of training curves has no isoFLOP curves"):
        isoflop_minima(fit_envelope(curves), ax=ax)
    assert not ax.has_data()


def test_exponents_are_points_with_the_interval_of_each_fit(fitted, grouped, plain, ax):
    fits = {"minima": fitted, "law": grouped, "no bootstrap": plain}
    assert exponents(fits, published={"law": 0.46}, level=0.8, ax=ax) is ax
    lines, points = ax.lines[0:6:2], ax.lines[1:6:2]
    for fit, line, point in zip((fitted, grouped), lines[:2], points[:2], strict=True):
        row = fit.conf_int(0.8).loc["params_exponent"]
        assert_allclose(line.get_xdata(), row[["lower", "upper"]])
        assert_allclose(point.get_xdata(), [row["estimate"]])
        assert line.get_ydata()[0] == line.get_ydata()[1] == point.get_ydata()[0]
    assert np.isnan(lines[2].get_xdata()).all()
    beta, alpha = plain.params["beta"], plain.params["alpha"]
    assert_allclose(points[2].get_xdata(), [beta / (alpha + beta)])
    (diamond,) = ax.lines[6:]
    assert (diamond.get_xdata(), diamond.get_ydata()) == ([0.46], [1])
    assert [text.get_text() for text in ax.get_yticklabels()] == list(fits)
    assert ax.yaxis_inverted()  # the first on top
    assert labels(ax) == ["estimate, 80 % interval", "published"]


@pytest.mark.parametrize(
    ("fits", "published", "message"),
    [({}, None, "one fit or more"), ({"law": None}, {"lawn": 0.5}, "unknown: lawn")],
)
def test_nothing_to_compare_is_refused(fits, published, message, ax):
    with pytest.raises(DataError, match=message):
        exponents(fits, published=published, ax=ax)


def test_a_law_that_cannot_split_a_budget_is_refused(size_only, ax):
    with pytest.raises(DataError, match="does not say how to split a budget"):
        exponents({"law": size_only}, ax=ax)
