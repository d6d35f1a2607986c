"""Pinned parameters, other targets, and the ways to say where to predict."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from toolkit.datasets import isoflop_design, simulate_runs
from toolkit.errors import DataError, ExtrapolationWarning
from toolkit.scaling import CHINCHILLA, fit

TRUTH = dict(CHINCHILLA.presets["besiroglu2024"].values)


@pytest.fixture(scope="module")
def runs():
    design = isoflop_design([1e18, 1e19, 1e20, 1e21], [2, 5, 20, 80, 200])
    return simulate_runs("chinchilla", TRUTH, design, noise=0.004, rng=5)


def squared_by_simplex(runs, fixed):
    """Least squares of the log loss over the free parameters, by another method."""
    free = [name for name in CHINCHILLA.parameter_names if name not in fixed]
    scale = np.array([TRUTH[name] for name in free])

    def objective(ratio):
        values = {**fixed, **dict(zip(free, ratio * scale, strict=True))}
        floor = values["E"] + values["A"] / runs["params"] ** values["alpha"]
        loss = floor + values["B"] / runs["tokens"] ** values["beta"]
        return 0.5 * np.sum((np.log(loss) - np.log(runs["loss"])) ** 2)

    options = {"maxiter": 40_000, "maxfev": 40_000, "xatol": 1e-11, "fatol": 1e-17}
    return minimize(objective, np.ones(len(free)), method="Nelder-Mead", options=options).fun


@pytest.mark.parametrize(
    "names", [["E"], ["A"], ["alpha"], ["A", "alpha"], ["A", "B", "E"], ["alpha", "beta"]]
)
def test_the_others_are_optimal_where_some_are_pinned(runs, names):
    fixed = {name: 1.02 * TRUTH[name] for name in names}
    found = fit("chinchilla", runs, loss="squared", fixed=fixed)
    assert found.certified
    for name in names:
        assert found.params[name] == pytest.approx(fixed[name], rel=1e-12)
    assert found.objective == pytest.approx(squared_by_simplex(runs, fixed), rel=1e-6)


def test_pinning_at_the_optimum_changes_nothing(runs):
    free = fit("chinchilla", runs)
    for name in CHINCHILLA.parameter_names:
        pinned = fit("chinchilla", runs, fixed={name: free.params[name]})
        np.testing.assert_allclose(pinned.params, free.params, rtol=1e-6)


def test_a_pinned_parameter_is_reported_as_given_not_as_known_from_the_data(runs):
    found = fit("chinchilla", runs, fixed={"beta": 0.37}, bootstrap=50, rng=0)
    assert found.fixed == {"beta": pytest.approx(0.37)}
    assert (found.draws["beta"] == found.draws["beta"][0]).all()
    table = found.identifiability().parameters
    assert table["pinned"].tolist() == [False, False, False, False, True]
    assert np.isnan(table.loc["beta", "standard_error"])
    bounds = found.conf_int().loc["beta"]
    assert bounds["estimate"] == pytest.approx(0.37)
    assert bounds[["lower", "upper"]].isna().all()
    assert "beta: pinned, not fitted" in found.summary().text()
    assert fit("chinchilla", runs).fixed == {}


def test_absolute_loss_keeps_what_is_pinned(runs):
    found = fit("chinchilla", runs, loss="absolute", fixed={"E": 1.8, "alpha": 0.35})
    assert found.certified
    assert found.params[["E", "alpha"]].tolist() == pytest.approx([1.8, 0.35], rel=1e-12)


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        ({"gamma": 1.0}, "has no gamma; its parameters are A, B, E, alpha, beta"),
        ({"E": -1.0}, "Parameter E must be finite and positive"),
        ({"E": np.nan}, "Parameter E must be finite"),
        ({"alpha": 9.0}, "alpha must be finite and from 0.0001 to 5"),
        (TRUTH, "all parameters are pinned"),
    ],
)
def test_what_cannot_be_pinned_is_refused(runs, fixed, message):
    with pytest.raises(DataError, match=message):
        fit("chinchilla", runs, fixed=fixed)


def test_fewer_points_suffice_where_fewer_parameters_are_free(runs):
    few = runs.iloc[[0, 7, 12, 19]]
    with pytest.raises(DataError, match="5 parameters to fit; 4 different points"):
        fit("chinchilla", few)
    found = fit("chinchilla", few, fixed={"alpha": 0.3478, "beta": 0.3658})
    assert found.certified


def test_another_target_is_fitted_the_same_way(runs):
    renamed = runs.rename(columns={"loss": "bits_per_byte"})
    found = fit("chinchilla", renamed, target="bits_per_byte")
    np.testing.assert_array_equal(found.theta, fit("chinchilla", runs).theta)
    assert "bits_per_byte" in found.predict(1e9, 2e10)
    assert "on log bits_per_byte" in found.summary().text()
    renamed.loc[3, "bits_per_byte"] = 0.0
    with pytest.raises(DataError, match=r"'bits_per_byte': 1 of 20 rows \(3\) are not positive"):
        fit("chinchilla", renamed, target="bits_per_byte")


def test_points_can_be_given_as_a_table_in_order_or_by_name(runs):
    found = fit("chinchilla", runs)
    table = found.predict(pd.DataFrame({"tokens": [2e10, 4e10], "params": [1e9, 2e9], "note": "x"}))
    assert list(table.columns) == ["params", "tokens", "loss"]
    for other in (
        found.predict([1e9, 2e9], [2e10, 4e10]),
        found.predict([1e9, 2e9], tokens=[2e10, 4e10]),
        found.predict({"params": [1e9, 2e9], "tokens": [2e10, 4e10]}),
    ):
        pd.testing.assert_frame_equal(other, table)
    for points, columns in [
        ((1e9,), {}),
        ((1e9, 2e10, 3.0), {}),
        ((1e9, 2e10), {"tokens": 1e10}),
        ((), {"params": 1e9, "D": 1e10}),
        ((), {}),
    ]:
        with pytest.raises(DataError, match=r"params, tokens|2 columns"):
            found.predict(*points, **columns)
    with pytest.warns(ExtrapolationWarning, match="powers of ten beyond the compute"):
        found.predict(1e11, 1e13)
