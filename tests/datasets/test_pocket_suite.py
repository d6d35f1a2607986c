"""The pocket suite's plan, text, questions and packing: everything that needs no PyTorch."""

import inspect
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from toolkit.datasets import pocket
from toolkit.datasets.pocket_suite import pack, plan, tasks, text
from toolkit.datasets.pocket_suite.settings import RECIPES, Settings, Shape

ITEMS = 96
MODULE = '''"""One sentence that says what this module is good for.

    >>> prompt(1)
"""
# A comment of several words that is long enough
# and goes on in a second line of words.

value = """
# not a comment because it is inside a string
"""


def function(x):
    """Return the argument without changing anything about it."""
    return x  # stays with the code
'''
MODULES = (
    "argparse ast calendar configparser dataclasses datetime difflib doctest inspect locale "
    "mailbox optparse pdb pickletools pydoc shutil smtplib statistics subprocess tarfile "
    "tempfile textwrap threading tokenize turtle typing unittest.mock zipfile"
)


@pytest.fixture(scope="module")
def documents():
    code, prose = [], []
    for number, name in enumerate(MODULES.split()):
        module = __import__(name, fromlist=["name"])
        blocks, paragraphs = text.split_module(inspect.getsource(module))
        package = f"package-{number % 4}"
        code.append((package, name, text.Document(package, name, tuple(blocks)).text))
        prose.append((package, name, text.Document(package, name, tuple(paragraphs)).text))
    return code * 4, prose * 8  # there must be enough to ask about


@pytest.fixture(scope="module")
def items(documents):
    return tasks.build(*documents, count=ITEMS)


def test_module_is_split_into_code_and_prose():
    code, prose = text.split_module(MODULE)
    assert prose == [
        "One sentence that says what this module is good for.",
        "Return the argument without changing anything about it.",
        "A comment of several words that is long enough and goes on in a second line of words.",
    ]
    assert code == [
        'value = """\n# not a comment because it is inside a string\n"""',
        "def function(x):\n    return x  # stays with the code",
    ]


def test_the_same_docstring_twice_leaves_the_code_twice():
    method = '    def f{}(self):\n        """Do the same thing as the other one."""\n'
    code, prose = text.split_module("class A:\n" + method.format(1) + method.format(2))
    assert code == ["class A:\n    def f1(self):\n    def f2(self):"]
    assert len(prose) == 2


@pytest.mark.parametrize(
    ("paragraph", "kept"),
    [
        ("Words in a row that make a plain sentence.", True),
        ("Too few words here.", False),
        ("See >>> words in a row that make a plain sentence.", False),
        ("a b = [1, 2, 3]; c = {4: 5}; word word word word word word 123456789", False),
    ],
)
def test_prose_reads_as_sentences(paragraph, kept):
    assert list(text.prose_paragraphs(paragraph)) == ([paragraph] if kept else [])


@pytest.mark.parametrize(
    ("path", "test"),
    [
        ("pkg/tests/helpers.py", True),
        ("pkg/test_io.py", True),
        ("pkg/conftest.py", True),
        ("pkg/io_test.py", True),
        ("pkg/testament.py", False),
        ("pkg/latest/io.py", False),
    ],
)
def test_test_files_are_recognised(path, test):
    assert text.is_test_path(path) is test


def test_data_tables_are_recognised():
    assert text.is_data_table("x = [" + "1234567, " * 50 + "]")
    assert text.is_data_table("x = '" + "é" * 50 + "'")
    assert not text.is_data_table(MODULE)


def test_duplicate_blocks_go_and_short_ones_stay():
    long = "x = " + " + ".join(["value"] * 20)
    first = text.Document("a", "1", ("import os", long))
    second = text.Document("b", "2", ("import os", long.upper().replace(" ", "\n"), "new"))
    third = text.Document("b", "3", (long,))
    seen: set[bytes] = set()
    kept = list(text.without_duplicates([first, second, third], seen, 80))
    assert [document.blocks for document in kept] == [
        ("import os", long),
        ("import os", "new"),
    ]


def test_plan_is_the_same_every_time():
    assert plan.make() == plan.make()


def test_plan_has_what_it_promises():
    runs = plan.make()
    assert len({run.run for run in runs}) == len(runs)
    assert Counter(run.part for run in runs) == {
        "grid": 8 * 7 + 6 * 3 + 2 * 2 + 4 * 3,
        "seeds": 4 * 5,
        "repeated": 4 * 5 * 2,
        "recipes": 7 * 4 * 3,
        "population": 250,
    }
    grid = [run for run in runs if run.part == "grid"]
    shapes = {run.settings.shape for run in grid}
    assert min(shape.total_params for shape in shapes) == 14_336
    assert max(shape.total_params for shape in shapes) == 1_948_672
    for run in grid:
        budget = float(run.run.split("-")[1])
        flops = 6 * run.settings.shape.total_params * run.settings.tokens_seen
        assert flops == pytest.approx(budget, rel=0.04)
    assert {run.settings.recipe for run in runs if run.part == "recipes"} == set(RECIPES)


def test_population_covers_two_decades_and_a_fifth_is_tuned():
    population = [run for run in plan.make() if run.part == "population"]
    flops = [6.0 * r.settings.shape.total_params * r.settings.tokens_seen for r in population]
    assert max(flops) / min(flops) > 80
    assert sum(run.tuned for run in population) == 50


def test_learning_rate_follows_the_sweep():
    assert plan.learning_rate(Shape(64, 4), 500_000) == 0.00937  # 0.6 / 64
    assert plan.learning_rate(Shape(64, 4), 16_000_000) == 0.00469  # 32 times the tokens: half


def test_counts_of_a_shape_and_its_run():
    shape = Shape(32, 3)
    assert (shape.params, shape.params_embedding, shape.total_params) == (36_864, 16_384, 53_248)
    assert shape.flops_per_token == 3 * (2 * 53_248 + 4 * 3 * 128 * 32)
    settings = Settings(shape, "code", tokens=1000, learning_rate=0.01)
    assert (settings.steps, settings.tokens_seen) == (2, 1024)


def test_every_task_has_its_items(items):
    assert Counter((item.task, item.prompt) for item in items) == {
        ("bracket", "plain"): ITEMS,
        ("indent", "plain"): ITEMS,
        ("identifier", "plain"): ITEMS,
        ("copy", "plain"): ITEMS,
        ("arithmetic", "plain"): ITEMS,
        ("cloze", "plain"): ITEMS,
        ("cloze", "short"): ITEMS,
        ("cloze", "docstring"): ITEMS,
    }
    assert tasks.build.__defaults__ == (600,)


def test_right_answers_stand_in_every_place_equally_often(items):
    for task in {item.task for item in items}:
        places = Counter(item.answer for item in items if item.task == task)
        assert len(set(places.values())) == 1
        assert set(places) == {0, 1, 2, 3}


@pytest.mark.parametrize("task", ["bracket", "indent", "arithmetic"])
def test_every_option_is_right_once_for_three_times_wrong(items, task):
    chosen = [item for item in items if item.task == task]
    offered = Counter(option for item in chosen for option in item.options)
    right = Counter(item.options[item.answer] for item in chosen)
    assert offered == {option: 4 * count for option, count in right.items()}


def test_options_differ_and_context_holds_no_answer_after_itself(items, documents):
    texts = {
        kind: "\n".join(text for _, _, text in part)
        for kind, part in zip(("code", "prose"), documents, strict=True)
    }
    for item in items:
        assert len(set(item.options)) == 4
        if item.task in ("bracket", "indent", "identifier"):
            assert item.context + item.options[item.answer] in texts["code"]
        if item.task == "cloze" and item.prompt == "plain":
            assert item.context + item.options[item.answer] in texts["prose"]


def test_sums_are_right(items):
    for item in items:
        if item.task == "arithmetic":
            question = item.context.rsplit("\n", 1)[1].rstrip("=")
            a, b = question.split("+")
            assert int(item.options[item.answer]) == int(a) + int(b)


def test_prompts_ask_the_same_question(items):
    cloze = pd.DataFrame([vars(item) for item in items if item.task == "cloze"])
    assert (cloze.groupby("item")["prompt"].nunique() == 3).all()
    assert (cloze.groupby("item")["options"].nunique() == 1).all()
    assert (cloze.groupby("item")["context"].nunique() == 3).all()


def test_baselines_are_at_chance_where_they_should_be(items):
    scores = tasks.baseline_scores(items)
    assert all(rules["first"] == 0.25 for rules in scores.values())
    assert scores["indent"]["guess"] == pytest.approx(1 / 3)
    assert scores["bracket"]["guess"] > 0.5


def test_too_little_text_is_an_error(documents):
    code, prose = documents
    with pytest.raises(ValueError, match="bracket needs 150 candidates in each stratum"):
        tasks.build(code[:2], prose[:2])


def _raw(run, items, rng, scored=(1,)):
    shape = Shape(16, 2)
    fact = {
        "run": run,
        "part": "seeds",
        "settings": vars(Settings(shape, "code-50", 51_200, 0.01)) | {"shape": vars(shape)},
        "tuned": True,
        "tokens_seen": 51_200,
        "tokens_unique": 51_200,
        "diverged": False,
        "params": shape.params,
        "params_embedding": shape.params_embedding,
        "flops_exact": shape.flops_per_token * 51_200,
        "evaluation_seconds": 1.5,
    }
    return {
        "facts": np.asarray(json.dumps(fact)),
        "tokens": np.array([25_600.0, 51_200.0]),
        "train_loss": np.array([5.0, 4.5]),
        "cpu_seconds": np.array([1.0, 2.0]),
        "wall_seconds": np.array([1.5, 3.0]),
        "curve_loss": np.array([[5.0, 5.2], [4.4, 4.6]]),
        "loss": np.array([[np.nan, np.nan], [4.5, 4.7]]),
        "scored": np.array(scored),
        "scores": -rng.gamma(4, 2, (len(scored), len(items), 4)).astype(np.float32),
    }


@pytest.fixture
def results(tmp_path, items):
    rng = np.random.default_rng(0)
    (tmp_path / "raw").mkdir()
    raws = {"run-a": _raw("run-a", items, rng, (0, 1)), "run-b": _raw("run-b", items, rng)}
    for run, raw in raws.items():
        np.savez(tmp_path / "raw" / f"{run}.npz", **raw)
    (tmp_path / "raw" / ".run-c.1.npz").write_bytes(b"unfinished")
    return tmp_path, raws


def test_packed_answers_come_back(results, items, tmp_path):
    folder, raws = results
    rows = pack.pack(folder, items, tmp_path)
    assert rows == {pack.RUNS: 2, pack.CURVES: 4, pack.ITEMS: 3 * len(items)}
    table = pocket.items(tmp_path / pack.ITEMS)
    assert len(table) == rows[pack.ITEMS]
    answers = np.array([item.answer for item in items])
    lengths = np.array([len(item.options[item.answer].encode()) for item in items])
    scores = np.concatenate([raws["run-a"]["scores"], raws["run-b"]["scores"]]).astype(float)
    weights = np.exp(scores - scores.max(2, keepdims=True))
    probabilities = weights / weights.sum(2, keepdims=True)
    right = probabilities[:, np.arange(len(items)), answers]
    logliks = scores[:, np.arange(len(items)), answers] / lengths
    assert table["run"].tolist() == ["run-a"] * 2 * len(items) + ["run-b"] * len(items)
    assert table["item"].tolist() == [item.item for item in items] * 3
    assert table["score"].to_numpy().tolist() == (scores.argmax(2) == answers).ravel().tolist()
    np.testing.assert_allclose(table["probability"], right.ravel(), atol=0.01)
    np.testing.assert_allclose(table[list(pocket.OPTIONS)], probabilities.reshape(-1, 4), atol=0.01)
    error = np.abs(table["loglik_per_byte"] - logliks.ravel())
    assert (error <= 0.032 * np.sqrt(-logliks.ravel()) + 0.001).all()


def test_run_summaries_agree_with_the_items(results, items, tmp_path):
    pack.pack(results[0], items, tmp_path)
    runs = pd.read_parquet(tmp_path / pack.RUNS).set_index("run")
    table = pocket.items(tmp_path / pack.ITEMS)
    last = table[(table["checkpoint"] == 51_200) & (table["prompt"] == "plain")]
    means = last.groupby(["run", "task"], observed=True)["score"].mean()
    for (run, task), mean in means.items():
        assert runs.loc[run, f"accuracy_{task}"] == pytest.approx(mean, abs=1e-6)


def test_run_row_has_its_facts(results, items, tmp_path):
    pack.pack(results[0], items, tmp_path)
    row = pd.read_parquet(tmp_path / pack.RUNS).iloc[0]
    assert row["flops"] == 6 * 14_336 * 51_200
    assert row["loss"] == pytest.approx(4.6)
    assert row["bits_per_byte_code"] == pytest.approx(4.5 * 49_152 / 101_245 / np.log(2), abs=1e-6)
    assert not row["diverged"]


def test_packing_again_adds_only_what_is_new(results, items, tmp_path):
    folder, _ = results
    pack.pack(folder, items, tmp_path)
    before = pocket.items(tmp_path / pack.ITEMS)
    for path in (folder / "raw").glob("run-*"):
        path.unlink()
    raw = _raw("run-d", items, np.random.default_rng(1))
    np.savez(folder / "raw" / "run-d.npz", **raw)
    pack.pack(folder, items, tmp_path)
    pack.pack(folder, items, tmp_path)
    assert pack.packed_runs(tmp_path) == {"run-a", "run-b", "run-d"}
    after = pocket.items(tmp_path / pack.ITEMS)
    assert len(after) == len(before) + len(items)
    assert after["score"].tolist()[: len(before)] == before["score"].tolist()
    assert len(pd.read_parquet(tmp_path / pack.CURVES)) == 6


def test_answers_to_other_questions_are_refused(results, items, tmp_path):
    pack.pack(results[0], items, tmp_path)
    (results[0] / "raw" / "run-a.npz").rename(results[0] / "raw" / "run-e.npz")
    with pytest.raises(ValueError, match="answers to other questions"):
        pack.pack(results[0], items[::-1], tmp_path)


def test_run_that_broke_off_is_kept_and_flagged(items, tmp_path):
    raw = _raw("run-x", items, np.random.default_rng(2), ())
    for name in ("tokens", "train_loss", "cpu_seconds", "wall_seconds", "curve_loss", "loss"):
        raw[name] = raw[name][:0]
    raw["scores"] = np.zeros((0,), dtype=np.float32)
    (tmp_path / "raw").mkdir()
    np.savez(tmp_path / "raw" / "run-x.npz", **raw)
    np.savez(tmp_path / "raw" / "run-y.npz", **_raw("run-y", items, np.random.default_rng(3)))
    pack.pack(tmp_path, items, tmp_path)
    runs = pd.read_parquet(tmp_path / pack.RUNS).set_index("run")
    assert runs.loc["run-x", "diverged"]
    assert np.isnan(runs.loc["run-x", "loss"])
    assert np.isnan(runs.loc["run-x", "accuracy_cloze"])


@pytest.fixture(scope="module")
def bundled():
    folder = Path(pocket.__file__).parent / "bundled"
    runs = pd.read_parquet(folder / pack.RUNS)
    curves = pd.read_parquet(folder / pack.CURVES)
    return folder, runs, curves, pocket.items(folder / pack.ITEMS)


def test_bundled_tables_fit_their_plan(bundled):
    folder, runs, curves, _ = bundled
    planned = {run.run: run for run in plan.make()}
    assert runs["run"].is_unique
    assert set(runs["run"]) <= set(planned)
    assert set(runs.loc[~runs["diverged"], "run"]) <= set(curves["run"]) <= set(runs["run"])
    for row in runs.itertuples():
        settings = planned[row.run].settings
        assert (row.width, row.depth) == (settings.shape.width, settings.shape.depth)
        assert row.flops == 6 * settings.shape.total_params * settings.tokens_seen
        assert row.learning_rate == settings.learning_rate
    sizes = [(folder / name).stat().st_size for name in (pack.RUNS, pack.CURVES, pack.ITEMS)]
    assert sum(sizes) <= 15e6


def test_bundled_losses_are_plausible_and_their_mean_agrees(bundled):
    _, runs, curves, _ = bundled
    ended = runs[~runs["diverged"]]
    assert ended["loss"].between(2.0, 6.3).all()
    np.testing.assert_allclose(
        ended["loss"], (ended["loss_code"] + ended["loss_prose"]) / 2, atol=2e-6
    )
    last = curves.groupby("run").last().loc[ended["run"]]
    np.testing.assert_allclose(last["loss_all_windows"], ended["loss"], atol=2e-6)
    assert (last["checkpoint"].to_numpy() == ended["tokens"].to_numpy()).all()


def test_bundled_summaries_agree_with_the_items(bundled):
    _, runs, _, answers = bundled
    assert answers.groupby(["run", "checkpoint"], observed=True).size().eq(4800).all()
    plain = answers[answers["prompt"] == "plain"]
    ends = plain.merge(
        runs[["run", "tokens"]], left_on=["run", "checkpoint"], right_on=["run", "tokens"]
    )
    means = ends.groupby(["run", "task"])["score"].mean().unstack()
    summaries = runs.set_index("run").loc[means.index]
    for task in means:
        np.testing.assert_allclose(summaries[f"accuracy_{task}"], means[task], atol=1e-6)
    assert ends["probability"].between(0, 1).all()
    # Where the right option was likeliest its probability is at least a quarter, up to rounding.
    assert (ends.loc[ends["score"] == 1, "probability"] >= 0.24).all()
