"""Inspect: both file forms read to the log's own values; damage is named by member."""

import json
import shutil
import struct
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

from toolkit.errors import DataError
from toolkit.readers import inspect

DATA = Path(__file__).parent / "data" / "inspect"
# The recorded values: q0 right then unscored, q1 and q2 wrong twice, q3 wrong then right.
SCORES = {
    ("q0", 1): 1.0,
    ("q1", 1): 0.0,
    ("q2", 1): 0.0,
    ("q3", 1): 0.0,
    ("q1", 2): 0.0,
    ("q2", 2): 0.0,
    ("q3", 2): 1.0,
}
LOG = {
    "version": 2,
    "status": "success",
    "eval": {"task": "toy", "model": "org/m", "dataset": {"samples": 1}, "config": {}},
}


def log_of(write_json, *values, **fields):
    """Write a log with one sample for each value."""
    samples = [
        {"id": f"q{n}", "epoch": 1, "scores": {"match": {"value": value}}}
        for n, value in enumerate(values)
    ]
    return write_json("log.json", LOG | {"samples": samples} | fields)


def refused(path, **options):
    with pytest.raises(DataError) as error:
        inspect(path, **options)
    return str(error.value)


def rewrite(source, target, leave_out=(), compress_type=zipfile.ZIP_DEFLATED, **changed):
    """Write the archive again, with the standard library's compression."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", compress_type) as new:
        for info in old.infolist():
            if info.filename in leave_out:
                continue
            with source.open("rb") as raw:
                raw.seek(info.header_offset + 26)
                name, extra = struct.unpack("<HH", raw.read(4))
                raw.seek(info.header_offset + 30 + name + extra)
                packed = raw.read(info.compress_size)
            data = pa.decompress(packed, info.file_size, codec="zstd", asbytes=True)
            new.writestr(info.filename, changed.get(info.filename, data))
    return target


@pytest.mark.parametrize("name", ["log.eval", "log.json"])
def test_a_log_is_read_to_its_own_values(name):
    answers = inspect(DATA / name)
    table = answers.table
    assert table.set_index(["item", "epoch"])["score"].to_dict() == SCORES
    assert table[["model", "task", "metric"]].drop_duplicates().values.tolist() == [
        ["mockllm/model", "task", "toy_match"]
    ]
    assert answers.dropped[["item", "epoch", "reason"]].values.tolist() == [["q0", 2, "unscored"]]
    reported = answers.agreement().iloc[0]
    assert (reported["value"], reported["stderr"]) == (0.375, 0.125)
    # the mean over questions of the mean over epochs, and not the mean of the seven answers
    assert (reported["mean"], reported["items"]) == (0.375, 4)
    assert table["score"].mean() == pytest.approx(2 / 7)


def test_questions_are_grouped_as_the_logs_own_error_was():
    table = inspect(DATA / "log.eval").table
    assert table.groupby("cluster")["item"].agg(set).to_dict() == {
        "task/p0": {"q0", "q1"},
        "task/p1": {"q2", "q3"},
    }


def test_summaries_transcripts_and_plain_compression_give_the_same(tmp_path):
    expected = inspect(DATA / "log.eval").table
    for name, left_out in {"whole": (), "long": ("summaries.json",)}.items():
        path = rewrite(DATA / "log.eval", tmp_path / f"{name}.eval", left_out)
        assert inspect(path).table.equals(expected)


def test_a_folder_of_logs_is_read_whole(tmp_path):
    shutil.copy(DATA / "log.eval", tmp_path)
    other = json.loads((DATA / "log.json").read_text())
    other["eval"]["model"] = "mockllm/other"
    (tmp_path / "log.json").write_text(json.dumps(other))
    (tmp_path / "logs.json").write_text("{}")
    table = inspect(tmp_path).table
    assert table.groupby("model", observed=True).size().to_dict() == {
        "mockllm/model": 7,
        "mockllm/other": 7,
    }


def test_two_logs_of_the_same_questions_are_refused(tmp_path):
    shutil.copy(DATA / "log.eval", tmp_path)
    shutil.copy(DATA / "log.json", tmp_path)
    message = refused(tmp_path)
    assert "7 of 14 answers repeat an earlier one" in message
    assert "log.eval, sample 1 and at log.json, sample 1" in message


def test_the_tools_own_words_are_scores_and_other_text_is_not(write_json):
    words = ["C", "I", "P", "N", "yes", "No", "TRUE", "false", True, False, "0.25", 1]
    answers = inspect(log_of(write_json, *words, "A", "", [1, 0]))
    assert answers.table["score"].tolist() == [1, 0, 0.5, 0, 1, 0, 1, 0, 1, 0, 0.25, 1]
    assert answers.dropped["reason"].tolist() == [
        "text that is no score",
        "unscored",
        "a list of values, for a metric of the whole task",
    ]
    assert answers.dropped["where"].tolist()[0] == "log.json, sample 13"


def test_a_score_with_several_values_has_a_metric_for_each(write_json):
    path = log_of(write_json, {"precise": "C", "polite": 0.5, "num_words": 40})
    answers = inspect(path)
    assert answers.table.set_index("metric")["score"].to_dict() == {
        "match/precise": 1.0,
        "match/polite": 0.5,
    }
    assert answers.dropped["metric"].tolist() == ["match/num_words"]


def test_samples_that_ended_in_an_error_are_not_wrong(write_json):
    samples = [
        {"id": 1, "epoch": 1, "scores": {"match": {"value": "C"}}},
        {"id": 2, "epoch": 1, "error": {"message": "refused"}},
        {"id": 3, "epoch": 1, "scores": {}},
    ]
    answers = inspect(write_json("log.json", LOG | {"samples": samples}))
    assert answers.table["item"].tolist() == ["1"]
    assert answers.dropped[["item", "reason"]].values.tolist() == [
        ["2", "the sample ended in an error"],
        ["3", "unscored"],
    ]


def test_a_run_that_was_stopped_tells_what_is_missing(write_json):
    spec = LOG["eval"] | {"dataset": {"samples": 10}, "config": {"epochs": 2}}
    answers = inspect(log_of(write_json, "C", "I", status="cancelled", eval=spec))
    assert len(answers.table) == 2
    assert answers.dropped[["reason", "answers"]].values.tolist() == [
        ["missing: the run's status is 'cancelled'", 18]
    ]


def test_a_run_stopped_by_force_is_read_from_its_journal(tmp_path):
    left_out = ("header.json", "summaries.json", "reductions.json", "samples/q3_epoch_2.json")
    answers = inspect(rewrite(DATA / "log.eval", tmp_path / "log.eval", left_out))
    assert len(answers.table) == 6
    missing = answers.dropped[answers.dropped["reason"].str.startswith("missing")]
    assert missing["answers"].tolist() == [1]


def test_arguments_of_the_task_and_the_seed_keep_runs_apart(write_json):
    spec = LOG["eval"] | {
        "task_args_passed": {"subject": "law", "cot": True},
        "model_generate_config": {"seed": 7},
    }
    row = inspect(log_of(write_json, "C", eval=spec)).table.iloc[0]
    assert (row["subtask"], row["seed"]) == ("subject=law,cot=True", "7")


def test_a_reducer_that_is_no_mean_is_a_filter(write_json):
    scores = [
        {"name": "match", "scorer": "match", "reducer": reducer, "scored_samples": 1}
        | {"metrics": {"accuracy": {"name": "accuracy", "value": value}}}
        for reducer, value in (("mean", 0.5), ("pass_at_2", 1.0))
    ]
    results = {"total_samples": 1, "completed_samples": 1, "scores": scores}
    means = inspect(log_of(write_json, "P", results=results)).agreement()
    assert means["filter"].tolist() == ["none", "pass_at_2"]
    assert means["mean"].tolist()[0] == 0.5
    assert means["items"].tolist() == [1, 0]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.95, 0.999])
def test_an_archive_that_was_cut_off_is_refused(tmp_path, share):
    content = (DATA / "log.eval").read_bytes()
    path = tmp_path / "log.eval"
    path.write_bytes(content[: int(share * len(content))])
    assert f"log.eval: not a zip archive, or one whose end is missing ({path.stat().st_size}" in (
        refused(path)
    )


@pytest.mark.parametrize("member", ["header.json", "summaries.json"])
def test_a_damaged_member_is_named(tmp_path, member):
    content = bytearray((DATA / "log.eval").read_bytes())
    with zipfile.ZipFile(DATA / "log.eval") as archive:
        info = archive.getinfo(member)
    middle = info.header_offset + 30 + len(member) + info.compress_size // 2
    content[middle : middle + 8] = b"\x00" * 8
    path = tmp_path / "log.eval"
    path.write_bytes(content)
    assert f"log.eval, member {member}: damaged" in refused(path)


def test_a_member_that_is_no_json_is_named(tmp_path):
    path = rewrite(DATA / "log.eval", tmp_path / "log.eval", **{"header.json": b'{"version": 2,'})
    message = refused(path)
    assert "log.eval, member header.json: not valid JSON at byte 14" in message


def test_lost_members_are_noticed(tmp_path):
    left_out = ("samples/q2_epoch_2.json", "summaries.json")
    path = rewrite(DATA / "log.eval", tmp_path / "log.eval", left_out)
    assert "7 samples, but the log counts 8" in refused(path)


@pytest.mark.parametrize(
    ("log", "told"),
    [
        ({"results": {}}, "no field 'eval' (fields: 'results')"),
        (LOG | {"version": 1, "samples": []}, "a log of version 1; version 2 is read"),
        (LOG | {"samples": []}, "a log without samples"),
        (LOG | {"samples": ["a"]}, "sample 1: an object with named fields"),
        (LOG | {"samples": [{"id": "a", "epoch": "1", "scores": {}}]}, "field 'epoch' is of type"),
        (LOG | {"samples": [{"id": "a", "epoch": 1, "scores": {"m": "C"}}]}, "field 'm' is of"),
        (
            LOG | {"samples": [{"id": "a", "epoch": -1, "scores": {"m": {"value": "C"}}}]},
            "log.json, sample 1: epoch -1; from 0",
        ),
        (LOG | {"eval": {"task": "t"}, "samples": []}, "log.json, eval: no field 'model'"),
    ],
)
def test_a_log_of_another_kind_is_refused(write_json, log, told):
    assert told in refused(write_json("log.json", log))


def test_other_files_and_empty_folders_are_refused(tmp_path, write_json):
    assert "no .eval and no .json in this folder" in refused(tmp_path)
    assert "a log (.eval or .json)" in refused(write_json("samples.jsonl", [{}]))
    (tmp_path / "log.json").write_text("")
    assert "log.json: empty" in refused(tmp_path / "log.json")


def test_a_missing_cluster_is_refused():
    message = refused(DATA / "log.eval", cluster="chapter")
    assert "metadata: no field 'chapter' (fields: 'passage')" in message
