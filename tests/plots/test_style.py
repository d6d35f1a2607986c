"""What the pictures share: palette, ticks, labels, and names that do not cover each other."""

import doctest
import importlib

import numpy as np
import pytest
import seaborn as sns
from matplotlib.colors import to_hex
from numpy.testing import assert_allclose

from toolkit import plots
from toolkit.plots import style


def test_colours_are_the_colour_blind_palette():
    palette = [to_hex(color) for color in sns.color_palette("colorblind")]
    assert list(style.COLORS) == palette[:8]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.3, "0.3"),
        (20.0, "20"),
        (50000.0, "50000"),
        (1e5, "$10^{5}$"),
        (1.4e9, r"$1.4\times10^{9}$"),
        (9.999e18, "$10^{19}$"),
        (2e-4, r"$2\times10^{-4}$"),
    ],
)
def test_numbers_are_plain_or_powers_of_ten(value, text):
    assert style.power_of_ten(value) == text


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (1e18, 1e22, [1e18, 1e19, 1e20, 1e21, 1e22]),
        (8e18, 3e20, [1e19, 2e19, 5e19, 1e20, 2e20]),
        (250, 1100, [400, 600, 800, 1000]),
        (4, 45, [5, 10, 20, 30]),
    ],
)
def test_log_ticks_are_few_round_and_labelled(ax, low, high, ticks):
    style.log_axis(ax, "x")
    ax.set_xlim(low, high)
    ax.figure.canvas.draw()
    shown = [t for t in ax.xaxis.get_majorticklocs() if low <= t <= high]
    assert_allclose(shown, ticks)
    assert len(ax.xaxis.get_minorticklocs()) == 0
    assert all(label.get_text() for label in ax.get_xticklabels())


def test_wide_axes_skip_powers(ax):
    style.log_axis(ax, "y")
    ax.set_ylim(1e3, 1e30)
    assert 3 <= len(ax.yaxis.get_majorticklocs()) <= 13


def test_one_budget_alone_makes_an_axis(ax):
    style.log_axis(ax, "x")
    ax.scatter([1e12, 1e12 * (1 + 2e-16)], [1, 2])
    low, high = ax.get_xlim()
    assert low < 1e12 < high


@pytest.mark.parametrize("which", ["linear", "log"])
def test_headroom_adds_a_share_of_the_axis(ax, which):
    ax.set_yscale(which)
    ax.set_ylim(1, 100)
    style.headroom(ax, 0.5)
    assert_allclose(ax.get_ylim(), (1, 149.5) if which == "linear" else (1, 1000))


def test_names_do_not_cover_each_other_or_points(ax):
    generator = np.random.default_rng(5)
    x, y = generator.uniform(size=(2, 25))
    x[:3], y[:3] = [0.5, 0.51, 0.99], [0.5, 0.52, 0.7]
    ax.scatter(x, y)
    ax.set(xlim=(0, 1), ylim=(0, 1))
    style.name_points(ax, x, y, {0: "run 0", 1: "run 1", 2: "run 2"})
    ax.figure.canvas.draw()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert [text.get_text() for text in ax.texts] == ["run 0", "run 1", "run 2"]
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
    spots = ax.transData.transform(np.column_stack([x, y]))
    assert not any(box.contains(*spot) for box in boxes for spot in spots)
    assert all(ax.bbox.contains(*corner) for box in boxes for corner in box.get_points())


def test_names_of_neighbours_go_to_different_sides(ax):
    x, y = np.array([0.5, 0.5]), np.array([0.5, 0.555])  # 12 points apart: room for one line
    ax.scatter(x, y)
    ax.set(xlim=(0, 1), ylim=(0, 1))
    style.name_points(ax, x, y, {0: "run 0", 1: "run 1"})
    assert [text.get_ha() for text in ax.texts] == ["left", "right"]


def test_greek_letters_and_powers_become_mathtext():
    assert style.symbols("beta") == r"$\beta$"
    assert style.symbols("nats · tokens^beta") == r"nats · tokens$^{\beta}$"
    assert style.symbols("E") == "E"


def test_every_picture_is_exported_and_documented():
    assert plots.__all__ == sorted(plots.__all__)
    for name in plots.__all__:
        assert ">>> " in getattr(plots, name).__doc__


@pytest.mark.parametrize("module", ["budgets", "diagnostics", "losses", "style"])
def test_examples_run(module):
    failed, tried = doctest.testmod(importlib.import_module(f"toolkit.plots.{module}"))
    assert tried > 0
    assert failed == 0
