"""Pictures of validation: what is drawn is what the results hold."""

import dataclasses

import numpy as np
import pytest
from matplotlib.colors import to_rgba
from numpy.testing import assert_allclose

from toolkit import scaling
from toolkit.datasets.simulate import isoflop_design, simulate_runs
from toolkit.errors import DataError
from toolkit.plots import comparison, extrapolation_error, held_out, leverage_map, style


@pytest.fixture(scope="module")
def some_runs():
    """Five budgets of eight sizes: enough that no resample of the smaller ones is too small."""
    groups = isoflop_design(np.geomspace(1e19, 1e21, 5), np.geomspace(4, 200, 8))
    return simulate_runs("chinchilla", "besiroglu2024", groups, rng=0)


@pytest.fixture(scope="module")
def validation(some_runs):
    return scaling.hold_out("chinchilla", some_runs, bootstrap=50, rng=0, above=5e20)


@pytest.fixture(scope="module")
def compared(some_runs):
    laws = {"law": "chinchilla", "unknown column": ("chinchilla", {"weights": "weight"})}
    return scaling.compare(laws, some_runs, above=5e20, bootstrap=20, rng=0)


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_held_out_runs_lie_at_prediction_and_observation(validation, ax):
    assert held_out(validation, ax=ax) is ax
    held = validation.predictions
    points = ax.collections[-1]
    assert_allclose(points.get_offsets(), held[["predicted", "observed"]].to_numpy(dtype=float))
    segments = np.array(ax.collections[0].get_segments())
    assert_allclose(segments[:, 0, 0], held["lower"])
    assert_allclose(segments[:, 1, 0], held["upper"])
    assert legend(ax)[0].startswith(f"chinchilla: {held['covered'].sum()} of {len(held)} inside")
    filled = [tuple(face) == to_rgba(style.COLORS[0]) for face in points.get_facecolors()]
    assert filled == (~held["covered"]).tolist()


def test_without_bootstrap_there_are_no_intervals(some_runs, ax):
    held_out(scaling.hold_out("chinchilla", some_runs, above=5e20), ax=ax)
    assert len(ax.collections) == 1
    assert legend(ax)[0] == "chinchilla"


def test_extrapolation_error_is_drawn_at_the_mean_distance_of_its_bin(some_runs, ax):
    rolling = scaling.backtest("chinchilla", some_runs, levels=[2e20])
    extrapolation_error(rolling, width=0.5, ax=ax)
    table = rolling.by_decades(0.5).loc["chinchilla"]
    assert_allclose(ax.lines[0].get_xdata(), table["decades"])
    assert_allclose(ax.lines[0].get_ydata(), table["error"])
    assert ax.get_yscale() == "log"
    assert ax.get_xlabel().startswith("powers of ten of training compute")


def test_comparison_draws_errors_and_bounds_and_keeps_what_has_none(compared, ax):
    comparison(compared, ax=ax)
    table = compared.table
    assert [tick.get_text() for tick in ax.get_yticklabels()] == table.index.tolist()
    dots = [line for line in ax.lines if line.get_markersize() == 8 and len(line.get_xdata())]
    assert_allclose([line.get_xdata()[0] for line in dots], table["held_out"])
    bars = [line for line in ax.lines if line.get_linewidth() == 2 and len(line.get_xdata())]
    row = table[table["verdict"] == "worse"].iloc[0]
    upper = table["held_out"].min() + row["upper"]
    assert any(np.isclose(line.get_xdata()[1], upper) for line in bars)
    assert [text.get_text() for text in ax.texts] == ["no held-out prediction"]


def test_leverage_map_colours_residuals_and_rings_the_most_influential(plain, ax):
    structure = scaling.residual_structure(plain, width=1.0, rng=0)
    leverage_map(structure, ax=ax)
    runs = plain.runs
    points, rings = ax.collections[:2]
    assert_allclose(points.get_offsets()[:, 0], 6 * runs["params"] * runs["tokens"])
    assert_allclose(points.get_offsets()[:, 1], runs["params"])
    assert_allclose(points.get_array(), 100 * np.expm1(plain.residuals))
    first = structure.row_influence["params_exponent"].abs().nlargest(8).index
    assert set(rings.get_offsets()[:, 1]) == set(runs["params"].iloc[first])


def test_leverage_map_of_another_law_is_refused(plain, ax, size_only):
    structure = scaling.residual_structure(plain, width=1.0, rng=0)
    with pytest.raises(DataError, match="size and data"):
        leverage_map(dataclasses.replace(structure, fit=size_only), ax=ax)


@pytest.mark.parametrize("draw", [held_out, extrapolation_error])
def test_nothing_to_draw_is_said(some_runs, ax, draw):
    empty = scaling.backtest(("chinchilla", {"weights": "weight"}), some_runs, levels=[2e20])
    with pytest.raises(DataError, match="no prediction"):
        draw(empty, ax=ax)
