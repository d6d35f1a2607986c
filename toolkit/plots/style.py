"""What the pictures share: colours, axis labels with units, log ticks that can be read."""

import re
from collections.abc import Mapping, Sequence
from typing import Literal, cast

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import ListedColormap
from matplotlib.ticker import (
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullLocator,
)

from toolkit.numerics.compiling import FloatArray
from toolkit.tables import COLUMNS

__all__ = [
    "COLORS",
    "FONT",
    "LABELS",
    "MARKERS",
    "SEQUENTIAL",
    "axes",
    "headroom",
    "log_axis",
    "log_ticks",
    "name_points",
    "power_of_ten",
    "symbols",
]

# The "colorblind" palette of seaborn in its order: told apart under every colour deficiency.
COLORS = ("#0173b2", "#de8f05", "#029e73", "#d55e00", "#cc78bc", "#ca9161", "#fbafe4", "#949494")
MARKERS = ("o", "s", "^", "D", "v", "p", "<", ">")  # with colour, so that neither is needed alone
# Sequential, without the light end, which is too faint for points on white.
SEQUENTIAL = ListedColormap(colormaps["viridis"](np.linspace(0.0, 0.85, 256)), "viridis_dark")
FONT = 9.0  # points: legends and notes

# Where a name may stand beside its point, the first free one is taken: right, left, above, ...
SIDES = [np.array(side) for side in ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1))]
GAP = 7.0  # points between a point and its name
PAD = 4.0  # points kept free around a name, for the layout may still shrink the axes
ALIGN_X: Mapping[int, Literal["left", "center", "right"]] = {1: "left", 0: "center", -1: "right"}
ALIGN_Y: Mapping[int, Literal["bottom", "center", "top"]] = {1: "bottom", 0: "center", -1: "top"}

LABELS = {
    "flops": f"training compute ({COLUMNS['flops'].unit})",
    "loss": f"validation loss ({COLUMNS['loss'].unit})",
    "params": "model size (parameters)",
    "tokens": "training data (tokens)",
    "tokens_per_param": "tokens per parameter",
}

_GREEK = ("alpha", "beta", "gamma", "delta", "lambda", "sigma")


def axes(ax: Axes | None) -> Axes:
    """Return the axes to draw on, the current ones by default, without a box around them."""
    ax = plt.gca() if ax is None else ax
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def headroom(ax: Axes, share: float) -> None:
    """Raise the upper limit of y by a share of the axis, on its own scale, to seat a legend."""
    scale = ax.yaxis.get_transform()
    low, high = scale.transform(np.array(ax.get_ylim()))
    ax.set_ylim(top=float(scale.inverted().transform(np.array([high + share * (high - low)]))[0]))


def name_points(ax: Axes, x: FloatArray, y: FloatArray, names: Mapping[int, str]) -> None:
    """Write names beside some points, on a side that is free of other points and names.

    Parameters
    ----------
    ax : Axes
        Drawn already: scales and limits are final.
    x, y : array, shape (n,)
        All points, in data coordinates.
    names : mapping of position to name
        Which points to name.
    """
    to_points = 72.0 / ax.figure.dpi
    spots = ax.transData.transform(np.column_stack([x, y])) * to_points
    frame = np.array(ax.get_window_extent().get_points()) * to_points
    taken: list[FloatArray] = []
    for row, name in names.items():
        size = np.array([0.62 * len(name), 1.2]) * FONT  # mean width of a letter, line height
        boxes = [spots[row] + side * (GAP + size / 2) - size / 2 for side in SIDES]
        free = [_is_free(box - PAD, box + size + PAD, spots, taken, frame) for box in boxes]
        best = int(np.argmax(free))
        taken.append(np.array([boxes[best], boxes[best] + size]))
        side = SIDES[best]
        ax.annotate(
            name,
            (x[row], y[row]),
            xytext=tuple(GAP * side),
            textcoords="offset points",
            ha=ALIGN_X[side[0]],
            va=ALIGN_Y[side[1]],
            fontsize=FONT,
            color="0.2",
        )


def _is_free(
    low: FloatArray,
    high: FloatArray,
    spots: FloatArray,
    taken: list[FloatArray],
    frame: FloatArray,
) -> bool:
    """Tell whether a box lies in the frame and touches neither points nor boxes."""
    inside = (low >= frame[0]).all() and (high <= frame[1]).all()
    hit = ((spots > low) & (spots < high)).all(axis=1).any()
    met = any((low < other[1]).all() and (high > other[0]).all() for other in taken)
    return bool(inside and not hit and not met)


def power_of_ten(value: float, digits: int = 2) -> str:
    r"""Write a number as people read it: plain below 100,000, else a power of ten in mathtext.

    Examples
    --------
    >>> power_of_ten(500.0), power_of_ten(1e20), power_of_ten(3e9)
    ('500', '$10^{20}$', '$3\\times10^{9}$')
    """
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.5g}"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    mantissa = f"{float(mantissa):g}"
    factor = "" if mantissa == "1" else rf"{mantissa}\times"
    return f"${factor}10^{{{int(exponent)}}}$"


class _ReadableLogLocator(LogLocator):
    """Powers of ten where the axis spans several; between them, few and round values."""

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        vmin, vmax = min(vmin, vmax), max(vmin, vmax)
        decades = np.log10(vmax / vmin)
        if decades < 0.7:
            ticks: npt.ArrayLike = MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(vmin, vmax)
        else:
            few = (1.0,) if decades >= 2 else (1.0, 2.0, 5.0)
            self.set_params(subs=few if decades >= 1.2 else (1.0, 2.0, 3.0, 5.0))
            ticks = super().tick_values(vmin, vmax)
        return cast(Sequence[float], np.asarray(ticks)[np.asarray(ticks) > 0])

    def nonsingular(self, vmin: float, vmax: float) -> tuple[float, float]:
        low, high = super().nonsingular(vmin, vmax)
        # Runs of one budget differ in the last digit only, which is no range for an axis.
        return (low / 2, high * 2) if high < low * (1 + 1e-9) else (low, high)


def log_axis(ax: Axes, which: Literal["x", "y"]) -> None:
    """Make an axis logarithmic, with ticks as `log_ticks` sets them."""
    if which == "x":
        ax.set_xscale("log")
        log_ticks(ax.xaxis)
    else:
        ax.set_yscale("log")
        log_ticks(ax.yaxis)


def log_ticks(axis: Axis) -> None:
    """Give a logarithmic axis few ticks that carry their value, and none that do not."""
    axis.set_major_locator(_ReadableLogLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: power_of_ten(value)))
    axis.set_minor_locator(NullLocator())


def symbols(text: str) -> str:
    r"""Turn names of Greek letters and powers of a plain text into mathtext.

    Examples
    --------
    >>> symbols("alpha"), symbols("params^alpha")
    ('$\\alpha$', 'params$^{\\alpha}$')
    """
    names = "|".join(_GREEK)
    text = re.sub(rf"\^({names})\b", r"$^{\\\1}$", text)
    return re.sub(rf"(?<!\\)\b({names})\b", r"$\\\1$", text)
