import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from toolkit.datasets.cards import Card
from toolkit.datasets.registry import Entry, File, Recipe
from toolkit.datasets.shapes import build

CARD = Card("toy", "registered", "", "", 0, 0, {}, "", "")


def shaped(tmp_path: Path, recipe: Recipe, *files: tuple[str, str, dict, dict]) -> pd.DataFrame:
    entries, paths = [], []
    for name, text, labels, options in files:
        (tmp_path / name).write_text(text, encoding="utf-8")
        entries.append(File(name, labels=labels, options=options))
        paths.append(tmp_path / name)
    return build(Entry(CARD, tuple(entries), recipe), paths)


def test_stacked_files_keep_their_labels_and_order(tmp_path: Path) -> None:
    table = shaped(
        tmp_path,
        Recipe(rename={"params": "N (B)", "loss": "L"}, factor={"params": 1e9}, drop=["index"]),
        ("b.csv", "index,N (B),L\n0,7,2\n", {"run": "b"}, {}),
        ("a.tsv", "index\tN (B)\tL\n0\t13\t1.9\n1\t70\t1.7\n", {"run": "a"}, {}),
    )
    assert list(table) == ["run", "params", "loss"]
    assert table["run"].tolist() == ["b", "a", "a"]
    assert table["params"].tolist() == [7e9, 13e9, 70e9]
    assert list(table.index) == [0, 1, 2]


def test_counts_become_float64_so_that_products_cannot_overflow(tmp_path: Path) -> None:
    text = "N,D\n816341493,1897148783\n"
    table = shaped(tmp_path, Recipe(rename={"params": "N", "tokens": "D"}), ("a.csv", text, {}, {}))
    assert table.dtypes.map(str).tolist() == ["float64", "float64"]
    assert (6 * table["params"] * table["tokens"]).item() == 6.0 * 816341493 * 1897148783


def test_tokens_follow_from_compute(tmp_path: Path) -> None:
    text = "x,Model Size,Training FLOP,loss\n0,1e8,6e18,3.0\n1,2e8,6e18,2.9\n"
    table = shaped(tmp_path, Recipe("chinchilla_points"), ("a.csv", text, {}, {}))
    assert list(table) == ["point", "params", "tokens", "flops", "loss"]
    assert table["tokens"].tolist() == [1e10, 5e9]
    assert table["point"].tolist() == [0, 1]


def test_logarithms_and_perplexity_are_undone(tmp_path: Path) -> None:
    text = "model_name,model_size,steps,num_token,flops,ppl\nOPT,1.3b,10,9,18,20\n"
    table = shaped(tmp_path, Recipe("opt_trajectories"), ("a.csv", text, {}, {}))
    row = table.iloc[0]
    assert row["run"] == "OPT-1.3B"
    assert row[["params", "tokens", "flops"]].tolist() == [1.3e9, 1e9, 1e18]
    assert row["loss"] == pytest.approx(np.log(20))


def test_wide_tables_become_one_row_per_value(tmp_path: Path) -> None:
    melt = {"keep": ["idx"], "variable": "model", "value": "score", "strip": "_acc"}
    table = shaped(
        tmp_path,
        Recipe("melt", {"prompt": "idx"}, melt=melt),
        ("a.csv", "idx,m1_acc,m2_acc\n1,0.5,0.6\n2,0.7,0.8\n", {"task": "t"}, {}),
    )
    assert list(table) == ["task", "prompt", "model", "score"]
    assert table["score"].tolist() == [0.5, 0.7, 0.6, 0.8]
    assert table["model"].tolist() == ["m1", "m1", "m2", "m2"]


def test_columns_of_example_numbers_become_rows(tmp_path: Path) -> None:
    text = "config name,0,200,size,family\nm,3.0,2.0,1000000,f\n"
    table = shaped(tmp_path, Recipe("finetuning"), ("a.csv", text, {"task": "t"}, {}))
    assert table["examples"].tolist() == [0, 200]
    assert table["loss"].tolist() == [3.0, 2.0]


def test_decimals_of_a_question_number_are_repeats(tmp_path: Path) -> None:
    text = "Question,m\n1.0,1\n1.3,0\n15.2,1\n"
    table = shaped(tmp_path, Recipe("question_attempts"), ("a.csv", text, {}, {}))
    assert table[["item", "epoch", "score"]].to_numpy().tolist() == [
        [1, 0, 1],
        [1, 3, 0],
        [15, 2, 1],
    ]


def test_dates_stay_iso_text(tmp_path: Path) -> None:
    text = "date:\n  o1: 2024-12-05\n  GPT-4o: 2024-05-13\n"
    table = shaped(tmp_path, Recipe("release_dates"), ("a.yaml", text, {"version": "1"}, {}))
    assert table.to_numpy().tolist() == [["1", "o1", "2024-12-05"], ["1", "GPT-4o", "2024-05-13"]]


def test_horizons_keep_their_intervals(tmp_path: Path) -> None:
    band = "{ci_high: 9.0, ci_low: 2.0, estimate: 4.0}"
    text = (
        "results:\n  m:\n    release_date: 2024-01-02\n    metrics:\n"
        f"      average_score: {{estimate: 0.5}}\n      is_sota: true\n"
        f"      p50_horizon_length: {band}\n      p80_horizon_length: {band}\n"
    )
    row = shaped(tmp_path, Recipe("time_horizons"), ("a.yaml", text, {"version": "1"}, {})).iloc[0]
    assert row[["p50_lower", "p50_minutes", "p50_upper"]].tolist() == [2.0, 4.0, 9.0]
    assert row[["model", "released", "score"]].tolist() == ["m", "2024-01-02", 0.5]


def test_answers_of_subjects_become_rows(tmp_path: Path) -> None:
    # A line separator inside a sentence must not end the record.
    lines = [{"subject_id": "s", "responses": {"one\u2028two": 1, "three": 0}}]
    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines) + "\n"
    table = shaped(tmp_path, Recipe("subject_answers"), ("a.jsonlines", text, {}, {}))
    assert table.to_numpy().tolist() == [["s", "one\u2028two", 1.0], ["s", "three", 0.0]]


def test_json_lines_keep_numbers_as_they_are(tmp_path: Path) -> None:
    text = (
        '{"started_at": 1734070031112, "score": 0.5}\n{"started_at": 1734070031113, "score": 1}\n'
    )
    table = shaped(tmp_path, Recipe(), ("a.jsonl", text, {}, {}))
    assert table["started_at"].tolist() == [1734070031112, 1734070031113]


def test_headline_scores_are_fractions(tmp_path: Path) -> None:
    table = shaped(
        tmp_path,
        Recipe("headline_scores"),
        (
            "a.csv",
            "Model version,EM,Shots,Source\nm,75.3%,5,s\n,,,s\n",
            {"task": "A"},
            {"column": "EM"},
        ),
        (
            "b.csv",
            "Model version,Mean,Source\nm,8.4,s\n",
            {"task": "B"},
            {"column": "Mean", "per": 10},
        ),
    )
    assert table["score"].tolist()[0] == pytest.approx(0.753)
    assert np.isnan(table["score"].tolist()[1])
    assert table["score"].tolist()[2] == pytest.approx(0.84)
    assert table["task"].tolist() == ["A", "A", "B"]


def test_ladder_sizes_become_rows(tmp_path: Path) -> None:
    sizes = {
        "190M": {
            "ns": [1e8],
            "ds": [2e9],
            "xs": [1.3],
            "ls": ["1xC"],
            "fs": [1e18],
            "mode": "train",
        }
    }
    table = shaped(tmp_path, Recipe("ladder_losses"), ("a.json", json.dumps(sizes), {}, {}))
    assert table.to_numpy().tolist() == [["190M", "1xC", "train", 1e8, 2e9, 1e18, 1.3]]
