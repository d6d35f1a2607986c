"""Bounds: what is resampled, when there are none, whether they cover."""

import numpy as np
import pytest

from toolkit import boundary
from toolkit.errors import DataError, SmallSampleWarning


@pytest.fixture(scope="module")
def fitted(known_models):
    return boundary.fit(known_models(0), tau=0.98, bootstrap=200, rng=0)


def test_bounds_hold_the_truth_and_have_the_published_width(fitted, truth):
    """Measured with other optimisers at the same size: width 0.0074 to 0.0109 at 1e24 FLOPs."""
    row = fitted.attainable(1e24).iloc[0]
    assert row["lower"] < truth.attainable(1e24) < row["upper"]
    assert 0.005 < row["upper"] - row["lower"] < 0.013
    assert row["lower"] < row["score"] < row["upper"]
    assert fitted.failed == 0


def test_intervals_of_all_quantities(fitted, truth):
    table = fitted.conf_int().loc[0.98]
    expected = [*truth.values, truth.top, truth.slope, truth.headroom()]
    assert list(table.index) == [
        "base",
        "rise",
        "midpoint",
        "steepness",
        "top",
        "slope",
        "headroom",
    ]
    assert ((table["lower"] < table["estimate"]) & (table["estimate"] < table["upper"])).all()
    wide = fitted.conf_int(0.99999).loc[0.98]
    assert ((wide["lower"] <= expected) & (expected <= wide["upper"])).sum() >= 6


def test_compute_needed_has_bounds_that_mirror_those_of_the_score(fitted):
    row = fitted.compute_needed(0.6).iloc[0]
    assert row["lower"] < row["flops"] < row["upper"]
    above = fitted.attainable(row["lower"]).iloc[0]
    assert above["upper"] == pytest.approx(0.6, abs=1e-3)


def test_the_same_seed_gives_the_same_draws(known_models, fitted):
    again = boundary.fit(known_models(0), tau=0.98, bootstrap=200, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(again.draws, fitted.draws)


def test_draws_do_not_depend_on_the_size_of_blocks(known_models, fitted, monkeypatch):
    monkeypatch.setattr("toolkit.resampling.BLOCK_VALUES", 35_000)
    again = boundary.fit(known_models(0), tau=0.98, bootstrap=200, rng=0)
    np.testing.assert_array_equal(again.draws, fitted.draws)


def test_a_shared_error_needs_its_cluster(known_models):
    """Fine-tunes of one base share what it can do: rows understate the spread."""
    models = known_models(1, n=2000, tau=0.9)
    rng = np.random.default_rng(0)
    base = rng.integers(0, 100, 2000)
    models["flops"] = (10 ** rng.uniform(21, 25, 100))[base]
    quality = rng.beta(6, 2, 100)[base]
    curve = boundary.Curve(0.2, 0.6, 23.0, 2.0).attainable(models["flops"])
    models["score"] = curve * quality * rng.uniform(0.9, 1.0, 2000)
    models["base_model"] = base.astype(str)
    by_row = boundary.fit(models, tau=0.8, bootstrap=200, rng=0)
    by_base = boundary.fit(models, tau=0.8, bootstrap=200, cluster="base_model", rng=0)
    assert by_base.unit == "base_model"
    assert by_base.units == len(set(base))
    np.testing.assert_array_equal(by_row.values, by_base.values)

    def width(fit):
        row = fit.attainable(1e23).iloc[0]
        return row["upper"] - row["lower"]

    assert width(by_base) > 2 * width(by_row)


def test_clusters_of_one_row_draw_like_rows(known_models):
    models = known_models(2, n=500, tau=0.9)
    single = models.assign(base_model=[f"{k:04d}" for k in np.lexsort(models.T.to_numpy()[::-1])])
    table = boundary.fit(single, tau=0.9, bootstrap=20, cluster="base_model", rng=0)
    assert table.units == 500


def test_no_bounds_where_fewer_than_ten_models_are_beyond(known_models):
    with pytest.warns(SmallSampleWarning, match="not given"):
        fit = boundary.fit(known_models(3, n=400, tau=0.98), tau=[0.9, 0.98], bootstrap=50, rng=0)
    table = fit.attainable(1e24).set_index("tau")
    assert table.loc[0.9, ["lower", "upper"]].notna().all()
    assert table.loc[0.98, ["lower", "upper"]].isna().all()
    assert fit.conf_int().loc[0.98][["lower", "upper"]].isna().all(axis=None)
    assert "no bounds" in fit.summary().text()
    assert np.isnan(fit.compute_needed(0.5)["lower"].iloc[1])


def test_a_fit_without_bootstrap_says_so(known_models):
    fit = boundary.fit(known_models(0), tau=0.98)
    assert "lower" not in fit.attainable(1e24)
    with pytest.raises(DataError, match="bootstrap=1000"):
        fit.conf_int()


@pytest.mark.parametrize("resamples", [1, -3, 2.5])
def test_too_few_resamples_are_refused(known_models, resamples):
    with pytest.raises(DataError, match="at least 2 resamples"):
        boundary.fit(known_models(0), tau=0.98, bootstrap=resamples)


def test_few_clusters_are_warned_of_and_one_is_refused(known_models):
    models = known_models(0, n=1000, tau=0.9)
    models["family"] = np.arange(1000) % 4
    with pytest.warns(SmallSampleWarning, match="Only 4 independent units"):
        boundary.fit(models, tau=0.9, bootstrap=10, cluster="family", rng=0)
    with pytest.raises(DataError, match="at least 2 different units"):
        boundary.fit(models.assign(family="a"), tau=0.9, bootstrap=10, cluster="family", rng=0)


def test_bounds_cover_the_truth_as_often_as_they_say(known_models, truth):
    inside = 0
    for seed in range(40):
        fit = boundary.fit(known_models(seed, n=600, tau=0.9), tau=0.9, bootstrap=100, rng=seed)
        row = fit.attainable(1e24).iloc[0]
        inside += row["lower"] <= truth.attainable(1e24) <= row["upper"]
    assert inside >= 33  # 95 % nominal: 33 or fewer of 40 has a chance of 1 %
