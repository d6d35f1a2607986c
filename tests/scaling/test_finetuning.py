"""Fine-tuning laws on the published losses of 30 models, and what pretraining is worth."""

import os
import warnings

import numpy as np
import pytest

from tests.reference import lin2024
from toolkit import datasets
from toolkit.errors import ConvergenceWarning, IdentifiabilityWarning
from toolkit.scaling import TRANSFER, finetuning_law, fit, laws


@pytest.fixture(scope="module")
def losses():
    if not os.environ.get("TOOLKIT_DATA_DIR"):
        pytest.skip("TOOLKIT_DATA_DIR is not set, so the published losses are not looked for")
    table = datasets.load("finetuning_losses")
    return table[table["examples"] > 0]


def errors(losses, task, law):
    """Root mean square error of log loss for every model."""
    found = []
    for _, points in losses[losses["task"] == task].groupby("model"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IdentifiabilityWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            found.append(fit(law, points, loss="squared"))
    return np.array([np.sqrt(np.mean(f.residuals**2)) for f in found]), found


@pytest.mark.parametrize("task", ["flan", "gigaword"])
def test_published_errors_are_reached(losses, task):
    rectified, found = errors(losses, task, "finetuning")
    plain, _ = errors(losses, task, "finetuning_plain")
    assert all(f.certified for f in found)
    published, here = lin2024.RECTIFIED[task]
    assert rectified.mean() == pytest.approx(here, abs=1e-5)
    assert rectified.mean() < published
    assert plain.mean() < lin2024.PLAIN[task][1] + 1e-5
    assert plain.mean() > 1.9 * rectified.mean()


def test_the_law_is_flat_while_data_are_few():
    law = laws.get("finetuning")
    values = {"B": 60.0, "D_l": 90.0, "E": 1.1, "beta": 0.55}
    data = np.array([1e-6, 1e3, 1e12])
    loss = law.predict(values, {"examples": data})
    np.testing.assert_allclose(loss, 1.1 + 60 / (90 + data**0.55), rtol=1e-12)
    assert loss[0] == pytest.approx(1.1 + 60 / 90, rel=1e-5)
    assert loss[2] == pytest.approx(1.1, rel=1e-4)


def test_the_column_can_be_chosen():
    law = finetuning_law("tokens")
    assert law.columns == ("tokens",)
    assert law.name == "finetuning_tokens"
    assert "tokens^beta" in law.formula


def test_transfer_is_found_and_gives_tokens():
    tokens, params = (a.ravel() for a in np.meshgrid(np.geomspace(1e5, 1e9, 8), [1e7, 1e8, 1e9]))
    worth = 1.9e4 * tokens**0.18 * params**0.38
    found = fit(TRANSFER, {"tokens": tokens, "params": params, "worth": worth}, target="worth")
    assert found.certified
    np.testing.assert_allclose(found.values, TRANSFER.values("hernandez2021-text"), rtol=1e-6)
