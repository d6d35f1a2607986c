"""OLMES: one row per question and metric; predicted options are no scores."""

import json

import pytest

from toolkit.errors import DataError
from toolkit.readers import olmes


def refused(path):
    with pytest.raises(DataError) as error:
        olmes(path)
    return str(error.value)


def test_a_run_is_read_to_its_own_values(olmes_output):
    answers = olmes(olmes_output)
    scores = answers.table.groupby("metric", observed=True)["score"].agg(list).to_dict()
    assert scores == {
        "acc_raw": [1.0, 0.0, 1.0],
        "acc_per_token": [1.0] * 3,
        "acc_per_char": [1.0] * 3,
        "acc_uncond": [1.0] * 3,
    }
    labels = answers.table[["model", "task", "prompt"]].drop_duplicates()
    assert labels.values.tolist() == [["org-m", "arc_challenge", "5-shot"]]
    assert answers.reported.set_index("metric")["value"].to_dict() == {
        "acc_raw": 0.3333,
        "acc_per_token": 0.6667,
        "acc_per_char": 0.6667,
        "acc_uncond": 0.6667,
        "primary_score": 0.6667,
    }
    assert answers.dropped["metric"].tolist() == [
        *[f"predicted_index_{kind}" for kind in ("raw", "per_token", "per_char", "uncond")],
        "correct_choice",
    ]


def test_values_that_disagree_with_the_answers_show(olmes_output):
    # the example's metrics were made up without counting its predictions
    answers = olmes(olmes_output)
    means = answers.agreement().set_index("metric")
    assert means.loc["acc_raw", ["value", "mean"]].tolist() == [0.3333, pytest.approx(2 / 3)]
    assert "4, largest difference 0.3334" in answers.summary().text()


def test_variants_of_a_task_are_told_by_their_alias(olmes_output):
    path = olmes_output / "task-000-arc_challenge-metrics.json"
    metrics = json.loads(path.read_text())
    metrics["task_config"]["metadata"]["alias"] = "arc_challenge:mc::olmes"
    metrics["model_config"]["revision"] = "step1000"
    path.write_text(json.dumps(metrics))
    table = olmes(olmes_output).table
    assert set(table["task"]) == {"arc_challenge:mc::olmes"}
    assert set(table["model"]) == {"org-m@step1000"}


def test_predictions_alone_are_named_by_file_and_folder(olmes_output):
    (olmes_output / "task-000-arc_challenge-metrics.json").unlink()
    table = olmes(olmes_output / "task-000-arc_challenge-predictions.jsonl").table
    assert table[["model", "task"]].drop_duplicates().values.tolist() == [
        ["olmes", "arc_challenge"]
    ]


def test_files_over_all_tasks_are_not_read(olmes_output):
    assert len(olmes(olmes_output).reported) == 5
    assert "or a folder is expected" in refused(olmes_output / "metrics.json")
    assert "or a folder is expected" in refused(olmes_output / "metrics-all.jsonl")


def test_damage_is_named(olmes_output):
    path = olmes_output / "task-000-arc_challenge-predictions.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:2]))
    assert "2 lines, but task-000-arc_challenge-metrics.json counts 3" in refused(olmes_output)
    path.write_text("".join(lines)[:-20])
    assert f"{path.name}, line 3: not valid JSON at byte " in refused(olmes_output)
    path.write_text("")
    assert f"{path.name}: empty" in refused(olmes_output)
    path.write_text('{"doc_id": 0, "acc": 1.0}\n')
    assert "line 1: no field 'metrics'" in refused(olmes_output)


def test_an_empty_folder_is_refused(tmp_path):
    assert "no ...-metrics.json and no ...-predictions.jsonl" in refused(tmp_path)
