"""The allocation picture: lines and bands are the result's, and extrapolation is shown."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose

from toolkit.errors import DataError, ExtrapolationWarning
from toolkit.plots import allocation
from toolkit.scaling import CHINCHILLA

BUDGETS = np.geomspace(1e17, 1e25, 17)


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def edges(fit):
    flops = 6 * fit.runs["params"] * fit.runs["tokens"]
    return flops.min(), flops.max()


@pytest.mark.filterwarnings("ignore::toolkit.errors.ExtrapolationWarning")
@pytest.mark.parametrize("show", ["params", "tokens", "tokens_per_param"])
def test_lines_and_bands_are_the_optimal_allocation(grouped, ax, show):
    assert allocation(grouped, BUDGETS[::-1], show=show, ax=ax) is ax
    assert len(ax.lines) == len(ax.collections) == 3
    for line, band in zip(ax.lines, ax.collections, strict=True):
        x, y = line.get_data()
        best = grouped.optimal_allocation(x)
        assert_allclose(y, best[show])
        corners = band.get_paths()[0].vertices
        for budget, low, high in zip(x, best[f"{show}_lower"], best[f"{show}_upper"], strict=True):
            there = corners[corners[:, 0] == budget, 1]
            assert_allclose([there.min(), there.max()], [low, high])
    assert set(BUDGETS) <= set(np.concatenate([line.get_xdata() for line in ax.lines]))
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.get_xlabel() == "training compute (FLOPs)"


def test_axis_names_the_quantity_and_its_unit(grouped, ax):
    assert allocation(grouped, BUDGETS, ax=ax).get_ylabel() == "best model size (parameters)"
    allocation(grouped, BUDGETS, show="tokens", ax=ax)
    assert ax.get_ylabel() == "best training data (tokens)"
    allocation(grouped, BUDGETS, show="tokens_per_param", ax=ax)
    assert ax.get_ylabel() == "best tokens per parameter"


def test_beyond_the_runs_the_line_is_dashed_and_the_band_hatched(grouped, ax):
    allocation(grouped, BUDGETS, ax=ax)
    low, high = edges(grouped)
    (span,) = ax.patches
    assert_allclose([span.get_x(), span.get_x() + span.get_width()], [low, high])
    for line, band in zip(ax.lines, ax.collections, strict=True):
        x = line.get_xdata()
        inside = x.min() >= low and x.max() <= high
        assert line.get_linestyle() == ("-" if inside else "--")
        assert bool(band.get_hatch()) is not inside
        assert inside or x.max() <= low or x.min() >= high
    assert labels(ax) == ["compute of the fitted runs", "fit, 95 % interval", "extrapolated"]


def test_extrapolation_is_shown_and_not_warned_of(grouped, ax, recwarn):
    with pytest.warns(ExtrapolationWarning):
        grouped.optimal_allocation(BUDGETS)
    recwarn.clear()
    allocation(grouped, BUDGETS, ax=ax)
    assert not recwarn.list


def test_budgets_inside_the_runs_are_not_called_extrapolated(plain, ax):
    allocation(plain, [2e19, 5e20], ax=ax)
    assert len(ax.lines) == 1
    assert not ax.collections  # no bootstrap, no band
    assert labels(ax) == ["compute of the fitted runs", "fit"]


def test_budgets_all_beyond_the_runs_are_called_extrapolated(plain, ax):
    allocation(plain, [1e23, 1e24], ax=ax)
    assert [line.get_linestyle() for line in ax.lines] == ["--"]
    assert labels(ax) == ["compute of the fitted runs", "extrapolated"]


def test_presets_are_drawn_from_their_published_values(grouped, ax):
    names = ["hoffmann2022-unrounded", "besiroglu2024"]
    allocation(grouped, BUDGETS, show="tokens_per_param", presets=names, ax=ax)
    assert labels(ax)[-2:] == names
    for name, line in zip(names, ax.lines[-2:], strict=True):
        x, y = line.get_data()
        assert_allclose(x, BUDGETS)
        params, tokens = CHINCHILLA.allocate(CHINCHILLA.values(name), x / 6)
        assert_allclose(y, tokens / params)
    assert len({line.get_linestyle() for line in ax.lines[-2:]}) == 2
    # Hoffmann et al. 2022: 70B parameters and 1.4T tokens were near the optimum of approach 3.
    x, y = ax.lines[-2].get_data()
    at_chinchilla = np.exp(np.interp(np.log(5.88e23), np.log(x), np.log(y)))
    assert 50 < at_chinchilla < 70


@pytest.mark.parametrize(
    ("flops", "options", "message"),
    [
        ([1e20], {}, "two or more budgets"),
        ([1e20, 1e20], {}, "two or more budgets"),
        ([1e20, -1.0], {}, "flops.*negative"),
        ([1e20, np.nan], {}, "flops.*NaN"),
        ([1e20, 1e21], {"show": "loss"}, "show must be one of 'params', .*got 'loss'"),
        ([1e20, 1e21], {"presets": ["kaplan"]}, "no preset 'kaplan'"),
        ([1e20, 1e21], {"presets": "kaplan"}, "no preset 'kaplan'"),
    ],
)
def test_bad_input_is_refused_before_anything_is_drawn(grouped, ax, flops, options, message):
    with pytest.raises(DataError, match=message):
        allocation(grouped, flops, ax=ax, **options)
    assert not ax.has_data()


def test_law_that_cannot_split_a_budget_is_refused(size_only, ax):
    with pytest.raises(DataError, match="needs the columns 'params' and 'tokens'"):
        allocation(size_only, BUDGETS, ax=ax)


def test_default_is_the_current_axes_and_no_figure_is_made(grouped):
    first, second = plt.figure().subplots(1, 2)
    plt.sca(first)
    assert allocation(grouped, BUDGETS) is first
    allocation(grouped, BUDGETS, ax=second)
    assert len(plt.get_fignums()) == 1
