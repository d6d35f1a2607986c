"""The pages of the HTML gallery: notebooks dressed for the site, cards, and section pages."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from pathlib import Path
from string import Template

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from tools.notebooks import SECTIONS, NotebookError, Section, png, title

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
WIDGET_NOTE = (
    "<p class='gallery-note'>Interactive: the controls of this cell work when the notebook is "
    "open in JupyterLab (<code>make lab</code>).</p>"
)
TOP_FOLDER = "writing"  # the site's folder for the notebook that lies in none


@dataclass(frozen=True)
class Page:
    """One notebook, run or as committed, on its way to the site."""

    folder: str
    name: str
    notebook: NotebookNode
    unreachable: str = ""

    @property
    def site_folder(self) -> str:
        """Folder of the page on the site."""
        return self.folder or TOP_FOLDER

    @property
    def docname(self) -> str:
        """Name of the page on the site, without extension."""
        return f"{self.site_folder}/{self.name}"

    @property
    def original(self) -> str:
        """Path on the site of the notebook itself, to download."""
        return f"originals/{self.docname}.ipynb"

    @property
    def thumbnail(self) -> str:
        """Path of the card's picture on the site."""
        return f"thumbnails/{self.site_folder}_{self.name}.png"


def dress(page: Page) -> None:
    """Change the page's notebook from what a notebook needs to what a web page needs."""
    cells = page.notebook.cells
    for cell, below in zip(cells, [*cells[1:], None], strict=True):
        if cell.cell_type == "code":
            _replace_widgets(cell)
            _fold_solution(cell)
            _describe_figure(cell, below)
    cells.insert(1, new_markdown_cell(_note(page), id="gallery-note"))


def _note(page: Page) -> str:
    where = f"notebooks/{page.folder}/{page.name}.ipynb".replace("//", "/")
    note = (
        f":::{{div}} gallery-note\nRun it yourself: `make lab`, then open `{where}`; "
        f"or {{download}}`take the notebook from here </{page.original}>`.\n:::"
    )
    if page.unreachable:
        note += (
            "\n\n:::{admonition} Shown as committed: its data could not be reached\n"
            f":class: warning\n\nThis page was not run when the gallery was built. The notebook "
            f"{page.unreachable}.\n:::"
        )
    return note


def _replace_widgets(cell: NotebookNode) -> None:
    # A live widget would load its code from a server on the internet.
    for output in cell.outputs:
        if WIDGET_VIEW in output.get("data", {}):
            output.data = NotebookNode({"text/html": WIDGET_NOTE})
            output.metadata = NotebookNode()


def _fold_solution(cell: NotebookNode) -> None:
    if "solution" in cell.metadata.get("tags", []):
        cell.metadata.tags.append("hide-cell")
        cell.metadata["mystnb"] = {
            "code_prompt_show": "Show the solution",
            "code_prompt_hide": "Hide the solution",
        }


def _describe_figure(cell: NotebookNode, below: NotebookNode | None) -> None:
    # The sentence under a figure says what it shows, so it also serves those who cannot see it.
    if png(cell) and below is not None and "image" not in cell.metadata.get("mystnb", {}):
        sentence = re.sub(r"[*_`#]", "", below.source.split("\n\n")[0]).replace("\n", " ")
        cell.metadata.setdefault("mystnb", {})["image"] = {"alt": sentence}


def thumbnail_png(page: Page) -> bytes:
    """Return the picture for the page's card."""
    wanted = page.notebook.metadata.gallery.thumbnail
    for cell in page.notebook.cells:
        if cell.id == wanted and (picture := png(cell)):
            return base64.b64decode(picture)
    raise NotebookError(f"{page.docname}: no cell with id '{wanted}' shows a PNG for the card")


def _card(page: Page) -> str:
    about = page.notebook.metadata.gallery
    badges = f"{{bdg-primary}}`{about.minutes} min` {{bdg-secondary-line}}`{about.level}`"
    if page.unreachable:
        badges += " {bdg-warning-line}`as committed`"
    return f"""\
:::{{grid-item-card}} {title(page.notebook)}
:link: /{page.docname}
:link-type: doc
:img-top: /{page.thumbnail}
:img-alt: {about.alt}
:class-card: gallery-card

{about.question}

{badges}
:::
"""


def _cards(pages: list[Page]) -> str:
    cards = "\n".join(_card(page) for page in pages)
    return f"::::{{grid}} 1 2 3 3\n:gutter: 3\n\n{cards}\n::::\n"


def _toctree(docnames: list[str]) -> str:
    entries = "\n".join(f"/{name}" for name in docnames)
    return f"```{{toctree}}\n:hidden:\n\n{entries}\n```\n"


def section_page(section: Section, pages: list[Page]) -> str:
    """Return the Markdown page of one section."""
    toctree = _toctree([page.docname for page in pages])
    return f"# {section.title}\n\n{section.blurb}\n\n{_cards(pages)}\n{toctree}"


def index_page(template: str, pages: list[Page]) -> str:
    """Fill the front page's template with a grid of cards for each section."""
    parts, sections = [], []
    for section in SECTIONS:
        ours = [page for page in pages if page.folder == section.folder]
        if ours:
            sections.append(f"{ours[0].site_folder}/index")
            parts.append(f"## {section.title}\n\n{section.blurb}\n\n{_cards(ours)}")
    return Template(template).substitute(gallery="\n".join(parts), toctree=_toctree(sections))


def write_source(pages: list[Page], source: Path) -> None:
    """Add the front page, the section pages and the pictures to a copy of the site's folder."""
    index = source / "index.md"
    index.write_text(index_page(index.read_text(encoding="utf-8"), pages), encoding="utf-8")
    (source / "thumbnails").mkdir()
    for section in SECTIONS:
        ours = [page for page in pages if page.folder == section.folder]
        if ours:
            folder = source / ours[0].site_folder
            folder.mkdir()
            (folder / "index.md").write_text(section_page(section, ours), encoding="utf-8")
    for page in pages:
        (source / page.thumbnail).write_bytes(thumbnail_png(page))
