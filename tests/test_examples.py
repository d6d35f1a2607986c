"""Every public function and class has an example in its docstring, and every example runs."""

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

import toolkit as tk

ROOMS = ("boundary", "datasets", "plots", "readers", "scaling", "tables")


def _modules():
    for found in pkgutil.walk_packages(tk.__path__, "toolkit."):
        if "pocket_suite" not in found.name:  # needs torch; tested beside it
            yield found.name


def _public():
    for room in ROOMS:
        module = importlib.import_module(f"toolkit.{room}")
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isfunction(thing):
                yield pytest.param(thing, id=f"{room}.{name}")


@pytest.mark.parametrize("name", [*_modules()])
def test_examples_run(name):
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    with mpl.rc_context({"backend": "Agg"}):
        for example in doctest.DocTestFinder().find(module, name):
            plt.close("all")  # each draws on a fresh figure, as its reader would
            runner.run(example)
    plt.close("all")
    assert runner.summarize().failed == 0


@pytest.mark.parametrize("function", [*_public()])
def test_public_functions_have_an_example(function):
    assert ">>>" in (function.__doc__ or "")


def test_importing_the_toolkit_loads_nothing_heavy():
    code = (
        "import sys, toolkit; "
        "print([m for m in ('numba', 'pandas', 'scipy', 'matplotlib') if m in sys.modules])"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.strip() == "[]"
