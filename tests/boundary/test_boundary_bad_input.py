"""Tables that cannot support a fit: errors that say what to mend, warnings of thin tails."""

import numpy as np
import pandas as pd
import pytest

from toolkit import boundary
from toolkit.errors import DataError, SmallSampleWarning

FLOPS = np.logspace(21, 25, 200)
SCORES = np.linspace(0.2, 0.7, 200)


def models(**columns):
    return pd.DataFrame({"flops": FLOPS, "score": SCORES} | columns)


def test_percent_among_fractions_is_refused_by_row():
    mixed = [0.31, 0.48, 0.62] * 10 + [31, 48, 62, 71]
    table = {"flops": np.logspace(21, 25, 34), "mmlu": mixed}
    with pytest.raises(DataError, match=r"'mmlu': 4 of 34 rows \(30, 31, 32, 33\) are above 1"):
        boundary.fit(table, "mmlu", tau=0.5)


def test_percent_is_refused():
    with pytest.raises(DataError, match="percent"):
        boundary.fit(models(score=100 * SCORES))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (models().drop(columns="score"), "Missing 'score'"),
        (models().drop(columns="flops"), "Missing 'flops'"),
        (models(flops=FLOPS * 1e-21), "'flops'"),
        (models(flops=-FLOPS), "negative"),
        (models(score=-SCORES), "negative"),
        (models(score=["high"] * 200), "not a number"),
        (models(score=np.full(200, np.nan)), "No row has a value"),
        (models().iloc[:0], "no rows"),
        (
            models(model=["a"] * 2 + [str(k) for k in range(198)]),
            "repeat an earlier row in 'model'",
        ),
    ],
)
def test_bad_tables_are_refused(table, message):
    with pytest.raises(DataError, match=message):
        boundary.fit(table)


def test_a_slip_of_the_unit_in_tokens_is_refused():
    """BTLM-3B is listed with 627 trillion tokens; it saw 627 billion."""
    table = pd.DataFrame({"params": 3e9, "tokens": np.geomspace(1e11, 1e13, 200), "score": SCORES})
    table.loc[7, "tokens"] = 6.27e14
    with pytest.raises(DataError, match=r"'tokens': 1 of 200 rows \(first: 7\)"):
        boundary.fit(table, tau=0.9)
    table.loc[7, "tokens"] = 4e13
    table.loc[7, "params"] = 1e8
    with pytest.raises(DataError, match="per parameter"):
        boundary.fit(table, tau=0.9)


def test_models_without_compute_are_left_out_and_counted():
    table = models()
    table.loc[:9, "flops"] = np.nan
    table.loc[5:14, "score"] = np.nan
    fit = boundary.fit(table, tau=0.5)
    assert fit.models.left_out == 15
    assert "15 rows without score or compute are left out" in fit.summary().text()


@pytest.mark.parametrize("tau", [0.0, 1.0, -0.5, "high", [], [0.9, 1.2], np.nan])
def test_impossible_levels_are_refused(tau):
    with pytest.raises(DataError, match="tau must lie between 0 and 1"):
        boundary.fit(models(), tau=tau)


@pytest.mark.parametrize(
    "limits", [{"floor": -0.1}, {"floor": 0.9, "ceiling": 0.8}, {"ceiling": 2}]
)
def test_impossible_limits_are_refused(limits):
    with pytest.raises(DataError, match="0 <= floor < ceiling <= 1"):
        boundary.fit(models(), **limits)


def test_scores_above_the_ceiling_are_refused():
    with pytest.raises(DataError, match=r"above the ceiling 0\.6"):
        boundary.fit(models(), ceiling=0.6)


def test_a_level_too_high_for_the_sample_is_refused():
    """The curve through 58 models at 0.98 would run above them all."""
    with pytest.raises(DataError, match=r"1\.2 of 58 models .* tau of at most 0\.93"):
        boundary.fit(models().iloc[:58], tau=0.98)


def test_a_handful_of_models_is_refused():
    with pytest.raises(DataError, match="Add models"):
        boundary.fit(models().iloc[:6], tau=0.5)


def test_unequal_weights_count_as_fewer_models():
    weighted = models(weight=np.where(np.arange(200) < 20, 1000.0, 1.0))
    with pytest.raises(DataError, match="of 20 models"):
        boundary.fit(weighted, tau=0.9, weights="weight")


@pytest.mark.parametrize(
    ("rows", "warned"), [(200, "bounds are narrow"), (90, "bounds are not given")]
)
def test_a_thin_tail_is_warned_of(known_models, rows, warned):
    with pytest.warns(SmallSampleWarning, match=warned):
        boundary.fit(known_models(0, n=rows, tau=0.9), tau=0.9)


def test_a_thick_tail_is_not(known_models):
    boundary.fit(known_models(0, n=410, tau=0.9), tau=0.9)


def test_unknown_recipes_and_their_intervals_are_refused():
    with pytest.raises(DataError, match="recipe must be"):
        boundary.fit(models(), tau=0.8, recipe="smooth")
    with pytest.raises(DataError, match="no intervals"):
        boundary.fit(models(), tau=0.8, recipe="prescriptive", bootstrap=10)
