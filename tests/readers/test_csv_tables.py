"""CSV: columns mapped by name, text never taken for a score, every damage named by line."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.errors import DataError
from toolkit.readers import csv

LIVEBENCH = "bayes_evals/livebench_13012025.parquet"


def write(folder, text):
    path = folder / "mine.csv"
    path.write_text(text)
    return path


def refused(path, columns=None):
    with pytest.raises(DataError) as error:
        csv(path, columns)
    return str(error.value)


def test_columns_are_mapped_and_the_rest_is_filled(tmp_path):
    text = "llm,question,correct,note\na,q1,1,x\nb,q1,False,\nb,q2, 0.5 ,y\n"
    answers = csv(
        write(tmp_path, text), columns={"model": "llm", "item": "question", "score": "correct"}
    )
    assert answers.table["score"].tolist() == [1.0, 0.0, 0.5]
    assert answers.table["model"].tolist() == ["a", "b", "b"]
    assert answers.table["cluster"].tolist() == ["none/q1", "none/q1", "none/q2"]
    filled = answers.table[["task", "subtask", "seed", "prompt", "filter", "metric", "epoch"]]
    assert filled.drop_duplicates().values.tolist() == [
        ["none", "none", "none", "none", "none", "score", 1]
    ]
    assert answers.reported.empty


def test_every_column_of_answers_can_be_given(tmp_path):
    text = (
        "model,task,subtask,item,cluster,seed,epoch,prompt,filter,metric,score\n"
        "a,t,s,q1,c1,7,1,short,strict,acc,1\na,t,s,q1,c1,7,2,short,strict,acc,0\n"
    )
    table = csv(write(tmp_path, text)).table
    assert table.values.tolist() == [
        ["a", "t", "s", "q1", "t/c1", "7", 1, "short", "strict", "acc", 1.0],
        ["a", "t", "s", "q1", "t/c1", "7", 2, "short", "strict", "acc", 0.0],
    ]


@pytest.mark.parametrize("empty", ["", " ", "NaN", "nan", "null", "None"])
def test_an_empty_score_is_unscored(tmp_path, empty):
    answers = csv(write(tmp_path, f"model,item,score\na,q1,{empty}\na,q2,1\n"))
    assert answers.table["item"].tolist() == ["q2"]
    assert answers.dropped[["item", "reason", "where"]].values.tolist() == [
        ["q1", "unscored", "mine.csv, line 2"]
    ]


@pytest.mark.parametrize("text", ["yes", "correct", "C", "1/2", "0,5", "1_0", "0x1", "inf", "½"])
def test_other_text_is_refused(tmp_path, text):
    message = refused(write(tmp_path, f'model,item,score\na,q1,1\na,q2,"{text}"\n'))
    assert f"mine.csv, line 3: the score {text!r} is text that is no score" in message


@pytest.mark.parametrize(("scores", "told"), [((55, 0), "0 to 55"), ((-1, 1), "-1 to 1")])
def test_percent_and_negative_scores_are_refused(tmp_path, scores, told):
    lines = "".join(f"a,q{n},{score}\n" for n, score in enumerate(scores))
    message = refused(write(tmp_path, f"model,item,score\n{lines}"))
    assert f"values from {told}" in message
    assert "Divide percent by 100" in message
    assert "mine.csv, line 2" in message


def test_a_question_answered_twice_is_refused(tmp_path):
    message = refused(write(tmp_path, "model,item,score\na,q1,1\nb,q1,1\na,q1,1\n"))
    assert "mine.csv, line 2 and at mine.csv, line 4" in message
    assert "once per epoch" in message


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "mine.csv: empty"),
        ("model,item,score\n", "no answer has a score"),
        ("model,item\na,q1\n", "no column 'score'. The file has 'model', 'item'"),
        ("model,item,score,score\na,q,1,0\n", "two columns 'score'"),
        ("model,item,score\na,q1,1\na,q2\n", "line 3: 2 fields, but the header names 3"),
        ("model,item,score\na,q,1,0,5\n", "line 2: 5 fields, but the header names 3"),
        ('model,item,score\na,"q1,1\n', "not valid CSV (unexpected end of data)"),
        ("model,item,score\n,q1,1\n", "line 2: column for 'model' is empty"),
        ("model,item,epoch,score\na,q,x,1\n", "line 2: the epoch 'x' is no whole number"),
        ("model,item,score\na,q1,\n", "All were left out: unscored"),
    ],
)
def test_damage_is_named(tmp_path, text, told):
    assert told in refused(write(tmp_path, text))


def test_wrong_maps_and_files_are_refused(tmp_path):
    path = write(tmp_path, "model,item,score\na,q1,1\n")
    assert "'right' is no column of answers" in refused(path, {"right": "score"})
    assert "no column 'shots'. The file has" in refused(path, {"prompt": "shots"})
    assert "a folder; give one CSV file" in refused(tmp_path)
    path.write_bytes("model,item,score\na,é,1\n".encode("latin-1"))
    assert "not UTF-8 text after line " in refused(path)


def test_a_byte_order_mark_and_quoted_line_breaks_are_read(tmp_path):
    text = '\ufeffmodel,item,score\r\n"a","q\n1",1\r\n\r\na,q2,x\r\n'
    assert "line 5: the score 'x'" in refused(write(tmp_path, text))


@given(
    scores=st.lists(
        st.one_of(st.floats(0, 1), st.booleans(), st.none()), min_size=1, max_size=20
    ).filter(lambda scores: any(score is not None for score in scores))
)
@settings(deadline=None, max_examples=30)
def test_what_is_written_is_read(tmp_path_factory, scores):
    items = [f"q{n}" for n in range(len(scores))]
    written = pd.DataFrame({"model": "a", "item": items, "score": pd.Series(scores, dtype=object)})
    path = tmp_path_factory.mktemp("csv") / "mine.csv"
    written.to_csv(path, index=False)
    answers = csv(path)
    expected = {n: float(s) for n, s in zip(items, scores, strict=True) if s is not None}
    assert answers.table.set_index("item")["score"].to_dict() == expected
    assert set(answers.dropped["item"]) == set(items) - set(expected)


@pytest.mark.skipif("TOOLKIT_DATA_DIR" not in os.environ, reason="TOOLKIT_DATA_DIR is not set")
def test_repeated_answers_in_a_public_table_are_refused_until_they_are_numbered(tmp_path):
    public = pd.read_parquet(Path(os.environ["TOOLKIT_DATA_DIR"], LIVEBENCH))
    pairs = ["model", "question_id"]
    repeated = public.loc[public.duplicated(pairs), "question_id"]
    public = public[public["question_id"].isin(repeated)].copy()
    path = tmp_path / "livebench.csv"
    public.to_csv(path, index=False)
    columns = {"item": "question_id", "task": "category", "subtask": "task"}
    message = refused(path, columns)
    assert f"590 of {len(public)} answers repeat an earlier one" in message
    public["epoch"] = public.groupby(pairs).cumcount() + 1
    public.to_csv(path, index=False)
    table = csv(path, columns).table
    assert len(table) == len(public)
    assert table["score"].mean() == pytest.approx(np.mean(public["score"]))
