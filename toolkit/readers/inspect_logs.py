"""The reader for logs of Inspect, as JSON or as `.eval` archives."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkit.errors import DataError
from toolkit.readers import files, records
from toolkit.readers.answers import NONE, Answers
from toolkit.readers.collector import Collector, Labels
from toolkit.readers.files import Progress
from toolkit.readers.records import Json, label, mapping, number_or_nan
from toolkit.readers.values import not_a_score

__all__ = ["inspect"]

VERSION = 2
NOT_LOGS = ("logs.json", "eval-set.json", "manifest.json")  # lists of logs that the tool keeps
# The tool's own values for text (its function value_to_float), in lower case.
WORDS = {
    **{"c": 1.0, "i": 0.0, "p": 0.5, "n": 0.0},
    **{"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0},
}
MEANS = ("accuracy", "mean")


@dataclass(frozen=True, slots=True)
class _Log:
    """A log without its samples, and the samples one by one with the name of their place."""

    header: Json
    samples: Iterator[tuple[str, Json]]


def inspect(path: str | Path, *, cluster: str | None = None) -> Answers:
    """Read logs of Inspect.

    Parameters
    ----------
    path : str or Path
        A log (``.eval`` or ``.json``), or a folder, which is read with all folders below it.
    cluster : str, optional
        Field of the samples' metadata that tells which questions belong together. When None, the
        field that the scorer's own standard error was clustered by, if it was.

    Returns
    -------
    Answers
        One row per sample, epoch and scorer; `metric` is the name of the scorer, with
        ``/key`` where a score holds several values. Arguments passed to the task are its
        `subtask`. Reported values are each scorer's accuracy or mean; a reducer other than the
        mean over epochs is the `filter`.

    Raises
    ------
    DataError
        If a log is damaged (naming the member of the archive), of another kind or version, or
        holds fewer samples than it counts.

    Notes
    -----
    C, P and I (or N, no answer) count 1, 0.5 and 0, as do yes, true and no, false. Other text is
    no score: it is in `dropped`, where the tool itself counts it as wrong. NaN is unscored. For
    a log that did not end in success, the samples that are missing are in `dropped`.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> sample = {"id": "q1", "epoch": 1, "scores": {"match": {"value": "C"}}}
    >>> log = {"version": 2, "status": "success", "samples": [sample],
    ...        "eval": {"task": "toy", "model": "org/m"}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "log.json")
    ...     _ = path.write_text(json.dumps(log))
    ...     answers = inspect(path)
    >>> answers.table[["model", "task", "item", "epoch", "metric", "score"]].values.tolist()
    [['org/m', 'toy', 'q1', 1, 'match', 1.0]]
    """
    root = files.existing(path)
    logs = [root]
    if root.is_dir():
        found = [*root.rglob("*.eval"), *root.rglob("*.json")]
        logs = sorted(log for log in found if log.name not in NOT_LOGS)
    elif root.suffix not in (".eval", ".json"):
        raise DataError(f"{root.name}: a log (.eval or .json) or a folder of logs is expected.")
    if not logs:
        raise DataError(f"{root}: no .eval and no .json in this folder.")
    collector = Collector()
    with files.progress(logs) as bar:
        for path_of_log in logs:
            with _opened(path_of_log, bar, cluster) as log:
                _read(path_of_log, log, cluster, collector)
    return collector.answers(root)


@contextmanager
def _opened(path: Path, bar: Progress, cluster: str | None) -> Iterator[_Log]:
    if path.suffix == ".json":
        header = files.json_file(path)
        bar.update(path.stat().st_size)
        samples = header.pop("samples", None)
        samples = samples if isinstance(samples, list) else []
        places = ((f"{path.name}, sample {n}", sample) for n, sample in enumerate(samples, 1))
        yield _Log(header, places)
        return
    with files.zip_archive(path) as archive:
        names = archive.namelist()
        ended = "header.json" in names  # a run that was stopped by force has only its journal
        name = "header.json" if ended else "_journal/start.json"
        header = files.zip_member(archive, name)
        if isinstance(header, dict):
            header.setdefault("status", "started")
        members = [member for member in names if member.startswith("samples/")]

        def samples() -> Iterator[tuple[str, Json]]:
            wanted = cluster or _own_cluster(header)
            if "summaries.json" in names:  # the scores without the transcripts: far less to unpack
                summaries = files.zip_member(archive, "summaries.json")
                if _summaries_do(summaries, len(members), wanted):
                    bar.update(path.stat().st_size)
                    for n, summary in enumerate(summaries, 1):
                        yield f"{path.name}, member summaries.json, sample {n}", summary
                    return
            for member in members:
                yield f"{path.name}, member {member}", files.zip_member(archive, member)
                bar.update(archive.getinfo(member).compress_size)

        yield _Log(header, samples())


def _summaries_do(summaries: Any, samples: int, cluster: str | None) -> bool:
    """Tell whether all samples are in the summaries, which leave out long metadata."""
    return (
        isinstance(summaries, list)
        and len(summaries) == samples
        and all(isinstance(summary, dict) for summary in summaries)
        and (cluster is None or all(cluster in mapping(s, "metadata") for s in summaries))
    )


def _read(path: Path, log: _Log, cluster: str | None, collector: Collector) -> None:
    collector.open(path, "sample")
    header = log.header if isinstance(log.header, dict) else {}
    spec = records.field(header, "eval", dict, path.name)
    version = header.get("version", VERSION)
    if version != VERSION:
        raise DataError(
            f"{path.name}: a log of version {version}; version {VERSION} is read. Convert it with "
            f"the tool's command for old logs."
        )
    labels = _labels(spec, path.name)
    grouped_by = cluster or _own_cluster(header)
    count = 0
    for count, (where, sample) in enumerate(log.samples, start=1):
        if not isinstance(sample, dict):
            raise DataError(f"{where}: an object with named fields is expected.")
        _read_sample(sample, labels, grouped_by, count, where, collector)
    _check_complete(path.name, header, spec, count, labels, collector)
    for metric, reducer, value, stderr, scored in _reported(header):
        at = Labels(labels.model, labels.task, labels.subtask, labels.seed, NONE, reducer)
        collector.report(at, metric, value, stderr, scored)


def _labels(spec: Json, name: str) -> Labels:
    passed = mapping(spec, "task_args_passed")
    subtask = ",".join(f"{key}={value}" for key, value in passed.items()) or NONE
    seed = label(mapping(spec, "model_generate_config").get("seed"))
    return Labels(
        records.text_field(spec, "model", f"{name}, eval"),
        records.text_field(spec, "task", f"{name}, eval"),
        subtask,
        seed or NONE,
    )


def _read_sample(
    sample: Json,
    labels: Labels,
    cluster: str | None,
    number: int,
    where: str,
    collector: Collector,
) -> None:
    item = records.text_field(sample, "id", where)
    epoch = records.field(sample, "epoch", int, where)
    scores = sample.get("scores")
    if not scores:
        why = "the sample ended in an error" if sample.get("error") else "unscored"
        collector.drop(labels, "all", why, number, item=item, epoch=epoch)
        return
    group = None
    if cluster is not None:
        metadata = records.field(sample, "metadata", dict, where)
        group = records.text_field(metadata, cluster, f"{where}, metadata")
    for scorer in records.field(sample, "scores", dict, where):
        score = records.field(scores, scorer, dict, where)
        for metric, value in _values(scorer, records.field(score, "value", object, where)):
            reason = not_a_score(metric.rpartition("/")[2])
            if reason:
                collector.drop(labels, metric, reason, number)
                continue
            collector.add(
                labels, metric, item, value, number, epoch=epoch, cluster=group, words=WORDS
            )


def _values(scorer: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((f"{scorer}/{key}", part) for key, part in value.items())
    else:
        yield scorer, value


def _entries(header: Json) -> list[Json]:
    entries = mapping(header, "results").get("scores")
    entries = entries if isinstance(entries, list) else []
    return [entry for entry in entries if isinstance(entry, dict)]


def _own_cluster(header: Any) -> str | None:
    """Return the metadata field by which the log's own standard error was clustered."""
    if not isinstance(header, dict):
        return None
    for entry in _entries(header):
        for name in mapping(entry, "metrics"):
            metric = mapping(entry["metrics"], name)
            cluster = label(mapping(metric, "params").get("cluster"))
            if metric.get("name") == "stderr" and cluster:
                return cluster
    return None


def _reported(header: Json) -> Iterator[tuple[str, str, float, float, float]]:
    for entry in _entries(header):
        name, scorer = label(entry.get("name")), label(entry.get("scorer"))
        metrics = mapping(entry, "metrics")
        means = [
            number_or_nan(mapping(metrics, key).get("value")) for key in MEANS if key in metrics
        ]
        if not means:
            continue
        reducer = label(entry.get("reducer"))
        yield (
            scorer if name == scorer else f"{scorer}/{name}",
            NONE if reducer in ("", "mean") else reducer,
            means[0],
            number_or_nan(mapping(metrics, "stderr").get("value")),
            number_or_nan(entry.get("scored_samples")),
        )


def _check_complete(
    name: str, header: Json, spec: Json, count: int, labels: Labels, collector: Collector
) -> None:
    status = header.get("status", "success")
    results = mapping(header, "results")
    total = results.get("total_samples")
    if total is None:
        questions = mapping(spec, "dataset").get("samples")
        epochs = mapping(spec, "config").get("epochs") or 1
        total = questions * epochs if isinstance(questions, int) and isinstance(epochs, int) else 0
    if status == "success":
        if count == 0:
            raise DataError(f"{name}: a log without samples. Log them (log_samples) and run again.")
        completed = results.get("completed_samples")
        if isinstance(completed, int) and count < completed:
            raise DataError(
                f"{name}: {count} samples, but the log counts {completed}. Write or copy it again."
            )
    elif isinstance(total, int) and count < total:
        reason = f"missing: the run's status is {status!r}"
        collector.drop(labels, "all", reason, answers=total - count)
