"""Where residuals sit: figures of the registered points, and simulations with known structure."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from toolkit.errors import DataError
from toolkit.scaling import fit, log_bins, residual_structure, sign_correlation


@pytest.fixture(scope="module")
def real(kept_points):
    return residual_structure(fit("chinchilla", kept_points), resamples=4000, rng=0)


@pytest.fixture(scope="module")
def simulated(runs):
    return residual_structure(fit("chinchilla", runs), width=1.0, rng=0)


def test_signs_agree_within_equal_size_but_not_within_equal_compute(real):
    """Own analysis of the 240 points: .20 against a permutation point of .13; compute .003."""
    table = real.correlations
    size, budget = table.loc["params"], table.loc["flops, bins of 0.25"]
    assert size["groups"] == 140
    assert size["correlation"] == pytest.approx(0.2028, abs=1e-4)
    assert size["reference"] == pytest.approx(0.13, abs=0.01)
    assert size["p"] < 0.05
    assert budget["groups"] == 34
    assert budget["correlation"] == pytest.approx(0.0030, abs=1e-4)
    assert budget["p"] > 0.2


def test_two_budgets_decide_the_exponent(real):
    first, second = real.influence.iloc[0], real.influence.iloc[1]
    assert first["rows"] == 21
    assert first["low"] < 9.5e18 < first["high"]
    assert first["params_exponent"] == pytest.approx(-0.0324, abs=1e-4)
    assert second["rows"] == 18
    assert second["low"] < 9.7e20 < second["high"]
    assert second["params_exponent"] == pytest.approx(0.0173, abs=1e-4)


def test_spread_depends_on_what_is_resampled(real):
    """Published by the refit: SE .018 to .020 over rows; larger over sizes and budgets."""
    spread = real.spread["params_exponent"]
    assert_allclose(spread, [0.0194, 0.0211, 0.036, 0.051], rtol=0.06)
    assert real.spread["units"].tolist() == [240, 140, 34, 10]


def test_jackknife_over_bins_is_wider_than_over_rows(real):
    """Delete-one .025, delete-bin .044."""
    for table, expected in ((real.row_influence, 0.025), (real.influence, 0.044)):
        change = table["params_exponent"].to_numpy()
        n = len(change)
        assert np.sqrt((n - 1) / n * np.sum((change - change.mean()) ** 2)) == pytest.approx(
            expected, abs=0.0015
        )


def test_most_influential_points_are_large_models(real, kept_points):
    five = real.row_influence["params_exponent"].abs().nlargest(5).index
    assert (kept_points["params"].iloc[five] > 9e9).all()
    assert_allclose(real.row_influence["params_exponent"].iloc[five], 0.005, atol=6e-4)


def test_mean_size_of_residuals_is_alike_at_low_and_high_compute(real):
    bins = real.positions.loc["flops"]
    half = bins["rows"].cumsum() <= 120
    for part, expected in ((bins[half], 0.0045), (bins[~half], 0.0049)):
        mean = np.average(part["mean_absolute"], weights=part["rows"])
        assert mean == pytest.approx(expected, abs=4e-4)


def test_positions_are_means_over_bins(simulated, runs):
    residual = simulated.fit.residuals
    bins = log_bins(runs["params"], 1.0)
    label = bins[0]
    row = simulated.positions.loc[("params", label)]
    mine = residual[bins == label]
    assert row["rows"] == len(mine)
    assert_allclose(
        row[["mean", "mean_absolute", "sd"]].to_numpy(dtype=float),
        [mine.mean(), mine.abs().mean(), mine.std()],
    )
    assert row["low"] == runs["params"][bins == label].min()


def test_leaving_out_a_bin_is_a_refit_without_it(simulated, runs):
    flops = 6 * runs["params"] * runs["tokens"]
    first = simulated.influence.iloc[0]
    outside = (flops < first["low"] * 0.999) | (flops > first["high"] * 1.001)
    again = fit("chinchilla", runs[outside])
    assert first["beta"] == pytest.approx(
        again.params["beta"] - simulated.fit.params["beta"], abs=1e-6
    )


def test_independent_noise_shows_no_structure(study):
    p = [
        residual_structure(fit("chinchilla", study(seed)), width=1.0, rng=0).correlations["p"]
        for seed in range(8)
    ]
    assert np.mean(np.array(p) < 0.05) < 0.2


def test_noise_shared_by_a_size_is_found(study):
    runs = study(groups=6, ratios=10)
    size = log_bins(runs["params"], 0.5)
    shared = np.random.default_rng(0).normal(0, 0.01, size.max() + 1)[size]
    moved = runs.assign(loss=runs["loss"] * np.exp(shared), params=np.exp(0.5 * size))
    structure = residual_structure(fit("chinchilla", moved), rng=0)
    assert structure.correlations.loc["params", "p"] < 0.05
    assert "same params" in structure.summary().text()


def test_planted_outlier_is_the_most_influential_run(runs):
    """E17: one wrong loss; it is shown, not dropped."""
    wrong = runs.copy()
    wrong.loc[7, "loss"] *= 1.2
    structure = residual_structure(fit("chinchilla", wrong, loss="squared"), width=1.0, rng=0)
    assert structure.row_influence["params_exponent"].abs().idxmax() == 7
    assert len(structure.row_influence) == len(runs)


@pytest.mark.parametrize(
    ("residuals", "groups", "expected"),
    [
        ([1.0, 2.0, -1.0, -2.0], ["a", "a", "b", "b"], 1.0),
        ([1.0, -1.0, 2.0, -2.0], ["a", "a", "b", "b"], -1.0),
        ([1.0, 2.0, -1.0, -2.0], [0, 1, 2, 3], np.nan),
        ([1.0, 2.0, -1.0, -2.0], [0, 0, 0, 1], -1 / 3),
    ],
)
def test_sign_correlation_of_small_tables(residuals, groups, expected):
    assert sign_correlation(residuals, groups) == pytest.approx(expected, nan_ok=True)


def test_bins_are_centred_on_multiples():
    assert log_bins(np.exp([0.0, 0.12, 0.13, 1.0]), 0.25).tolist() == [0, 0, 1, 4]
    with pytest.raises(DataError, match="positive"):
        log_bins([1.0, 0.0], 0.25)
    with pytest.raises(DataError, match="width"):
        log_bins([1.0], -1.0)


def test_one_bin_is_refused(runs):
    with pytest.raises(DataError, match="one bin"):
        residual_structure(fit("chinchilla", runs), width=100.0)


@pytest.mark.filterwarnings("ignore::toolkit.IdentifiabilityWarning")
def test_bins_without_which_the_law_has_too_few_points_have_no_change(runs):
    few = pd.concat([runs.iloc[:4], runs.iloc[-9:]])
    structure = residual_structure(fit("chinchilla", few, loss="squared"), width=2.0, rng=0)
    large = structure.influence[structure.influence["rows"] == 9]
    assert large["params_exponent"].isna().all()


def test_frame_summary_and_html(simulated):
    assert simulated.to_frame() is simulated.table
    assert "most influential" in simulated.summary().text()
    assert "Structure" in simulated._repr_html_()
