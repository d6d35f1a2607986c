"""Results files of lm-evaluation-harness 0.3 and 0.4: names, groups, filters and task values."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from toolkit.readers import files, records
from toolkit.readers.answers import NONE
from toolkit.readers.collector import Collector, Labels
from toolkit.readers.records import Json, mapping, number_or_nan

__all__ = ["Run", "read_run", "report_values"]

MODEL_ARGUMENTS = ("peft", "delta", "pretrained", "model", "path", "engine")
SEEDS = ("random_seed", "numpy_seed", "torch_seed", "fewshot_seed")


@dataclass(frozen=True, slots=True)
class Run:
    """What a results file says about the run that its samples files do not.

    Attributes
    ----------
    model, seed : str
        The seed is written as the harness's option ``--seed`` takes it.
    tasks : mapping of str to mapping
        The file's entry for each task, groups of tasks left out.
    groups : mapping of str to mapping
        The file's entry for each group.
    parents : mapping of str to str
        Outermost group of each task that is in one.
    shots, questions : mapping of str to int
    higher_is_better : mapping of str to mapping of str to bool
        By task and metric.
    """

    model: str
    seed: str = NONE
    tasks: Mapping[str, Json] = field(default_factory=dict)
    groups: Mapping[str, Json] = field(default_factory=dict)
    parents: Mapping[str, str] = field(default_factory=dict)
    shots: Mapping[str, int] = field(default_factory=dict)
    questions: Mapping[str, int] = field(default_factory=dict)
    higher_is_better: Mapping[str, Mapping[str, bool]] = field(default_factory=dict)

    def labels(self, task: str, filter_name: str) -> Labels:
        """Say where the answers to a task belong."""
        group = self.parents.get(task)
        prompt = f"{self.shots[task]}-shot" if task in self.shots else NONE
        if group is None:
            return Labels(self.model, task, NONE, self.seed, prompt, filter_name)
        return Labels(self.model, group, task, self.seed, prompt, filter_name)

    def filters(self, task: str) -> list[str]:
        """Return the filters of a task, in the order in which the harness applied them."""
        entry = self.tasks.get(task, {})
        return list(dict.fromkeys(name for _, name, _, _ in values(entry)))


def read_run(path: Path) -> Run:
    """Read a results file.

    Raises
    ------
    DataError
        If the file is no results file or is damaged.
    """
    data = files.json_file(path)
    entries = records.field(data, "results", dict, path.name)
    for task in entries:
        records.field(entries, task, dict, f"{path.name}, results")
    config = mapping(data, "config")
    subtasks = {
        group: parts
        for group, parts in mapping(data, "group_subtasks").items()
        if isinstance(parts, list) and parts
    }
    groups = set(subtasks) | set(mapping(data, "groups"))
    tasks = {task: entry for task, entry in entries.items() if task not in groups}
    shots = mapping(data, "n-shot") or dict.fromkeys(tasks, config.get("num_fewshot"))
    return Run(
        _model(data, config) or path.parent.resolve().name,
        _seed(config),
        tasks,
        {group: entry for group, entry in entries.items() if group in groups},
        _parents(tasks, subtasks) if subtasks else _parents_by_alias(entries, groups),
        {task: count for task, count in shots.items() if isinstance(count, int)},
        {
            task: count["effective"]
            for task, count in mapping(data, "n-samples").items()
            if isinstance(count, dict) and isinstance(count.get("effective"), int)
        },
        {
            task: better
            for task, better in mapping(data, "higher_is_better").items()
            if isinstance(better, dict)
        },
    )


def report_values(run: Run, collector: Collector) -> None:
    """Report the values of every task; averages over a group go to the ledger."""
    for task, entry in run.tasks.items():
        for metric, filter_name, value, stderr in values(entry):
            labels = run.labels(task, filter_name)
            questions = run.questions.get(task, math.nan)
            collector.report(labels, metric, value, stderr, questions)
    for group, entry in run.groups.items():
        for metric, filter_name, _, _ in values(entry):
            labels = run.labels(group, filter_name)
            collector.drop(labels, metric, "an average over the tasks of a group")


def values(entry: Json) -> Iterator[tuple[str, str, float, float]]:
    """Yield metric, filter, value and standard error of one entry.

    Since 0.4 keys read ``metric,filter``; before, there were no filters.
    """
    filtered = any("," in key for key in entry)
    for key, value in entry.items():
        metric, comma, filter_name = key.rpartition(",")
        if not comma:
            metric, filter_name = key, NONE
        text = isinstance(value, bool) or not isinstance(value, int | float)
        if text or metric.endswith("_stderr") or filtered != bool(comma):
            continue
        stderr = entry.get(f"{metric}_stderr{comma}{filter_name if comma else ''}")
        yield metric, filter_name, number_or_nan(value), number_or_nan(stderr)


def _model(data: Json, config: Json) -> str:
    arguments = config.get("model_args")
    if isinstance(arguments, str):
        pairs = (part.partition("=") for part in arguments.split(","))
        arguments = {name.strip(): value for name, _, value in pairs}
    if not isinstance(arguments, dict):
        arguments = {}
    named = [arguments.get(name) for name in MODEL_ARGUMENTS]
    model = next(filter(None, [data.get("model_name"), *named, config.get("model")]), "")
    revision = arguments.get("revision")  # checkpoints of one model differ in nothing else
    return f"{model}@{revision}" if revision and revision != "main" else str(model)


def _seed(config: Json) -> str:
    seeds = [config.get(name) for name in SEEDS]
    return NONE if seeds == [None] * len(SEEDS) else ",".join(map(str, seeds))


def _parents(tasks: Json, subtasks: Mapping[str, list[str]]) -> dict[str, str]:
    """Climb from each task to its outermost group; of two groups, the first listed counts."""
    above: dict[str, str] = {}
    for group, parts in subtasks.items():
        for part in parts:
            above.setdefault(part, group)
    parents = {}
    for task in tasks:
        climbed = [task]
        while climbed[-1] in above and above[climbed[-1]] not in climbed:
            climbed.append(above[climbed[-1]])
        if len(climbed) > 1:
            parents[task] = climbed[-1]
    return parents


def _parents_by_alias(entries: Json, groups: set[str]) -> dict[str, str]:
    """Before `group_subtasks`, indented aliases followed the alias of their group."""
    parents = {}
    group = None
    for task, entry in entries.items():
        if not str(entry.get("alias", "")).startswith(" "):
            group = task if task in groups else None
        elif group is not None and task not in groups:
            parents[task] = group
    return parents
