"""The Makefile and the conda environment install what pyproject.toml says, and nothing else."""

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
FLOOR = re.match(r">=(\d+\.\d+)", PROJECT["requires-python"])[1]


def _pip_entries():
    return next(d["pip"] for d in ENVIRONMENT["dependencies"] if isinstance(d, dict))


def _extras(text):
    return set(re.search(r"\[([\w,]+)\]", text)[1].split(","))


def test_conda_takes_every_version_from_the_project():
    # Floors are written once, in pyproject.toml: conda brings Python and pip, the project the rest.
    assert [d.split(">")[0] for d in ENVIRONMENT["dependencies"][:-1]] == ["python", "pip"]
    assert _pip_entries() == ["-e .[lab,test,site]"]


def test_python_floor_is_the_same_everywhere():
    assert ENVIRONMENT["dependencies"][0].startswith(f"python>={FLOOR}")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"sys.version_info < ({FLOOR.replace('.', ', ')})" in makefile
    assert f"Python {FLOOR} or newer is needed" in makefile


def test_makefile_and_conda_install_the_same_extras():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    extras = set(re.search(r"^EXTRAS\s*:=\s*(\S+)$", makefile, re.M)[1].split(","))
    assert extras == _extras(_pip_entries()[0])
    assert extras <= set(PROJECT["optional-dependencies"])
