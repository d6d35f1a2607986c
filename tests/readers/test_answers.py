"""What every reader returns, and how it shows itself."""

import dataclasses

import pytest

from toolkit.readers import Answers, inspect, lm_eval
from toolkit.readers.answers import ANSWER_COLUMNS, DROPPED_COLUMNS, REPORTED_COLUMNS


def test_the_columns_are_the_same_everywhere(macro):
    answers = lm_eval(macro)
    assert list(answers.to_frame().columns) == ANSWER_COLUMNS
    assert list(answers.reported.columns) == REPORTED_COLUMNS
    assert list(answers.dropped.columns) == DROPPED_COLUMNS
    assert answers.table.index.equals(answers.table.reset_index(drop=True).index)


def test_answers_cannot_be_changed(macro):
    answers = lm_eval(macro)
    with pytest.raises(dataclasses.FrozenInstanceError):
        answers.table = answers.dropped


def test_the_summary_counts_and_names_what_was_left_out(macro):
    lines = lm_eval(macro).summary().text().splitlines()
    facts = {line[:21].strip(): line[21:].strip() for line in lines[2:11]}
    assert facts["answers"] == "44"
    assert facts["reported values"] == "6"
    assert facts["filter"] == "3: strict-match, flexible-extract, none"
    assert facts["compared with means"] == "6, largest difference 0"
    assert any("2 responses to a question" in line and line.endswith("12") for line in lines)


def test_a_summary_without_answers_or_left_out_ones(write_json):
    path = write_json("results.json", {"results": {"t": {"acc": 0.5}}})
    answers = lm_eval(path)
    text = answers.summary().text()
    assert "reported values  1" in text
    assert "compared" not in text
    assert isinstance(answers, Answers)
    assert "<table" in answers._repr_html_()


def test_rows_come_in_the_order_of_the_files(write_json):
    samples = [
        {"id": name, "epoch": 1, "scores": {"match": {"value": "C"}}} for name in ("b", "a", "c")
    ]
    log = {"version": 2, "eval": {"task": "t", "model": "m"}, "samples": samples}
    assert inspect(write_json("log.json", log)).table["item"].tolist() == ["b", "a", "c"]
