"""Details as Parquet: lighteval, and the three layouts of the Open LLM Leaderboard."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from toolkit.errors import DataError
from toolkit.readers import lighteval, open_llm_leaderboard

DATA = Path(__file__).parent / "data"
ARC = "details_harness|arc:challenge|25_2023-08-01T10:00:00.000000.parquet"


def refused(reader, path):
    with pytest.raises(DataError) as error:
        reader(path)
    return str(error.value)


def test_lighteval_is_read_to_its_own_values(lighteval_output):
    answers = lighteval(lighteval_output)
    assert answers.table["score"].tolist() == [0.0, 1.0, 0.0, 1.0]
    labels = answers.table[["model", "task", "subtask", "prompt", "metric"]].drop_duplicates()
    assert labels.values.tolist() == [["org/m", "mmlu", "toy_a", "5-shot", "acc"]]
    means = answers.agreement().set_index("subtask")
    assert means["value"].to_dict() == {"toy_a": 0.5, "toy_b": 1.0}
    assert means.loc["toy_a", ["mean", "stderr", "questions"]].tolist() == [0.5, 0.2887, 4]
    assert means.loc["toy_b", "items"] == 0


def test_lightevals_averages_are_not_counted(lighteval_output):
    answers = lighteval(lighteval_output)
    assert set(answers.dropped["reason"]) == {"an average over tasks"}
    assert answers.dropped["subtask"].tolist() == ["_average", "none"]


def test_one_details_file_takes_its_names_from_the_results(lighteval_output):
    results = next(lighteval_output.rglob("results_*.json"))
    results.write_text(results.read_text().replace('"org/m"', '"org/named"'))
    details = next(lighteval_output.rglob("details_*.parquet"))
    answers = lighteval(details)
    assert set(answers.table["model"]) == {"org/named"}
    assert answers.reported.empty
    results.unlink()
    assert set(lighteval(details).table["model"]) == {"org/m"}


def test_lost_rows_are_noticed_by_the_count_in_the_results(lighteval_output):
    details = next(lighteval_output.rglob("details_*.parquet"))
    pd.read_parquet(details).iloc[:3].to_parquet(details)
    assert "3 rows, but the results of the run count 4" in refused(lighteval, lighteval_output)


@pytest.mark.parametrize("layout", ["flat", "struct", "dotted"])
def test_each_layout_of_the_leaderboard_gives_the_same(tmp_path, layout):
    folder = tmp_path / "details_org__m" / "2023-08-01"
    folder.mkdir(parents=True)
    shutil.copy(DATA / f"leaderboard/{layout}.parquet", folder / ARC)
    answers = open_llm_leaderboard(tmp_path)
    scores = answers.table.groupby("metric", observed=True)["score"].agg(list).to_dict()
    assert scores == {"acc": [0.0, 1.0, 0.0, 1.0], "acc_norm": [1.0] * 4}
    labels = answers.table[["model", "task", "subtask", "prompt"]].drop_duplicates()
    assert labels.values.tolist() == [["org/m", "arc", "challenge", "25-shot"]]
    assert answers.table["item"].tolist() == ["0", "0", "1", "1", "2", "2", "3", "3"]


@pytest.mark.parametrize(
    ("name", "task", "subtask", "prompt"),
    [
        ("details_harness|hendrycksTest-law|5_x", "hendrycksTest", "law", "5-shot"),
        ("details_harness|truthfulqa:mc|0_x", "truthfulqa", "mc", "0-shot"),
        ("details_harness|gsm8k|5", "gsm8k", "none", "5-shot"),
    ],
)
def test_tasks_are_named_by_the_file(tmp_path, name, task, subtask, prompt):
    path = tmp_path / f"{name}.parquet"
    pd.DataFrame({"acc": [1.0, None]}).to_parquet(path)
    answers = open_llm_leaderboard(path, model="org/m")
    row = answers.table.iloc[0]
    assert (row["task"], row["subtask"], row["prompt"]) == (task, subtask, prompt)
    assert answers.dropped[["item", "reason"]].values.tolist() == [["1", "unscored"]]


def test_version_2_of_the_leaderboard_is_read_as_samples(macro):
    assert open_llm_leaderboard(macro).table.shape == (44, 11)
    alone = next(macro.glob("samples_toy_sub_b*"))
    assert len(open_llm_leaderboard(alone).table) == 8


@pytest.mark.parametrize("reader", [lighteval, open_llm_leaderboard])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_details_that_were_cut_off_are_refused(tmp_path, reader, share):
    content = (DATA / "lighteval/details.parquet").read_bytes()
    path = tmp_path / "details_gsm8k|5_2026-05-05T10-00-00.parquet"
    path.write_bytes(content[: int(share * len(content))])
    assert "not a Parquet file, or one whose end is missing" in refused(reader, path)


def test_damage_inside_a_parquet_file_is_refused(tmp_path):
    path = tmp_path / ARC
    pd.DataFrame({"acc": [0.0, 1.0] * 500}).to_parquet(path, compression="zstd")
    content = bytearray(path.read_bytes())
    content[4:40] = b"\xff" * 36
    path.write_bytes(content)
    assert f"{ARC}: damaged" in refused(open_llm_leaderboard, path)


def test_other_tables_are_refused(tmp_path):
    path = tmp_path / ARC
    pd.DataFrame({"answer": ["a"]}).to_parquet(path)
    message = refused(open_llm_leaderboard, path)
    assert (
        "none of the columns metrics, acc, acc_norm, mc1, mc2, em, f1 (columns: answer)" in message
    )
    pd.DataFrame({"acc": []}, dtype=float).to_parquet(path)
    assert "a table without rows" in refused(open_llm_leaderboard, path)
    shutil.copy(DATA / "lighteval/details.parquet", path)
    assert "none of the columns metrics" in refused(open_llm_leaderboard, path)
    other = path.rename(tmp_path / "details.parquet")
    assert "from which the task is taken" in refused(open_llm_leaderboard, other)
    assert "from which the task is taken" in refused(lighteval, other)


@pytest.mark.parametrize("reader", [lighteval, open_llm_leaderboard])
def test_other_files_and_empty_folders_are_refused(tmp_path, reader):
    assert "in this folder" in refused(reader, tmp_path)
    (tmp_path / "a.txt").write_text("a")
    assert "expected" in refused(reader, tmp_path / "a.txt")


@pytest.mark.parametrize(
    ("results", "told"),
    [
        ({"config": {}}, "no field 'results'"),
        ({"results": {"gsm8k|5": 0.5}}, "field 'gsm8k|5' is of type float; dict is expected"),
    ],
)
def test_results_of_another_kind_are_refused(write_json, results, told):
    assert told in refused(lighteval, write_json("results_2026-05-05T10-00-00.json", results))


def test_results_cut_off_are_refused(lighteval_output):
    results = next(lighteval_output.rglob("results_*.json"))
    results.write_text(json.dumps(json.loads(results.read_text()))[:-40])
    assert "The end is missing" in refused(lighteval, lighteval_output)
