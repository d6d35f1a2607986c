"""Every notebook keeps the gallery's standard, and the checks notice when one does not."""

import base64
import copy
import io
import os

import numpy as np
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook, new_output
from PIL import Image

from tools import index_notebooks, notebooks
from tools.notebook_form import MAX_BYTES, problems

TEMPLATE = notebooks.NOTEBOOKS / "_template.ipynb"


@pytest.mark.parametrize("path", notebooks.find(), ids=lambda path: path.stem)
def test_notebook_keeps_the_standard(path):
    assert problems(path, notebooks.read(path)) == []


def test_index_is_up_to_date():
    stored = index_notebooks.INDEX.read_text(encoding="utf-8")
    assert stored == index_notebooks.text(), "run `make notebooks`"


def _cell(notebook, name):
    return next(cell for cell in notebook.cells if cell.id == name)


def _foreign_kernel(notebook):
    notebook.metadata.kernelspec.name = "my-env"


def _not_run(notebook):
    _cell(notebook, "fit").execution_count = None


def _run_twice(notebook):
    _cell(notebook, "versions").execution_count += 1


def _widget_state(notebook):
    notebook.metadata["widgets"] = {"application/vnd.jupyter.widget-state+json": {}}


def _timing(notebook):
    _cell(notebook, "fit").metadata["execution"] = {"iopub.execute_input": "2026-01-01"}


def _trailing_space(notebook):
    _cell(notebook, "fit").source += "\nx "


def _header_row(notebook):
    notebook.cells[0].source = notebook.cells[0].source.replace("**You need**", "**Needed**")


def _other_question(notebook):
    notebook.metadata.gallery.question = "Another question?"


def _no_alt(notebook):
    notebook.metadata.gallery.alt = ""


def _alt_not_on_the_cell(notebook):
    del _cell(notebook, "figure-fit").metadata["mystnb"]


def _no_tags(notebook):
    notebook.metadata.gallery.tags = []


def _minutes(notebook):
    notebook.metadata.gallery.minutes = "ten"


def _level(notebook):
    notebook.metadata.gallery.level = "easy"


def _thumbnail(notebook):
    notebook.metadata.gallery.thumbnail = "fit"


def _datasets(notebook):
    notebook.metadata.gallery.datasets = "one_name"


def _absolute_path(notebook):
    _cell(notebook, "fit").outputs[0].text += "\n/home/someone/table.csv"


def _figure_without_sentence(notebook):
    notebook.cells.remove(_cell(notebook, "figure-fit-text"))


def _two_titles(notebook):
    _cell(notebook, "check-text").source = "# A second title"


def _skipped_level(notebook):
    _cell(notebook, "check-text").source = "#### Too deep"


def _no_adapt(notebook):
    notebook.cells.remove(_cell(notebook, "adapt"))


def _no_references(notebook):
    notebook.cells.remove(_cell(notebook, "references"))


def _no_solution(notebook):
    _cell(notebook, "solution-2").metadata = NotebookNode()


def _no_exercise(notebook):
    for name in ("exercises", "exercise-2"):
        cell = _cell(notebook, name)
        cell.source = cell.source.replace("### Exercise", "### Question")


def _warning(notebook):
    _cell(notebook, "setup").outputs = [new_output("stream", name="stderr", text="Warning: x")]


def _error(notebook):
    _cell(notebook, "setup").outputs = [new_output("error", ename="E", evalue="", traceback=[])]


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (_foreign_kernel, "state of one editor"),
        (_not_run, "run once, in order"),
        (_run_twice, "run once, in order"),
        (_widget_state, "state of one editor"),
        (_timing, "state of one editor"),
        (_trailing_space, "state of one editor"),
        (_header_row, "row '**You need**'"),
        (_other_question, "should be the same words"),
        (_no_alt, "gallery.alt should be a non-empty text"),
        (_alt_not_on_the_cell, "state of one editor"),
        (_no_tags, "at least one tag"),
        (_minutes, "whole number of minutes"),
        (_level, "should be one of beginner"),
        (_thumbnail, "those are figure-fit, figure-coverage"),
        (_datasets, "datasets should be a list"),
        (_absolute_path, "exists on one machine only"),
        (_figure_without_sentence, "figure of cell figure-fit should have a sentence"),
        (_two_titles, "no other '# ' heading"),
        (_skipped_level, "'Too deep' skips a level"),
        (_no_adapt, "'## Adapt this to your data' is missing"),
        (_no_references, "'## References' is missing"),
        (_no_solution, "'Exercise 2' should be followed"),
        (_no_exercise, "each have a heading"),
        (_warning, "stores a message on stderr"),
        (_error, "stores an error"),
    ],
)
def test_a_departure_from_the_standard_is_named(spoil, expected):
    notebook = copy.deepcopy(notebooks.read(TEMPLATE))
    spoil(notebook)
    assert any(expected in problem for problem in problems(TEMPLATE, notebook))


def test_a_large_file_is_named(tmp_path):
    path = tmp_path / "large.ipynb"
    path.touch()
    os.truncate(path, MAX_BYTES + 1)
    assert any("bytes" in problem for problem in problems(path, notebooks.read(TEMPLATE)))


def test_pictures_are_stored_with_few_colours_and_only_once():
    smooth = Image.linear_gradient("L").convert("RGBA")
    before = io.BytesIO()
    smooth.save(before, "PNG")
    picture = base64.b64encode(before.getvalue()).decode()
    cell = new_code_cell()
    cell.outputs = [new_output("display_data", {"image/png": picture})]
    notebook = new_notebook(cells=[cell])
    notebooks.normalise(notebook)
    stored = cell.outputs[0].data["image/png"]
    with Image.open(io.BytesIO(base64.b64decode(stored))) as image:
        assert (image.mode, image.size) == ("P", smooth.size)
        apart = np.abs(np.asarray(image.convert("L"), float) - np.asarray(smooth.convert("L")))
    assert apart.max() <= 4
    notebooks.normalise(notebook)
    assert cell.outputs[0].data["image/png"] == stored
