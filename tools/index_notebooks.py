"""The index of the notebooks, ``notebooks/README.md``, made from their metadata."""

from __future__ import annotations

from pathlib import Path

from tools import notebooks
from tools.notebooks import NOTEBOOKS, SECTIONS, Section

INDEX = NOTEBOOKS / "README.md"

HEAD = """\
# Notebooks

Each notebook answers one question and runs in about a minute. They are stored with their outputs.
This index is written by `make notebooks`.
"""


def text(root: Path = NOTEBOOKS) -> str:
    """Return the index as Markdown."""
    paths = notebooks.find(root)
    parts = [HEAD]
    for section in SECTIONS:
        rows = [_row(p, root) for p in paths if notebooks.folder_of(p, root) == section.folder]
        if rows:
            parts.append(_table(section, rows))
    return "\n".join(parts)


def _table(section: Section, rows: list[str]) -> str:
    head = f"## {section.title}\n\n{section.blurb}\n\n"
    columns = "| notebook | question | data | level | minutes |\n|---|---|---|---|---|\n"
    return head + columns + "\n".join(rows) + "\n"


def _row(path: Path, root: Path) -> str:
    notebook = notebooks.read(path)
    about = notebook.metadata.gallery
    link = f"[{notebooks.title(notebook)}]({path.relative_to(root).as_posix()})"
    return f"| {link} | {about.question} | {about.data} | {about.level} | {about.minutes} |"
