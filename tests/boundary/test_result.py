"""What a result says: extrapolation, predictions, coverage, summaries."""

import dataclasses

import numpy as np
import pytest

from toolkit import boundary
from toolkit.errors import DataError, ExtrapolationWarning


@pytest.fixture(scope="module")
def fitted(known_models):
    return boundary.fit(known_models(0), tau=0.98)


def test_extrapolation_is_flagged_in_both_directions(fitted):
    with pytest.warns(ExtrapolationWarning, match=r"2\.0 powers of ten outside"):
        far = fitted.attainable([1e27])
    assert far["decades_beyond"].item() == pytest.approx(2.0, abs=0.01)
    assert far["score"].item() == pytest.approx(fitted.curve().top, abs=1e-3)  # not clamped
    with pytest.warns(ExtrapolationWarning):
        fitted.attainable(1e18)
    assert fitted.attainable(3e25)["decades_beyond"].item() > 0  # flagged, within a factor of 10


def test_predictions_follow_the_rows_of_a_table(fitted):
    table = fitted.predict({"params": [7e9, 70e9], "tokens": [2e12, 15e12]})
    np.testing.assert_allclose(table["flops"], [8.4e22, 6.3e24])
    np.testing.assert_allclose(table["score"], fitted.curve().attainable(table["flops"]))
    with pytest.raises(DataError, match="Missing"):
        fitted.predict({"params": [7e9]})


def test_coverage_matches_a_plain_count(fitted, known_models):
    models = known_models(0)
    below = models["score"] <= fitted.curve().attainable(models["flops"]) + 1e-9
    quality = fitted.coverage().loc[0.98]
    assert quality["coverage"] == below.mean()
    assert quality["error"] == pytest.approx(below.mean() - 0.98)


def test_a_curve_above_all_models_is_seen_through(fitted):
    """It errs by 0.02 in coverage, which looks small, and has no skill."""
    search = dataclasses.replace(fitted.searches[0], params=np.array([1.0, 0.0, 23.0, 0.0]))
    quality = dataclasses.replace(fitted, searches=(search,)).coverage().loc[0.98]
    assert quality["coverage"] == 1.0
    assert quality["error"] == pytest.approx(0.02)
    assert quality["lower"] > 0.98
    assert quality["skill"] < 0
    assert quality["height"] == 1.0


def test_one_level_needs_no_name_and_others_are_refused(fitted, known_models):
    assert fitted.curve() == fitted.curve(0.98)
    with pytest.raises(DataError, match="was not fitted"):
        fitted.curve(0.95)
    both = boundary.fit(known_models(0), tau=[0.9, 0.98])
    with pytest.raises(DataError, match="Which level"):
        both.curve()


def test_a_frame_tells_units_and_meaning(fitted):
    table = fitted.to_frame().loc[0.98]
    assert table.loc["midpoint", "unit"] == "log10 FLOPs"
    assert table.loc["top", "estimate"] == pytest.approx(fitted.curve().top)
    assert fitted.params.loc[0.98, "midpoint"] == fitted.curve().midpoint


def test_the_summary_is_stable_and_says_what_it_rests_on(fitted):
    text = fitted.summary().text()
    assert text == fitted.summary().text()
    for phrase in ("5000 models", "exact pinball", "100 models beyond", "4 of 4", "certified"):
        assert phrase in text
    assert "<table>" in fitted._repr_html_()


def test_a_midpoint_outside_the_data_is_said(known_models):
    models = known_models(3, n=8000)
    late = models[models["flops"] < 3e22]
    text = boundary.fit(late, tau=0.98).summary().text()
    assert "outside the compute of the models" in text


@pytest.mark.parametrize("level", [0.0, 1.0, "95"])
def test_impossible_confidence_levels_are_refused(fitted, level):
    with pytest.raises(DataError, match="level must lie between 0 and 1"):
        fitted.coverage(level=level)
