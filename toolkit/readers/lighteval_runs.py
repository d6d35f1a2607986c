"""The reader for what lighteval writes: results as JSON, details as Parquet."""

import math
import re
from pathlib import Path

from toolkit.errors import DataError
from toolkit.readers import files, records
from toolkit.readers.answers import Answers
from toolkit.readers.collector import Collector
from toolkit.readers.parquet_details import Layout, read_details, task_labels
from toolkit.readers.records import Json, label, mapping, number_or_nan

__all__ = ["lighteval"]

LAYOUT = Layout(("__metric__", "metrics"), item="__doc__.id")
DETAILS = re.compile(r"details_(?P<task>.+)_(?P<stamp>\d{4}-\d{2}-\d{2}T[\d.:-]+)$")
STAMP = re.compile(r"results_(?P<stamp>\d{4}-\d{2}-\d{2}T[\d.:-]+)$")


def lighteval(path: str | Path) -> Answers:
    """Read results and details of lighteval.

    Parameters
    ----------
    path : str or Path
        The output folder, with ``results`` and ``details`` in it; a results file (``.json``),
        which gives reported values alone; or a details file (``.parquet``).

    Returns
    -------
    Answers
        One row per question and metric from the details; reported values from the results. A task
        such as ``mmlu:anatomy`` has the part after the colon as `subtask`.

    Raises
    ------
    DataError
        If a file is damaged or of another kind, or holds fewer questions than its results say.

    Notes
    -----
    The averages that the results hold (``task:_average``, ``all``) are in `dropped`.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> results = {"config_general": {"model_name": "org/m"},
    ...            "results": {"gsm8k|5": {"em": 0.5, "em_stderr": 0.1}, "all": {"em": 0.5}}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "results_2026-01-31T10-00-00.json")
    ...     _ = path.write_text(json.dumps(results))
    ...     answers = lighteval(path)
    >>> answers.reported[["task", "prompt", "metric", "value"]].values.tolist()
    [['gsm8k', '5-shot', 'em', 0.5]]
    """
    root = files.existing(path)
    results, details = _find(root)
    collector = Collector()
    runs = {_run(found): files.json_file(found) for found in results}
    for found in results:
        if root.is_dir() or root == found:
            collector.open(found, "entry")
            _report(found, runs[_run(found)], collector)
    with files.progress(details) as bar:
        for found in details:
            run = runs.get(_run(found), {})
            full_name = _task(found)
            labels = task_labels(full_name, _model(found, run))
            rows = read_details(found, labels, LAYOUT, collector, bar)
            _check_complete(found, rows, full_name, run)
    return collector.answers(root)


def _find(root: Path) -> tuple[list[Path], list[Path]]:
    if root.is_dir():
        results = sorted(root.rglob("results_*.json"))
        details = sorted(root.rglob("details_*.parquet"))
    elif root.suffix == ".json":
        results, details = [root], []
    elif root.suffix == ".parquet":
        results, details = _results_of(root), [root]
    else:
        raise DataError(f"{root.name}: results (.json), details (.parquet) or a folder expected.")
    if not results and not details:
        raise DataError(f"{root}: no results_*.json and no details_*.parquet in this folder.")
    return results, details


def _results_of(details: Path) -> list[Path]:
    """Find the results of the run beside ``details``: the same folders under ``results``."""
    parts = details.resolve().parts
    if "details" not in parts[:-2]:
        return []
    at = len(parts) - 1 - parts[::-1].index("details")
    folder = Path(*parts[:at], "results", *parts[at + 1 : -2])
    found = folder / f"results_{parts[-2]}.json"
    return [found] if found.is_file() else []


def _run(path: Path) -> tuple[str, str]:
    """Name the run of a file: the folders that stand for the model, and the time stamp."""
    match = (STAMP if path.suffix == ".json" else DETAILS).match(path.stem)
    parts = path.resolve().parts
    kind = "results" if path.suffix == ".json" else "details"
    start = len(parts) - parts[::-1].index(kind) if kind in parts else len(parts) - 1
    end = len(parts) - 1 if path.suffix == ".json" else len(parts) - 2
    return "/".join(parts[start:end]), match["stamp"] if match else ""


def _model(path: Path, run: Json) -> str:
    named = label(mapping(run, "config_general").get("model_name"))
    return named or _run(path)[0] or path.resolve().parent.name


def _task(path: Path) -> str:
    match = DETAILS.match(path.stem)
    if match is None:
        raise DataError(
            f"{path.name}: the name is not details_<task>|<shots>_<time>.parquet, from which the "
            f"task is taken."
        )
    return match["task"]


def _report(path: Path, run: Json, collector: Collector) -> None:
    entries = records.field(run, "results", dict, path.name)
    model = _model(path, run)
    for full_name in entries:
        entry = records.field(entries, full_name, dict, f"{path.name}, results")
        labels = task_labels(full_name, model)
        average = full_name == "all" or labels.subtask == "_average"
        for metric, value in entry.items():
            if metric.endswith("_stderr") or math.isnan(number_or_nan(value)):
                continue
            if average:
                collector.drop(labels, metric, "an average over tasks")
                continue
            stderr = number_or_nan(entry.get(f"{metric}_stderr"))
            questions = number_or_nan(_questions(run, full_name))
            collector.report(labels, metric, number_or_nan(value), stderr, questions)


def _questions(run: Json, full_name: str) -> int | None:
    """Find the number of questions; tasks are listed with or without the number of shots."""
    tasks = mapping(run, "config_tasks")
    for name in (full_name, full_name.rpartition("|")[0]):
        count = mapping(tasks, name).get("effective_num_docs")
        if isinstance(count, int) and count >= 0:
            return count
    return None


def _check_complete(path: Path, rows: int, full_name: str, run: Json) -> None:
    questions = _questions(run, full_name)
    if questions is not None and rows != questions:
        raise DataError(
            f"{path.name}: {rows} rows, but the results of the run count {questions} questions. "
            f"Write or copy the file again."
        )
