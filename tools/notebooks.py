"""What every tool needs to know of the notebooks: where they lie, and how they are run."""

from __future__ import annotations

import asyncio
import base64
import io
import re
from dataclasses import dataclass
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellControlSignal, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from PIL import Image
from traitlets import default

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
CELL_TIMEOUT = 120
COLOURS = 256  # of a stored picture: under half of the size, and no eye sees the difference
ANSI_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Section:
    """A folder of notebooks and what the gallery says of it."""

    folder: str
    title: str
    blurb: str


SECTIONS = (
    Section("scaling", "Scaling laws", "How loss falls with parameters, tokens and compute."),
    Section("boundary", "Capability boundaries", "The best score that a compute budget can reach."),
    Section("variance", "Benchmark variance", "How much of a score, or of a lead, is noise."),
    Section("templates", "Templates", "Bring your own table: change three lines and run."),
    Section("", "Write a notebook", "The gallery's standard, as a notebook to copy."),
)


class NotebookError(RuntimeError):
    """A notebook could not be run, or does not say what the gallery needs to know."""


def find(root: Path = NOTEBOOKS) -> list[Path]:
    """Return the notebooks under `root`, section by section."""
    order = [section.folder for section in SECTIONS]
    found = [p for p in root.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts]
    for path in found:
        if folder_of(path, root) not in order:
            raise NotebookError(
                f"{path.relative_to(root)}: notebooks lie in one of these folders: "
                f"{', '.join(filter(None, order))}"
            )
    return sorted(found, key=lambda p: (order.index(folder_of(p, root)), p.name))


def folder_of(path: Path, root: Path = NOTEBOOKS) -> str:
    """Return the section folder of a notebook; the empty string at the top."""
    folder = path.relative_to(root).parent.as_posix()
    return "" if folder == "." else folder


def read(path: Path) -> NotebookNode:
    """Read a notebook in format 4."""
    return nbformat.read(path, as_version=4)  # type: ignore[no-any-return]


def write(notebook: NotebookNode, path: Path) -> None:
    """Check a notebook against the format and write it."""
    nbformat.validate(notebook)
    nbformat.write(notebook, path)


def title(notebook: NotebookNode) -> str:
    """Return the text of the first heading."""
    match = re.match(r"#\s+(.+)", notebook.cells[0].source)
    if match is None:
        raise NotebookError("The first cell does not begin with '# ' and a title")
    return match[1].strip()


def png(cell: NotebookNode) -> str | None:
    """Return the last PNG that a cell shows, in base64; None if it shows none."""
    pictures = [
        output.data["image/png"]
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    return pictures[-1] if pictures else None


def unreachable_data(notebook: NotebookNode) -> str:
    """Say which of the notebook's registered data sets cannot be had; empty if all can."""
    names = notebook.metadata.get("gallery", {}).get("datasets", [])
    if not names:
        return ""
    from toolkit import datasets  # only here: most notebooks need no registered data

    missing = [name for name in names if not datasets.available(name)]
    if not missing:
        return ""
    return (
        f"needs registered data that is in neither TOOLKIT_DATA_DIR, the cache nor the network: "
        f"{', '.join(missing)}"
    )


class _ThisPython(AsyncKernelManager):
    """Starts the running interpreter, whatever kernels the machine has registered."""

    @default("kernel_spec_manager")
    def _only_the_native_kernel(self) -> KernelSpecManager:
        return KernelSpecManager(kernel_dirs=[])


def execute(notebook: NotebookNode, path: Path) -> None:
    """Run a notebook with the current environment, in the folder of `path`, in place.

    Raises
    ------
    NotebookError
        Naming the notebook, the cell and what Python said.
    """
    last = {"index": 0}

    def note_start(cell: NotebookNode, cell_index: int) -> None:
        last["index"] = cell_index

    client = NotebookClient(
        notebook,
        kernel_name="python3",
        kernel_manager_class=_ThisPython,
        resources={"metadata": {"path": str(path.parent)}},
        timeout=CELL_TIMEOUT,
        record_timing=False,  # times would change the file at every run
        coalesce_streams=True,
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        on_cell_start=note_start,
    )
    try:
        asyncio.run(client.async_execute())  # client.execute() would leave its loop open
    except (CellControlSignal, CellTimeoutError, DeadKernelError) as error:
        cell = notebook.cells[last["index"]]
        raise NotebookError(
            f"{path}, cell {last['index'] + 1} (id {cell.id}) failed:\n\n"
            f"{ANSI_COLOUR.sub('', str(error)).strip()}"
        ) from error


def normalise(notebook: NotebookNode) -> None:
    """Leave in the file only what is the same on every machine and in every editor."""
    gallery = notebook.metadata.get("gallery", {})
    notebook.metadata = NotebookNode(
        gallery=gallery,
        kernelspec={"display_name": "Python 3", "language": "python", "name": "python3"},
        language_info={"name": "python"},
    )
    for cell in notebook.cells:
        kept = {key: cell.metadata[key] for key in ("mystnb", "tags") if key in cell.metadata}
        if "solution" in kept.get("tags", []):  # JupyterLab shows it folded
            kept["jupyter"] = {"outputs_hidden": True, "source_hidden": True}
        if cell.id == gallery.get("thumbnail"):
            kept["mystnb"] = {"image": {"alt": gallery.get("alt", "")}}
        cell.metadata = NotebookNode(kept)
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                output.data["image/png"] = _with_few_colours(output.data["image/png"])
        cell.source = "\n".join(line.rstrip() for line in cell.source.rstrip().split("\n"))


def _with_few_colours(picture: str) -> str:
    """Store a PNG (base64) with a palette; one that has a palette stays as it is."""
    with Image.open(io.BytesIO(base64.b64decode(picture))) as image:
        if image.mode == "P":
            return picture
        white = Image.new("RGBA", image.size, "white")
        flat = Image.alpha_composite(white, image.convert("RGBA")).convert("RGB")
    stored = io.BytesIO()
    flat.quantize(COLOURS, dither=Image.Dither.NONE).save(stored, "PNG", optimize=True)
    return base64.b64encode(stored.getvalue()).decode() + "\n"
