"""Published rules of learning rate and batch size."""

import os

import numpy as np
import pytest

import toolkit as tk
from toolkit.errors import DataError
from toolkit.scaling.laws.hyperparameters import (
    HYPERPARAMETER_RULES,
    best_batch_size,
    best_learning_rate,
)


def test_step_law_is_the_mean_of_its_bootstrap_fits():
    if not os.environ.get("TOOLKIT_DATA_DIR"):
        pytest.skip("TOOLKIT_DATA_DIR is not set, so the registered points are not looked for")
    mean = tk.datasets.load("step_law_fits").mean()
    rate = HYPERPARAMETER_RULES["learning_rate"]["step-law"]
    assert np.exp(mean["lr_intercept"]) == pytest.approx(1.797, abs=5e-4)
    assert rate.factor == pytest.approx(np.exp(mean["lr_intercept"]), abs=0.01)
    assert rate.powers["params"] == pytest.approx(mean["lr_coefN"], abs=1e-3)
    assert rate.powers["tokens"] == pytest.approx(mean["lr_coefD"], abs=1e-3)
    batch = HYPERPARAMETER_RULES["batch_size"]["step-law"]
    assert batch.factor == pytest.approx(np.exp(mean["bs_intercept"]), abs=1e-3)
    assert batch.powers["tokens"] == pytest.approx(mean["bs_coefD"], abs=1e-3)


def test_rules_are_products_of_powers():
    params, tokens = np.array([1e8, 1e9]), np.array([1e10, 1e11])
    np.testing.assert_allclose(
        best_learning_rate(params=params, tokens=tokens), 1.79 * params**-0.713 * tokens**0.307
    )
    np.testing.assert_allclose(best_batch_size(tokens=tokens), 0.58 * tokens**0.571)
    assert best_learning_rate("deepseek", flops=1e20) == pytest.approx(0.3118 * 10**-2.5)
    assert best_batch_size("deepseek", flops=1e20) == pytest.approx(0.2920 * 10**6.542)


def test_what_is_missing_or_wrong_is_named():
    with pytest.raises(DataError, match="No rule 'llama' for the learning_rate; the rules are"):
        best_learning_rate("llama", params=1e9)
    with pytest.raises(DataError, match="needs tokens"):
        best_batch_size(params=1e9)
    with pytest.raises(DataError, match="tokens must be finite and positive"):
        best_batch_size(tokens=-1.0)
