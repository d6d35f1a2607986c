"""Gather answers chunk by chunk, keep the ledger of what is left out, and check the whole."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from toolkit.errors import DataError
from toolkit.readers.answers import (
    ANSWER_COLUMNS,
    DROPPED_COLUMNS,
    KEYS,
    NONE,
    REPORTED_COLUMNS,
    RUN,
    Answers,
)
from toolkit.readers.values import Unfit, to_score

__all__ = ["Collector", "Labels"]

CHUNK_ROWS = 50_000
LAST_EPOCH = 2**31 - 1

_LABEL = pa.dictionary(pa.int32(), pa.string())
_SCHEMA = pa.schema(
    [
        *[(name, _LABEL) for name in ("model", "task", "subtask")],
        *[(name, pa.large_string()) for name in ("item", "cluster")],
        ("seed", _LABEL),
        ("epoch", pa.int64()),
        *[(name, _LABEL) for name in ("prompt", "filter", "metric")],
        ("score", pa.float64()),
        ("file", pa.int32()),
        ("number", pa.int32()),
    ]
)


@dataclass(frozen=True, slots=True)
class Labels:
    """Where the answers of one file belong; `item`, `epoch` and `metric` come with each answer."""

    model: str
    task: str
    subtask: str = NONE
    seed: str = NONE
    prompt: str = NONE
    filter: str = NONE


class Collector:
    """Takes answers one by one and makes the table of them."""

    def __init__(self) -> None:
        self._pending: list[tuple[object, ...]] = []
        self._chunks: list[pa.Table] = []
        self._files: list[tuple[str, str]] = []
        self._dropped: dict[tuple[Labels, str, str, str | None, int | None], tuple[int, str]] = {}
        self._reported: list[dict[str, object]] = []

    def open(self, path: Path, unit: str) -> None:
        """Name the file that the next answers come from, and what a number in it counts."""
        self._files.append((path.name, unit))

    def where(self, number: int) -> str:
        """Name a place in the open file."""
        name, unit = self._files[-1]
        return f"{name}, {unit} {number}"

    def add(
        self,
        labels: Labels,
        metric: str,
        item: str,
        value: object,
        number: int,
        *,
        epoch: int = 1,
        cluster: str | None = None,
        words: Mapping[str, float] | None = None,
    ) -> None:
        """Take one answer, or note in the ledger why it has no score.

        Parameters
        ----------
        labels : Labels
            Where the answer belongs.
        metric, item : str
            How it was scored, and the question.
        value : object
            The score as the file gives it.
        number : int
            Line, row or sample of the open file.
        epoch : int
            Repeat of the question, from 1.
        cluster : str, optional
            Group of the question within its task; the question itself when None.
        words : mapping of str to float, optional
            Texts that the tool uses for scores.
        """
        try:
            score = to_score(value) if words is None else to_score(value, words)
        except Unfit as unfit:
            self.drop(labels, metric, str(unfit), number)
            return
        if math.isnan(score):
            self.drop(labels, metric, "unscored", number, item=item, epoch=epoch)
            return
        if cluster is None:
            part = labels.task if labels.subtask == NONE else f"{labels.task}/{labels.subtask}"
            group = f"{part}/{item}"
        else:
            group = f"{labels.task}/{cluster}"
        run = (labels.model, labels.task, labels.subtask, item, group, labels.seed, epoch)
        if not 0 <= epoch <= LAST_EPOCH:
            raise DataError(f"{self.where(number)}: epoch {epoch}; from 0 to {LAST_EPOCH} allowed.")
        file = len(self._files) - 1
        self._pending.append((*run, labels.prompt, labels.filter, metric, score, file, number))
        if len(self._pending) >= CHUNK_ROWS:
            self._flush()

    def drop(
        self,
        labels: Labels,
        metric: str,
        reason: str,
        number: int | None = None,
        *,
        item: str | None = None,
        epoch: int | None = None,
        answers: int = 1,
    ) -> None:
        """Note what is left out; alike notes are counted, and the place of the first is kept."""
        key = (labels, metric, reason, item, epoch)
        place = self._files[-1][0] if number is None else self.where(number)
        count, first = self._dropped.get(key, (0, place))
        self._dropped[key] = (count + answers, first)

    def report(
        self,
        labels: Labels,
        metric: str,
        value: float,
        stderr: float = math.nan,
        questions: float = math.nan,
    ) -> None:
        """Take a value that the tool computed over the questions of one task."""
        extra = {"metric": metric, "value": value, "stderr": stderr, "questions": questions}
        self._reported.append(asdict(labels) | extra)

    def answers(self, path: Path) -> Answers:
        """Check the whole and return it.

        Raises
        ------
        DataError
            If nothing was found under `path`, or two answers agree in all labels.
        """
        self._flush()
        whole = pa.concat_tables([_SCHEMA.empty_table(), *self._chunks]).unify_dictionaries()
        self._chunks.clear()
        table = whole.to_pandas()
        if table.empty and not self._reported:
            reasons = {reason for _, _, reason, _, _ in self._dropped}
            found = f" All were left out: {'; '.join(sorted(reasons))}." if reasons else ""
            raise DataError(f"{path}: no answer has a score.{found}")
        self._refuse_repeats(table)
        table = self._without_unfit_metrics(table)
        reported = pd.DataFrame(self._reported, columns=REPORTED_COLUMNS)
        return Answers(
            table[ANSWER_COLUMNS],
            reported.astype({"value": float, "stderr": float, "questions": float}),
            self._ledger(),
        )

    def _flush(self) -> None:
        if self._pending:
            columns = zip(*self._pending, strict=True)
            try:
                arrays = [
                    pa.array(column, type=field.type)
                    for column, field in zip(columns, _SCHEMA, strict=True)
                ]
            except UnicodeEncodeError as error:
                raise DataError(
                    f"{self._files[-1][0]}: a label holds half of a character ({error.reason})."
                ) from error
            self._chunks.append(pa.Table.from_arrays(arrays, schema=_SCHEMA))
            self._pending.clear()

    def _refuse_repeats(self, table: pd.DataFrame) -> None:
        repeated = table.duplicated(KEYS, keep=False)
        if not repeated.any():
            return
        rows = table[repeated]
        first = rows.iloc[0]
        alike = rows[(rows[KEYS] == first[KEYS]).all(axis=1)]
        places = [self._place(row) for row in alike.itertuples()]
        labels = ", ".join(f"{name} {first[name]}" for name in KEYS if first[name] != NONE)
        extra = int(table.duplicated(KEYS).sum())
        raise DataError(
            f"{extra} of {len(table)} answers repeat an earlier one: {labels} is at "
            f"{' and at '.join(places[:3])}. Each question may be answered once per epoch: read "
            f"one run at a time, or remove the repeated lines."
        )

    def _place(self, row: Any) -> str:
        name, unit = self._files[row.file]
        return f"{name}, {unit} {row.number}"

    def _without_unfit_metrics(self, table: pd.DataFrame) -> pd.DataFrame:
        """Leave out a metric of a task as a whole when any of its values cannot be a score."""
        groups = [*RUN, "filter", "metric"]
        grouped = table.groupby(groups, observed=True, sort=False)
        seen = grouped.agg(
            low=("score", "min"),
            high=("score", "max"),
            answers=("score", "size"),
            file=("file", "first"),
            number=("number", "first"),
        )
        row: Any
        for row in seen[(seen["low"] < 0) | (seen["high"] > 1)].reset_index().itertuples():
            labels = Labels(*(getattr(row, name) for name in Labels.__slots__))
            reason = f"values from {row.low:g} to {row.high:g}; a score is a fraction from 0 to 1"
            note = (labels, row.metric, reason, None, None)
            self._dropped[note] = (int(row.answers), self._place(row))
        keep = (grouped["score"].transform("min") >= 0) & (grouped["score"].transform("max") <= 1)
        return table if keep.all() else table[keep].reset_index(drop=True)

    def _ledger(self) -> pd.DataFrame:
        rows = [
            asdict(labels)
            | {"metric": metric, "reason": reason, "item": item, "epoch": epoch}
            | {"answers": count, "where": first}
            for (labels, metric, reason, item, epoch), (count, first) in self._dropped.items()
        ]
        ledger = pd.DataFrame(rows, columns=DROPPED_COLUMNS)
        return ledger.astype({"item": "str", "epoch": "Int64", "answers": "int64"})
