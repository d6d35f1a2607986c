"""The example files, under the names that the tools give them; `data/SOURCES.md` tells of them."""

import json
import shutil
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"
HELM_RUN = "mmlu:subject=toy,method=multiple_choice_joint,model=org_m"
STAMP = "2026-05-05T10-00-00.000000"


@pytest.fixture
def macro(tmp_path):
    """Return a run of lm-eval 0.4.13 whose group averages over tasks."""
    return shutil.copytree(DATA / "lm_eval_0.4.13" / "toy_macro", tmp_path / "6v8uqx97")


@pytest.fixture
def helm_run(tmp_path):
    return shutil.copytree(DATA / "helm", tmp_path / "benchmark_output/runs/v1" / HELM_RUN)


@pytest.fixture
def lighteval_output(tmp_path):
    results = tmp_path / "results/org/m"
    details = tmp_path / "details/org/m" / STAMP
    results.mkdir(parents=True)
    details.mkdir(parents=True)
    shutil.copy(DATA / "lighteval/results.json", results / f"results_{STAMP}.json")
    name = f"details_mmlu:toy_a|5_{STAMP}.parquet"
    shutil.copy(DATA / "lighteval/details.parquet", details / name)
    return tmp_path


@pytest.fixture
def olmes_output(tmp_path):
    return shutil.copytree(DATA / "olmes", tmp_path / "olmes")


@pytest.fixture
def write_json(tmp_path):
    """Write one JSON file, or one value per line for a name that ends in .jsonl."""

    def write(name, value):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = value if name.endswith(".jsonl") else [value]
        path.write_text("\n".join(json.dumps(line) for line in lines) + "\n")
        return path

    return write
