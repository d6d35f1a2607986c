"""Laws of granularity, sparsity and compressed formats: their equations, limits and presets."""

import numpy as np
import pandas as pd
import pytest

from toolkit.errors import DataError, ExtrapolationWarning
from toolkit.scaling import fit, laws

SIZE = np.array([1e8, 1e9])
DATA = np.array([2e10, 1e11])


def test_granularity_is_its_equation():
    table = {"params": SIZE, "tokens": DATA, "granularity": [1.0, 8.0]}
    loss = laws.get("granularity").predict("krajewski2024", table)
    cut = 2.1 / np.array([1.0, 8.0]) ** 0.58 + 18.1
    expected = 0.47 + cut / SIZE**0.115 + 30.8 / DATA**0.147
    np.testing.assert_allclose(loss, expected, rtol=1e-12)


def test_finer_experts_help_up_to_the_size_term():
    values = laws.get("granularity").presets["krajewski2024"].values
    table = {"params": 1e9, "tokens": 1e11, "granularity": np.array([1.0, 4.0, 64.0, 1e4])}
    loss = laws.get("granularity").predict(
        values, {k: np.broadcast_to(v, 4) for k, v in table.items()}
    )
    assert (np.diff(loss) < 0).all()
    best = 0.47 + 18.1 / 1e9**0.115 + 30.8 / 1e11**0.147
    assert loss[-1] == pytest.approx(best, rel=2e-3)


def test_sparsity_of_experts_is_its_equation():
    share = np.array([1.0, 0.02])
    table = {"params": SIZE, "tokens": DATA, "sparsity": 1 - share}
    loss = laws.get("expert_sparsity").predict("abnar2025", table)
    expected = (
        16612.5 / SIZE**0.5962
        + 5455.67 / DATA**0.3954
        + 0.4598 / share**-0.1666
        + 17.26 / (share**0.1603 * SIZE**0.1595)
        + 0.94
    )
    np.testing.assert_allclose(loss, expected, rtol=1e-12)
    with pytest.warns(ExtrapolationWarning, match="sparsity from 0 to 0.98"):
        laws.get("expert_sparsity").predict("abnar2025", {**table, "sparsity": [0.5, 0.99]})


def test_sparsity_of_weights_is_its_equation():
    values = {"a_S": 17.0, "c_S": 45.0, "a_D": 7e8, "c": 0.65, "b_S": 0.7, "b_N": 0.25, "b_D": 0.2}
    table = {"params_active": SIZE, "tokens": DATA, "sparsity": [0.0, 0.75]}
    loss = laws.get("weight_sparsity").predict(values, table)
    size = (17 * np.array([1.0, 0.25]) ** 0.7 + 45) / SIZE**0.25
    np.testing.assert_allclose(loss, size + (7e8 / DATA) ** 0.2 + 0.65, rtol=1e-12)


@pytest.mark.parametrize("share", [-0.1, 1.0, 50.0])
def test_sparsity_is_a_share(share):
    table = {"params": SIZE, "tokens": DATA, "sparsity": [0.5, share]}
    with pytest.raises(DataError, match="'sparsity': 1 of 2 rows"):
        laws.get("expert_sparsity").predict("abnar2025", table)


def test_a_format_without_error_is_a_dense_model():
    chinchilla = {"A": 482.0, "B": 2085.0, "E": 1.8, "alpha": 0.35, "beta": 0.37}
    values = {**chinchilla, "F": 0.35, "C": 0.8}
    law = laws.get("compressed")
    exact = law.predict(
        values, {"params": SIZE, "tokens": DATA, "representation_error": np.full(2, 1e-12)}
    )
    dense = laws.get("chinchilla").predict(chinchilla, {"params": SIZE, "tokens": DATA})
    np.testing.assert_allclose(exact, dense, rtol=1e-5)
    coarse = law.predict(
        values, {"params": SIZE, "tokens": DATA, "representation_error": np.full(2, 0.118)}
    )
    capacity = np.tanh(0.35 * np.log(0.118) / np.log(0.25)) ** 0.8
    smaller = laws.get("chinchilla").predict(
        chinchilla, {"params": SIZE * capacity, "tokens": DATA}
    )
    np.testing.assert_allclose(coarse, smaller, rtol=1e-12)


def test_a_format_that_holds_nothing_is_refused():
    runs = pd.DataFrame(
        {
            "params": np.geomspace(1e8, 1e9, 12),
            "tokens": np.geomspace(1e11, 1e10, 12),
            "representation_error": np.linspace(0.01, 1.1, 12),
            "loss": np.linspace(2.5, 3.5, 12),
        }
    )
    with pytest.raises(DataError, match="'representation_error': 2 of 12 rows are 1 or more"):
        fit("compressed", runs)
