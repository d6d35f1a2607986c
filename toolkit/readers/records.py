"""Fields of JSON objects: those that must be there, and those that may hold anything."""

import math
from types import UnionType
from typing import Any

from toolkit.errors import DataError

__all__ = ["Json", "as_object", "field", "label", "mapping", "number_or_nan", "text_field"]

Json = dict[str, Any]


def as_object(value: Any, where: str) -> Json:
    """Return a JSON object, or raise `DataError` when it is another value."""
    if not isinstance(value, dict):
        raise DataError(
            f"{where}: a JSON {type(value).__name__} where an object with named fields is "
            f"expected. Choose the reader for this kind of file."
        )
    return value


def field(record: Json, name: str, kind: type | UnionType, where: str) -> Any:
    """Return a field that must be there and of a kind.

    Raises
    ------
    DataError
        Naming the file, the field and what it holds.
    """
    if name not in record:
        has = ", ".join(repr(key) for key in list(record)[:8]) or "none"
        raise DataError(
            f"{where}: no field {name!r} (fields: {has}). Is this the reader for this file?"
        )
    value = record[name]
    if not isinstance(value, kind):
        wanted = getattr(kind, "__name__", str(kind))
        raise DataError(
            f"{where}: field {name!r} is of type {type(value).__name__}; {wanted} is expected."
        )
    return value


def text_field(record: Json, name: str, where: str) -> str:
    """Return a label that must be there: text or a whole number, as text.

    Raises
    ------
    DataError
        Naming the file, the field and what it holds.
    """
    text = label(field(record, name, object, where))
    if not text:
        raise DataError(
            f"{where}: field {name!r} is {record[name]!r}; text or a whole number is expected."
        )
    return text


def label(value: Any) -> str:
    """Return text or a whole number as text, and nothing for any other value.

    Examples
    --------
    >>> label("a"), label(7), label(True), label(None)
    ('a', '7', '', '')
    """
    return "" if isinstance(value, bool) or not isinstance(value, str | int) else str(value)


def mapping(record: Json, name: str) -> Json:
    """Return a field that holds an object, or an empty one when it is absent or something else."""
    value = record.get(name)
    return value if isinstance(value, dict) else {}


def number_or_nan(value: Any) -> float:
    """Return a number as it is, and NaN for any other value: "N/A", null, text, true.

    Examples
    --------
    >>> number_or_nan(0.5), number_or_nan("N/A")
    (0.5, nan)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # a whole number beyond 1e308
        return math.inf
