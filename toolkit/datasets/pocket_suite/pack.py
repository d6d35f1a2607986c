"""Pack raw results into the three bundled tables, on top of what is bundled already.

The tables are a complete record: a run that is in them need not be done again, and packing new
results keeps what was packed before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet

from toolkit.datasets import pocket
from toolkit.datasets.pocket_suite.tasks import Item

# 384 windows of 128 predicted tokens, of code and of prose: their tokens per byte of text.
TOKENS = 384 * 128
BYTES = {"code": 101_245, "prose": 92_209}
# Far below the noise; learning rates have five decimals.
DECIMALS = 6
RUNS, CURVES, ITEMS = "pocket_runs.parquet", "pocket_curves.parquet", "pocket_items.parquet"

Raw = Mapping[str, npt.NDArray[Any]]


def pack(results: Path, items: Sequence[Item], bundled: Path) -> dict[str, int]:
    """Add the finished runs in ``results/raw`` to the tables in ``bundled``.

    Parameters
    ----------
    results : Path
        Where the suite was run.
    items : sequence of Item
        The questions, in the order they were asked.
    bundled : Path
        Folder of the tables; those that are not there yet are made.

    Returns
    -------
    dict of str to int
        Rows of the three tables; of ``pocket_items``, after decoding.

    Raises
    ------
    ValueError
        The bundled answers are to other questions.
    """
    known = packed_runs(bundled)
    paths = sorted((results / "raw").glob("[!.]*.npz"))
    raws = [dict(np.load(path)) for path in paths if path.stem not in known]
    facts = [json.loads(str(raw["facts"])) for raw in raws]
    answers = np.array([item.answer for item in items])
    _append(
        bundled / RUNS,
        pd.DataFrame([_run_row(*pair, items) for pair in zip(facts, raws, strict=True)]),
    )
    curves = [_curve_rows(fact, raw) for fact, raw in zip(facts, raws, strict=True)]
    _append(bundled / CURVES, pd.concat(curves) if curves else pd.DataFrame())
    lengths = np.array([len(item.options[item.answer].encode()) for item in items])
    evaluations, columns = [], []
    for fact, raw in zip(facts, raws, strict=True):
        evaluations += [(fact["run"], int(raw["tokens"][row])) for row in raw["scored"]]
        columns += [encode(scores, answers, lengths) for scores in raw["scores"]]
    _append_answers(bundled / ITEMS, items, evaluations, columns)
    stored = parquet.read_table(bundled / ITEMS)
    count = len(json.loads(stored.schema.metadata[pocket.EVALUATIONS]))
    rows = {name: parquet.read_metadata(bundled / name).num_rows for name in (RUNS, CURVES)}
    return rows | {ITEMS: count * stored.num_rows}


def packed_runs(bundled: Path) -> set[str]:
    """Names of the runs that the tables in ``bundled`` hold."""
    path = bundled / RUNS
    return set(pd.read_parquet(path, columns=["run"])["run"]) if path.exists() else set()


def encode(
    scores: npt.NDArray[np.float32], answers: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]
) -> dict[str, npt.NDArray[np.uint8]]:
    """Quantise the answers of one evaluation.

    Parameters
    ----------
    scores : array, shape (items, 4)
        Log-likelihoods of the options, in nats.
    answers, lengths : array of int, shape (items,)
        Place of the right option, and its bytes.

    Returns
    -------
    dict of array of uint8, shape (items,)
        ``correct``, ``choice_1`` to ``choice_3`` (hundredths) and ``loglik``.
    """
    wide = scores.astype(np.float64)
    percent = _whole_percent(wide)
    right = wide[np.arange(len(answers)), answers] / lengths
    loglik = np.rint(pocket.LOGLIK_STEPS * np.sqrt(np.maximum(-right, 0)))
    return {
        "correct": (scores.argmax(1) == answers).astype(np.uint8),
        **{name: percent[:, place] for place, name in enumerate(pocket.STORED_OPTIONS)},
        "loglik": np.minimum(loglik, 255).astype(np.uint8),
    }


def _whole_percent(scores: npt.NDArray[np.float64]) -> npt.NDArray[np.uint8]:
    """Turn log-likelihoods into probabilities in hundredths that add up to a hundred."""
    weights = np.exp(scores - scores.max(1, keepdims=True))
    exact = 100 * weights / weights.sum(1, keepdims=True)
    down = np.floor(exact).astype(np.int64)
    missing = 100 - down.sum(1, keepdims=True)
    rank = np.argsort(np.argsort(down - exact, axis=1, kind="stable"), axis=1)
    return (down + (rank < missing)).astype(np.uint8)


def _run_row(fact: dict[str, Any], raw: Raw, items: Sequence[Item]) -> dict[str, Any]:
    settings = fact["settings"]
    ended = len(raw["loss"]) > 0 and not np.isnan(raw["loss"][-1]).any()
    code, prose = raw["loss"][-1] if ended else (np.nan, np.nan)
    last = {name: raw[name][-1] if len(raw[name]) else np.nan for name in _MEASURED}
    return {
        "run": fact["run"],
        "part": fact["part"],
        "seed": settings["seed"],
        "recipe": settings["recipe"],
        "width": settings["shape"]["width"],
        "depth": settings["shape"]["depth"],
        "params": fact["params"],
        "params_embedding": fact["params_embedding"],
        "tokens": fact["tokens_seen"],
        "tokens_unique": fact["tokens_unique"],
        "flops": 6 * (fact["params"] + fact["params_embedding"]) * fact["tokens_seen"],
        "flops_exact": fact["flops_exact"],
        "batch": settings["batch"],
        "learning_rate": settings["learning_rate"],
        "tuned": fact["tuned"],
        "diverged": fact["diverged"] or not ended,
        "loss": (code + prose) / 2,
        "loss_code": code,
        "loss_prose": prose,
        "bits_per_byte_code": _bits_per_byte(code, "code"),
        "bits_per_byte_prose": _bits_per_byte(prose, "prose"),
        "loss_train": last["train_loss"],
        **_accuracies(raw, items),
        "cpu_seconds": last["cpu_seconds"],
        "wall_seconds": last["wall_seconds"],
        "evaluation_seconds": fact["evaluation_seconds"],
    }


_MEASURED = ("train_loss", "cpu_seconds", "wall_seconds")


def _accuracies(raw: Raw, items: Sequence[Item]) -> dict[str, float]:
    """Share of right answers of each task with its plain prompt, at the end of the run."""
    tasks = dict.fromkeys(item.task for item in items)
    if not len(raw["scores"]):
        return {f"accuracy_{task}": np.nan for task in tasks}
    correct = raw["scores"][-1].argmax(1) == [item.answer for item in items]
    plain = np.array([item.prompt == "plain" for item in items])
    names = np.array([item.task for item in items])
    return {f"accuracy_{task}": float(correct[plain & (names == task)].mean()) for task in tasks}


def _curve_rows(fact: dict[str, Any], raw: Raw) -> pd.DataFrame:
    count = fact["params"] + fact["params_embedding"]
    return pd.DataFrame(
        {
            "run": fact["run"],
            "checkpoint": raw["tokens"].astype(np.int64),
            "flops": 6.0 * count * raw["tokens"],
            "loss": raw["curve_loss"].mean(1),
            "loss_code": raw["curve_loss"][:, 0],
            "loss_prose": raw["curve_loss"][:, 1],
            "loss_all_windows": raw["loss"].mean(1),
            "loss_train": raw["train_loss"],
            "cpu_seconds": raw["cpu_seconds"],
            "wall_seconds": raw["wall_seconds"],
        }
    )


def _bits_per_byte(loss: float, kind: str) -> float:
    return loss * TOKENS / BYTES[kind] / np.log(2)


def _append(path: Path, rows: pd.DataFrame) -> None:
    if path.exists():
        rows = pd.concat([pd.read_parquet(path), rows], ignore_index=True)
    rows.round(DECIMALS).to_parquet(path, index=False, compression="zstd")


def _append_answers(
    path: Path,
    items: Sequence[Item],
    evaluations: list[tuple[str, int]],
    columns: list[dict[str, npt.NDArray[np.uint8]]],
) -> None:
    table = pd.DataFrame(
        {
            "task": [item.task for item in items],
            "prompt": [item.prompt for item in items],
            "item": [item.item for item in items],
            "cluster": [item.cluster for item in items],
            "answer": np.array([item.answer for item in items], dtype=np.int8),
            "bytes": np.array(
                [len(item.options[item.answer].encode()) for item in items], np.int16
            ),
            **{
                f"baseline_{rule}": np.array([i.baselines[rule] for i in items], dtype=np.int8)
                for rule in items[0].baselines
            },
        }
    )
    stacks: dict[str, list[npt.NDArray[np.uint8]]] = {
        name: [column[name] for column in columns] for name in _STORED
    }
    if path.exists():
        stored = parquet.read_table(path)
        old = stored.to_pandas()
        if not old[list(table.columns)].equals(table):
            raise ValueError(f"{path.name} holds answers to other questions than these; delete it")
        before = json.loads(stored.schema.metadata[pocket.EVALUATIONS])
        for name in _STORED:
            stacks[name] = [*_unstack(old[name], name, len(before)), *stacks[name]]
        evaluations = [*map(tuple, before), *evaluations]
    for name, stack in stacks.items():
        by_item = np.stack(stack, axis=1)
        if name == "correct":
            by_item = np.packbits(by_item, axis=1)
        table[name] = [row.tobytes() for row in by_item]
    packed = pa.Table.from_pandas(table, preserve_index=False)
    metadata = {pocket.EVALUATIONS: json.dumps(evaluations).encode()}
    packed = packed.replace_schema_metadata((packed.schema.metadata or {}) | metadata)
    parquet.write_table(packed, path, compression="brotli", compression_level=11)


_STORED = ("correct", *pocket.STORED_OPTIONS, "loglik")


def _unstack(column: pd.Series, name: str, count: int) -> list[npt.NDArray[np.uint8]]:
    values = np.frombuffer(b"".join(column), np.uint8).reshape(len(column), -1)
    if name == "correct":
        values = np.unpackbits(values, axis=1, count=count)
    return list(values.T)
