"""The reader for run folders of HELM."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from toolkit.errors import DataError
from toolkit.readers import files, records
from toolkit.readers.answers import NONE, Answers
from toolkit.readers.collector import Collector, Labels
from toolkit.readers.records import Json, label, number_or_nan
from toolkit.readers.values import not_a_score

__all__ = ["helm"]

SPEC, INSTANCES, TOTALS = "run_spec.json", "per_instance_stats.json", "stats.json"
SPLITS = ("test", "valid")  # the first one that a run has is read
NOT_A_PART = ("model", "model_deployment", "method")  # of a run's name: they have their columns


def helm(path: str | Path) -> Answers:
    """Read runs of HELM.

    Parameters
    ----------
    path : str or Path
        The folder of a run (it holds ``run_spec.json``), or any folder above, such as
        ``benchmark_output``.

    Returns
    -------
    Answers
        One row per instance, train trial and metric, from ``per_instance_stats.json``. `task` is
        the scenario, `subtask` its arguments, `prompt` the adaptation method with the number of
        examples, `seed` the train trial, which draws those examples. Reported values are from
        ``stats.json``, without a standard error: the deviation there is over train trials.

    Raises
    ------
    DataError
        If a file is missing, damaged or of another kind.

    Notes
    -----
    Perturbed instances and the split that is not read are in `dropped`, and so are statistics
    that are no scores, such as the number of tokens.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> spec = {"name": "mmlu:subject=toy,model=org_m", "adapter_spec": {"model": "org/m"}}
    >>> stat = {"name": {"name": "exact_match", "split": "test"}, "count": 1, "sum": 1.0}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = pathlib.Path(folder)
    ...     _ = (run / "run_spec.json").write_text(json.dumps(spec))
    ...     _ = (run / "per_instance_stats.json").write_text(json.dumps(
    ...         [{"instance_id": "id1", "train_trial_index": 0, "stats": [stat]}]))
    ...     answers = helm(run)
    >>> answers.table[["model", "task", "subtask", "item", "score"]].values.tolist()
    [['org/m', 'mmlu', 'subject=toy', 'id1', 1.0]]
    """
    root = files.existing(path)
    specs = [root / SPEC] if (root / SPEC).is_file() else sorted(root.rglob(SPEC))
    if not specs:
        raise DataError(f"{root}: no {SPEC} here or in a folder below. Give the folder of a run.")
    collector = Collector()
    sources = [spec.parent / INSTANCES for spec in specs if (spec.parent / INSTANCES).is_file()]
    with files.progress(sources) as bar:
        for spec in specs:
            _read_run(spec, collector)
            source = spec.parent / INSTANCES
            bar.update(source.stat().st_size if source.is_file() else 0)
    return collector.answers(root)


def _read_run(spec_path: Path, collector: Collector) -> None:
    spec = files.json_file(spec_path)
    labels = _labels(spec)
    run = spec_path.parent
    if not (run / INSTANCES).is_file() and not (run / TOTALS).is_file():
        raise DataError(f"{run}: neither {INSTANCES} nor {TOTALS} beside {SPEC}.")
    if (run / INSTANCES).is_file():
        collector.open(run / INSTANCES, "entry")
        entries = _objects(run / INSTANCES)
        split = _split(stat for entry in entries for stat in _stats(entry, run / INSTANCES))
        for number, entry in enumerate(entries, start=1):
            _read_instance(entry, labels, split, number, collector)
    if (run / TOTALS).is_file():
        collector.open(run / TOTALS, "entry")
        _report(_objects(run / TOTALS), labels, collector)


def _labels(spec: Json) -> Labels:
    adapter = records.field(spec, "adapter_spec", dict, SPEC)
    scenario, _, arguments = records.text_field(spec, "name", SPEC).partition(":")
    parts = [part for part in arguments.split(",") if part.split("=")[0] not in NOT_A_PART]
    shots = label(adapter.get("max_train_instances"))
    told = [label(adapter.get("method")), f"{shots}-shot" if shots else ""]
    return Labels(
        records.text_field(adapter, "model", f"{SPEC}, adapter_spec"),
        scenario,
        ",".join(filter(None, parts)) or NONE,
        prompt=", ".join(filter(None, told)) or NONE,
    )


def _objects(path: Path) -> list[Json]:
    entries = files.parse_json(path.read_bytes(), path.name)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise DataError(f"{path.name}: a list of objects is expected.")
    return entries


def _stats(entry: Json, path: Path) -> list[Json]:
    stats: list[Json] = records.field(entry, "stats", list, path.name)
    _check_names(stats, path.name)
    return stats


def _check_names(stats: Sequence[Any], where: str) -> None:
    for stat in stats:
        name = stat.get("name") if isinstance(stat, dict) else None
        if not isinstance(name, dict) or not label(name.get("name")):
            raise DataError(f"{where}: a statistic without its name: {str(stat)[:80]}.")


def _split(stats: Any) -> str:
    found = {label(stat["name"].get("split")) for stat in stats}
    return next((split for split in SPLITS if split in found), SPLITS[0])


def _read_instance(
    entry: Json, labels: Labels, split: str, number: int, collector: Collector
) -> None:
    where = collector.where(number)
    item = records.text_field(entry, "instance_id", where)
    trial = records.text_field(entry, "train_trial_index", where)
    at = Labels(labels.model, labels.task, labels.subtask, trial, labels.prompt)
    for stat in entry["stats"]:
        metric = label(stat["name"]["name"])
        reason = _left_out(stat, entry, split) or not_a_score(metric)
        if reason:
            collector.drop(at, metric, reason, number)
            continue
        collector.add(at, metric, item, _mean(stat, where), number)


def _left_out(stat: Json, entry: Json, split: str) -> str:
    perturbation = stat["name"].get("perturbation") or entry.get("perturbation")
    if perturbation:
        name = perturbation.get("name") if isinstance(perturbation, dict) else perturbation
        return f"perturbed question ({name})"
    own = label(stat["name"].get("split"))
    return "" if own == split else f"split {own!r}; {split!r} is read"


def _mean(stat: Json, where: str) -> float | None:
    count = records.field(stat, "count", int | float, where)
    if count == 0:
        return None  # nothing was measured
    total: float = records.field(stat, "sum", int | float, where)
    return float(total / count)


def _report(stats: list[Json], labels: Labels, collector: Collector) -> None:
    _check_names(stats, TOTALS)
    split = _split(stats)
    kept = [stat for stat in stats if not _left_out(stat, {}, split)]
    values = {label(stat["name"]["name"]): _mean(stat, TOTALS) for stat in kept}
    questions = number_or_nan(values.get("num_instances"))
    for metric, value in values.items():
        if value is not None and not not_a_score(metric):
            collector.report(labels, metric, value, questions=questions)
