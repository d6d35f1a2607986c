"""Published predictions of scores, reproduced on the published data."""

import os

import numpy as np
import pandas as pd
import pytest
from numba import njit

from tests.reference import bhagia2024, gadre2024_scores
from toolkit import datasets
from toolkit.errors import ExtrapolationWarning, IdentifiabilityWarning
from toolkit.numerics.minimise import minimise
from toolkit.scaling.downstream import fit_score, two_step

pytestmark = pytest.mark.skipif(
    not os.environ.get("TOOLKIT_DATA_DIR"), reason="TOOLKIT_DATA_DIR is not set"
)


@njit
def over_training(theta, x, value, jacobian):
    """``E + a N^-2eta + b (D / sqrt(6))^-2eta`` of Gadre et al., x: log N and log D / N."""
    for i in range(value.size):
        size = np.exp(theta[0] - theta[2] * x[0, i])
        data = np.exp(theta[1] - theta[2] * (x[0, i] + x[1, i] + 0.5 * np.log(6.0)))
        value[i] = theta[3] + size + data
        jacobian[0, i], jacobian[1, i] = size, data
        jacobian[2, i] = -x[0, i] * size - (x[0, i] + x[1, i] + 0.5 * np.log(6.0)) * data
        jacobian[3, i] = 1.0


@pytest.fixture(scope="module")
def red_pajama():
    table = datasets.load("gadre_overtraining").query("recipe == 'rpj'").set_index("run")
    table["score"] = 1 - table[[f"err_{task}" for task in gadre2024_scores.TASKS]].mean(axis=1)
    return table


def inputs(table):
    return np.log(np.array([table["params"], 20 * table["cc_mult"]], dtype=float))


@pytest.fixture(scope="module")
def predicted_loss(red_pajama):
    """Loss of the two targets from the five runs that the paper fits."""
    optimal = (red_pajama["cc_mult"] == 1) & (red_pajama["params"] < 1e9)
    longer = (red_pajama["cc_mult"] == 16) & (red_pajama["params"] < 2e7)
    fitted = red_pajama[optimal | longer]
    assert len(fitted) == 5
    free = np.full(4, np.inf)
    starts = np.array([[5.0, 5.0, 0.3, 1.0], [5.0, 6.0, 0.2, 2.0], [4.0, 5.0, 0.25, 1.5]])
    found = minimise(
        over_training, inputs(fitted), fitted["loss"].to_numpy(), np.ones((1, 5)), starts,
        lower=-free, upper=free, delta=np.inf,
    )  # fmt: skip
    best = found.theta[np.argmin(found.objective)]
    assert found.certified.any()
    targets = red_pajama.loc[list(gadre2024_scores.LOSS_ERRORS)]
    value, jacobian = np.empty(2), np.empty((4, 2))
    over_training(best, inputs(targets), value, jacobian)
    return pd.Series(value, index=targets.index)


def test_gadre_losses(red_pajama, predicted_loss):
    observed = red_pajama.loc[predicted_loss.index, "loss"]
    errors = (predicted_loss / observed - 1).abs()
    assert errors.to_dict() == pytest.approx(gadre2024_scores.LOSS_ERRORS, abs=5e-7)


def test_gadre_average_error_in_two_steps(red_pajama, predicted_loss):
    six = red_pajama[
        ((red_pajama["cc_mult"] == 1) & (red_pajama["params"] < 2e9))
        | ((red_pajama["cc_mult"] == 16) & (red_pajama["params"] < 2e7))
    ]
    fit = fit_score("exponential", six)
    assert fit.certified
    assert len(six) == 6
    score = fit.predict({"loss": predicted_loss})["score"]
    observed = 1 - red_pajama.loc[predicted_loss.index, "score"]
    errors = ((1 - score.to_numpy()) / observed - 1).abs()
    assert errors.to_dict() == pytest.approx(gadre2024_scores.SCORE_ERRORS, abs=5e-7)


@pytest.fixture(scope="module")
def ladder():
    log = datasets.load("olmo_ladder")
    kept = ~log["run"].str.endswith("-rerun") & (log["multiple"] >= 1)
    return log[kept & (log["params"] < bhagia2024.LARGEST_FITTED)]


def task_column(log, kind, task):
    """One column of a task, MMLU as the weighted mean of its parts."""
    prefix, suffix = {
        "loss": ("eval/downstream_bpb/", "_rc_5shot_bpb"),
        "score": ("eval/downstream/", "_rc_5shot_len_norm"),
    }[kind]
    name = task.removesuffix("_5shot")
    if not name.startswith("mmlu"):
        return log[f"{prefix}{name}{suffix}"]
    parts = [
        weight * log[f"{prefix}mmlu_{part}_test{suffix}"]
        for part, weight in bhagia2024.MMLU.items()
    ]
    return sum(parts) / sum(bhagia2024.MMLU.values())


def ladder_tables(ladder, task):
    """Return the final loss and score of every run, and its smoothed checkpoints."""
    log = ladder[["run", "params", "tokens"]].assign(
        loss=task_column(ladder, "loss", task), score=task_column(ladder, "score", task)
    )
    finals, marks = [], []
    for run, rows in log.groupby("run", sort=False):
        last = rows.tail(bhagia2024.WINDOW)[["loss", "score"]].mean()
        finals.append({"run": run, **rows.iloc[-1][["params", "tokens"]], **last})
        later = rows.iloc[int(np.ceil(bhagia2024.SKIPPED * len(rows))) :]
        smooth = later[["loss", "score"]].rolling(bhagia2024.WINDOW, min_periods=1).mean()
        marks.append(smooth.assign(run=run))
    return pd.DataFrame(finals), pd.concat(marks)


@pytest.mark.filterwarnings("ignore::toolkit.errors.IdentifiabilityWarning")
@pytest.mark.parametrize("task", ["mmlu_avg_test", "hellaswag_val", "arc_easy_test", "csqa_val"])
def test_olmo_ladder_in_both_steps_and_chained(ladder, task):
    runs, marks = ladder_tables(ladder, f"{task}_5shot")
    published = datasets.load("olmo_ladder_errors").query("task == @task + '_5shot'")
    published = published.set_index("step")
    assert len(runs) == 16
    fit = two_step(runs, checkpoints=marks, perfect_at_zero=True)
    with pytest.warns(ExtrapolationWarning, match=r"2\.3 powers of ten"):
        target = fit.predict({"params": bhagia2024.PARAMS, "tokens": bhagia2024.TOKENS}).iloc[0]
    # Losses to a few 1e-6: the published search of the loss stops early on flat tasks.
    assert target["loss"] == pytest.approx(published.loc["task loss", "predicted"], rel=2e-5)
    assert target["score"] == pytest.approx(
        published.loc["accuracy, chained", "predicted"], abs=2e-5
    )
    at_actual = {"loss": [published.loc["task loss", "actual"]]}
    score = fit.score_fit.predict(at_actual)["score"][0]
    assert score == pytest.approx(published.loc["accuracy from task loss", "predicted"], abs=2e-6)


def test_the_assumed_perfect_score_decides_the_ladder(ladder):
    """Without it the curve of ARC-Challenge ends at 50 %, and the data do not say otherwise."""
    _, marks = ladder_tables(ladder, "arc_challenge_test_5shot")
    tied = fit_score("sigmoid", marks, cluster="run", perfect_at_zero=True)
    free = fit_score("sigmoid", marks, cluster="run")
    assert tied.params["ceiling"] == pytest.approx(1.0)
    assert free.params["ceiling"] == pytest.approx(0.4998, abs=1e-3)
    assert not tied.bend_reached
    assert "an assumption" in tied.summary().text()
    drawn = fit_score(
        "sigmoid", marks, cluster="run", perfect_at_zero=True, bootstrap=60, rng=0
    ).conf_int()
    assert drawn.loc["ceiling", ["lower", "upper"]].isna().all()  # 1 in every resample


def test_checkpoints_that_count_as_independent_make_intervals_too_narrow(ladder):
    _, marks = ladder_tables(ladder, "hellaswag_val_5shot")
    at = {"loss": [0.66]}
    honest = fit_score(
        "sigmoid", marks, cluster="run", perfect_at_zero=True, bootstrap=200, rng=0
    ).predict(at)
    naive = fit_score(
        "sigmoid", marks.drop_duplicates(["loss", "score"]), perfect_at_zero=True, bootstrap=200,
        rng=0,
    ).predict(at)  # fmt: skip
    width = (honest["upper"] - honest["lower"])[0]
    assert width > 2 * (naive["upper"] - naive["lower"])[0]


def test_identifiability_warning_of_the_first_step_is_passed_on(ladder):
    runs, marks = ladder_tables(ladder, "csqa_val_5shot")
    with pytest.warns(IdentifiabilityWarning, match="do not determine"):
        two_step(runs, checkpoints=marks, perfect_at_zero=True)
