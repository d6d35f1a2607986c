"""The standard every notebook keeps, as checks: `problems` names what is not as it should be."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path

from nbformat import NotebookNode

from tools.notebooks import normalise, png

MAX_BYTES = 300_000
LEVELS = ("beginner", "intermediate", "advanced")
HEADER_ROWS = ("Question", "Data", "Run time", "You need", "Level", "You will be able to")
HEADER_ROW = re.compile(r"^\|\s*\*\*(.+?)\*\*\s*\|\s*(.+?)\s*\|$", re.M)
SECTIONS = ("Exercises", "Adapt this to your data", "References")
ABSOLUTE_PATH = re.compile(r"(?<![\w.])/(?:home|Users|root|tmp|work|mnt|opt|usr)/\w|\b[A-Z]:\\\w")


def problems(path: Path, notebook: NotebookNode) -> list[str]:
    """Return what keeps a notebook from the gallery's standard, one sentence each."""
    found = [*_metadata(notebook), *_stored_state(path, notebook)]
    found += [*_header(notebook), *_headings(notebook), *_figures(notebook), *_exercises(notebook)]
    return found


def _metadata(notebook: NotebookNode) -> Iterator[str]:
    about = notebook.metadata.get("gallery", {})
    for key in ("question", "data", "level", "thumbnail", "alt"):
        if not (isinstance(about.get(key), str) and about[key].strip()):
            yield f"metadata.gallery.{key} should be a non-empty text"
    if not (isinstance(about.get("minutes"), int) and about["minutes"] > 0):
        yield "metadata.gallery.minutes should be a whole number of minutes"
    if about.get("level") not in LEVELS:
        yield f"metadata.gallery.level should be one of {', '.join(LEVELS)}"
    for key in ("tags", "datasets"):
        names = about.get(key, [] if key == "datasets" else None)
        if not isinstance(names, list) or not all(isinstance(n, str) and n for n in names):
            yield f"metadata.gallery.{key} should be a list of texts"
        elif key == "tags" and not names:
            yield "metadata.gallery.tags should hold at least one tag"
    shown = [cell.id for cell in notebook.cells if png(cell)]
    if about.get("thumbnail") not in shown:
        yield (
            f"metadata.gallery.thumbnail should be the id of a cell that shows a PNG; "
            f"those are {', '.join(shown) or 'none'}"
        )


def _stored_state(path: Path, notebook: NotebookNode) -> Iterator[str]:
    run = [c for c in _code_cells(notebook) if "nbval-skip" not in c.metadata.get("tags", [])]
    if [cell.execution_count for cell in run] != list(range(1, len(run) + 1)):
        yield "the code cells should have been run once, in order, from a fresh kernel"
    for cell in run:
        for output in cell.outputs:
            if output.get("name") == "stderr":
                yield f"cell {cell.id} stores a message on stderr: mend its cause"
            meant = "raises-exception" in cell.metadata.get("tags", [])
            if output.output_type == "error" and not meant:
                yield f"cell {cell.id} stores an error"
    clean = copy.deepcopy(notebook)
    normalise(clean)
    if clean != notebook:
        yield "the file holds state of one editor or machine (kernel, widgets, times, cell flags)"
    if found := ABSOLUTE_PATH.search(_without_pictures(notebook)):
        yield f"the path '{found[0]}...' exists on one machine only"
    if path.stat().st_size > MAX_BYTES:
        yield f"the file has {path.stat().st_size} bytes and {MAX_BYTES} are allowed"


def _header(notebook: NotebookNode) -> Iterator[str]:
    rows = dict(HEADER_ROW.findall(notebook.cells[0].source))
    for name in HEADER_ROWS:
        if name not in rows:
            yield f"the first cell's table should have a row '**{name}**'"
    about = notebook.metadata.get("gallery", {})
    for name, key in (("Question", "question"), ("Level", "level")):
        if name in rows and rows[name] != about.get(key):
            yield f"the table's {name} and metadata.gallery.{key} should be the same words"


def _headings(notebook: NotebookNode) -> Iterator[str]:
    headings = [heading for _, heading in _all_headings(notebook)]
    levels = [len(marks) for marks, _ in headings]
    if levels[:1] != [1] or levels.count(1) != 1:
        yield "the notebook should begin with its title, and have no other '# ' heading"
    for before, (marks, words) in zip(levels, headings[1:], strict=False):
        if len(marks) > before + 1:
            yield f"the heading '{words}' skips a level"
    for name in SECTIONS:
        if ("##", name) not in headings:
            yield f"a section '## {name}' is missing"


def _figures(notebook: NotebookNode) -> Iterator[str]:
    for cell, below in zip(notebook.cells, [*notebook.cells[1:], None], strict=True):
        if not png(cell) or "solution" in cell.metadata.get("tags", []):
            continue
        if below is None or below.cell_type != "markdown" or below.source.startswith("#"):
            yield f"the figure of cell {cell.id} should have a sentence under it, in Markdown"


def _exercises(notebook: NotebookNode) -> Iterator[str]:
    starts = [
        (index, words)
        for index, (marks, words) in _all_headings(notebook)
        if marks == "###" and words.startswith("Exercise")
    ]
    if not starts:
        yield "the exercises should each have a heading '### Exercise ...'"
    ends = [*(index for index, _ in starts[1:]), len(notebook.cells)]
    for (start, words), end in zip(starts, ends, strict=False):
        cells = [c for c in notebook.cells[start:end] if c.cell_type == "code"]
        if not any("solution" in cell.metadata.get("tags", []) for cell in cells):
            yield f"'{words}' should be followed by a code cell with the tag 'solution'"


def _all_headings(notebook: NotebookNode) -> list[tuple[int, tuple[str, str]]]:
    found = []
    for index, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            prose = re.sub(r"^```.*?^```", "", cell.source, flags=re.M | re.S)
            matches = re.findall(r"^(#{1,6})\s+(.+?)\s*$", prose, re.M)
            found += [(index, match) for match in matches]
    return found


def _code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [c for c in notebook.cells if c.cell_type == "code" and c.source.strip()]


def _without_pictures(notebook: NotebookNode) -> str:
    bare = copy.deepcopy(notebook)
    for cell in bare.cells:
        for output in cell.get("outputs", []):
            output.get("data", {}).pop("image/png", None)
    return json.dumps(bare, ensure_ascii=False).replace("\\n", "\n")
