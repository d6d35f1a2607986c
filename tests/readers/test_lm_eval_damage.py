"""lm-evaluation-harness: damaged, incomplete, mixed and wrong files are one clear error."""

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolkit.errors import DataError
from toolkit.readers import lm_eval

DATA = Path(__file__).parent / "data"
STAMP = "2026-01-31T10-00-00"
LINE = {"doc_id": 0, "doc": {"passage": "p"}, "filter": "none", "metrics": ["acc"], "acc": 1.0}


def refused(path, **options):
    with pytest.raises(DataError) as error:
        lm_eval(path, **options)
    return str(error.value)


def write_lines(folder, *lines):
    path = folder / f"samples_t_{STAMP}.jsonl"
    path.write_text(
        "".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines)
    )
    return path


def test_a_cut_off_line_is_named_with_its_byte(tmp_path):
    whole = json.dumps(LINE) + "\n"
    message = refused(write_lines(tmp_path, whole, whole[:30]))
    assert message.startswith(f"samples_t_{STAMP}.jsonl, line 2: not valid JSON at byte ")
    byte = int(message.split("byte ")[1].split()[0])
    assert len(whole) <= byte <= len(whole) + 30
    assert "cut off" in message


@given(share=st.floats(0, 1, exclude_max=True), name=st.sampled_from(["results", "toy_sub_a"]))
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=20
)
def test_a_run_cut_off_anywhere_is_refused(tmp_path_factory, share, name):
    run = shutil.copytree(
        DATA / "lm_eval_0.4.13/toy_macro", tmp_path_factory.mktemp("run") / "6v8uqx97"
    )
    path = next(run.glob(f"*{name}*"))
    content = path.read_bytes().rstrip()
    path.write_bytes(content[: int(share * len(content))])
    message = refused(run)
    assert path.name in message


def test_lost_lines_are_noticed_by_the_count_in_the_results(macro):
    path = next(macro.glob("samples_toy_gen*"))
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    message = refused(macro)
    assert "11 lines, but its results file counts 6 questions times 2 filters" in message


@pytest.mark.parametrize("name", [f"samples_t_{STAMP}.jsonl", "results.json"])
@pytest.mark.parametrize("content", ["", "\n \n"])
def test_an_empty_file_is_refused(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content)
    assert refused(path).startswith(f"{name}: empty")


def test_an_empty_folder_is_refused(tmp_path):
    assert "no results*.json and no samples*.jsonl" in refused(tmp_path)
    assert "no such file" in refused(tmp_path / "gone")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"PK\x03\x04\xff\xfe", "not UTF-8 text at byte 4"),
        (b"[1, 2]", "a JSON list where an object"),
        (b'{"version": 2, "eval": {}}', "no field 'results' (fields: 'version', 'eval')"),
        (b'{"results": []}', "field 'results' is of type list; dict is expected"),
        (b'{"results": {"t": 0.5}}', "field 't' is of type float"),
        (b'{"results": ' + b"[" * 100_000, "JSON that no evaluation tool writes"),
        (b'{"results": ' + b"1" * 5000 + b"}", "JSON that no evaluation tool writes"),
    ],
)
def test_a_results_file_of_another_kind_is_refused(tmp_path, content, told):
    path = tmp_path / "results.json"
    path.write_bytes(content)
    assert told in refused(path)


def test_a_file_with_another_suffix_is_refused(tmp_path):
    path = tmp_path / "details.parquet"
    path.write_bytes(b"PAR1")
    assert "a results file (.json), a samples file (.jsonl)" in refused(path)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ([1], "line 2: a JSON list where an object"),
        ({"id": "q1", "epoch": 1}, "line 2: no field 'doc_id' (fields: 'id', 'epoch')"),
        (LINE | {"doc_id": None}, "line 2: field 'doc_id' is None"),
        (LINE | {"doc_id": True}, "line 2: field 'doc_id' is True"),
        (LINE | {"metrics": []}, "line 2: no metric on this line"),
        (LINE | {"metrics": "acc"}, "line 2: field 'metrics' is not a list of names"),
        (LINE | {"filter": 3.5}, "line 2: field 'filter' is 3.5"),
        (LINE | {"doc_id": "\ud800"}, "a label holds half of a character"),
    ],
)
def test_a_line_of_another_kind_is_named(tmp_path, line, told):
    assert told in refused(write_lines(tmp_path, LINE, line))


def test_two_versions_in_one_file_are_refused(tmp_path):
    old = {key: value for key, value in LINE.items() if key not in ("filter", "metrics")}
    message = refused(write_lines(tmp_path, LINE, old | {"doc_id": 1}))
    assert "line 2: lines with and without the field 'filter'" in message


def test_a_repeated_line_is_refused_with_both_places(tmp_path):
    message = refused(write_lines(tmp_path, LINE, LINE | {"doc_id": 1}, LINE | {"acc": 0.0}))
    assert "1 of 3 answers repeat an earlier one" in message
    assert "item 0" in message
    assert "line 1 and at " in message
    assert ".jsonl, line 3" in message


def test_a_run_appended_to_its_own_samples_is_refused(tmp_path):
    run = shutil.copytree(DATA / "lm_eval_0.4.5", tmp_path / "run")
    samples = next(run.glob("samples*"))
    stamp = "2024-10-01T10-00-00.000000"
    entry = {"exact_match,strict-match": 1 / 3, "exact_match,flexible-extract": 2 / 3}
    (run / f"results_{stamp}.json").write_text(json.dumps({"results": {"toy_gen": entry}}))
    samples.write_text(samples.read_text() * 2)
    message = refused(run)
    assert "line 7: the questions come once more" in message
    assert "(strict-match, flexible-extract)" in message


def test_two_runs_of_the_same_questions_are_refused(macro):
    for path in list(macro.glob("*_2026-12-01T04-37-44*")):
        shutil.copy(path, macro / path.name.replace("04-37-44", "05-00-00"))
    message = refused(macro)
    assert "44 of 88 answers repeat an earlier one" in message
    assert "04-37-44" in message
    assert "05-00-00" in message


@pytest.mark.parametrize(
    ("doc", "told"),
    [
        ({}, "line 1, doc: no field 'passage'"),
        ({"passage": None}, "field 'passage' is None"),
        ({"passage": float("nan")}, "field 'passage' is nan"),
    ],
)
def test_a_missing_cluster_is_refused(tmp_path, doc, told):
    assert told in refused(write_lines(tmp_path, LINE | {"doc": doc}), cluster="passage")


def test_a_file_without_any_score_says_why(tmp_path):
    message = refused(write_lines(tmp_path, LINE | {"acc": "A"}))
    assert "no answer has a score. All were left out: text that is no score." in message


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.sampled_from([0, -1, 2, 10**400])
    | st.floats()
    | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


@given(field=st.sampled_from(["doc_id", "doc", "filter", "metrics", "acc", "resps"]), value=JSON)
@settings(deadline=None, max_examples=20)
def test_any_value_anywhere_is_read_or_refused(tmp_path_factory, field, value):
    path = write_lines(tmp_path_factory.mktemp("any"), LINE, LINE | {"doc_id": 1, field: value})
    try:
        table = lm_eval(path).table
    except DataError:
        return
    assert table["score"].between(0, 1).all()


RESULTS = json.loads(next((DATA / "lm_eval_0.4.13/toy_macro").glob("results*")).read_text())


@given(field=st.sampled_from([*RESULTS]), value=JSON)
@settings(deadline=None, max_examples=20)
def test_any_results_are_read_or_refused(tmp_path_factory, field, value):
    path = tmp_path_factory.mktemp("any") / "results.json"
    path.write_text(json.dumps(RESULTS | {field: value}))
    try:
        answers = lm_eval(path)
    except DataError:
        return
    assert len(answers.reported) in (6, 7)
