"""What a valid table is: known columns with units and ranges, and errors that say how to mend.

One name for one thing, everywhere: `params`, `tokens`, `flops`, `loss`, `score`, `run`, ... (see
`COLUMNS`). A user's own names are mapped once with `rename`, other units with `to_counts`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit.columns import COLUMNS, SYNONYMS, Column
from toolkit.errors import DataError

__all__ = [
    "COLUMNS",
    "Column",
    "check",
    "check_keys",
    "check_positive",
    "check_scores",
    "rename",
    "to_counts",
]

ROWS_NAMED = 5  # how many offending rows an error lists before it only counts them


def rename(table: pd.DataFrame, **columns: str) -> pd.DataFrame:
    """Give a user's columns the names that the toolkit uses.

    Parameters
    ----------
    table : DataFrame
        Any table.
    **columns : str
        ``ours="theirs"``, for example ``params="N", tokens="D"``.

    Returns
    -------
    DataFrame
        The same rows and columns, renamed.

    Raises
    ------
    DataError
        If a named column is not in the table or named twice, or the new name is taken by another
        column.

    Examples
    --------
    >>> import pandas as pd
    >>> from toolkit import tables
    >>> list(tables.rename(pd.DataFrame({"N": [1e8], "D": [2e9]}), params="N", tokens="D"))
    ['params', 'tokens']
    """
    if len(set(columns.values())) < len(columns):
        raise DataError(f"rename({columns}): one column cannot get two names.")
    for ours, theirs in columns.items():
        if theirs not in table.columns:
            raise DataError(
                f"rename({ours}={theirs!r}): the table has no column {theirs!r}. "
                f"It has {_listed(table.columns)}."
            )
        if ours in table.columns and ours != theirs:
            raise DataError(
                f"rename({ours}={theirs!r}): the table already has a column {ours!r}. "
                f"Drop or rename that one first."
            )
    return table.rename(columns={theirs: ours for ours, theirs in columns.items()})


_UNITS: Mapping[str, float] = {
    "thousands": 1e3,
    "millions": 1e6,
    "billions": 1e9,
    "trillions": 1e12,
    "zettaflops": 1e21,
    "petaflop-days": 8.64e19,
}


def to_counts(table: pd.DataFrame, **units: str) -> pd.DataFrame:
    """Turn columns in millions, billions, ... into absolute counts.

    Parameters
    ----------
    table : DataFrame
        Any table.
    **units : str
        ``column="unit"`` with a unit out of thousands, millions, billions, trillions,
        zettaflops, petaflop-days.

    Returns
    -------
    DataFrame
        A copy with those columns in counts (FLOPs for compute), as float64.

    Raises
    ------
    DataError
        If a column is missing or a unit is unknown.

    Examples
    --------
    >>> import pandas as pd
    >>> from toolkit import tables
    >>> float(tables.to_counts(pd.DataFrame({"params": [70]}), params="billions")["params"][0])
    70000000000.0
    """
    table = _as_frame(table).copy()
    for name, unit in units.items():
        if unit not in _UNITS:
            raise DataError(f"Unknown unit {unit!r} for {name!r}. Allowed: {_listed(_UNITS)}.")
        if name not in table.columns:
            raise DataError(f"No column {name!r}. The table has {_listed(table.columns)}.")
        table[name] = _to_float(table[name], name) * _UNITS[unit]
    return table


def check(
    table: pd.DataFrame | Mapping[str, npt.ArrayLike],
    required: Sequence[str],
    *,
    optional: Sequence[str] = (),
    min_rows: int = 1,
) -> pd.DataFrame:
    """Check a table and return the named columns, clean and with a fresh index.

    Numbers come back as float64 (so that 6·N·D cannot overflow), labels as they are.

    Parameters
    ----------
    table : DataFrame or mapping of column name to values
        One row per observation.
    required : sequence of str
        Columns that must be there.
    optional : sequence of str
        Columns that are checked and returned when they are there.
    min_rows : int
        Fewest rows allowed.

    Returns
    -------
    DataFrame
        The required and the present optional columns, rows in the order given.

    Raises
    ------
    DataError
        Naming the column, the rows, what is allowed and the mend: missing or doubled columns,
        empty tables, text or truth values where numbers belong, NaN, infinities, values that are
        negative, zero or of an implausible magnitude, percent where fractions belong.

    Examples
    --------
    >>> from toolkit import tables
    >>> table = {"params": [1e8, 2e8], "tokens": [2e9, 4e9], "loss": [3.1, 2.9]}
    >>> tables.check(table, ["params", "tokens", "loss"]).shape
    (2, 3)
    """
    frame = _as_frame(table)
    _check_columns_present(frame, required)
    if len(frame) == 0:
        raise DataError("The table has no rows.")
    if len(frame) < min_rows:
        raise DataError(f"The table has {len(frame)} rows; at least {min_rows} are needed.")
    names = [*required, *(name for name in optional if name in frame.columns)]
    clean = {name: _check_column(frame[name], name) for name in dict.fromkeys(names)}
    return pd.DataFrame(clean).reset_index(drop=True)


def check_keys(table: pd.DataFrame, keys: Sequence[str], mend: str) -> None:
    """Raise when two rows agree in all `keys`.

    Parameters
    ----------
    table : DataFrame
        A checked table.
    keys : sequence of str
        Columns that together should be different in every row.
    mend : str
        Sentence that tells how to mend it.

    Raises
    ------
    DataError
        Naming the keys and the repeated rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from toolkit import tables
    >>> twice = pd.DataFrame({"run": ["a", "a"]})
    >>> tables.check_keys(twice, ["run"], "Name each run once.")
    Traceback (most recent call last):
    toolkit.errors.DataError: 1 of 2 rows (1) repeat an earlier row in 'run'. Name each run once.
    """
    repeated = table.duplicated(list(keys), keep="first").to_numpy()
    if repeated.any():
        raise DataError(
            f"{_rows(table.index, repeated)} repeat an earlier row in {_listed(keys)}. {mend}"
        )


def check_positive(values: pd.Series, name: str) -> pd.Series:
    """Check a column of positive numbers that is not in the vocabulary, such as weights.

    Raises
    ------
    DataError
        Naming the column and the rows that are text, NaN, infinite, zero or negative.

    Examples
    --------
    >>> import pandas as pd
    >>> from toolkit import tables
    >>> tables.check_positive(pd.Series([1, 2]), "weight").tolist()
    [1.0, 2.0]
    """
    numbers = pd.Series(_to_float(values, name), index=values.index, name=name)
    wrong = ~(np.isfinite(numbers) & (numbers > 0))
    _refuse(numbers, wrong, name, "not positive and finite", "correct or drop the rows")
    return numbers


def check_scores(values: pd.Series, name: str) -> pd.Series:
    """Check a column of scores that has a name of its own, such as ``mmlu``.

    Raises
    ------
    DataError
        Naming the column and the rows that are text, NaN, infinite, negative, or above 1 (percent
        is refused, also where only some rows are in percent).

    Examples
    --------
    >>> import pandas as pd
    >>> from toolkit import tables
    >>> tables.check_scores(pd.Series([0, 0.7]), "mmlu").tolist()
    [0.0, 0.7]
    """
    column = replace(COLUMNS["score"], name=name)
    numbers = _to_float(values, name)
    _refuse(values, np.isnan(numbers), name, "NaN", "fill in or drop the rows")
    _refuse(values, np.isinf(numbers), name, "infinite", "correct or drop the rows")
    _check_score(numbers, values, column)
    return pd.Series(numbers, index=values.index, name=name)


def _as_frame(table: pd.DataFrame | Mapping[str, npt.ArrayLike]) -> pd.DataFrame:
    if isinstance(table, pd.DataFrame):
        frame = table
    elif isinstance(table, Mapping):
        columns = {name: _as_column(values, name) for name, values in table.items()}
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise DataError(f"The columns have different lengths: {lengths}.")
        frame = pd.DataFrame(columns)
    else:
        raise DataError(
            f"A table is a pandas DataFrame or a mapping of columns, not {type(table).__name__}."
        )
    doubled = frame.columns[frame.columns.duplicated()]
    if len(doubled):
        raise DataError(f"Column names appear twice: {_listed(doubled)}. Rename or drop one.")
    return frame


def _as_column(values: object, name: str) -> pd.Series:
    """Make a column of a mapping; numpy would turn mixed values into text or truth into 1."""
    if pd.api.types.is_list_like(values, allow_sets=False) and getattr(values, "ndim", 1) == 1:
        try:
            column = pd.Series(values)
        except OverflowError:  # an integer beyond 1e308, in some versions of pandas
            column = pd.Series(values, dtype=object)
        return column.reset_index(drop=True)
    raise DataError(
        f"Column {name!r} is of type {type(values).__name__}; give one value per row, in order: "
        f"a list, a Series or a one-dimensional array."
    )


def _check_columns_present(frame: pd.DataFrame, required: Sequence[str]) -> None:
    missing = [name for name in required if name not in frame.columns]
    if not missing:
        return
    hints = [
        f"{name}={theirs!r}"
        for name in missing
        for theirs in SYNONYMS.get(name, ())
        if theirs in frame.columns
    ]
    hint = f" Perhaps tables.rename(table, {', '.join(hints)})?" if hints else ""
    meanings = "; ".join(
        f"{name}: {COLUMNS[name].meaning} ({COLUMNS[name].unit or 'label'})"
        for name in missing
        if name in COLUMNS
    )
    raise DataError(
        f"Missing {_listed(missing)}. The table has {_listed(frame.columns)}."
        f"{hint}{f' Needed: {meanings}.' if meanings else ''}"
    )


def _check_column(values: pd.Series, name: str) -> pd.Series:
    column = COLUMNS.get(name)
    if column is None or column.kind == "label":
        _refuse(values, values.isna().to_numpy(), name, "empty", "fill in or drop the rows")
        return values
    numbers = _to_float(values, name)
    _refuse(values, np.isnan(numbers), name, "NaN", "fill in or drop the rows")
    _refuse(values, np.isinf(numbers), name, "infinite", "correct or drop the rows")
    _CHECKS[column.kind](numbers, values, column)
    return pd.Series(numbers, index=values.index, name=name)


def _to_float(values: pd.Series, name: str) -> npt.NDArray[np.float64]:
    """Convert a column to float64; text, truth values, dates and complex numbers are refused."""
    dtype = values.dtype
    if isinstance(dtype, (pd.StringDtype, pd.CategoricalDtype)):
        values = values.astype(object)
    elif not pd.api.types.is_object_dtype(dtype):
        unfit = pd.api.types.is_bool_dtype(dtype) or pd.api.types.is_complex_dtype(dtype)
        if unfit or not pd.api.types.is_numeric_dtype(dtype):
            raise DataError(f"Column {name!r} holds {dtype} values; numbers are needed.")
        return values.to_numpy(dtype=np.float64, na_value=np.nan)
    missing = values.isna().to_numpy()
    number = np.array([_is_number(value) for value in values], dtype=bool)
    wrong = ~(number | missing)
    _refuse(values, wrong, name, "not a number", "convert it (7e9, not '7B') or drop the rows")
    return np.array([_float(value) for value in values.where(~missing, np.nan)], dtype=np.float64)


def _is_number(value: object) -> bool:
    return isinstance(value, (Real, Decimal)) and not isinstance(value, bool)


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond 1e308
        return np.inf if value > 0 else -np.inf


def _check_count(numbers: npt.NDArray[np.float64], values: pd.Series, column: Column) -> None:
    _refuse(
        values,
        numbers < 0,
        column.name,
        "negative",
        "a count is positive; a negative product such as 6*N*D is an integer overflow: "
        "use float64 before multiplying",
    )
    _refuse(values, numbers == 0, column.name, "zero", "a count is positive; drop the rows")
    mend = "give absolute counts: tables.to_counts(table, column='millions')"
    _check_magnitude(numbers, values, column, mend)


def _check_loss(numbers: npt.NDArray[np.float64], values: pd.Series, column: Column) -> None:
    _refuse(values, numbers <= 0, column.name, "not positive", "a loss is positive; drop the rows")
    mend = "give cross-entropy in nats per token, not perplexity"
    _check_magnitude(numbers, values, column, mend)


def _check_score(numbers: npt.NDArray[np.float64], values: pd.Series, column: Column) -> None:
    _refuse(values, numbers < 0, column.name, "negative", "a score is a fraction from 0 to 1")
    above = numbers > 1
    if above.any() and (numbers <= 100).all():
        mixed = (numbers[~above] > 0).any() and above.sum() < len(numbers)
        wrong = "above 1 beside fractions" if mixed else "above 1 (percent?)"
        mend = "scores are fractions from 0 to 1: divide percent by 100, in every row alike"
        _refuse(values, above, column.name, wrong, mend)
    _check_magnitude(numbers, values, column, "scores are fractions from 0 to 1")


def _check_number(numbers: npt.NDArray[np.float64], values: pd.Series, column: Column) -> None:
    _check_magnitude(numbers, values, column, "correct the unit or drop the rows")


def _check_fraction(numbers: npt.NDArray[np.float64], values: pd.Series, column: Column) -> None:
    outside = (numbers < 0) | (numbers >= 1)
    mend = "a share lies from 0 to just below 1: divide percent by 100"
    _refuse(values, outside, column.name, "outside 0 to 1", mend)


_CHECKS = {
    "count": _check_count,
    "loss": _check_loss,
    "score": _check_score,
    "number": _check_number,
    "fraction": _check_fraction,
}


def _check_magnitude(
    numbers: npt.NDArray[np.float64], values: pd.Series, column: Column, mend: str
) -> None:
    outside = (numbers < column.lowest) | (numbers > column.highest)
    allowed = f"outside {column.lowest:g} to {column.highest:g} {column.unit}".rstrip()
    _refuse(values, outside, column.name, allowed, mend)


def _refuse(values: pd.Series, wrong: npt.ArrayLike, name: str, problem: str, mend: str) -> None:
    mask = np.asarray(wrong, dtype=bool)
    if not mask.any():
        return
    example = values[mask].iloc[0]
    shown = f"{_float(example):g}" if _is_number(example) else repr(example)
    raise DataError(
        f"Column {name!r}: {_rows(values.index, mask)} are {problem} (first value {shown}). "
        f"Mend: {mend}."
    )


def _rows(index: pd.Index, mask: npt.NDArray[np.bool_]) -> str:
    labels = [str(label) for label in index[mask]]
    named = ", ".join(labels[:ROWS_NAMED])
    more = f" and {len(labels) - ROWS_NAMED} more" if len(labels) > ROWS_NAMED else ""
    return f"{len(labels)} of {len(mask)} rows ({named}{more})"


def _listed(names: Iterable[object]) -> str:
    return ", ".join(repr(name) if isinstance(name, str) else str(name) for name in names) or "none"
