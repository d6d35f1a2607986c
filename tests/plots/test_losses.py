"""Loss against compute and against size: what is drawn is what the fit holds."""

import dataclasses

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.legend import Legend
from numpy.testing import assert_allclose

from toolkit.errors import DataError
from toolkit.plots import isoflop, loss_vs_compute


def compute(fit):
    return (6 * fit.runs["params"] * fit.runs["tokens"]).to_numpy()


def points(ax):
    """Return the scattered points of the axes as one array, sorted."""
    offsets = [np.asarray(c.get_offsets()) for c in ax.collections if isinstance(c, PathCollection)]
    drawn = np.concatenate(offsets)
    return drawn[np.lexsort(drawn.T)]


def sorted_pairs(x, y):
    pairs = np.column_stack([x, y])
    return pairs[np.lexsort(pairs.T)]


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_loss_points_are_the_runs(grouped, ax):
    assert loss_vs_compute(grouped, ax=ax) is ax
    assert_allclose(points(ax), sorted_pairs(compute(grouped), grouped.runs["loss"]))
    assert ax.get_xscale() == "log"
    assert ax.get_xlabel() == "training compute (FLOPs)"
    assert ax.get_ylabel() == "validation loss (nats per token)"


def test_loss_curve_and_band_are_the_optimal_allocation(grouped, ax):
    loss_vs_compute(grouped, ax=ax)
    (line,) = ax.lines
    x, y = line.get_data()
    assert_allclose(x[[0, -1]], [compute(grouped).min(), compute(grouped).max()])
    best = grouped.optimal_allocation(x)
    assert_allclose(y, best["loss"])
    (band,) = [c for c in ax.collections if not isinstance(c, PathCollection)]
    corners = band.get_paths()[0].vertices
    assert_allclose(
        np.unique(corners[:, 1]),
        np.unique(np.concatenate([best["loss_lower"], best["loss_upper"]])),
        rtol=1e-12,
    )
    assert labels(ax) == ["compute-optimal loss of the fit", "95 % interval"]


def test_loss_groups_have_colour_marker_and_budget_in_the_legend(grouped, ax):
    loss_vs_compute(grouped, ax=ax)
    runs = [c for c in ax.collections if isinstance(c, PathCollection)]
    assert [c.get_label() for c in runs] == [
        "$10^{19}$",
        "$10^{20}$",
        "$10^{21}$",
        "other runs",
    ]
    assert [len(c.get_offsets()) for c in runs] == [5, 5, 5, 2]
    assert len({tuple(c.get_edgecolors()[0]) for c in runs}) == 4
    assert len({c.get_paths()[0].vertices.tobytes() for c in runs[:3]}) == 3
    smallest, largest = np.argmin(grouped.runs["params"]), np.argmax(grouped.runs["params"])
    area = {tuple(o): s for c in runs for o, s in zip(c.get_offsets(), c.get_sizes(), strict=True)}
    rows = list(zip(compute(grouped), grouped.runs["loss"], strict=True))
    assert area[rows[smallest]] == min(area.values()) < max(area.values()) == area[rows[largest]]


@pytest.mark.parametrize("draw", [loss_vs_compute, isoflop])
def test_budgets_have_a_legend_of_their_own(grouped, ax, draw):
    draw(grouped, ax=ax)
    (legend,) = [child for child in ax.get_children() if isinstance(child, Legend)][:1]
    assert legend is not ax.get_legend()
    assert legend.get_title().get_text().startswith("budget (FLOPs)")
    assert [text.get_text() for text in legend.get_texts()][:2] == ["$10^{19}$", "$10^{20}$"]


def test_law_without_allocation_has_points_alone(grouped, ax):
    law = dataclasses.replace(grouped.law, allocate=None)
    problem = dataclasses.replace(grouped.problem, law=law)
    loss_vs_compute(dataclasses.replace(grouped, problem=problem), ax=ax)
    assert len(points(ax)) == len(grouped.runs)
    assert not ax.lines


def test_loss_without_groups_is_coloured_by_size(scattered, ax):
    loss_vs_compute(scattered, ax=ax)
    (runs,) = ax.collections  # no bootstrap, no band
    assert_allclose(runs.get_array(), scattered.runs["params"])
    (bar,) = [other for other in ax.figure.axes if other is not ax]
    assert bar.get_ylabel() == "model size (parameters)"
    assert bar.get_yscale() == "log"
    assert labels(ax) == ["compute-optimal loss of the fit"]


def test_isoflop_curves_are_predictions_at_the_budget(grouped, ax):
    assert isoflop(grouped, ax=ax) is ax
    assert_allclose(points(ax), sorted_pairs(grouped.runs["params"], grouped.runs["loss"]))
    curves = [
        line for line in ax.lines if line.get_linestyle() == "-" and len(line.get_xdata()) > 9
    ]
    assert len(curves) == 3
    for curve, budget in zip(curves, [1e19, 1e20, 1e21], strict=True):
        params, loss = curve.get_data()
        expected = grouped.predict(params, budget / (6 * params))["loss"]
        assert_allclose(loss, expected, rtol=1e-12)
    assert ax.get_xlabel() == "model size (parameters)"
    assert ax.get_ylabel() == "validation loss (nats per token)"


def test_isoflop_marks_the_optima_with_their_interval(grouped, ax):
    isoflop(grouped, ax=ax)
    (bars,) = ax.containers
    line, _, (segments,) = bars.lines
    best = grouped.optimal_allocation([1e19, 1e20, 1e21])
    assert_allclose(line.get_xydata().astype(float), best[["params", "loss"]])
    ends = np.array([segment[:, 0] for segment in segments.get_segments()])
    assert_allclose(ends.astype(float), best[["params_lower", "params_upper"]])
    assert labels(ax) == ["best size, 95 % interval"]


def test_isoflop_without_bootstrap_marks_the_optima_alone(plain, ax):
    isoflop(plain, ax=ax)
    assert labels(ax) == ["best size"]
    assert not ax.containers[0].has_xerr


def test_isoflop_refuses_runs_that_share_no_budget(scattered, ax):
    with pytest.raises(DataError, match=r"30 runs do not form isoFLOP groups.*within 2%"):
        isoflop(scattered, ax=ax)
    assert not ax.has_data()


@pytest.mark.parametrize("draw", [loss_vs_compute, isoflop])
def test_law_without_tokens_is_refused(size_only, ax, draw):
    with pytest.raises(DataError, match="needs the columns 'params' and 'tokens'"):
        draw(size_only, ax=ax)


@pytest.mark.parametrize("draw", [loss_vs_compute, isoflop])
def test_default_is_the_current_axes_and_no_figure_is_made(grouped, draw):
    first, second = plt.figure().subplots(1, 2)
    plt.sca(first)
    assert draw(grouped) is first
    draw(grouped, ax=second)
    assert len(plt.get_fignums()) == 1
