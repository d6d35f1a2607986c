"""The law object: values, presets, prediction, gradient, coordinates."""

import numpy as np
import pandas as pd
import pytest

from tests.reference import plain
from toolkit.errors import DataError, ExtrapolationWarning
from toolkit.scaling import CHINCHILLA, laws

TABLE = {
    "params": np.array([7e7, 1e9, 70e9, 1e12]),
    "tokens": np.array([3e9, 2e10, 1.4e12, 1e15]),
}


def logs(table=TABLE):
    return np.log(table["params"]), np.log(table["tokens"])


@pytest.mark.parametrize("preset", sorted(CHINCHILLA.presets))
def test_prediction_is_the_equation(preset):
    values = CHINCHILLA.presets[preset].values
    expected = (
        values["E"]
        + values["A"] / TABLE["params"] ** values["alpha"]
        + values["B"] / TABLE["tokens"] ** values["beta"]
    )
    np.testing.assert_allclose(CHINCHILLA.predict(values, TABLE), expected, rtol=1e-13)
    theta = [np.log(values["A"]), np.log(values["B"]), np.log(values["E"])]
    theta += [values["alpha"], values["beta"]]
    summed = np.exp(plain.residuals(theta, *logs(), 0.0))
    np.testing.assert_allclose(CHINCHILLA.predict(values, TABLE), summed, rtol=1e-13)


def test_gradient_is_the_derivative():
    values = CHINCHILLA.values("besiroglu2024")
    gradient = CHINCHILLA.gradient(values, TABLE)
    assert gradient.shape == (4, 5)
    for k in range(5):
        step = np.zeros(5)
        step[k] = 1e-5 * values[k]
        ahead, behind = (CHINCHILLA.predict(values + s, TABLE) for s in (step, -step))
        np.testing.assert_allclose(
            gradient[:, k], (ahead - behind) / (2 * step[k]), rtol=1e-6, atol=1e-13
        )


@pytest.mark.parametrize(
    "params",
    [
        "hoffmann2022",
        {"alpha": 0.34, "beta": 0.28, "A": 406.4, "B": 410.7, "E": 1.69},
        pd.Series({"E": 1.69, "A": 406.4, "B": 410.7, "alpha": 0.34, "beta": 0.28}),
        [406.4, 410.7, 1.69, 0.34, 0.28],
        np.array([406.4, 410.7, 1.69, 0.34, 0.28]),
    ],
    ids=["preset", "mapping", "series", "list", "array"],
)
def test_values_come_in_the_order_of_the_law(params):
    np.testing.assert_array_equal(CHINCHILLA.values(params), [406.4, 410.7, 1.69, 0.34, 0.28])


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ("hoffmann", "no preset 'hoffmann'; it has hoffmann2022"),
        ({"A": 1.0}, "missing or unknown here: B, E, alpha, beta"),
        ({"A": 1.0, "B": 1.0, "E": 1.0, "alpha": 0.3, "beta": 0.3, "c": 1.0}, "here: c"),
        ([1.0, 1.0, 1.0], "5 values are needed"),
        ([1.0, 1.0, 1.0, 0.3, np.nan], "beta must be finite"),
        ([0.0, 1.0, 1.0, 0.3, 0.3], "A must be finite and positive"),
        ([1.0, 1.0, -1.0, 0.3, 0.3], "E must be finite and positive"),
        ([1.0, 1.0, 1.0, 0.3, 5.1], "beta must be finite and from"),
        ([1.0, 1.0, 1.0, -0.3, 0.3], "alpha must be finite and from"),
    ],
)
def test_values_that_are_no_parameters_are_refused(params, message):
    with pytest.raises(DataError, match=message):
        CHINCHILLA.values(params)


def test_presets_carry_source_range_and_rounding():
    assert {name for name, p in CHINCHILLA.presets.items() if p.rounded} == {
        "hoffmann2022",
        "besiroglu2024",
    }
    for preset in CHINCHILLA.presets.values():
        assert "arXiv:" in preset.source
        assert set(preset.fit_range) == set(CHINCHILLA.columns)
        assert all(low < high for low, high in preset.fit_range.values())
    unrounded = CHINCHILLA.values("hoffmann2022-unrounded")
    np.testing.assert_allclose(np.log(unrounded[:3]), [6.0073404, 6.0179186, 0.5267228])
    np.testing.assert_allclose(unrounded, CHINCHILLA.values("hoffmann2022"), rtol=0.025)


def test_working_coordinates_turn_back_and_mean_the_same_law():
    centre = np.array([20.0, 24.0])
    values = np.array([CHINCHILLA.values(p) for p in CHINCHILLA.presets])
    theta = CHINCHILLA.to_working(values, centre)
    np.testing.assert_allclose(CHINCHILLA.from_working(theta, centre), values, rtol=1e-13)
    x = np.column_stack(logs()) - centre
    for row, value in zip(theta, values, strict=True):
        log_loss, _ = CHINCHILLA.evaluate_working(row, x)
        np.testing.assert_allclose(np.exp(log_loss), CHINCHILLA.predict(value, TABLE), rtol=1e-13)


def test_integer_columns_do_not_overflow():
    table = {"params": np.array([816_341_493]), "tokens": np.array([1_897_148_783])}
    as_float = {name: column.astype(float) for name, column in table.items()}
    values = CHINCHILLA.values("hoffmann2022")
    assert CHINCHILLA.predict(values, table) == CHINCHILLA.predict(values, as_float)


def test_a_preset_warns_outside_the_range_of_its_runs():
    inside = {"params": [70e6, 16e9], "tokens": [5e9, 500e9]}
    CHINCHILLA.predict("hoffmann2022", inside)
    with pytest.warns(ExtrapolationWarning, match=r"params from 7e\+07 to 1\.6e\+10"):
        CHINCHILLA.predict("hoffmann2022", {"params": [17e9], "tokens": [5e10]})
    with pytest.warns(ExtrapolationWarning, match="tokens from"):
        CHINCHILLA.predict("hoffmann2022", {"params": [1e9], "tokens": [4e9]})


def test_a_table_without_its_columns_is_refused():
    with pytest.raises(DataError, match="Missing 'tokens'"):
        CHINCHILLA.predict("hoffmann2022", {"params": [1e9]})


def test_laws_are_found_by_name():
    assert laws.get("chinchilla") is CHINCHILLA
    assert laws.get(CHINCHILLA) is CHINCHILLA
    with pytest.raises(DataError, match=r"No law 'kapla'\. Known laws: chinchilla"):
        laws.get("kapla")
