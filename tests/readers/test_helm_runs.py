"""HELM: unperturbed instances of one split, means from the instances, no error from stats.json."""

import json

import pytest

from toolkit.errors import DataError
from toolkit.readers import helm


def refused(path):
    with pytest.raises(DataError) as error:
        helm(path)
    return str(error.value)


def change(path, edit):
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


def test_a_run_is_read_to_its_own_values(helm_run):
    for path in (helm_run, helm_run.parents[3]):
        answers = helm(path)
        assert answers.table["score"].tolist() == [1.0, 0.0, 1.0, 1.0]
        assert answers.table["item"].tolist() == ["id0", "id1", "id2", "id3"]
        labels = answers.table[["model", "task", "subtask", "seed", "prompt", "metric"]]
        assert labels.drop_duplicates().values.tolist() == [
            ["org/m", "mmlu", "subject=toy", "0", "multiple_choice_joint, 5-shot", "exact_match"]
        ]
        means = answers.agreement().set_index("metric")
        assert means["value"].to_dict() == {"exact_match": 0.75, "quasi_exact_match": 0.75}
        assert means.loc["exact_match", ["mean", "items", "questions"]].tolist() == [0.75, 4, 4]
        assert means["stderr"].isna().all()  # stats.json has the deviation over train trials


def test_perturbed_instances_and_counts_are_no_answers(helm_run):
    dropped = helm(helm_run).dropped.set_index("reason")
    assert dropped["answers"].to_dict() == {
        "not a score by its name": 4,
        "perturbed question (typos)": 4,
    }
    assert dropped["metric"].tolist() == ["num_output_tokens", "exact_match"]


def test_one_split_is_read(helm_run):
    def edit(entries):
        entries[0]["stats"][0]["name"]["split"] = "valid"

    change(helm_run / "per_instance_stats.json", edit)
    answers = helm(helm_run)
    assert answers.table["item"].tolist() == ["id1", "id2", "id3"]
    assert "split 'valid'; 'test' is read" in set(answers.dropped["reason"])


def test_train_trials_stand_apart(helm_run):
    def edit(entries):
        again = [entry | {"train_trial_index": 1} for entry in entries[:4]]
        entries.extend(again)

    change(helm_run / "per_instance_stats.json", edit)
    answers = helm(helm_run)
    assert answers.table.groupby("seed", observed=True).size().to_dict() == {"0": 4, "1": 4}
    means = answers.agreement()
    assert means[["mean", "items"]].iloc[0].tolist() == [0.75, 4]


def test_nothing_measured_is_unscored(helm_run):
    def edit(entries):
        entries[1]["stats"][0].update(count=0, sum=0)

    change(helm_run / "per_instance_stats.json", edit)
    answers = helm(helm_run)
    assert len(answers.table) == 3
    assert answers.dropped.loc[answers.dropped["reason"] == "unscored", "item"].tolist() == ["id1"]


def test_repeated_instances_are_refused(helm_run):
    change(helm_run / "per_instance_stats.json", lambda entries: entries.append(entries[0]))
    message = refused(helm_run)
    assert "entry 1 and at per_instance_stats.json, entry 9" in message


@pytest.mark.parametrize("name", ["run_spec.json", "per_instance_stats.json", "stats.json"])
def test_a_file_cut_off_is_named(helm_run, name):
    content = (helm_run / name).read_bytes()
    (helm_run / name).write_bytes(content[: len(content) // 2])
    message = refused(helm_run)
    assert message.startswith(f"{name}: not valid JSON at line ")
    assert " byte " in message


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("run_spec.json", {"results": {}}, "no field 'adapter_spec' (fields: 'results')"),
        ("run_spec.json", {"adapter_spec": {}, "name": "mmlu"}, "adapter_spec: no field 'model'"),
        ("per_instance_stats.json", {}, "a list of objects is expected"),
        ("per_instance_stats.json", [{"stats": ["a"]}], "a statistic without its name"),
        ("stats.json", [{"mean": 1.0}], "stats.json: a statistic without its name"),
        ("stats.json", "", "a list of objects is expected"),
    ],
)
def test_files_of_another_kind_are_refused(helm_run, name, content, told):
    (helm_run / name).write_text(json.dumps(content))
    assert told in refused(helm_run)


def test_incomplete_folders_are_refused(helm_run, tmp_path):
    (helm_run / "per_instance_stats.json").unlink()
    assert helm(helm_run).table.empty
    (helm_run / "stats.json").unlink()
    assert "neither per_instance_stats.json nor stats.json" in refused(helm_run)
    (helm_run / "run_spec.json").unlink()
    assert "no run_spec.json here or in a folder below" in refused(tmp_path)
