"""The boundary picture: what it draws, what it says."""

import numpy as np
import pandas as pd
import pytest

from toolkit import boundary, plots
from toolkit.errors import SmallSampleWarning


def models(n=1000):
    rng = np.random.default_rng(0)
    flops = 10 ** rng.uniform(21, 25, n)
    best = boundary.Curve(0.25, 0.6, 23.0, 2.0).attainable(flops)
    return pd.DataFrame({"flops": flops, "mmlu": 0.25 + (best - 0.25) * rng.beta(4, 2, n)})


@pytest.fixture(scope="module")
def fitted():
    return boundary.fit(models(), "mmlu", tau=[0.5, 0.9], floor=0.25, bootstrap=50, rng=0)


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_models_curves_and_bands_are_drawn(ax, fitted):
    assert plots.boundary(fitted, ax=ax) is ax
    points = ax.collections[0].get_offsets().data
    np.testing.assert_allclose(np.sort(points[:, 0]), fitted.models.flops)
    for line, tau in zip(ax.lines, fitted.tau, strict=False):
        expected = fitted.attainable(line.get_xdata())
        np.testing.assert_allclose(line.get_ydata(), expected.loc[expected["tau"] == tau, "score"])
    assert len(ax.collections) == 3  # dots and two bands


def test_the_legend_counts_the_models_beyond(ax, fitted):
    plots.boundary(fitted, ax=ax)
    assert labels(ax) == [
        "1,000 models",
        "tau 0.5: 500 models above, 95 % band",
        "tau 0.9: 100 models above, 95 % band",
    ]


def test_ceiling_and_floor_are_marked_and_no_tick_lies_beyond(ax, fitted):
    plots.boundary(fitted, ax=ax)
    assert [text.get_text() for text in ax.texts] == ["ceiling", "floor"]
    assert max(ax.get_yticks()) <= 1.0
    assert ax.get_ylabel() == "mmlu (fraction)"
    assert ax.get_xscale() == "log"


def test_a_thin_tail_has_no_band_and_says_so(ax):
    with pytest.warns(SmallSampleWarning):
        fit = boundary.fit(models(150), "mmlu", tau=0.95, bootstrap=20, rng=0)
    plots.boundary(fit, ax=ax)
    assert labels(ax)[1] == "tau 0.95: 8 models above, too few for a band"
    assert len(ax.collections) == 1
    assert [text.get_text() for text in ax.texts] == ["ceiling"]
