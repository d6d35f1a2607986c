"""Residuals and the bootstrap cloud: what is drawn is what the fit holds."""

import dataclasses

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from toolkit.errors import DataError
from toolkit.plots import bootstrap_cloud, residuals


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize(
    ("by", "label"),
    [
        ("flops", "training compute (FLOPs)"),
        ("params", "model size (parameters)"),
        ("tokens", "training data (tokens)"),
    ],
)
def test_residual_points_are_percent_of_the_fitted_loss(grouped, ax, by, label):
    assert residuals(grouped, by, ax=ax) is ax
    runs = grouped.runs
    x = 6 * runs["params"] * runs["tokens"] if by == "flops" else runs[by]
    fitted = grouped.predict(runs["params"], runs["tokens"])["loss"]
    assert_allclose(
        ax.collections[0].get_offsets(),
        np.column_stack([x, 100 * (runs["loss"] / fitted - 1)]),
        rtol=1e-9,
    )
    assert (ax.get_xlabel(), ax.get_ylabel()) == (label, "residual (% of the fitted loss)")
    assert ax.get_xscale() == "log"
    assert_array_equal(ax.lines[0].get_ydata(), [0.0, 0.0])


def test_huber_threshold_is_shaded_and_named(grouped, ax):
    residuals(grouped, ax=ax)
    (band,) = ax.patches
    corners = band.get_corners()[:, 1]
    assert_allclose([corners.min(), corners.max()], 100 * np.expm1([-1e-3, 1e-3]))
    assert labels(ax) == ["Huber threshold, ±0.1 %: residuals inside count squared"]


def test_squared_loss_has_no_threshold(plain, ax):
    residuals(plain, ax=ax)
    assert not ax.patches
    assert ax.get_legend() is None


@pytest.mark.parametrize("mark", [0, 1, 4])
def test_largest_residuals_are_ringed_and_named(grouped, plain, ax, mark):
    residuals(plain, mark=mark, ax=ax)
    largest = np.expm1(plain.residuals).abs().sort_values(ascending=False).index[:mark]
    assert [text.get_text() for text in ax.texts] == [f"row {row}" for row in largest]
    assert_allclose(ax.collections[1].get_offsets()[:, 1], 100 * np.expm1(plain.residuals[largest]))
    other = plt.figure().subplots()
    residuals(grouped, mark=mark, ax=other)
    named = [text.get_text() for text in other.texts]
    order = np.expm1(grouped.residuals).abs().sort_values(ascending=False).index[:mark]
    assert named == [f"run {run}" for run in grouped.runs["run"][order]]


def test_residuals_refuse_what_the_fit_lacks(grouped, size_only, ax):
    with pytest.raises(DataError, match=r"by must be 'flops', 'params' or 'tokens'.*got 'loss'"):
        residuals(grouped, "loss", ax=ax)
    with pytest.raises(DataError, match=r"was fitted \(params\); got 'tokens'"):
        residuals(size_only, "tokens", ax=ax)
    with pytest.raises(DataError, match="0 or more; got -1"):
        residuals(grouped, mark=-1, ax=ax)
    assert not ax.has_data()


def test_cloud_is_the_draws_with_the_estimate(grouped, ax):
    assert bootstrap_cloud(grouped, "A", "alpha", ax=ax) is ax
    assert_allclose(ax.collections[0].get_offsets(), grouped.draws[["A", "alpha"]])
    assert_allclose(np.ravel(ax.lines[-1].get_data()), grouped.params[["A", "alpha"]].to_numpy())
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")
    assert ax.get_xlabel() == (
        "A: size term at one parameter\n(nats per token · params$^{\\alpha}$)"
    )
    assert ax.get_ylabel() == "$\\alpha$: exponent of size"


def test_ridge_is_the_principal_axis_of_the_standardised_draws(grouped, ax):
    bootstrap_cloud(grouped, "A", "alpha", ax=ax)
    ridge = np.column_stack(ax.lines[0].get_data())
    ridge[:, 0] = np.log(ridge[:, 0])
    draws = grouped.draws[["A", "alpha"]].to_numpy(copy=True)
    draws[:, 0] = np.log(draws[:, 0])
    scaled = (draws - draws.mean(axis=0)) / draws.std(axis=0)
    first = np.linalg.svd(scaled, full_matrices=False)[2][0]
    ends = (ridge - draws.mean(axis=0)) / draws.std(axis=0)
    assert_allclose(ends @ [first[1], -first[0]], 0, atol=1e-9)  # both ends lie on the axis
    along = scaled @ first
    assert_allclose(np.sort(ends @ first), [along.min(), along.max()])
    correlation = np.corrcoef(draws.T)[0, 1]
    assert f"ridge, correlation {correlation:+.3f}" in labels(ax)


def test_unrelated_parameters_have_no_ridge(grouped, ax):
    generator = np.random.default_rng(0)
    theta = grouped.theta + 0.01 * generator.standard_normal((200, 5))
    loose = dataclasses.replace(grouped.bootstrap, theta=theta, certified=np.ones(200, dtype=bool))
    bootstrap_cloud(dataclasses.replace(grouped, bootstrap=loose), "alpha", "beta", ax=ax)
    assert not any("ridge" in label for label in labels(ax))
    correlation = np.corrcoef(theta[:, 3:].T)[0, 1]
    assert f"correlation {correlation:+.3f}".replace("-", "\N{MINUS SIGN}") in labels(ax)


def test_parameter_that_never_varies_has_no_correlation(grouped, ax):
    theta = grouped.bootstrap.theta.copy()
    theta[:, 4] = 0.0
    pinned = dataclasses.replace(grouped.bootstrap, theta=theta)
    bootstrap_cloud(dataclasses.replace(grouped, bootstrap=pinned), "alpha", "beta", ax=ax)
    assert "no correlation: one of them never varies" in labels(ax)


def test_uncertified_draws_are_marked_apart(grouped, ax):
    certified = np.ones(100, dtype=bool)
    certified[[3, 50]] = False
    doubtful = dataclasses.replace(grouped.bootstrap, certified=certified)
    bootstrap_cloud(dataclasses.replace(grouped, bootstrap=doubtful), "B", "beta", ax=ax)
    draws = grouped.draws[["B", "beta"]].to_numpy()
    assert_allclose(ax.collections[0].get_offsets(), draws[certified])
    assert_allclose(ax.collections[1].get_offsets(), draws[~certified])
    assert labels(ax)[:2] == ["98 resamples", "2 without a certified optimum"]


def test_cloud_refuses_unknown_parameters_and_fits_without_bootstrap(grouped, plain, ax):
    with pytest.raises(DataError, match="two of the parameters A, B, E, alpha, beta; got 'A', 'g'"):
        bootstrap_cloud(grouped, "A", "g", ax=ax)
    with pytest.raises(DataError, match="two of the parameters"):
        bootstrap_cloud(grouped, "A", "A", ax=ax)
    with pytest.raises(DataError, match="fit with bootstrap=1000"):
        bootstrap_cloud(plain, ax=ax)
    assert not ax.has_data()


@pytest.mark.parametrize("draw", [residuals, bootstrap_cloud])
def test_default_is_the_current_axes_and_no_figure_is_made(grouped, draw):
    first, second = plt.figure().subplots(1, 2)
    plt.sca(first)
    assert draw(grouped) is first
    draw(grouped, ax=second)
    assert len(plt.get_fignums()) == 1
