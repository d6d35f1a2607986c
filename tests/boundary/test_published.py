"""1,828 public models: the exact quantile, the published recipe, and how far they are apart."""

import numpy as np
import pytest

from tests.reference import zhang2026
from toolkit import boundary
from toolkit.boundary.prescriptive import KAPPA, smoothed_loss
from toolkit.errors import SmallSampleWarning

TASKS = tuple(zhang2026.EXACT)


def fit(leaderboard, task, **options):
    with pytest.warns(SmallSampleWarning):  # 36.6 models beyond the curve
        return boundary.fit(leaderboard, task, tau=zhang2026.TAU, **options)


@pytest.mark.parametrize("task", TASKS)
def test_the_exact_quantile_is_reproduced(leaderboard, task):
    found = fit(leaderboard, task)
    reached = found.attainable(zhang2026.FLOPS)["score"].item()
    assert reached == pytest.approx(zhang2026.EXACT[task], abs=0.003)
    assert 0.979 <= found.coverage()["coverage"].item() <= 0.982
    assert found.certified.all()
    assert found.agreement.item() == 1.0


@pytest.mark.parametrize("task", TASKS)
def test_the_published_recipe_is_reproduced(leaderboard, task):
    found = fit(leaderboard, task, recipe="prescriptive")
    reached = found.attainable(zhang2026.FLOPS)["score"].item()
    assert reached == pytest.approx(zhang2026.RECIPE[task], abs=0.005)
    assert found.coverage()["coverage"].item() == pytest.approx(
        zhang2026.RECIPE_COVERAGE[task], abs=0.001
    )
    assert "published recipe" in found.summary().text()


def test_the_recipe_lies_above_the_quantile_where_the_truth_is_known(known_models, truth, budgets):
    found = boundary.fit(known_models(0), tau=0.98, recipe="prescriptive")
    error = found.attainable(budgets)["score"].to_numpy() - truth.attainable(budgets)
    assert 0.045 < error.mean() < 0.06
    assert 0.99 < found.coverage()["coverage"].item() < 0.997


def test_the_smoothed_loss_tends_to_the_exact_one():
    u = np.linspace(-1, 1, 21)
    exact = u * (0.9 - (u < 0))
    np.testing.assert_allclose(smoothed_loss(u, 0.9, 1e5), exact, atol=1e-5)
    assert smoothed_loss(np.zeros(1), 0.9, KAPPA)[0] == pytest.approx(np.log(2) / KAPPA)


def test_bounds_by_base_model_are_wider_than_by_row(leaderboard):
    by_row = fit(leaderboard, "ifeval", bootstrap=100, rng=0)
    by_base = fit(leaderboard, "ifeval", bootstrap=100, cluster="family", rng=0)
    widths = [
        float((table["upper"] - table["lower"]).item())
        for table in (by_row.attainable(1e24), by_base.attainable(1e24))
    ]
    assert widths[1] > widths[0]
