"""Samples files of lm-evaluation-harness: one line per question and filter."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from toolkit.errors import DataError
from toolkit.readers import files, records
from toolkit.readers.answers import NONE
from toolkit.readers.collector import Collector, Labels
from toolkit.readers.files import Progress
from toolkit.readers.lm_eval_results import Run
from toolkit.readers.records import Json
from toolkit.readers.values import not_a_score

__all__ = ["read_samples", "read_write_out"]

# What a line holds beside its metrics, in any version since 0.4.
NO_METRIC = {
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics"),
    *("doc_hash", "prompt_hash", "target_hash"),
}
NO_METRIC_0_3 = re.compile(r"doc_id|prompt_\d+|logit_\d+|truth")
DOC_ID = re.compile(rb'"doc_id": ?("[^"]*"|-?\d+)')


@dataclass(slots=True)
class _Filters:
    """Names the filter of each line.

    Before 0.4.7 no line did: the questions came once more for each filter, in the order of the
    filters in the results file.
    """

    path: Path
    run: Run
    task: str
    named: bool | None = None
    first_item: str = ""
    passes: int = -1
    order: Sequence[str] = field(default_factory=list)

    def of(self, line: Json, item: str, where: str) -> str:
        if self.named is None:
            self.named = "filter" in line
            self.first_item = item
            self.order = [] if self.named else self._by_position()
        if self.named != ("filter" in line):
            raise DataError(
                f"{where}: lines with and without the field 'filter' in one file: two versions "
                f"of the harness wrote it. Split the file."
            )
        if self.named:
            return records.text_field(line, "filter", where)
        self.passes += item == self.first_item
        if self.passes >= len(self.order):
            raise DataError(
                f"{where}: the questions come once more, after one pass for each filter "
                f"({', '.join(self.order)}). Remove the repeated lines."
            )
        return self.order[self.passes]

    def _by_position(self) -> Sequence[str]:
        known = self.run.filters(self.task)
        if known:
            return known
        with self.path.open("rb") as lines:
            found = [match.group(1) for match in map(DOC_ID.search, lines) if match]
        passes = found.count(found[0]) if found else 1
        return [NONE] if passes == 1 else [f"unnamed {n}" for n in range(1, passes + 1)]


def read_samples(
    path: Path, task: str, run: Run, cluster: str | None, collector: Collector, bar: Progress
) -> None:
    """Read one samples file.

    Raises
    ------
    DataError
        Naming the line that is damaged, of another kind, or one too many or too few.
    """
    collector.open(path, "line")
    filters = _Filters(path, run, task)
    labels: dict[str, Labels] = {}
    lines = 0
    for number, line in files.json_lines(path, bar):
        where = collector.where(number)
        item = records.text_field(line, "doc_id", where)
        name = filters.of(line, item, where)
        if name not in labels:
            labels[name] = run.labels(task, name)
        at = labels[name]
        group = None if cluster is None else _cluster(line, cluster, where)
        for metric in _metrics(line, where):
            reason = not_a_score(metric, run.higher_is_better.get(task, {}).get(metric))
            if reason:
                collector.drop(at, metric, reason, number)
            else:
                collector.add(at, metric, item, line.get(metric), number, cluster=group)
        _note_repeats(line, at, number, collector)
        lines += 1
    _check_complete(path, lines, len(labels), run.questions.get(task))


def read_write_out(path: Path, task: str, run: Run, collector: Collector) -> None:
    """Read what harness 0.3 wrote with ``--write_out``: scores are text there, "False" too."""
    collector.open(path, "entry")
    entries = files.parse_json(path.read_bytes(), path.name)
    if not isinstance(entries, list) or not entries:
        raise DataError(f"{path.name}: a list with an object for each question is expected.")
    at = run.labels(task, NONE)
    for number, entry in enumerate(entries, start=1):
        where = collector.where(number)
        if not isinstance(entry, dict):
            raise DataError(f"{where}: an object with named fields is expected.")
        item = records.text_field(entry, "doc_id", where)
        for metric in entry:
            if NO_METRIC_0_3.fullmatch(metric):
                continue
            reason = not_a_score(metric)
            if reason:
                collector.drop(at, metric, reason, number)
            else:
                collector.add(at, metric, item, entry[metric], number)


def _metrics(line: Json, where: str) -> Iterator[str]:
    named = line.get("metrics")
    if named is not None and not (
        isinstance(named, list) and all(isinstance(name, str) for name in named)
    ):
        raise DataError(f"{where}: field 'metrics' is not a list of names.")
    metrics = list(line.keys() - NO_METRIC) if named is None else named
    if not metrics:
        raise DataError(f"{where}: no metric on this line. Is this the reader for this file?")
    yield from sorted(metrics)


def _cluster(line: Json, name: str, where: str) -> str:
    doc = records.field(line, "doc", dict, where)
    return records.text_field(doc, name, f"{where}, doc")


def _note_repeats(line: Json, at: Labels, number: int, collector: Collector) -> None:
    """With ``repeats: K`` there are K responses on a line and one score, that of the filter."""
    match line.get("resps"):
        case [[_, _, *_] as responses, *_]:
            reason = f"{len(responses)} responses to a question, with one score for them"
            collector.drop(at, "all", reason, number)


def _check_complete(path: Path, lines: int, filters: int, questions: int | None) -> None:
    if questions is not None and lines != questions * filters:
        each = f" times {filters} filters" if filters > 1 else ""
        raise DataError(
            f"{path.name}: {lines} lines, but its results file counts {questions} "
            f"questions{each}. The file was cut off, or holds repeated lines: write or copy it "
            f"again."
        )
