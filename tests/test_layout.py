"""A module imports only from its own floor or from floors below, and pillars stand apart."""

import ast
import textwrap
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "toolkit"
FLOORS = {
    "numerics": 0,
    "columns": 1,
    "errors": 1,
    "tables": 1,
    "resampling": 1,
    "results": 1,
    "scaling": 2,
    "boundary": 2,
    "variance": 2,
    "datasets": 3,
    "readers": 3,
    "plots": 4,
    "widgets": 4,
    "warm": 4,
    "": 5,  # toolkit/__init__.py, the public face
}
PILLARS = {"scaling", "boundary", "variance"}


def room_of(module):
    """Return the part of a dotted name after ``toolkit``: the room the module stands in."""
    return [*module.split("."), ""][1]


def imported_modules(source, module, is_package):
    """Yield the ``toolkit`` modules a source imports anywhere, also inside functions."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            origin = ".".join([*base, *filter(None, [node.module])])
            # `from toolkit import plots` imports a room, `from toolkit.plots import f` a name.
            whole = origin == "toolkit"
            names = [f"toolkit.{alias.name}" for alias in node.names] if whole else [origin]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "toolkit":
                known = room_of(name) in FLOORS
                yield name if known else "toolkit"  # a name of the public face


def violations(source, module, is_package=False):
    """Return the imports of one module that break the layout."""
    room = room_of(module)
    found = []
    for target in imported_modules(source, module, is_package):
        other = room_of(target)
        if FLOORS[other] > FLOORS[room]:
            found.append(f"{module} imports {target}, which stands above it")
        elif {room, other} <= PILLARS and room != other:
            found.append(f"{module} imports {target}: pillars do not know each other")
    return found


def _modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        yield pytest.param(path, ".".join(parts[:-1] if is_package else parts), is_package)


@pytest.mark.parametrize(("path", "module", "is_package"), list(_modules()))
def test_module_keeps_the_layout(path, module, is_package):
    assert room_of(module) in FLOORS, f"{module} has no floor: give it one in FLOORS"
    assert violations(path.read_text(encoding="utf-8"), module, is_package) == []


@pytest.mark.parametrize(
    ("source", "module", "target"),
    [
        ("import toolkit.tables", "toolkit.numerics.huber", "toolkit.tables"),
        ("from toolkit.plots import boundary", "toolkit.boundary.curve", "toolkit.plots"),
        ("from toolkit import datasets", "toolkit.scaling.laws", "toolkit.datasets"),
        ("from toolkit import load_everything", "toolkit.plots.loss", "toolkit"),
        ("import toolkit as tk", "toolkit.widgets", "toolkit"),
        ("from ..plots import loss", "toolkit.scaling.laws", "toolkit.plots"),
        ("from .. import widgets", "toolkit.datasets.cards", "toolkit.widgets"),
        ("def f():\n    from toolkit.readers import lm_eval", "toolkit.results", "toolkit.readers"),
        ("from ..variance import noise", "toolkit.boundary.curve", "toolkit.variance"),
        ("import toolkit.scaling.laws", "toolkit.variance.noise", "toolkit.scaling.laws"),
    ],
)
def test_a_forbidden_import_is_noticed(source, module, target):
    found = violations(source, module)
    assert len(found) == 1
    assert f"{module} imports {target}" in found[0]


def test_a_package_resolves_relative_imports_from_itself():
    assert violations("from . import laws", "toolkit.scaling", is_package=True) == []
    assert violations("from ..plots import loss", "toolkit.scaling", is_package=True) != []


def test_allowed_imports_pass():
    source = """
        import numpy as np
        from toolkit.errors import DataError
        from ..numerics import huber
        from .laws import Law

        def f():
            from toolkit import tables
    """
    assert violations(textwrap.dedent(source), "toolkit.scaling.fitting") == []
