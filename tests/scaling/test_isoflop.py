"""Minima of isoFLOP curves: known truths, published exponents, and budgets that show none."""

import os

import numpy as np
import pandas as pd
import pytest

from tests.reference import hoffmann2022, porian2024
from toolkit import datasets
from toolkit.datasets.simulate import isoflop_design, simulate_runs
from toolkit.errors import DataError, ExtrapolationWarning, SmallSampleWarning
from toolkit.scaling import CHINCHILLA, fit_isoflops, isoflop_minima

BUDGETS = np.geomspace(1e18, 1e21, 7)
TRUTH = CHINCHILLA.values("besiroglu2024-unrounded")
EXPONENT = TRUTH[4] / (TRUTH[3] + TRUTH[4])


def curves(noise=0.0, budgets=BUDGETS, ratios=(3, 6, 12, 20, 40, 80, 150), seed=0):
    design = isoflop_design(budgets, ratios)
    return simulate_runs("chinchilla", "besiroglu2024-unrounded", design, noise=noise, rng=seed)


def bowl(flops, centre, params, height=0.05, floor=2.5):
    """Losses on an exact parabola in log params."""
    params = np.asarray(params, dtype=float)
    loss = floor + height * np.log(params / centre) ** 2
    return pd.DataFrame({"flops": flops, "params": params, "loss": loss})


def bowls(**change):
    """Four budgets of five sizes whose minima follow params = 2 sqrt(flops)."""
    tables = []
    for flops in (1e18, 1e19, 1e20, 1e21):
        centre = 2 * np.sqrt(flops)
        tables.append(bowl(flops, centre, centre * np.array([0.3, 0.6, 1.1, 2.0, 4.0]), **change))
    return pd.concat(tables, ignore_index=True)


def test_exact_parabolas_give_exact_minima_and_exponents():
    fit = fit_isoflops(bowls())
    assert fit.minima["params"].to_numpy() == pytest.approx(2 * np.sqrt(fit.minima["flops"]))
    assert fit.minima["loss"].to_numpy() == pytest.approx(2.5)
    assert fit.params.to_numpy() == pytest.approx([0.5, 2.0, 0.5, 1 / 12], rel=1e-9)
    table = fit.optimal_allocation([1e20, 4e20])
    assert table["params"].to_numpy() == pytest.approx([2e10, 4e10])
    assert table["tokens_per_param"].to_numpy() == pytest.approx([1 / 24, 1 / 24])


@pytest.mark.parametrize(("method", "close"), [("parabola", 0.002), ("akima", 0.002)])
def test_the_exponent_of_a_law_is_recovered(method, close):
    fit = fit_isoflops(curves(), method=method)
    assert fit.exponent == pytest.approx(EXPONENT, abs=close)
    assert fit.params["tokens_exponent"] == pytest.approx(1 - fit.exponent, abs=1e-9)


def test_akima_minimum_is_that_of_a_fine_grid():
    runs = curves(noise=0.01, ratios=np.geomspace(2, 200, 9))
    exact = isoflop_minima(runs, method="akima")
    fine = isoflop_minima(runs, method="akima", grid=5000)
    assert exact["used"].tolist() == fine["used"].tolist()
    np.testing.assert_allclose(exact["params"], fine["params"], rtol=2e-4)
    assert (exact["loss"] <= fine["loss"] * (1 + 1e-12))[exact["used"]].all()


def test_repeats_of_a_size_are_averaged():
    runs = bowls()
    shift = np.where(np.arange(len(runs)) % 2, 0.01, -0.01)
    twice = pd.concat([runs.assign(loss=runs["loss"] + s * shift) for s in (1, -1)])
    assert fit_isoflops(twice).exponent == pytest.approx(0.5, abs=1e-9)
    found = isoflop_minima(twice, method="akima")
    assert found["sizes"].tolist() == [5] * 4
    expected = isoflop_minima(runs, method="akima")["params"]
    np.testing.assert_allclose(found["params"], expected, rtol=1e-3)


def test_compute_comes_from_size_and_data_where_it_is_not_given():
    runs = curves()
    expected = fit_isoflops(runs).params
    jitter = 1 + 0.004 * np.cos(np.arange(len(runs)))
    nominal = runs.drop(columns="flops").assign(tokens=runs["tokens"] * jitter)
    found = fit_isoflops(nominal)
    assert len(found.minima) == len(BUDGETS)
    np.testing.assert_allclose(found.params, expected, rtol=0.1)
    assert found.exponent == pytest.approx(expected["params_exponent"], abs=1e-3)
    np.testing.assert_allclose(fit_isoflops(runs.drop(columns="tokens")).params, expected)


def test_tokens_are_those_of_the_table_not_of_6_n_d():
    runs = curves()
    counted = runs.assign(params=runs["params"] / 2)  # embeddings left out, say
    half, whole = fit_isoflops(counted), fit_isoflops(runs)
    assert half.params["tokens_coefficient"] == pytest.approx(whole.params["tokens_coefficient"])
    ratio = half.params["params_coefficient"] / whole.params["params_coefficient"]
    assert ratio == pytest.approx(0.5)


REFUSALS = {
    "smallest": (bowl(1e22, 1e9, [2e9, 4e9, 8e9, 16e9]), "at or below the smallest size"),
    "largest": (bowl(1e22, 64e9, [2e9, 4e9, 8e9, 16e9]), "at or above the largest size"),
    "three sizes": (bowl(1e22, 4e9, [2e9, 4e9, 8e9]), "3 sizes; a minimum needs 4 or more"),
    "one size": (bowl(1e22, 4e9, [4e9] * 6), "1 sizes; a minimum needs 4 or more"),
    "flat": (bowl(1e22, 4e9, [1e9, 2e9, 4e9, 8e9], height=0.0), "flat or bend down"),
    "hill": (bowl(1e22, 4e9, [1e9, 2e9, 4e9, 8e9], height=-0.05), "flat or bend down"),
}


@pytest.mark.parametrize("method", ["parabola", "akima"])
@pytest.mark.parametrize("name", REFUSALS)
def test_a_budget_without_a_minimum_is_refused_and_listed(name, method):
    extra, reason = REFUSALS[name]
    fit = fit_isoflops(pd.concat([bowls(), extra]), method=method, bootstrap=20, rng=0)
    assert fit.refused["flops"].tolist() == pytest.approx([1e22])
    assert reason in fit.refused["reason"].item()
    assert fit.refused[["params", "tokens", "loss"]].isna().all(axis=None)
    assert f"refused 1e+22: {fit.refused['reason'].item()}" in fit.summary().text()
    assert fit.exponent == pytest.approx(fit_isoflops(bowls(), method=method).exponent)


def test_noise_without_curvature_is_flat():
    rng = np.random.default_rng(1)
    flat = bowl(1e22, 4e9, np.geomspace(1e9, 1e10, 8), height=0.001)
    flat["loss"] += 0.01 * rng.standard_normal(8)
    assert isoflop_minima(flat)["reason"].item().startswith("the losses are flat")


def test_one_budget_gives_no_exponent():
    with pytest.raises(DataError, match=r"All runs share one budget \(1e\+20 FLOPs\)"):
        fit_isoflops(bowl(1e20, 4e9, [1e9, 2e9, 4e9, 8e9]))


def test_budgets_that_do_not_group_are_refused():
    rng = np.random.default_rng(0)
    runs = {"params": rng.uniform(1e8, 1e10, 30), "tokens": rng.uniform(1e9, 1e11, 30)}
    runs["loss"] = rng.uniform(2, 3, 30)
    with pytest.raises(DataError, match=r"this is no isoFLOP design\. Mend: put nominal budgets"):
        fit_isoflops(runs)


def test_too_few_minima_name_every_budget():
    high = [bowl(c, 1e6, [2e9, 4e9, 8e9, 16e9]) for c in (1e19, 1e20)]
    with pytest.raises(DataError, match=r"0 of 2 budgets show a minimum.*1e\+19 FLOPs: the min"):
        fit_isoflops(pd.concat(high))


def test_two_loss_axes_in_one_table_are_noticed():
    runs = bowls()
    both = pd.concat([runs, runs.assign(loss=np.exp(runs["loss"]))], ignore_index=True)
    with pytest.raises(DataError, match=r"rows 4, 24 are one size .* loss axis"):
        fit_isoflops(both)


def test_few_budgets_are_warned_of():
    runs = bowls()
    with pytest.warns(SmallSampleWarning, match="rests on 2 budgets"):
        fit_isoflops(runs[runs["flops"] < 5e19])


def test_far_budgets_are_warned_of():
    fit = fit_isoflops(bowls())
    with pytest.warns(ExtrapolationWarning, match="2.0 powers of ten beyond the largest budget"):
        table = fit.optimal_allocation([1e21, 1e23])
    assert table["decades_beyond"].tolist() == pytest.approx([0, 2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "spline"}, "method must be 'parabola' or 'akima'"),
        ({"grid": 25}, "for method='akima'"),
        ({"method": "akima", "grid": 1}, "2 or more"),
        ({"tolerance": 0.9}, "tolerance is a share of compute"),
        ({"bootstrap": 1}, "at least 2 resamples"),
        ({"bootstrap": 100, "noise": 0.0}, "noise is a positive standard deviation"),
    ],
)
def test_unknown_options_are_refused(options, message):
    with pytest.raises(DataError, match=message):
        fit_isoflops(bowls(), **options)


def test_intervals_need_a_bootstrap():
    with pytest.raises(DataError, match="fit with bootstrap=1000"):
        fit_isoflops(bowls()).conf_int()


@pytest.mark.parametrize("method", ["parabola", "akima"])
@pytest.mark.parametrize("noise", [None, 0.003])
def test_intervals_hold_the_estimate_and_repeat(method, noise):
    runs = curves(noise=0.003, seed=3)
    fit = fit_isoflops(runs, method=method, bootstrap=100, noise=noise, rng=5)
    again = fit_isoflops(runs, method=method, bootstrap=100, noise=noise, rng=5)
    pd.testing.assert_frame_equal(fit.draws, again.draws)
    bounds = fit.conf_int()
    assert (bounds["lower"] < bounds["estimate"]).all()
    assert (bounds["estimate"] < bounds["upper"]).all()
    assert fit.conf_int(0.5).eval("upper - lower").lt(bounds.eval("upper - lower")).all()
    table = fit.optimal_allocation(1e20)
    assert table["params_lower"][0] < table["params"][0] < table["params_upper"][0]
    kept = fit.minima.loc[fit.minima["used"], "kept"]
    assert ((kept > 0.4) & (kept <= 1)).all()


def one_sided(seed):
    """Sizes at 1e22 FLOPs that are all too large, with noise of 0.5 %."""
    return curves(noise=0.005, budgets=[1e22], ratios=(0.2, 0.5, 1, 2, 4), seed=seed)


def test_a_minimum_by_luck_is_doubtful():
    good = curves(noise=0.003, seed=3)
    lucky = next(s for s in range(100) if isoflop_minima(one_sided(s))["used"].item())
    runs = pd.concat([good, one_sided(lucky)])
    fit = fit_isoflops(runs, bootstrap=200, rng=0)
    assert fit.doubtful["flops"].tolist() == pytest.approx([1e22])
    share = fit.minima["kept"].iloc[-1]
    assert 0.3 < share < 0.8
    assert f"doubtful 1e+22: the minimum lies inside the sizes in only {share:.0%}" in (
        fit.summary().text()
    )
    assert fit.exponent == fit_isoflops(runs).exponent  # resamples do not choose the budgets
    assert fit_isoflops(good, bootstrap=200, rng=0).doubtful.empty
    assert fit_isoflops(runs).doubtful.empty


def test_more_noise_gives_wider_intervals():
    runs = curves()
    widths = [
        np.ptp(fit_isoflops(runs, bootstrap=200, noise=noise, rng=0).draws["params_exponent"])
        for noise in (0.001, 0.01)
    ]
    assert 5 < widths[1] / widths[0] < 20


def test_intervals_by_noise_cover_the_truth():
    """40 studies, nominal 95 %; measured: 0.97."""
    hits = []
    for seed in range(40):
        fit = fit_isoflops(curves(noise=0.003, seed=seed), bootstrap=200, noise=0.003, rng=seed)
        lower, upper = fit.conf_int().loc["params_exponent", ["lower", "upper"]]
        hits.append(lower < EXPONENT < upper)
    assert np.mean(hits) >= 0.9, f"coverage {np.mean(hits):.2f}"


@pytest.fixture
def registered():
    if not os.environ.get("TOOLKIT_DATA_DIR"):
        pytest.skip("TOOLKIT_DATA_DIR is not set, so the registered points are not looked for")
    return datasets.load


@pytest.mark.parametrize(("dataset", "which"), [("rw", 0), ("owt2", 1)])
def test_exponents_of_porian_2024(registered, dataset, which):
    points = registered("porian_isoflops")
    points = points[(points["dataset"] == dataset) & ~points["source"].str.contains("att|tuned")]
    keys = ["hparams", "warmup", "decay", "param_count"]
    groups = dict(list(points.groupby(keys)))
    for key, expected in porian2024.EXPONENTS.items():
        fit = fit_isoflops(groups[key], method="akima", grid=porian2024.POINTS_PER_GAP)
        assert f"{fit.exponent:.4f}" == expected[which], key
        exact = fit_isoflops(groups[key], method="akima")
        assert exact.exponent == pytest.approx(fit.exponent, abs=0.0013)
        assert len(fit.refused) == (key == ("base", "long", "kaplan", "standard"))


def test_set_ups_of_porian_2024_are_not_one_study(registered):
    with pytest.raises(DataError, match="keep one data set, set-up"):
        fit_isoflops(registered("porian_isoflops"))


def test_approach_2_on_the_points_of_chinchilla(registered):
    fit = fit_isoflops(registered("chinchilla_isoflops"), bootstrap=300, rng=0)
    published, low, high = hoffmann2022.EXPONENTS[2]
    assert f"{fit.exponent:.2f}" == f"{published:.2f}"
    assert fit.refused["flops"].tolist() == pytest.approx([1e20])
    lower, upper = fit.conf_int(0.8).loc["params_exponent", ["lower", "upper"]]
    assert lower < published < upper
    assert 0.3 < (upper - lower) / (high - low) < 1.5


@pytest.mark.parametrize("axis", ["raw_loss", "exp_loss"])
def test_data_of_llama_3_whichever_way_the_loss_axis_is_read(registered, axis):
    """Report: D = 0.299 C**0.537 in the figure, (0.29, 0.53) in the text; 402B, 16.55T."""
    points = registered("llama3_isoflops")
    fit = fit_isoflops(points[points["condition"] == axis])
    assert f"{fit.params['tokens_exponent']:.3f}" == "0.537"
    assert fit.params["tokens_coefficient"] == pytest.approx(0.299, abs=0.002)
    with pytest.warns(ExtrapolationWarning):
        best = fit.optimal_allocation(3.8e25).iloc[0]
    assert best["params"] == pytest.approx(402e9, rel=0.03)
    assert best["tokens"] == pytest.approx(16.55e12, rel=0.03)
