"""The reader for details of the Open LLM Leaderboard, and what lighteval's details share."""

import re
from pathlib import Path

from toolkit.errors import DataError
from toolkit.readers import files
from toolkit.readers.answers import Answers
from toolkit.readers.collector import Collector
from toolkit.readers.lm_eval_runs import lm_eval
from toolkit.readers.parquet_details import Layout, read_details, task_labels

__all__ = ["open_llm_leaderboard"]

# Flat tables hold the metrics beside everything else; these are the ones version 1 computed.
LAYOUT = Layout(("metrics",), ("acc", "acc_norm", "mc1", "mc2", "em", "f1"))
NAME = re.compile(r"details_(?P<task>.+\|\d+)(?:[_|].*)?$")


def open_llm_leaderboard(path: str | Path, *, model: str | None = None) -> Answers:
    """Read details of the Open LLM Leaderboard, of version 1 (Parquet) or version 2 (JSON lines).

    Parameters
    ----------
    path : str or Path
        A details file, or a folder, which is read with all folders below it.
    model : str, optional
        Name of the model, for Parquet files, which do not hold it. When None, the name in a
        folder ``details_org__model``, or else the name of the file's folder.

    Returns
    -------
    Answers
        One row per question and metric. Questions of version 1 are numbered by row, from 0. A
        task such as ``arc:challenge`` has the part after the colon as `subtask`. Files of
        version 2 are read by `lm_eval`, which wrote them.

    Raises
    ------
    DataError
        If a file is damaged or of another kind.

    Examples
    --------
    >>> import pathlib, tempfile, pandas as pd
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "details_harness|arc:challenge|25_2023-08-01.parquet")
    ...     pd.DataFrame({"metrics.acc": [0.0, 1.0]}).to_parquet(path)
    ...     answers = open_llm_leaderboard(path, model="org/m")
    >>> answers.table[["task", "subtask", "prompt", "item", "score"]].values.tolist()
    [['arc', 'challenge', '25-shot', '0', 0.0], ['arc', 'challenge', '25-shot', '1', 1.0]]
    """
    root = files.existing(path)
    found = sorted(root.rglob("*.parquet")) if root.is_dir() else [root]
    if root.suffix == ".jsonl" or (root.is_dir() and not found and any(root.rglob("*.jsonl"))):
        return lm_eval(root)
    if root.is_file() and root.suffix != ".parquet":
        raise DataError(f"{root.name}: details (.parquet or .jsonl) or a folder expected.")
    if not found:
        raise DataError(f"{root}: no .parquet and no .jsonl in this folder.")
    collector = Collector()
    with files.progress(found) as bar:
        for details in found:
            name = model or _model(details)
            match = NAME.match(details.stem)
            if match is None:
                raise DataError(
                    f"{details.name}: the name is not details_<suite>|<task>|<shots>_..., from "
                    f"which the task is taken."
                )
            read_details(details, task_labels(match["task"], name), LAYOUT, collector, bar)
    return collector.answers(root)


def _model(path: Path) -> str:
    for folder in path.resolve().parents:
        if folder.name.startswith("details_"):
            return folder.name.removeprefix("details_").replace("__", "/", 1)
    return path.resolve().parent.name
