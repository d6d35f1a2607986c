"""Registered tables against facts that do not come from this code."""

import os

import numpy as np
import pytest

import toolkit.datasets as datasets
from toolkit import tables

pytestmark = pytest.mark.skipif(
    not os.environ.get("TOOLKIT_DATA_DIR"), reason="TOOLKIT_DATA_DIR is not set"
)


def test_chinchilla_points_are_in_file_order_with_tokens_from_compute() -> None:
    points = datasets.load("chinchilla_points")
    assert list(points) == ["point", "params", "tokens", "flops", "loss"]
    assert points["point"].tolist() == list(range(245))
    assert (6 * points["params"] * points["tokens"]).to_numpy() == pytest.approx(points["flops"])
    assert points["params"].agg(["min", "max"]).tolist() == pytest.approx(
        [57334197.40687078, 16183346310.730501]
    )
    assert len(tables.check(points, ["params", "tokens", "flops", "loss"])) == 245


def test_counts_that_overflow_as_integers_do_not() -> None:
    runs = datasets.load("kyo_takano_runs")
    compute = 6 * runs["params"] * runs["tokens"]
    assert compute.to_numpy() == pytest.approx(runs["flops"], rel=1e-6)
    overflow = 6 * runs["params"].astype(np.int64) * runs["tokens"].astype(np.int64)
    assert (np.abs(overflow / runs["flops"] - 1) > 0.01).sum() == 200


@pytest.mark.parametrize("name", ["porian_isoflops", "chinchilla_isoflops", "llama3_isoflops"])
def test_isoflop_points_lie_on_their_budget(name: str) -> None:
    runs = datasets.load(name)
    assert (6 * runs["params"] * runs["tokens"]).to_numpy() == pytest.approx(runs["flops"])


@pytest.mark.parametrize(
    "name",
    ["obs_scaling_base", "obs_scaling_base_small", "sloth_base", "test_task_base_models"],
)
def test_compute_of_models_is_in_flops(name: str) -> None:
    models = datasets.load(name).dropna(subset=["tokens"])
    ratio = models["flops"] / (6 * models["params"] * models["tokens"])
    assert ratio.to_numpy() == pytest.approx(1.0, abs=0.01)
    scores = models[["mmlu", "arc_challenge", "hellaswag", "winogrande", "gsm8k"]]
    assert scores.min().min() >= 0
    assert 0.5 < scores.max().max() <= 1


def test_the_ladder_was_trained_on_multiples_of_twenty_tokens_per_parameter() -> None:
    log = datasets.load("olmo_ladder")
    last = log.groupby("run").last()
    ratio = last["tokens"] / last["params"] / (20 * last["multiple"])
    assert len(last) == 30
    assert ratio.to_numpy() == pytest.approx(1.0, abs=0.01)
    six_nd = log["flops"] / (6 * log["params"] * log["tokens"])
    assert six_nd[log["tokens"] > 0].between(1.1, 1.8).all()


def test_repeated_tokens_are_at_most_the_tokens_seen() -> None:
    for name in ("datablations_runs", "datablations_182"):
        runs = datasets.load(name)
        assert (runs["tokens_unique"] <= runs["tokens"] * 1.001).all()
        assert len(tables.check(runs, ["params", "tokens", "tokens_unique", "loss"])) == len(runs)


def test_headline_scores_agree_with_the_stitched_table() -> None:
    """The stitched table was made from the same files by their authors' own code."""
    ours, theirs = datasets.load("epoch_benchmark_scores"), datasets.load("epoch_stitched_scores")
    pairs = theirs.merge(ours, on=["task", "model"], suffixes=("", "_ours"))
    pairs["gap"] = (pairs["score"] - pairs["score_ours"]).abs()
    closest = pairs.groupby(["task", "model"])["gap"].min()
    assert closest.groupby("task").apply(lambda gap: (gap < 0.002).mean()).min() > 0.97
    assert closest.index.get_level_values("task").nunique() == 32


def test_step_law_fits_reproduce_the_published_means() -> None:
    mean = datasets.load("step_law_fits").mean()
    assert np.exp(mean["lr_intercept"]) == pytest.approx(1.797, abs=0.001)
    assert mean[["lr_coefN", "lr_coefD", "bs_coefD"]].tolist() == pytest.approx(
        [-0.7129, 0.3075, 0.5709], abs=1e-4
    )


def test_answers_are_zero_or_one_and_questions_repeat() -> None:
    aime = datasets.load("matharena_aime")
    assert set(aime["score"]) == {0.0, 1.0}
    assert aime.groupby(["item", "model"]).size().eq(4).all()
    assert aime["item"].nunique() == 15


def test_paraphrases_are_scored_on_a_hundred_questions() -> None:
    scores = datasets.load("slab_paraphrases")
    hundredths = scores["score"] * 100
    odd = (hundredths - hundredths.round()).abs() > 1e-6
    assert scores["score"].between(0, 1).all()
    assert odd.mean() < 0.1  # some tasks have fewer questions
