"""Run notebooks in place and write their index: ``python -m tools.run_notebooks [PATH ...]``.

Outputs are stored with the notebook, because readers see them before they run anything and the
tests compare against them. Without a path, every notebook is run.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tools import index_notebooks, notebook_form, notebooks


def run(path: Path) -> None:
    """Run one notebook in place, unless its data cannot be reached."""
    notebook = notebooks.read(path)
    if reason := notebooks.unreachable_data(notebook):
        print(f"{path}: left as it is, {reason}", file=sys.stderr)
        return
    start = time.perf_counter()
    notebooks.execute(notebook, path)
    notebooks.normalise(notebook)
    notebooks.write(notebook, path)
    print(f"{path}: {time.perf_counter() - start:.0f} s")
    for problem in notebook_form.problems(path, notebook):
        print(f"  to mend: {problem}")


def main() -> int:
    """Run the notebooks named on the command line; return 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, help="notebooks; all of them if none")
    paths = parser.parse_args().paths
    try:
        for path in paths or notebooks.find():
            run(path)
        index_notebooks.INDEX.write_text(index_notebooks.text(), encoding="utf-8")
    except notebooks.NotebookError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
