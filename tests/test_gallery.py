"""Notebooks are run for the gallery, shown as committed without their data, and work offline."""

import shutil
import sys

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools import build_gallery, notebooks
from tools.notebooks import NotebookError

TEMPLATE = notebooks.NOTEBOOKS / "_template.ipynb"
CONFTEST = notebooks.ROOT / "conftest.py"
SANITIZE = notebooks.ROOT / "tests" / "nbval_sanitize.cfg"


def _notebook(*sources):
    cells = [new_code_cell(text, id=f"c{n}") for n, text in enumerate(sources, 1)]
    return new_notebook(cells=[new_markdown_cell("# Title", id="title"), *cells])


@pytest.fixture
def no_data(monkeypatch):
    monkeypatch.setattr("toolkit.datasets.available", lambda name: name == "here", raising=False)


def test_notebooks_run_in_this_python_and_in_their_folder(tmp_path):
    notebook = _notebook("import os, sys\nprint(sys.executable)\nprint(os.getcwd())")
    notebooks.execute(notebook, tmp_path / "where.ipynb")
    assert notebook.cells[1].outputs[0].text.split() == [sys.executable, str(tmp_path)]
    assert notebook.cells[1].metadata == {}


def test_a_failing_cell_is_named(tmp_path):
    notebook = _notebook("x = 0", "1 / x", "print('never')")
    expected = r"bad\.ipynb, cell 3 \(id c2\) failed:(.|\n)*ZeroDivisionError: division by zero"
    with pytest.raises(NotebookError, match=expected) as caught:
        notebooks.execute(notebook, tmp_path / "bad.ipynb")
    assert "\x1b" not in str(caught.value)


def test_a_cell_that_takes_too_long_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(notebooks, "CELL_TIMEOUT", 1)
    with pytest.raises(NotebookError, match=r"slow\.ipynb, cell 2 \(id c1\) failed"):
        notebooks.execute(_notebook("import time\ntime.sleep(60)"), tmp_path / "slow.ipynb")


def test_data_out_of_reach_is_named(no_data):
    notebook = _notebook()
    assert notebooks.unreachable_data(notebook) == ""
    notebook.metadata["gallery"] = {"datasets": ["here", "far_away"]}
    assert notebooks.unreachable_data(notebook).endswith("nor the network: far_away")
    notebook.metadata["gallery"] = {"datasets": ["here"]}
    assert notebooks.unreachable_data(notebook) == ""


def test_an_unknown_folder_is_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.ipynb").touch()
    with pytest.raises(NotebookError, match="one of these folders: scaling, boundary"):
        notebooks.find(tmp_path)


@pytest.fixture
def site(tmp_path, no_data, capsys):
    """Build a site of two notebooks, one of which would fail if it were run."""
    root = tmp_path / "notebooks"
    (root / "scaling").mkdir(parents=True)
    committed = notebooks.read(TEMPLATE)
    committed.metadata.gallery["datasets"] = ["far_away"]
    committed.cells[0].source = committed.cells[0].source.replace("How sure is", "As committed:")
    committed.cells.append(new_code_cell("1 / 0", id="would-fail"))
    widget = {"application/vnd.jupyter.widget-view+json": {}, "text/plain": "VBox(children=())"}
    shown = new_output("display_data", data=widget)
    committed.cells.append(new_code_cell("explore()", id="widget", outputs=[shown]))
    notebooks.write(committed, root / "scaling" / "01_committed.ipynb")
    shutil.copy(TEMPLATE, root)
    build_gallery.build(root, tmp_path / "gallery", jobs=2)
    return tmp_path / "gallery", capsys.readouterr().out


def test_the_site_shows_what_it_should(site):
    site, printed = site
    index = (site / "index.html").read_text(encoding="utf-8")
    assert index.index("As committed: a fitted slope?") < index.index("How sure is a fitted slope?")
    assert index.count("10 min") == 2
    assert "scaling_01_committed.png" in index

    kept = (site / "scaling" / "01_committed.html").read_text(encoding="utf-8")
    assert "Shown as committed: its data could not be reached" in kept
    assert "nor the network: far_away" in kept
    assert "VBox(" not in kept
    assert "open in JupyterLab" in kept

    run = (site / "writing" / "_template.html").read_text(encoding="utf-8")
    assert "Shown as committed" not in run
    assert "Show the solution" in run
    assert 'alt="Sixty of the repetitions, each with its interval' in run
    assert "mathjax/tex-chtml-full.js" in run
    assert "scaling/01_committed.ipynb: shown as committed, needs" in printed


@pytest.mark.parametrize(
    "tag",
    [
        '<script src="https://example.org/a.js"></script>',
        '<link rel="stylesheet" href="//example.org/a.css">',
        '<img alt="x" src="not_in_the_gallery.png">',
    ],
)
def test_a_page_that_needs_the_network_is_refused(tmp_path, tag):
    (tmp_path / "here.png").touch()
    page = tmp_path / "page.html"
    page.write_text('<a href="https://example.org">a link</a><img src="here.png?v=1">')
    build_gallery.check_offline(tmp_path)
    page.write_text(tag)
    with pytest.raises(NotebookError, match=r"page\.html: .*(example\.org|not_in_the_gallery)"):
        build_gallery.check_offline(tmp_path)


def test_nbval_skips_a_notebook_without_its_data(pytester):
    here = "import toolkit.datasets\ntoolkit.datasets.available = lambda name: name == 'here'\n"
    pytester.makeconftest(CONFTEST.read_text(encoding="utf-8") + here)
    shutil.copy(SANITIZE, pytester.mkdir("tests"))
    for name, datasets in (("reachable", ["here"]), ("out_of_reach", ["far_away"])):
        notebook = _notebook("1 + 1")
        notebook.metadata["gallery"] = {"datasets": datasets}
        notebook.cells[1].execution_count = 1
        result = new_output("execute_result", data={"text/plain": "2"}, execution_count=1)
        notebook.cells[1].outputs = [result]
        notebooks.write(notebook, pytester.path / f"{name}.ipynb")
    result = pytester.runpytest_subprocess("--nbval", "-rs", ".")
    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["*needs registered data*nor the network: far_away"])
