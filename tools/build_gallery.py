"""Run every notebook and write the HTML gallery: ``python -m tools.build_gallery``.

The pages open straight from the disk and ask nothing of the network: MathJax lies beside them.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tools import notebooks
from tools.gallery_pages import Page, dress, write_source
from tools.notebooks import NOTEBOOKS, ROOT, NotebookError

SITE = ROOT / "site"
# What makes a browser fetch a file; a link that the reader may click is none of these.
FETCHES = re.compile(
    r"""<(?:script|img|iframe|source)\b[^>]*\ssrc=["']?([^"'\s>]+)"""
    r"""|<link\b[^>]*\brel=["']?(?:stylesheet|preload|icon)\b[^>]*\bhref=["']?([^"'\s>]+)""",
    re.IGNORECASE,
)


def run(path: Path, root: Path) -> Page:
    """Run one notebook for the site; keep it as committed where its data cannot be reached."""
    notebook = notebooks.read(path)
    page = Page(
        folder=notebooks.folder_of(path, root),
        name=path.stem,
        notebook=notebook,
        unreachable=notebooks.unreachable_data(notebook),
    )
    name = path.relative_to(root)
    if page.unreachable:
        print(f"  {name}: shown as committed, {page.unreachable}", flush=True)
    else:
        start = time.perf_counter()
        notebooks.execute(notebook, path)
        print(f"  {name}: {time.perf_counter() - start:.0f} s", flush=True)
    notebooks.normalise(notebook)
    return page


def run_all(root: Path, jobs: int) -> list[Page]:
    """Run the notebooks under `root`, `jobs` at a time; stop at the first that fails."""
    paths = notebooks.find(root)
    with ThreadPoolExecutor(jobs) as pool:  # the work is done in the kernels' own processes
        futures = {pool.submit(run, path, root): path for path in paths}
        try:
            pages = {futures[done]: done.result() for done in as_completed(futures)}
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [pages[path] for path in paths]


def copy_mathjax(static: Path) -> None:
    """Put MathJax beside the pages, without the parts that no page uses."""
    spec = importlib.util.find_spec("sphinx-mathjax-offline")
    if spec is None or spec.origin is None:
        raise NotebookError("sphinx-mathjax-offline is not installed: run make setup")
    package = Path(spec.origin).parent / "static" / "mathjax"
    target = static / "mathjax"
    fonts = Path("output", "chtml", "fonts", "woff-v2")
    shutil.copytree(package / fonts, target / fonts)
    shutil.copy(package / "tex-chtml-full.js", target)


def render(source: Path, output: Path) -> None:
    """Let Sphinx make the site; every warning is an error."""
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    doctrees = source.with_name(source.name + "-doctrees")
    shutil.rmtree(doctrees, ignore_errors=True)
    command += ["-d", str(doctrees), str(source), str(output)]
    if subprocess.run(command, check=False).returncode:
        raise NotebookError("Sphinx could not build the gallery; its messages are above")


def check_offline(output: Path) -> None:
    """Raise if a page would fetch something that is not a file of the gallery."""
    missing = []
    pages = set(output.rglob("*.html")) - set((output / "_static").rglob("*.html"))
    for page in sorted(pages):
        for found in FETCHES.finditer(page.read_text(encoding="utf-8")):
            address = found[1] or found[2]
            inside = address.startswith("data:") or (page.parent / address.split("?")[0]).is_file()
            if not inside:
                missing.append(f"{page.relative_to(output)}: {address}")
    if missing:
        raise NotebookError(
            "These pages would load what the gallery does not hold:\n" + "\n".join(missing)
        )


def build(root: Path, output: Path, jobs: int) -> None:
    """Run the notebooks under `root` and write the site to `output`."""
    source = output.with_name(output.name + "-source")
    for folder in (source, output):
        shutil.rmtree(folder, ignore_errors=True)
    pages = run_all(root, jobs)
    shutil.copytree(SITE, source)
    write_source(pages, source)
    for page in pages:
        (source / page.original).parent.mkdir(parents=True, exist_ok=True)
        notebooks.write(page.notebook, source / page.original)
        dress(page)
        notebooks.write(page.notebook, source / f"{page.docname}.ipynb")
    copy_mathjax(source / "_static")
    render(source, output)
    check_offline(output)
    kept = sum(bool(page.unreachable) for page in pages)
    print(f"Gallery of {len(pages)} notebooks, {kept} of them shown as committed:")
    print(f"  {(output / 'index.html').resolve().as_uri()}")


def main() -> int:
    """Build the gallery; return 1, with the reason on stderr, if that fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--notebooks", type=Path, default=NOTEBOOKS, help="folder to build from")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "gallery")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    options = parser.parse_args()
    print("Running the notebooks", flush=True)
    try:
        build(options.notebooks, options.output, options.jobs)
    except NotebookError as error:
        print(f"\nThe gallery was not built. {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
