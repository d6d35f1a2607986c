"""Fits of benchmark scores: recovery of the truth, doubt where it is due, bad input."""

import numpy as np
import pandas as pd
import pytest

from toolkit.errors import (
    DataError,
    ExtrapolationWarning,
    IdentifiabilityWarning,
    SmallSampleWarning,
)
from toolkit.scaling.downstream import SCORE_LAWS, fit_score, prediction_noise, sampling_error
from toolkit.scaling.downstream.score_laws import get_score_law

LOSS = np.linspace(2.2, 3.6, 24)


def sigmoid(loss, floor=0.25, ceiling=0.9, k=2.5, middle=2.7):
    return floor + (ceiling - floor) / (1 + np.exp(k * (np.asarray(loss) - middle)))


def noisy(loss=LOSS, sd=0.01, seed=0, **curve):
    noise = sd * np.random.default_rng(seed).standard_normal(len(loss))
    return pd.DataFrame({"loss": loss, "score": np.clip(sigmoid(loss, **curve) + noise, 0, 1)})


@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_sigmoid_is_recovered_exactly_from_clean_scores(loss):
    fit = fit_score("sigmoid", {"loss": LOSS, "score": sigmoid(LOSS)}, loss=loss)
    assert fit.params.to_dict() == pytest.approx(
        {"floor": 0.25, "ceiling": 0.9, "k": 2.5, "L0": 2.7}, rel=1e-4
    )
    assert fit.certified
    assert fit.agreement > 0.5
    assert fit.identified.all()


def test_exponential_is_recovered_exactly_from_clean_scores():
    score = 1 - (0.85 - 2.2 * np.exp(-0.7 * LOSS))
    fit = fit_score("exponential", {"loss": LOSS, "score": score})
    assert fit.params.tolist() == pytest.approx([0.85, 2.2, 0.7], rel=1e-4)


def test_score_is_recovered_from_compute_in_one_step():
    flops = np.geomspace(1e18, 1e23, 20)
    score = 0.2 + 0.7 / (1 + (flops / 3e20) ** -0.8)
    fit = fit_score("compute", {"flops": flops, "score": score}, floor=0.2)
    assert fit.params.tolist() == pytest.approx([0.2, 0.9, 0.8, 3e20], rel=1e-4)


def test_score_is_recovered_from_size_and_data_in_one_step():
    params, tokens = (a.ravel() for a in np.meshgrid([2e8, 1e9, 4e9], np.geomspace(5e9, 5e11, 5)))
    z = -1.0 + (params / 1e9) ** -0.4 + 0.8 * (tokens / 1e11) ** -0.3
    score = 0.25 + 0.7 / (1 + np.exp(z))
    fit = fit_score("combined", {"params": params, "tokens": tokens, "score": score}, floor=0.25)
    point = {"params": [1e10], "tokens": [1e12]}
    truth = 0.25 + 0.7 / (1 + np.exp(-1.0 + 10**-0.4 + 0.8 * 10**-0.3))
    assert fit.objective < 1e-10
    assert fit.predict(point)["score"][0] == pytest.approx(truth, abs=5e-3)


@pytest.mark.parametrize("name", list(SCORE_LAWS))
def test_jacobians_are_the_derivatives(name):
    law = get_score_law(name)
    x = np.array([[-1.0, 0.2, 1.5], [0.3, -0.4, 1.0]])[: len(law.columns)]
    theta = np.array([0.2, 0.9, 0.3, -0.2, 0.1, 0.4, 0.3])[: len(law.parameters)]
    jacobian = law.evaluate(theta, x)[1]
    for k in range(len(theta)):
        step = np.zeros(len(theta))
        step[k] = 1e-6
        ahead, behind = law.evaluate(theta + step, x)[0], law.evaluate(theta - step, x)[0]
        assert jacobian[k] == pytest.approx((ahead - behind) / 2e-6, abs=1e-8)


def test_known_floor_is_kept_and_sharpens_the_fit():
    table = noisy(np.linspace(2.2, 3.0, 24))
    known = fit_score("sigmoid", table, floor=0.25, bootstrap=200, rng=0)
    fitted = fit_score("sigmoid", table, bootstrap=200, rng=0)
    assert known.params["floor"] == 0.25
    assert known.conf_int().loc["floor", ["lower", "upper"]].tolist() == [0.25, 0.25]
    assert known.draws["ceiling"].std() < fitted.draws["ceiling"].std()


def test_intervals_hold_the_truth_and_new_scores_scatter_more_than_the_curve():
    fit = fit_score("sigmoid", noisy(), floor=0.25, bootstrap=300, rng=0)
    at = fit.predict({"loss": [2.4, 2.7, 3.2]})
    truth = sigmoid([2.4, 2.7, 3.2])
    assert (at["lower"] < truth).all()
    assert (truth < at["upper"]).all()
    assert (at["run_upper"] - at["run_lower"] > at["upper"] - at["lower"]).all()


def test_coverage_of_the_curve():
    """60 studies; the figures in the docstring of fit_score come from 300."""
    covered = 0
    for seed in range(60):
        fit = fit_score("sigmoid", noisy(seed=seed), floor=0.25, bootstrap=150, rng=seed)
        at = fit.predict({"loss": [2.7]}).iloc[0]
        covered += at["lower"] <= sigmoid(2.7) <= at["upper"]
    assert 0.82 <= covered / 60 <= 1.0


def test_same_seed_same_answer_on_one_thread_or_two():
    one = fit_score("sigmoid", noisy(), bootstrap=60, rng=1)
    two = fit_score("sigmoid", noisy(), bootstrap=60, rng=1, threads=2)
    pd.testing.assert_frame_equal(one.draws, two.draws)


def test_losses_short_of_the_bend_leave_ceiling_and_midpoint_open():
    table = noisy(np.linspace(3.2, 4.2, 30), sd=0.002)
    with pytest.warns(IdentifiabilityWarning, match="do not reach the bend"):
        fit = fit_score("sigmoid", table, floor=0.25, bootstrap=100, rng=0)
    assert not fit.bend_reached
    assert not fit.identified[["ceiling", "L0"]].any()
    assert fit.conf_int().loc[["ceiling", "L0"]].isna().all().all()
    assert "not identified" in fit.summary().text()


def test_extrapolation_is_announced():
    fit = fit_score("sigmoid", noisy())
    fit.predict({"loss": [2.0]})
    with pytest.warns(ExtrapolationWarning, match=r"1\.0 times the fitted range"):
        fit.predict({"loss": [0.8]})


def test_result_can_be_read():
    fit = fit_score("sigmoid", noisy(), bootstrap=50, rng=0)
    text = fit.summary().text()
    assert "starts that agree" in text
    assert "50 resamples of 24 units (row)" in text
    assert "<table" in fit._repr_html_()
    assert list(fit.to_frame()) == ["estimate", "lower", "upper", "unit", "meaning"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.assign(score=100 * t["score"]), "divide percent by 100"),
        (lambda t: t.assign(score=1 - t["score"]), r"rise with the loss.*1 - error"),
        (lambda t: t.assign(score=0.5), "same value"),
        (lambda t: t.assign(loss=3.0), "same value"),
        (lambda t: t.iloc[:4], r"4 different points.*At least 5"),
        (lambda t: pd.concat([t, t]), "cluster='run'"),
        (lambda t: t.drop(columns="score"), "Missing 'score'"),
        (lambda t: t.assign(score=t["score"].where(t.index > 0)), "NaN"),
    ],
)
def test_bad_tables_are_refused(change, message):
    with pytest.raises(DataError, match=message):
        fit_score("sigmoid", change(noisy()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"floor": 0.95}, "lies above every score"),
        ({"floor": 25}, "from 0 to below 1"),
        ({"loss": "absolute"}, "'squared' or 'huber'"),
        ({"loss": "huber", "delta": 0}, "delta must be"),
        ({"bootstrap": 1}, "at least 2"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(DataError, match=message):
        fit_score("sigmoid", noisy(), **options)


def test_one_unit_cannot_be_resampled_and_few_are_announced():
    table = noisy().assign(run="a")
    with pytest.raises(DataError, match="at least 2 different units"):
        fit_score("sigmoid", table, cluster="run", bootstrap=20, rng=0)
    table["run"] = np.arange(24) % 6
    with pytest.warns(SmallSampleWarning, match="Only 6 independent"):
        fit_score("sigmoid", table, cluster="run", bootstrap=20, rng=0)


def test_repeated_checkpoints_do_not_narrow_intervals_of_runs():
    once = noisy().assign(run=np.arange(24))
    ten = pd.concat([once] * 10)
    widths = []
    for table in (once, ten):
        fit = fit_score("sigmoid", table, floor=0.25, cluster="run", bootstrap=200, rng=0)
        at = fit.predict({"loss": [2.7]}).iloc[0]
        widths.append(at["upper"] - at["lower"])
    assert widths[1] == pytest.approx(widths[0], rel=1e-6)


def test_a_law_is_found_by_name_or_refused():
    with pytest.raises(DataError, match="Known: sigmoid"):
        fit_score("logistic", noisy())
    with pytest.raises(DataError, match="has no loss"):
        fit_score("compute", noisy(), perfect_at_zero=True)


def test_noise_of_a_prediction_falls_with_the_root_of_the_items():
    fit = fit_score("sigmoid", {"loss": LOSS, "score": sigmoid(LOSS)}, floor=0.25)
    noise = prediction_noise(fit, {"loss": 2.2}, items=[1000, 100_000], draws=200, rng=0)
    ratio = noise["prediction_sd"][0] / noise["prediction_sd"][1]
    assert 8 < ratio < 12
    assert noise["score_sd"][1] == pytest.approx(
        np.sqrt(np.mean(sigmoid(LOSS) * (1 - sigmoid(LOSS)) / 100_000))
    )


def test_averaging_checkpoints_lowers_their_noise_only():
    fit = fit_score("sigmoid", {"loss": LOSS, "score": sigmoid(LOSS)}, floor=0.25)
    options = {"items": [10_000], "checkpoint_sd": 0.02, "draws": 50, "rng": 0}
    one = prediction_noise(fit, {"loss": 2.2}, **options)["score_sd"][0]
    ten = prediction_noise(fit, {"loss": 2.2}, averaged=10, **options)["score_sd"][0]
    items = np.mean(sampling_error(sigmoid(LOSS), 10_000) ** 2)
    assert one**2 - items == pytest.approx(0.02**2)
    assert ten**2 - items == pytest.approx(0.02**2 / 10)


@pytest.mark.parametrize(("score", "items"), [(1.2, 10), (-0.1, 10), (0.5, 0)])
def test_sampling_error_refuses_what_is_no_score(score, items):
    with pytest.raises(DataError):
        sampling_error(score, items)
