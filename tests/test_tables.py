import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit import tables
from toolkit.errors import DataError


def runs(**columns: object) -> pd.DataFrame:
    good = {"params": [1e8, 2e8, 4e8], "tokens": [2e9, 4e9, 8e9], "loss": [3.1, 2.9, 2.7]}
    return pd.DataFrame(good | columns, index=["a", "b", "c"])


def refused(table: object, *required: str) -> str:
    """Return the message with which `check` refuses a table."""
    with pytest.raises(DataError) as raised:
        tables.check(table, required or ["params", "tokens", "loss"])  # type: ignore[arg-type]
    return str(raised.value)


# Good tables -------------------------------------------------------------------------------------


def test_a_good_table_comes_back_as_float64_with_a_fresh_index() -> None:
    clean = tables.check(runs(run=["x", "y", "y"]), ["run", "params", "loss"], optional=["seed"])
    assert list(clean) == ["run", "params", "loss"]
    assert list(clean.index) == [0, 1, 2]
    assert clean["params"].tolist() == [1e8, 2e8, 4e8]
    assert str(clean["params"].dtype) == "float64"
    assert clean["run"].tolist() == ["x", "y", "y"]


def test_optional_columns_are_checked_when_they_are_there() -> None:
    assert "flops" in tables.check(runs(flops=[1e18, 2e18, 3e18]), ["loss"], optional=["flops"])
    with pytest.raises(DataError, match=r"'flops': 1 of 3 rows \(b\) are negative"):
        tables.check(runs(flops=[1e18, -2e18, 3e18]), ["loss"], optional=["flops"])


def test_the_input_is_left_as_it_was() -> None:
    table = runs(params=[10**8, 2 * 10**8, 4 * 10**8])
    before = table.copy()
    tables.check(table, ["params"])
    tables.to_counts(table, params="millions")
    pd.testing.assert_frame_equal(table, before)


@pytest.mark.parametrize(
    "values",
    [
        np.array([10**8, 2 * 10**9]),
        np.array([1e8, 2e9], dtype=np.float32),
        np.array([10**8, 2 * 10**9], dtype=np.uint64),
        pd.Series([10**8, 2 * 10**9], dtype="Int64"),
        pd.Series([1e8, 2e9], dtype="Float64"),
        pd.Series([10**8, 2 * 10**9], dtype="int64[pyarrow]"),
        pd.Series([1e8, 2e9], dtype="category"),
        pd.Series(
            [
                10**8,
                2.0e9,
            ],
            dtype=object,
        ),
        pd.Series([Decimal("1e8"), Fraction(2 * 10**9)], dtype=object),
        pd.Series(pd.arrays.SparseArray([1e8, 2e9])),
        (10**8, 2e9),
        range(10**8, 21 * 10**8, 19 * 10**8),
    ],
)
def test_numbers_of_every_make_are_taken(values: object) -> None:
    clean = tables.check({"params": values}, ["params"])  # type: ignore[dict-item]
    assert clean["params"].to_numpy() == pytest.approx([1e8, 2e9], rel=1e-7)
    assert str(clean["params"].dtype) == "float64"


def test_counts_beyond_64_bits_are_kept() -> None:
    clean = tables.check({"flops": [10**25, 3 * 10**25]}, ["flops"])
    assert clean["flops"].tolist() == [1e25, 3e25]


def test_the_rows_of_a_series_are_taken_in_order_not_by_label() -> None:
    table = {"params": pd.Series([1e8, 2e8], index=[1, 0]), "loss": pd.Series([3.0, 2.0])}
    assert tables.check(table, ["params", "loss"]).to_numpy().tolist() == [[1e8, 3.0], [2e8, 2.0]]


# Shape -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", [None, [1, 2], "runs.csv", np.ones(3), pd.Series([1.0])])
def test_what_is_no_table_is_named(table: object) -> None:
    assert refused(table).startswith("A table is a pandas DataFrame or a mapping of columns, not ")


@pytest.mark.parametrize("values", [5e9, "7e9", None, {1e9}, np.array(1e9), np.ones((2, 2))])
def test_what_is_no_column_is_named(values: object) -> None:
    said = refused({"params": values}, "params")
    assert said.startswith("Column 'params' is of type ")
    assert "one value per row" in said


def test_columns_of_different_lengths_are_told_with_their_lengths() -> None:
    said = refused({"params": [1e8, 2e8], "loss": [3.0]}, "params")
    assert said == "The columns have different lengths: {'params': 2, 'loss': 1}."


def test_missing_columns_come_with_their_meaning_and_a_hint() -> None:
    said = refused(pd.DataFrame({"N": [1e8], "D": [2e9], "val_loss": [3.0]}))
    assert said.startswith(
        "Missing 'params', 'tokens', 'loss'. The table has 'N', 'D', 'val_loss'."
    )
    assert "tables.rename(table, params='N', tokens='D', loss='val_loss')" in said
    assert "tokens: tokens seen in training (count)" in said


def test_missing_columns_without_a_known_name_come_without_a_hint() -> None:
    said = refused(pd.DataFrame({"size": [1e8]}), "params", "my_column")
    assert "Missing 'params', 'my_column'." in said
    assert "rename" not in said


def test_doubled_columns_are_named() -> None:
    table = pd.DataFrame([[1e8, 2e8]], columns=["params", "params"])
    assert refused(table, "params") == "Column names appear twice: 'params'. Rename or drop one."


def test_empty_and_short_tables_are_refused() -> None:
    assert refused(runs().iloc[:0]) == "The table has no rows."
    assert refused({"params": []}, "params") == "The table has no rows."
    with pytest.raises(DataError, match="has 3 rows; at least 5 are needed"):
        tables.check(runs(), ["params"], min_rows=5)


# Values ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "problem", "mend"),
    [
        (np.nan, "are NaN", "fill in or drop the rows"),
        (np.inf, "are infinite", "correct or drop the rows"),
        (-np.inf, "are infinite", "correct or drop the rows"),
        (-1.0, "are negative (first value -1)", "a count is positive"),
        (0.0, "are zero (first value 0)", "a count is positive; drop the rows"),
        (70.0, "outside 100 to 1e+15 count (first value 70)", "tables.to_counts(table, column="),
        (
            7e19,
            "outside 100 to 1e+15 count (first value 7e+19)",
            "tables.to_counts(table, column=",
        ),
    ],
)
def test_bad_counts_name_column_row_and_mend(bad: float, problem: str, mend: str) -> None:
    said = refused(runs(params=[1e8, bad, 4e8]))
    assert said.startswith("Column 'params': 1 of 3 rows (b) ")
    assert problem in said
    assert mend in said


def test_a_product_that_overflowed_is_recognised() -> None:
    flops = 6 * np.array([816341493, 10**8]) * np.array([1897148783, 2 * 10**9])
    said = refused({"flops": flops}, "flops")
    assert "rows (0) are negative (first value -9.15442e+18)" in said
    assert "integer overflow: use float64 before multiplying" in said


def test_parameters_in_millions_are_an_implausible_magnitude() -> None:
    said = refused(runs(params=[70, 160, 410]))
    assert "1 of 3 rows (a) are outside 100 to 1e+15 count" in said


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (0.0, "not positive (first value 0)"),
        (-0.2, "not positive (first value -0.2)"),
        (38.5, "outside 0.0001 to 30 nats per token (first value 38.5)"),
        (np.nan, "NaN"),
    ],
)
def test_bad_losses_are_refused(bad: float, problem: str) -> None:
    said = refused(runs(loss=[3.1, 2.9, bad]))
    assert said.startswith("Column 'loss': 1 of 3 rows (c) are ")
    assert problem in said


def test_perplexity_is_told_from_loss() -> None:
    assert "not perplexity" in refused(runs(loss=[67.5, 43.6, 31.2]))


@pytest.mark.parametrize(
    ("scores", "rows", "problem"),
    [
        ([31.0, 48.0, 62.0], "3 of 3 rows (a, b, c)", "above 1 (percent?) (first value 31)"),
        ([0.31, 48.0, 0.62], "1 of 3 rows (b)", "above 1 beside fractions (first value 48)"),
        ([0.31, 0.48, 1.01], "1 of 3 rows (c)", "above 1 beside fractions (first value 1.01)"),
        ([0.31, 0.48, 150.0], "1 of 3 rows (c)", "outside 0 to 1 fraction (first value 150)"),
        ([0.31, -0.1, 0.62], "1 of 3 rows (b)", "negative (first value -0.1)"),
        ([0.31, np.nan, 0.62], "1 of 3 rows (b)", "NaN"),
    ],
)
def test_scores_are_fractions(scores: list[float], rows: str, problem: str) -> None:
    said = refused(runs(score=scores), "score")
    assert said.startswith(f"Column 'score': {rows} are {problem}")


def test_percent_is_mended_in_every_row_alike() -> None:
    said = refused(runs(score=[0.31, 48.0, 0.62]), "score")
    assert said.endswith("divide percent by 100, in every row alike.")


def test_zero_and_one_are_scores() -> None:
    assert tables.check({"score": [0, 1, 0.5]}, ["score"])["score"].tolist() == [0.0, 1.0, 0.5]


@pytest.mark.parametrize(
    ("values", "rows", "first"),
    [
        (["7e9", "8e9"], "2 of 2 rows (0, 1)", "'7e9'"),
        (pd.Series(["7e9", None], dtype="str"), "1 of 2 rows (0)", "'7e9'"),
        ([7e9, "8B"], "1 of 2 rows (1)", "'8B'"),
        ([True, 2e9], "1 of 2 rows (0)", "True"),
        ([np.True_, 2e9], "1 of 2 rows (0)", "np.True_"),
        (pd.Series(["7e9", "8e9"], dtype="category"), "2 of 2 rows (0, 1)", "'7e9'"),
        ([1e9 + 1j, 2e9], "1 of 2 rows (0)", "(1000000000+1j)"),
        ([b"7e9", 2e9], "1 of 2 rows (0)", "b'7e9'"),
        ([datetime.date(2024, 1, 1), 2e9], "1 of 2 rows (0)", "datetime.date(2024, 1, 1)"),
        ([[1e9], 2e9], "1 of 2 rows (0)", "[1000000000.0]"),
    ],
)
def test_what_is_no_number_is_named_and_not_converted(
    values: object, rows: str, first: str
) -> None:
    table = {"params": pd.Series(values, dtype=object) if isinstance(values, list) else values}
    said = refused(table, "params")
    assert said == (
        f"Column 'params': {rows} are not a number (first value {first}). "
        f"Mend: convert it (7e9, not '7B') or drop the rows."
    )


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, False], "bool"),
        (pd.Series([True, None], dtype="boolean"), "boolean"),
        (np.array([1e9 + 1j]), "complex128"),
        (pd.to_datetime(["2024-01-01"]), "datetime64"),
        (pd.to_timedelta([10**6], unit="s"), "timedelta64"),
        (pd.period_range("2024", periods=2, freq="D"), "period"),
        (pd.interval_range(0, 2), "interval"),
    ],
)
def test_columns_of_another_type_are_refused_whole(values: object, kind: str) -> None:
    said = refused({"flops": values}, "flops")
    assert said.startswith(f"Column 'flops' holds {kind}")
    assert said.endswith("numbers are needed.")


@pytest.mark.parametrize(
    "values",
    [
        pd.Series([10**9, None], dtype="Int64"),
        pd.Series([1e9, pd.NA], dtype="Float64"),
        pd.Series([10**9, None], dtype="int64[pyarrow]"),
        pd.Series([1e9, None], dtype=object),
        pd.Series([1e9, pd.NA], dtype=object),
        [1e9, None],
        np.ma.array([1e9, 2e9], mask=[False, True]),
    ],
)
def test_missing_numbers_are_missing_in_every_type(values: object) -> None:
    said = refused({"params": values}, "params")
    assert said.startswith("Column 'params': 1 of 2 rows (1) are NaN")


def test_an_integer_beyond_floats_is_infinite() -> None:
    for value, sign in ((10**400, "inf"), (-(10**400), "-inf")):
        said = refused({"flops": [1e20, value]}, "flops")
        assert f"1 of 2 rows (1) are infinite (first value {sign})" in said


def test_empty_labels_are_refused() -> None:
    said = refused(runs(run=["x", None, "z"]), "run")
    assert said.startswith("Column 'run': 1 of 3 rows (b) are empty")


def test_many_bad_rows_are_counted_and_the_first_named() -> None:
    said = refused({"params": [-1.0] * 40}, "params")
    assert "40 of 40 rows (0, 1, 2, 3, 4 and 35 more) are negative" in said


# Keys, names, units ------------------------------------------------------------------------------


def test_repeated_keys_name_the_later_rows() -> None:
    table = pd.DataFrame({"model": ["x", "y", "x"], "item": [1, 1, 1]})
    with pytest.raises(DataError) as raised:
        tables.check_keys(table, ["model", "item"], "Give an epoch to each repeat.")
    assert str(raised.value) == (
        "1 of 3 rows (2) repeat an earlier row in 'model', 'item'. Give an epoch to each repeat."
    )
    tables.check_keys(table.iloc[:2], ["model", "item"], "")


def test_rename_gives_our_names_and_keeps_the_rest() -> None:
    table = pd.DataFrame({"N": [1e8], "D": [2e9], "note": ["x"]})
    assert list(tables.rename(table, params="N", tokens="D")) == ["params", "tokens", "note"]
    assert list(table) == ["N", "D", "note"]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            {"params": "M"},
            r"rename\(params='M'\): the table has no column 'M'\. It has 'N', 'loss'",
        ),
        ({"loss": "N"}, r"rename\(loss='N'\): the table already has a column 'loss'"),
        ({"params": "N", "tokens": "N"}, "one column cannot get two names"),
    ],
)
def test_rename_refuses_what_would_lose_a_column(columns: dict[str, str], said: str) -> None:
    with pytest.raises(DataError, match=said):
        tables.rename(pd.DataFrame({"N": [1e8], "loss": [3.0]}), **columns)


@pytest.mark.parametrize(
    ("unit", "factor"),
    [
        ("thousands", 1e3),
        ("millions", 1e6),
        ("billions", 1e9),
        ("trillions", 1e12),
        ("zettaflops", 1e21),
        ("petaflop-days", 8.64e19),
    ],
)
def test_units_become_counts(unit: str, factor: float) -> None:
    table = tables.to_counts(pd.DataFrame({"flops": [2, 7]}), flops=unit)
    assert table["flops"].tolist() == [2 * factor, 7 * factor]


@pytest.mark.parametrize(
    ("table", "unit", "said"),
    [
        (pd.DataFrame({"params": [7]}), "dozens", "Unknown unit 'dozens' for 'params'"),
        (pd.DataFrame({"N": [7]}), "billions", "No column 'params'. The table has 'N'"),
        (pd.DataFrame({"params": ["7B"]}), "billions", "'params': 1 of 1 rows .0. are not a num"),
        (pd.DataFrame([[7, 8]], columns=["params"] * 2), "billions", "appear twice: 'params'"),
    ],
)
def test_to_counts_refuses_what_it_cannot_convert(
    table: pd.DataFrame, unit: str, said: str
) -> None:
    with pytest.raises(DataError, match=said):
        tables.to_counts(table, params=unit)


# Anything at all ---------------------------------------------------------------------------------

junk = st.one_of(
    st.floats(),
    st.floats(1e-3, 1e20),
    st.integers(-(10**30), 10**30),
    st.booleans(),
    st.none(),
    st.text(max_size=3),
    st.sampled_from(["7e9", pd.NA, pd.NaT, 1j, b"1", Decimal("NaN"), Fraction(1, 3), [1.0], "nan"]),
    st.datetimes(),
)


@settings(deadline=None)  # the machine may be busy
@given(
    name=st.sampled_from(["params", "tokens", "flops", "loss", "score"]),
    values=st.one_of(
        st.lists(junk, max_size=6),
        st.lists(st.floats(), max_size=6),
        st.lists(st.integers(-(2**63), 2**63 - 1), max_size=6),
        st.lists(st.floats(1e-3, 1e16), min_size=1, max_size=6),
    ),
    as_frame=st.booleans(),
)
def test_any_column_is_refused_or_finite_and_in_range(
    name: str, values: list[object], as_frame: bool
) -> None:
    table = pd.DataFrame({name: pd.Series(values, dtype=object)}) if as_frame else {name: values}
    said = None
    try:
        clean = tables.check(table, [name])[name].to_numpy()  # type: ignore[arg-type]
    except DataError as error:
        said = str(error)
    if said is not None:
        assert said.startswith(f"Column '{name}'") or said == "The table has no rows."
        return
    column = tables.COLUMNS[name]
    assert clean.dtype == np.float64
    assert len(clean) == len(values)
    assert np.isfinite(clean).all()
    assert ((clean >= column.lowest) & (clean <= column.highest)).all()
    assert clean.tolist() == [float(value) for value in values]  # type: ignore[arg-type]
