"""From the files of a dataset to one tidy table in the toolkit's column names."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml  # type: ignore[import-untyped]

from toolkit.datasets.registry import Entry, File
from toolkit.tables import COLUMNS

__all__ = ["build"]

Parts = Sequence[tuple[File, Path]]


def build(entry: Entry, paths: Sequence[Path]) -> pd.DataFrame:
    """Read the files of a dataset and shape them into one table.

    Parameters
    ----------
    entry : Entry
        From the registry.
    paths : sequence of Path
        One per file of the entry, content already checked.

    Returns
    -------
    DataFrame
        Rows in the order of the files. Counts, losses and scores are float64, so that products
        such as 6·N·D cannot overflow.
    """
    parts = list(zip(entry.files, paths, strict=True))
    recipe = entry.recipe
    table = _melt(parts, recipe.melt) if recipe.shape == "melt" else _SHAPES[recipe.shape](parts)
    table = table.drop(columns=list(recipe.drop))
    table = table.rename(columns={theirs: ours for ours, theirs in recipe.rename.items()})
    for name, factor in recipe.factor.items():
        table[name] = table[name].astype(float) * factor
    for name in table.columns:
        if name in COLUMNS and COLUMNS[name].kind != "label":
            table[name] = table[name].astype(np.float64)
    return table.reset_index(drop=True)


def _read(path: Path) -> pd.DataFrame:
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    if path.suffix == ".jsonl":
        return pd.DataFrame(_json_lines(path))
    separator = "\t" if path.suffix == ".tsv" else ","
    return pd.read_csv(path, sep=separator, low_memory=False)


def _json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def _labelled(parts: Parts) -> Iterator[pd.DataFrame]:
    """Read every file, its labels in front of its own columns."""
    for file, path in parts:
        table = _read(path)
        for place, (name, value) in enumerate(file.labels.items()):
            table.insert(place, name, value)
        yield table


def _stack(parts: Parts) -> pd.DataFrame:
    return pd.concat(_labelled(parts), ignore_index=True)


def _melt(parts: Parts, how: Mapping[str, Any]) -> pd.DataFrame:
    """Turn tables with one column per model or data size into one row per value."""
    long = [
        table.melt([*file.labels, *how["keep"]], var_name=how["variable"], value_name=how["value"])
        for (file, _), table in zip(parts, _labelled(parts), strict=True)
    ]
    table = pd.concat(long, ignore_index=True)
    if "strip" in how:
        table[how["variable"]] = table[how["variable"]].str.removesuffix(how["strip"])
    return table


def _chinchilla_points(parts: Parts) -> pd.DataFrame:
    """Add tokens from C = 6·N·D: the figure has axes of parameters and FLOPs only."""
    table = _stack(parts)
    params, flops = table["Model Size"], table["Training FLOP"]
    return pd.DataFrame(
        {
            "point": np.arange(len(table)),
            "params": params,
            "tokens": flops / (6 * params),
            "flops": flops,
            "loss": table["loss"],
        }
    )


def _opt_trajectories(parts: Parts) -> pd.DataFrame:
    """Undo the logarithms of tokens and FLOPs; turn perplexity into nats per token."""
    table = _stack(parts)
    sizes = table["model_size"].str.upper().replace({"M$": "e6", "B$": "e9"}, regex=True)
    return pd.DataFrame(
        {
            "run": "OPT-" + table["model_size"].str.upper(),
            "step": table["steps"],
            "params": sizes.astype(float),
            "tokens": 10.0 ** table["num_token"],
            "flops": 10.0 ** table["flops"],
            "loss": np.log(table["ppl"]),
        }
    )


def _finetuning(parts: Parts) -> pd.DataFrame:
    how = {"keep": ["config name", "family", "size"], "variable": "examples", "value": "loss"}
    table = _melt(parts, how)
    table["examples"] = table["examples"].astype(int)
    return table


def _question_attempts(parts: Parts) -> pd.DataFrame:
    """Split question numbers such as 3.2 into question 3, repeat 2."""
    table = _melt(parts, {"keep": ["Question"], "variable": "model", "value": "score"})
    tenths = (table.pop("Question") * 10).round().astype(int)
    table.insert(0, "item", tenths // 10)
    table.insert(1, "epoch", tenths % 10)
    return table


def _release_dates(parts: Parts) -> pd.DataFrame:
    rows = [
        {**file.labels, "model": model, "released": str(date)}
        for file, path in parts
        for model, date in yaml.safe_load(path.read_text(encoding="utf-8"))["date"].items()
    ]
    return pd.DataFrame(rows)


def _time_horizons(parts: Parts) -> pd.DataFrame:
    return pd.DataFrame(
        {**file.labels, **_time_horizon(model, found)}
        for file, path in parts
        for model, found in yaml.safe_load(path.read_text(encoding="utf-8"))["results"].items()
    )


def _time_horizon(model: str, found: Mapping[str, Any]) -> dict[str, Any]:
    metrics = found["metrics"]
    row = {
        "model": model,
        "released": str(found["release_date"]),
        "score": metrics["average_score"]["estimate"],
        "state_of_the_art": metrics["is_sota"],
    }
    for level in ("p50", "p80"):
        horizon = metrics[f"{level}_horizon_length"]
        row[f"{level}_minutes"] = horizon["estimate"]
        row[f"{level}_lower"] = horizon["ci_low"]
        row[f"{level}_upper"] = horizon["ci_high"]
    return row


def _subject_answers(parts: Parts) -> pd.DataFrame:
    rows = [
        {"model": subject["subject_id"], "item": item, "score": score}
        for _, path in parts
        for subject in _json_lines(path)
        for item, score in subject["responses"].items()
    ]
    return pd.DataFrame(rows)


def _ladder_losses(parts: Parts) -> pd.DataFrame:
    names = {"ns": "params", "ds": "tokens", "fs": "flops", "xs": "bits_per_byte", "ls": "multiple"}
    tables = [
        pd.DataFrame({ours: sizes[theirs] for theirs, ours in names.items()}).assign(
            model=model, use=sizes["mode"]
        )
        for _, path in parts
        for model, sizes in json.loads(path.read_text(encoding="utf-8")).items()
    ]
    table = pd.concat(tables, ignore_index=True)
    return table[["model", "multiple", "use", "params", "tokens", "flops", "bits_per_byte"]]


def _headline_scores(parts: Parts) -> pd.DataFrame:
    """Take each benchmark's headline column as a fraction; the other columns differ by file."""
    tables = []
    for file, path in parts:
        raw = pd.read_csv(path)
        blank = pd.Series(np.nan, index=raw.index, dtype=object)
        tables.append(
            pd.DataFrame(
                {
                    **file.labels,
                    "model": raw["Model version"],
                    "reported_name": raw.get("Name", blank),
                    "shots": raw.get("Shots", blank).astype("string"),
                    "score": _fraction(raw[file.options["column"]]) / file.options.get("per", 1),
                    "source": raw["Source"],
                }
            )
        )
    return pd.concat(tables, ignore_index=True)


def _fraction(values: pd.Series) -> pd.Series:
    """Read 75.3% as 0.753 and leave plain numbers as they are."""
    text = values.astype("string").str.strip()
    percent = text.str.endswith("%").fillna(False).astype(bool)
    numbers = pd.to_numeric(text.str.rstrip("%")).astype(float)
    return numbers.where(~percent, numbers / 100)


_SHAPES: Mapping[str, Callable[[Parts], pd.DataFrame]] = {
    "stack": _stack,
    "chinchilla_points": _chinchilla_points,
    "opt_trajectories": _opt_trajectories,
    "finetuning": _finetuning,
    "question_attempts": _question_attempts,
    "release_dates": _release_dates,
    "time_horizons": _time_horizons,
    "subject_answers": _subject_answers,
    "ladder_losses": _ladder_losses,
    "headline_scores": _headline_scores,
}
