"""The reader for lm-evaluation-harness: finds its files and puts the ones of a run together."""

import re
from pathlib import Path

from toolkit.errors import DataError
from toolkit.readers import files
from toolkit.readers.answers import Answers
from toolkit.readers.collector import Collector
from toolkit.readers.lm_eval_results import Run, read_run, report_values
from toolkit.readers.lm_eval_samples import read_samples, read_write_out

__all__ = ["lm_eval"]

STAMP = re.compile(r"_(\d{4}-\d{2}-\d{2}T\d{2}[-:]\d{2}[-:]\d{2}(?:\.\d+)?)$")
WRITE_OUT = "_write_out_info"

Pairs = dict[tuple[Path, str], Path]  # results file by folder and time stamp


def lm_eval(path: str | Path, *, cluster: str | None = None) -> Answers:
    """Read results and samples of lm-evaluation-harness, versions 0.3 and 0.4.

    Parameters
    ----------
    path : str or Path
        A folder, which is read with all folders below it; a results file (``.json``), which is
        read with its samples; or a samples file (``.jsonl``), read with the names that the
        results file beside it gives.
    cluster : str, optional
        Field of the documents that tells which questions belong together, for example
        ``"passage"``.

    Returns
    -------
    Answers
        Answers come from the samples, reported values from the results. A task inside a group
        has the outermost group as `task` and its own name as `subtask`. `seed` reads like the
        harness's option ``--seed``; a revision other than ``main`` is part of the model's name.

    Raises
    ------
    DataError
        If a file is damaged, of another kind or incomplete, or two runs answer the same
        questions; the message names the file, the line and the byte.

    Notes
    -----
    Averages over groups are not taken over; they are in `dropped`. Metrics where lower is better
    and corpus metrics, whose samples hold lists, have no rows in `table`. With ``repeats``, the
    harness scores the responses to a question once: one row. Before 0.4.7 the lines did not
    name their filter; the results file gives the names, without it they are ``unnamed 1``, ...

    Without a results file, the model is named by the folder, and the groups are not known.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> line = {"doc_id": 0, "filter": "none", "metrics": ["acc"], "acc": 1.0}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "samples_arc_easy_2026-01-31T10-00-00.jsonl")
    ...     _ = path.write_text(json.dumps(line))
    ...     answers = lm_eval(path)
    >>> answers.table[["task", "item", "filter", "metric", "score"]].values.tolist()
    [['arc_easy', '0', 'none', 'acc', 1.0]]
    """
    root = files.existing(path)
    results, samples = _find(root)
    collector = Collector()
    runs: dict[Path, Run] = {}
    for found in results.values():
        runs[found] = read_run(found)
        if root.is_dir() or root.suffix == ".json":
            collector.open(found, "entry")
            report_values(runs[found], collector)
    with files.progress(samples) as bar:
        for sample in samples:
            name, stamp = _split(sample)
            beside = results.get((sample.parent, stamp))
            run = Run(sample.parent.resolve().name) if beside is None else runs[beside]
            task = _task(name, run)
            if sample.suffix == ".json":
                read_write_out(sample, task, run, collector)
            else:
                read_samples(sample, task, run, cluster, collector, bar)
    return collector.answers(root)


def _find(root: Path) -> tuple[Pairs, list[Path]]:
    """Return the results files by folder and stamp, and the samples files."""
    if root.is_dir():
        found = sorted(path for path in root.rglob("*.json*") if path.is_file())
    elif root.suffix in (".json", ".jsonl"):
        found = sorted(path for path in root.parent.glob("*.json*") if path.is_file())
    else:
        raise DataError(
            f"{root.name}: a results file (.json), a samples file (.jsonl) or a folder of them "
            f"is expected."
        )
    samples = [path for path in found if path.suffix == ".jsonl" or path.stem.endswith(WRITE_OUT)]
    results: Pairs = {}
    for path in found:
        name, stamp = _split(path)
        other = path.suffix != ".json" or path in samples
        if other or not (path == root or stamp or name.startswith("results")):
            continue
        if (path.parent, stamp) in results:
            both = f"{results[path.parent, stamp].name} and {path.name}"
            raise DataError(f"{path.parent}: {both} belong to one time. Keep each in a folder.")
        results[path.parent, stamp] = path
    if root.is_file():
        samples, results = _of_one_run(root, samples, results)
    if not results and not samples:
        raise DataError(f"{root}: no results*.json and no samples*.jsonl in this folder.")
    return results, samples


def _of_one_run(root: Path, samples: list[Path], results: Pairs) -> tuple[list[Path], Pairs]:
    stamp = _split(root)[1]
    alone = root in samples
    same = [root] if alone else [path for path in samples if _split(path)[1] == stamp]
    return same, {key: path for key, path in results.items() if key[1] == stamp}


def _split(path: Path) -> tuple[str, str]:
    """Split a file name into what comes before the time stamp, and the stamp ("" for none)."""
    match = STAMP.search(path.stem)
    return (path.stem[: match.start()], match.group(1)) if match else (path.stem, "")


def _task(name: str, run: Run) -> str:
    """Find the task in the name of a samples file; before 0.4.3 the model came before it."""
    name = name.removesuffix(WRITE_OUT)
    if name.startswith("samples_"):
        return name.removeprefix("samples_")
    ends = [task for task in run.tasks if name == task or name.endswith(f"_{task}")]
    return max(ends, key=len, default=name)
