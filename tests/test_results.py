import html
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from toolkit.errors import DataError
from toolkit.results import (
    Interval,
    Summary,
    bootstrap_interval,
    jackknife_interval,
    significant,
)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.34731, "0.3473"),
        (0.99999, "1"),
        (0.0, "0"),
        (1e-4, "0.0001"),
        (9.9e-5, "9.9e-05"),
        (-3e-7, "-3e-07"),
        (2143.4, "2143"),
        (9999.4, "9999"),
        (9999.96, "10000"),
        (-9999.96, "-10000"),
        (123456.0, "123456"),
        (1234567.0, "1.235e+06"),
        (5.7646e23, "5.765e+23"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (math.nan, "not identified"),
    ],
)
def test_numbers_are_short_and_keep_their_digits(value: float, shown: str) -> None:
    assert significant(value) == shown


def test_the_number_of_digits_can_be_chosen() -> None:
    assert significant(math.pi, digits=2) == "3.1"
    assert significant(123.456, digits=2) == "123"


def test_a_percentile_interval_takes_quantiles_of_the_draws() -> None:
    draws = np.random.default_rng(0).permutation(np.arange(101.0))
    interval = bootstrap_interval(50.0, draws, level=0.9)
    assert (interval.lower, interval.upper) == pytest.approx((5.0, 95.0))
    assert interval.width == pytest.approx(90.0)
    assert 5.0 in interval
    assert 95.1 not in interval
    assert (interval.method, interval.unit) == ("percentile bootstrap", "row")


def test_a_basic_interval_reflects_the_draws_about_the_estimate() -> None:
    draws = np.arange(11.0) + 3.0  # biased upwards: quantiles 4 and 12 at 80 %
    interval = bootstrap_interval(5.0, draws, level=0.8, method="basic", unit="run")
    assert (interval.lower, interval.upper) == pytest.approx((-2.0, 6.0))
    assert (interval.method, interval.unit) == ("basic bootstrap", "run")


def test_draws_that_failed_are_left_out_and_not_counted() -> None:
    draws = np.array([1.0, np.nan, 2.0, np.inf, 3.0])
    interval = bootstrap_interval(2.0, draws, level=0.5)
    assert (interval.resamples, interval.lower, interval.upper) == (3, 1.5, 2.5)


@pytest.mark.parametrize(
    ("draws", "options", "said"),
    [
        ([1.0, 2.0], {"level": 95}, "level must lie between 0 and 1, for example 0.95; got 95"),
        ([1.0, 2.0], {"level": 0.0}, "got 0.0"),
        ([1.0, 2.0], {"level": np.nan}, "got nan"),
        ([1.0, 2.0], {"method": "wald"}, "must be 'percentile', 'basic' or 'bca'; got 'wald'"),
        ([1.0, 2.0], {"method": "bca"}, "needs the values without each unit: give left_out"),
        ([1.5, 1.5, np.nan], {}, "All 2 values are 1.5: an interval of no width"),
        ([1.0, np.nan], {}, "at least 2 finite resamples; fit with bootstrap=1000"),
        ([], {}, "at least 2 finite resamples"),
        ([[1.0, 2.0], [3.0, 4.0]], {}, r"one quantity, shape \(resamples,\); got \(2, 2\)"),
    ],
)
def test_an_interval_that_nothing_supports_is_refused(
    draws: list[float], options: dict[str, object], said: str
) -> None:
    with pytest.raises(DataError, match=said):
        bootstrap_interval(1.5, np.array(draws), **options)  # type: ignore[arg-type]


def means_without_each(data: np.ndarray) -> np.ndarray:
    return (data.sum() - data) / (data.size - 1)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_a_bca_interval_is_that_of_scipy(level: float) -> None:
    data = np.random.default_rng(0).exponential(size=25)
    theirs = stats.bootstrap(
        (data,), np.mean, confidence_level=level, method="BCa", n_resamples=999, rng=1
    )
    interval = bootstrap_interval(
        data.mean(),
        theirs.bootstrap_distribution,
        level=level,
        method="bca",
        left_out=means_without_each(data),
    )
    assert (interval.lower, interval.upper) == pytest.approx(
        tuple(theirs.confidence_interval), rel=1e-12
    )
    assert interval.method == "BCa bootstrap"


def test_a_bca_interval_without_bias_and_skew_takes_plain_quantiles() -> None:
    draws, left_out = np.arange(-50.0, 51.0), np.array([-1.0, 0.0, 1.0])
    interval = bootstrap_interval(0.0, draws, level=0.9, method="bca", left_out=left_out)
    assert (interval.lower, interval.upper) == pytest.approx((-45.0, 45.0))


def test_a_bca_interval_stays_within_draws_that_all_lie_on_one_side() -> None:
    draws, left_out = np.arange(1.0, 100.0), np.array([0.0, 0.0, 9.0])
    interval = bootstrap_interval(0.0, draws, method="bca", left_out=left_out)
    assert 1.0 <= interval.lower < interval.upper <= 99.0


def test_a_jackknife_interval_of_a_mean_is_the_interval_of_student() -> None:
    data = np.random.default_rng(2).normal(size=7)
    interval = jackknife_interval(data.mean(), means_without_each(data), level=0.9, unit="run")
    expected = stats.t.interval(0.9, 6, data.mean(), stats.sem(data))
    assert (interval.lower, interval.upper) == pytest.approx(expected, rel=1e-12)
    assert (interval.method, interval.unit, interval.resamples) == ("jackknife", "run", 7)
    with pytest.raises(DataError, match="All 3 values are 2: an interval of no width"):
        jackknife_interval(2.0, np.full(3, 2.0))


@pytest.mark.parametrize(
    ("level", "shown"), [(0.95, "95%"), (0.8, "80%"), (0.975, "97.5%"), (0.999, "99.9%")]
)
def test_an_interval_reads_with_its_own_level(level: float, shown: str) -> None:
    interval = Interval(0.34731, 0.30004, 0.4, level, "percentile bootstrap", "row", 1000)
    assert str(interval) == f"0.3473 ({shown} percentile bootstrap: 0.3 to 0.4)"


def test_an_interval_without_a_number_says_so() -> None:
    interval = Interval(np.nan, -np.inf, np.inf, 0.95, "profile", "row", 0)
    assert str(interval) == "not identified (95% profile: -inf to inf)"
    assert 1.0 in interval


@pytest.fixture
def summary() -> Summary:
    cells = pd.DataFrame({"estimate": ["1.69", "x" * 80]}, index=["E", "A<B"])
    return Summary(
        "Fit of <runs>", [("rows", "240"), ("loss scale", "a & b")], cells, ["mind 1 < 2"]
    )


def test_a_summary_is_a_title_facts_a_table_and_notes(summary: Summary) -> None:
    lines = summary.text().splitlines()
    assert lines[:5] == [
        "Fit of <runs>",
        "=============",
        "rows        240",
        "loss scale  a & b",
        "",
    ]
    assert lines[-2:] == ["", "- mind 1 < 2"]
    assert repr(summary) == summary.text()


def test_a_summary_without_notes_ends_with_its_table(summary: Summary) -> None:
    text = Summary("T", [], summary.table).text()
    assert text.splitlines()[-1].endswith("x" * 80)
    assert "<ul>" not in Summary("T", [], summary.table)._repr_html_()


def test_text_and_page_hold_every_cell_whole(summary: Summary) -> None:
    page = summary._repr_html_()
    for text in ("Fit of <runs>", "a & b", "mind 1 < 2", "A<B", "x" * 80):
        assert text in summary.text()
        assert html.escape(text) in page
    assert "<runs>" not in page


def test_long_tables_are_shown_whole() -> None:
    long = Summary("T", [], pd.DataFrame({"value": range(200)}))
    assert " 199" in long.text()
    assert "<td>199</td>" in long._repr_html_()
