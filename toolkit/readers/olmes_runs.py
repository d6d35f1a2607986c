"""The reader for what OLMES (oe-eval) writes: metrics and predictions of each task."""

import math
import re
from pathlib import Path

from toolkit.errors import DataError
from toolkit.readers import files, records
from toolkit.readers.answers import NONE, Answers
from toolkit.readers.collector import Collector, Labels
from toolkit.readers.files import Progress
from toolkit.readers.records import Json, label, mapping, number_or_nan
from toolkit.readers.values import not_a_score

__all__ = ["olmes"]

METRICS, PREDICTIONS = "-metrics.json", "-predictions.jsonl"
NAME = re.compile(r"(?:task-\d+-)?(?P<task>.+)$")


def olmes(path: str | Path) -> Answers:
    """Read task metrics and predictions of OLMES.

    Parameters
    ----------
    path : str or Path
        A folder, which is read with all folders below it; or a file
        ``task-NNN-name-predictions.jsonl`` or ``task-NNN-name-metrics.json``.

    Returns
    -------
    Answers
        One row per question and metric. `item` is the tool's ``doc_id``: its ``native_id`` is not
        unique in every task. `task` is the alias of the task where there is one, because
        variants share a name. Reported values include ``primary_score``, which repeats the task's
        primary metric.

    Raises
    ------
    DataError
        If a file is damaged or of another kind, or holds fewer questions than its metrics say.

    Notes
    -----
    Predicted options and log-likelihoods are no scores: they are in `dropped`. Files over
    all tasks (``metrics.json``, ``metrics-all.jsonl``) repeat those of the tasks and are not read.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> line = {"doc_id": 0, "metrics": {"acc_raw": 1, "predicted_index_raw": 2}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "task-000-arc_easy-predictions.jsonl")
    ...     _ = path.write_text(json.dumps(line))
    ...     answers = olmes(path)
    >>> answers.table[["task", "item", "metric", "score"]].values.tolist()
    [['arc_easy', '0', 'acc_raw', 1.0]]
    """
    root = files.existing(path)
    metrics, predictions = _find(root)
    collector = Collector()
    for found in metrics:
        collector.open(found, "entry")
        _report(found, collector)
    with files.progress(predictions) as bar:
        for found in predictions:
            _read(found, collector, bar)
    return collector.answers(root)


def _find(root: Path) -> tuple[list[Path], list[Path]]:
    if root.is_dir():
        found = sorted(root.rglob("*"))
    elif root.name.endswith((METRICS, PREDICTIONS)):
        found = [root]
    else:
        raise DataError(
            f"{root.name}: a file ...{PREDICTIONS}, a file ...{METRICS} or a folder is expected."
        )
    metrics = [path for path in found if path.name.endswith(METRICS)]
    predictions = [path for path in found if path.name.endswith(PREDICTIONS)]
    if not metrics and not predictions:
        raise DataError(f"{root}: no ...{METRICS} and no ...{PREDICTIONS} in this folder.")
    return metrics, predictions


def _labels(path: Path, metrics: Json) -> Labels:
    config = mapping(metrics, "model_config")
    model = label(config.get("model")) or path.resolve().parent.name
    revision = label(config.get("revision"))
    task = mapping(metrics, "task_config")
    alias = label(mapping(task, "metadata").get("alias"))
    match = NAME.match(path.name.removesuffix(METRICS).removesuffix(PREDICTIONS))
    named = match["task"] if match else path.stem
    shots = label(task.get("num_shots"))
    return Labels(
        f"{model}@{revision}" if revision and revision != "main" else model,
        alias or label(metrics.get("task_name")) or named,
        prompt=f"{shots}-shot" if shots else NONE,
    )


def _report(path: Path, collector: Collector) -> None:
    metrics = files.json_file(path)
    labels = _labels(path, metrics)
    questions = number_or_nan(metrics.get("num_instances"))
    for metric, value in records.field(metrics, "metrics", dict, path.name).items():
        if not math.isnan(number_or_nan(value)):
            collector.report(labels, metric, number_or_nan(value), questions=questions)


def _read(path: Path, collector: Collector, bar: Progress) -> None:
    collector.open(path, "line")
    beside = path.with_name(path.name.removesuffix(PREDICTIONS) + METRICS)
    metrics = files.json_file(beside) if beside.is_file() else {}
    labels = _labels(path, metrics)
    count = 0
    for number, line in files.json_lines(path, bar):
        where = collector.where(number)
        item = records.text_field(line, "doc_id", where)
        for metric, value in records.field(line, "metrics", dict, where).items():
            reason = not_a_score(metric)
            if reason:
                collector.drop(labels, metric, reason, number)
            else:
                collector.add(labels, metric, item, value, number)
        count += 1
    questions = metrics.get("num_instances")
    if isinstance(questions, int) and count != questions:
        raise DataError(
            f"{path.name}: {count} lines, but {beside.name} counts {questions} questions. The file "
            f"was cut off, or holds repeated lines: write or copy it again."
        )
