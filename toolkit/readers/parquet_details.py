"""Details as Parquet: one row per question, the metrics in a structure or in columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet

from toolkit.errors import DataError
from toolkit.readers.answers import NONE
from toolkit.readers.collector import Collector, Labels
from toolkit.readers.files import Progress
from toolkit.readers.values import not_a_score

__all__ = ["Layout", "read_details", "task_labels"]

BATCH_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the columns of a kind of details are.

    Attributes
    ----------
    structures : sequence of str
        Columns that hold the metrics as a structure, or whose names stand before a dot in the
        names of the metrics' columns; the first one found counts.
    flat : sequence of str
        Otherwise, columns named like the metrics.
    item : str
        ``structure.field`` with the name of the question; without it, rows are counted from 0.
    """

    structures: Sequence[str]
    flat: Sequence[str] = ()
    item: str = ""

    def metrics(self, schema: pa.Schema) -> list[str]:
        """Return the columns with metrics."""
        for structure in self.structures:
            if structure in schema.names:
                return [structure]
            dotted = [name for name in schema.names if name.startswith(f"{structure}.")]
            if dotted:
                return dotted
        return [name for name in self.flat if name in schema.names]

    def has_item(self, schema: pa.Schema) -> bool:
        """Tell whether the questions have names."""
        column, _, name = self.item.partition(".")
        if column not in schema.names or not pa.types.is_struct(schema.field(column).type):
            return False
        return bool(schema.field(column).type.get_field_index(name) >= 0)


def task_labels(full_name: str, model: str) -> Labels:
    """Take a name such as ``suite|task:part|shots`` apart.

    Examples
    --------
    >>> task_labels("leaderboard|mmlu:anatomy|5", "m").subtask
    'anatomy'
    """
    parts = full_name.split("|")
    shots = parts[-1] if len(parts) > 1 and parts[-1].isdigit() else None
    name = parts[0] if len(parts) < 3 else parts[1]
    task, _, subtask = name.partition(":")
    if not subtask and "-" in task and parts[0] == "harness":  # hendrycksTest-anatomy
        task, _, subtask = task.partition("-")
    return Labels(model, task, subtask or NONE, prompt=NONE if shots is None else f"{shots}-shot")


def read_details(
    path: Path, labels: Labels, layout: Layout, collector: Collector, bar: Progress
) -> int:
    """Read one details file in batches of rows, and return the number of rows.

    Raises
    ------
    DataError
        If the file is no Parquet file, is damaged, has no rows, or no column with metrics.
    """
    collector.open(path, "row")
    row = 0
    with _opened(path) as details:
        schema = details.schema_arrow
        columns = layout.metrics(schema)
        if not columns:
            has = ", ".join(schema.names[:8]) or "none"
            wanted = ", ".join([*layout.structures, *layout.flat])
            raise DataError(
                f"{path.name}: none of the columns {wanted} (columns: {has}). "
                f"Is this the reader for this file?"
            )
        item = layout.item if layout.has_item(schema) else ""
        for record in _records(details, path, [*columns, *filter(None, [item])]):
            name = _inside(record, item) if item else row
            row += 1
            if name is None:
                raise DataError(f"{collector.where(row)}: {item} is empty.")
            for metric, value in _metrics(record, columns):
                reason = not_a_score(metric)
                if reason:
                    collector.drop(labels, metric, reason, row)
                else:
                    collector.add(labels, metric, str(name), value, row)
    bar.update(path.stat().st_size)
    if row == 0:
        raise DataError(f"{path.name}: a table without rows. Write or copy it again.")
    return row


def _opened(path: Path) -> parquet.ParquetFile:
    try:
        return parquet.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{path.name}: not a Parquet file, or one whose end is missing "
            f"({path.stat().st_size} bytes): {error}. Write or copy it again."
        ) from error


def _records(
    details: parquet.ParquetFile, path: Path, columns: Sequence[str]
) -> Iterator[dict[str, Any]]:
    try:
        for batch in details.iter_batches(batch_size=BATCH_ROWS, columns=list(columns)):
            yield from batch.to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path.name}: damaged ({error}). Write or copy it again.") from error


def _metrics(record: dict[str, Any], columns: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for column in columns:
        value = record[column]
        if isinstance(value, dict):
            yield from value.items()
        else:
            yield column.rpartition(".")[2], value


def _inside(record: dict[str, Any], dotted: str) -> Any:
    column, _, name = dotted.partition(".")
    return (record[column] or {}).get(name)
