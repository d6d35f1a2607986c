"""lm-evaluation-harness: the values of the example runs, groups, filters, repeats, versions."""

import json
import math
import shutil
from pathlib import Path

import pytest

from toolkit import tables
from toolkit.readers import lm_eval
from toolkit.readers.answers import ANSWER_COLUMNS

DATA = Path(__file__).parent / "data"
SEEDS = "0,1234,1234,1234"
STAMP = "2026-01-31T10-00-00"


def values(answers, *columns):
    return answers.reported.set_index(list(columns))["value"].to_dict()


def sample(doc_id, **fields):
    line = {"doc_id": doc_id, "doc": {}, "resps": [["a"]], "filter": "none", "metrics": ["acc"]}
    return line | fields


def test_a_run_is_read_to_the_values_in_its_results(macro):
    answers = lm_eval(macro)
    assert list(answers.table.columns) == ANSWER_COLUMNS
    assert len(answers.table) == 2 * 12 + 2 * 4 + 2 * 6
    means = answers.agreement().set_index(["subtask", "filter", "metric"])
    assert means["value"].to_dict() == {
        ("toy_sub_a", "none", "acc"): pytest.approx(1 / 6),
        ("toy_sub_a", "none", "acc_norm"): pytest.approx(1 / 12),
        ("toy_sub_b", "none", "acc"): 0.0,
        ("toy_sub_b", "none", "acc_norm"): 0.0,
        ("none", "strict-match", "exact_match"): 0.0,
        ("none", "flexible-extract", "exact_match"): 0.0,
    }
    assert means["mean"].tolist() == pytest.approx(means["value"].tolist())
    assert means["items"].tolist() == means["questions"].tolist() == [12, 12, 4, 4, 6, 6]
    assert means["stderr"].iloc[0] == pytest.approx(0.11236664374387367)
    assert answers.table[["model", "seed", "prompt"]].drop_duplicates().values.tolist() == [
        ["6v8uqx97", SEEDS, "0-shot"]
    ]


def test_the_table_is_a_valid_table(macro):
    table = lm_eval(macro).table
    assert len(tables.check(table, ANSWER_COLUMNS)) == len(table)
    tables.check_keys(table, [name for name in ANSWER_COLUMNS if name != "score"], "")


def test_a_group_is_a_task_with_parts_and_its_average_is_not_counted(macro):
    answers = lm_eval(macro)
    parts = answers.table.loc[answers.table["task"] == "toy_macro", "subtask"]
    assert set(parts) == {"toy_sub_a", "toy_sub_b"}
    assert "toy_macro" not in set(answers.reported["subtask"])
    group = answers.dropped[answers.dropped["reason"].str.contains("group")].iloc[0]
    assert (group["task"], group["metric"], group["answers"]) == ("toy_macro", "acc", 1)
    # over questions 2 of 16 are right, over tasks (1/6 + 0) / 2: both follow from one table
    right = answers.table.query("task == 'toy_macro' and metric == 'acc'")
    assert right["score"].mean() == pytest.approx(0.125)
    by_part = right.groupby("subtask", observed=True)["score"].mean()
    assert by_part.mean() == pytest.approx(0.08333333333333333)


def test_a_task_in_two_groups_is_counted_once(macro):
    path = next(macro.glob("results_*"))
    results = json.loads(path.read_text())
    results["group_subtasks"] = {
        "toy_macro": ["toy_sub_a", "toy_sub_b"],
        "other": ["toy_sub_a"],
        "outer": ["toy_macro"],
    }
    path.write_text(json.dumps(results))
    table = lm_eval(macro).table
    assert len(table) == 44
    assert set(table.loc[table["subtask"] == "toy_sub_a", "task"]) == {"outer"}


def test_filters_stay_apart(macro):
    table = lm_eval(macro).table
    generated = table[table["task"] == "toy_gen"]
    assert generated.groupby("filter", observed=True).size().to_dict() == {
        "strict-match": 6,
        "flexible-extract": 6,
    }


def test_repeats_have_one_score_and_the_ledger_says_so(macro):
    answers = lm_eval(macro)
    assert set(answers.table["epoch"]) == {1}
    repeats = answers.dropped[answers.dropped["reason"].str.contains("2 responses")]
    assert repeats.set_index("filter")["answers"].to_dict() == {
        "strict-match": 6,
        "flexible-extract": 6,
    }
    assert repeats["where"].iloc[1].endswith(".jsonl, line 7")


@pytest.mark.parametrize("field", ["passage", None])
def test_a_field_of_the_documents_groups_the_questions(macro, field):
    table = lm_eval(next(macro.glob("samples_toy_sub_a*")), cluster=field).table
    right = table[table["metric"] == "acc"]
    sizes = right.groupby("cluster")["item"].nunique()
    if field:
        assert sizes.to_dict() == {f"toy_macro/p{n}": 3 for n in range(4)}
    else:
        assert sizes.index.tolist()[:2] == ["toy_macro/toy_sub_a/0", "toy_macro/toy_sub_a/1"]
        assert set(sizes) == {1}


def test_one_samples_file_takes_its_names_from_the_results_beside_it(macro):
    answers = lm_eval(next(macro.glob("samples_toy_sub_b*")))
    assert len(answers.table) == 8
    assert answers.reported.empty
    assert answers.table[["model", "task", "subtask"]].drop_duplicates().values.tolist() == [
        ["6v8uqx97", "toy_macro", "toy_sub_b"]
    ]


def test_a_results_file_is_read_with_its_samples(macro):
    answers = lm_eval(next(macro.glob("results_*")))
    assert (len(answers.table), len(answers.reported)) == (44, 6)


def test_two_runs_in_one_folder_are_told_apart(macro):
    micro = shutil.copytree(DATA / "lm_eval_0.4.13/toy_micro", macro / "micro")
    path = next(micro.glob("results_*"))
    path.write_text(path.read_text().replace("6v8uqx97", "other"))
    table = lm_eval(macro).table
    assert table.groupby(["model", "task"], observed=True).size().to_dict() == {
        ("6v8uqx97", "toy_gen"): 12,
        ("6v8uqx97", "toy_macro"): 32,
        ("other", "toy_gen"): 12,
        ("other", "toy_micro"): 32,
    }


def test_version_0_3_has_no_filters():
    answers = lm_eval(DATA / "lm_eval_0.3")
    assert answers.table.empty
    assert values(answers, "model", "task", "filter", "metric") == {
        ("gpt2", "arc_easy", "none", "acc"): 0.75,
        ("gpt2", "arc_easy", "none", "acc_norm"): 0.7,
        ("gpt2", "wikitext", "none", "word_perplexity"): 31.4,
        ("gpt2", "wikitext", "none", "byte_perplexity"): 1.9,
        ("gpt2", "wikitext", "none", "bits_per_byte"): 0.93,
    }
    stderr = answers.reported["stderr"]
    assert stderr[:2].tolist() == [0.0969, 0.1026]
    assert stderr[2:].isna().all()


def test_version_0_3_wrote_scores_as_text_and_false_is_not_true(write_json):
    entry = {"doc_id": 0, "prompt_0": "Q", "logit_0": "-1.5", "truth": "A"}
    path = write_json(
        "arc_easy_write_out_info.json",
        [
            entry | {"acc": "False", "acc_norm": "1.0", "word_perplexity": "3.5"},
            entry | {"doc_id": 1, "acc": "True", "acc_norm": "nan"},
        ],
    )
    write_json("results.json", json.loads((DATA / "lm_eval_0.3/results.json").read_text()))
    answers = lm_eval(path.parent)
    table = answers.table[["model", "task", "item", "metric", "score"]]
    assert table.values.tolist() == [
        ["gpt2", "arc_easy", "0", "acc", 0.0],
        ["gpt2", "arc_easy", "0", "acc_norm", 1.0],
        ["gpt2", "arc_easy", "1", "acc", 1.0],
    ]
    assert answers.dropped["reason"].tolist() == ["not a score by its name", "unscored"]


def test_version_0_4_2_tells_groups_by_indented_aliases():
    answers = lm_eval(DATA / "lm_eval_0.4.2" / "results.json")
    assert values(answers, "model", "task", "subtask") == {
        ("org/m", "toy", "toy_sub_a"): 0.16667,
        ("org/m", "toy", "toy_sub_b"): 0.0,
    }
    assert answers.dropped["task"].tolist() == ["toy"]


def test_a_revision_is_part_of_the_model(write_json):
    results = json.loads((DATA / "lm_eval_0.4.2/results.json").read_text())
    results["config"]["model_args"] = "pretrained=org/m,revision=step1000,dtype=float16"
    path = write_json("results.json", results)
    assert set(lm_eval(path).reported["model"]) == {"org/m@step1000"}


def test_unnamed_filters_are_numbered_and_not_mixed():
    table = lm_eval(DATA / "lm_eval_0.4.5").table
    assert table.groupby("filter", observed=True)["score"].agg(list).to_dict() == {
        "unnamed 1": [1.0, 0.0, 0.0],
        "unnamed 2": [1.0, 1.0, 0.0],
    }


def test_unnamed_filters_get_their_names_from_the_results(tmp_path):
    run = shutil.copytree(DATA / "lm_eval_0.4.5", tmp_path / "org__m")
    stamp = "2024-10-01T10-00-00.000000"
    entry = {"exact_match,strict-match": 1 / 3, "exact_match,flexible-extract": 2 / 3}
    results = {"results": {"toy_gen": entry}, "config": {"model_args": {"pretrained": "org/m"}}}
    (run / f"results_{stamp}.json").write_text(json.dumps(results))
    means = lm_eval(run).agreement()
    assert means["filter"].tolist() == ["strict-match", "flexible-extract"]
    assert means["mean"].tolist() == pytest.approx(means["value"].tolist())


def test_one_unnamed_filter_is_none(write_json):
    lines = [sample(n, acc=1.0) for n in range(2)]
    for line in lines:
        del line["filter"], line["metrics"]
    table = lm_eval(write_json(f"samples_t_{STAMP}.jsonl", lines)).table
    assert set(table["filter"]) == {"none"}


def test_missing_errors_and_infinite_values_are_reported_as_they_are():
    reported = lm_eval(DATA / "results_na.json").reported.set_index("metric")
    assert reported.loc["acc", "value"] == 0.5
    assert math.isnan(reported.loc["acc", "stderr"])
    assert reported.loc["perplexity", "value"] == math.inf


def test_an_unscored_answer_is_not_a_wrong_one(write_json):
    lines = [sample(0, acc=1.0), sample(1, acc=math.nan), sample(2, acc=None), sample(3, acc=0)]
    answers = lm_eval(write_json(f"samples_t_{STAMP}.jsonl", lines))
    assert answers.table["score"].tolist() == [1.0, 0.0]
    assert answers.dropped[["item", "epoch", "reason"]].values.tolist() == [
        ["1", 1, "unscored"],
        ["2", 1, "unscored"],
    ]
    assert answers.dropped["where"].iloc[0] == f"samples_t_{STAMP}.jsonl, line 2"


def test_what_is_no_score_is_left_out_as_a_whole(write_json):
    metrics = ["acc", "bleu", "word_perplexity", "seconds", "said"]
    lines = [
        sample(n, metrics=metrics, acc=True, bleu=["a", "b"], word_perplexity=0.5, said="A")
        | {"seconds": seconds}
        for n, seconds in enumerate([0.5, 1.0, 12.0])
    ]
    answers = lm_eval(write_json(f"samples_t_{STAMP}.jsonl", lines))
    assert answers.table["metric"].tolist() == ["acc"] * 3
    reasons = answers.dropped.set_index("metric")["reason"]
    assert reasons.to_dict() == {
        "bleu": "a list of values, for a metric of the whole task",
        "said": "text that is no score",
        "seconds": "values from 0.5 to 12; a score is a fraction from 0 to 1",
        "word_perplexity": "not a score by its name",
    }
    assert answers.dropped["answers"].tolist() == [3, 3, 3, 3]


def test_lower_is_better_is_no_score(macro):
    path = next(macro.glob("results_*"))
    results = json.loads(path.read_text())
    results["higher_is_better"]["toy_sub_a"]["acc_norm"] = False
    path.write_text(json.dumps(results))
    answers = lm_eval(macro)
    assert len(answers.table) == 44 - 12
    assert "lower is better" in set(answers.dropped["reason"])
