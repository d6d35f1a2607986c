"""Laws of precision: the published equation, its limits, and where few bits cost nothing."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from toolkit.errors import DataError
from toolkit.scaling import fit, laws

TABLE = {
    "params": np.array([1e8, 2e8]),
    "tokens": np.array([2e9, 2e10]),
    "bits_weights": np.array([3.0, 16.0]),
    "bits_activations": np.array([4.0, 16.0]),
    "bits_cache": np.array([8.0, 3.0]),
    "bits_after": np.array([3.0, 4.0]),
}
SENSITIVITY = {"bits_weights": 2.6745, "bits_activations": 2.2102, "bits_cache": 0.9578}


def published(columns, after):
    kept = np.prod([1 - np.exp(-TABLE[c] / SENSITIVITY[c]) for c in columns], axis=0)
    params = TABLE["params"] * kept
    loss = 4299 / params**0.4965 + 18060 / TABLE["tokens"] ** 0.4965 + 2.7648
    if after:
        cost = 0.0598 * TABLE["tokens"] ** 0.5068 / TABLE["params"] ** 0.3439
        loss = loss + cost * np.exp(-TABLE["bits_after"] / 0.5907)
    return loss


@pytest.mark.parametrize(
    ("name", "columns", "after"),
    [
        ("precision_weights", ["bits_weights"], False),
        ("precision", list(SENSITIVITY), False),
        ("precision_after", [], True),
        ("precision_unified", list(SENSITIVITY), True),
    ],
)
def test_presets_are_the_published_equation(name, columns, after):
    law = laws.get(name)
    loss = law.predict(law.presets["kumar2024"].values, TABLE)
    np.testing.assert_allclose(loss, published(columns, after), rtol=1e-12)


def test_many_bits_are_a_chinchilla_law():
    law = laws.get("precision")
    values = law.presets["kumar2024"].values
    full = {**TABLE, **{column: np.array([64.0, 64.0]) for column in SENSITIVITY}}
    dense = {name: values[name] for name in ("A", "B", "E", "alpha", "beta")}
    expected = laws.get("chinchilla").predict(dense, TABLE)
    np.testing.assert_allclose(law.predict(values, full), expected, rtol=1e-9)


def best_bits(sensitivities):
    """Find the bits that make effective parameters cheapest, at a cost of parameters times bits."""

    def cost(bits):
        return np.log(bits) - np.sum(np.log1p(-np.exp(-bits / np.array(sensitivities))))

    return minimize_scalar(cost, bounds=(0.5, 40.0), method="bounded").x


def test_best_precision_of_the_printed_constants_is_not_the_quoted_one():
    assert best_bits([2.6745] * 3) == pytest.approx(5.09, abs=0.01)
    assert best_bits([*SENSITIVITY.values()]) == pytest.approx(3.47, abs=0.01)


def test_longer_training_makes_rounding_worse():
    law = laws.get("precision_after")
    values = law.presets["kumar2024"].values
    exact = {**values, "C": 1e-12}
    table = {"params": 1e8, "tokens": np.array([1e9, 1e10]), "bits_after": 3.0}
    table = {name: np.broadcast_to(value, 2) for name, value in table.items()}
    cost = law.predict(values, table) - law.predict(exact, table)
    assert cost[1] / cost[0] == pytest.approx(10**0.5068, rel=1e-6)


def test_a_precision_that_never_changes_is_refused():
    rows = {name: np.repeat(value, 10) * np.linspace(1, 1.5, 20) for name, value in TABLE.items()}
    runs = {**rows, "bits_cache": np.full(20, 8.0), "loss": np.linspace(2.9, 3.5, 20)}
    with pytest.raises(DataError, match="'bits_cache' has the same value"):
        fit("precision", runs)
