import numpy as np
import pandas as pd
import pytest

import toolkit.datasets as datasets
from toolkit import tables

SCORES = [
    *("mmlu", "arc_challenge", "hellaswag", "winogrande", "truthfulqa", "gsm8k", "humaneval"),
    *("ifeval", "bbh", "math_lvl5", "math_lvl5_rescored", "gpqa", "musr", "mmlu_pro"),
]


@pytest.fixture(scope="module")
def models() -> pd.DataFrame:
    return datasets.load("public_models")


def test_the_table_has_the_shape_and_columns_of_its_card(models: pd.DataFrame) -> None:
    card = datasets.card("public_models")
    assert models.shape == (card.rows, card.width)
    assert list(models) == list(card.columns)


def test_every_model_has_a_name_a_family_a_size_and_a_source(models: pd.DataFrame) -> None:
    tables.check(models, ["model", "family", "params", "params_active"])
    tables.check_keys(models, ["model"], "Drop one.")
    assert models["source"].str.contains("@|arXiv|https?://", regex=True).all()
    assert (models["params_active"] <= models["params"]).all()
    assert models["params"].between(5e7, 5e11).all()


def test_tokens_are_plausible_and_graded(models: pd.DataFrame) -> None:
    known = models["tokens"].notna()
    assert (models["tokens_evidence"].notna() == known).all()
    counts = models["tokens_evidence"].value_counts().to_dict()
    assert counts == {"A": 12, "B": 65, "C": 48, "D": 6}
    assert models.loc[known, "tokens"].between(1e9, 2e13).all()
    assert (models.loc[known, "tokens"] / models.loc[known, "params_active"]).between(2, 4e4).all()


def test_compute_follows_its_rule(models: pd.DataFrame) -> None:
    six_nd = models["flops_rule"] == "6ND"
    rule = 6 * models["params_active"] * models["tokens"]
    assert models.loc[six_nd, "flops"].to_numpy() == pytest.approx(rule[six_nd], rel=1e-5)
    assert models["flops_rule"].value_counts().to_dict() == {"6ND": 131, "epoch": 9}
    assert (models["flops"].notna() == models["flops_rule"].notna()).all()
    assert not (models["tokens"].notna() & ~six_nd).any()


def test_release_dates_are_iso_and_in_the_past_of_the_table(models: pd.DataFrame) -> None:
    dates = models["released"].dropna()
    assert dates.str.fullmatch(r"\d{4}-\d{2}(-\d{2})?").all()
    assert pd.to_datetime(dates, format="mixed").between("2019-01-01", "2025-06-30").all()
    assert (dates != "2022-03-02").all()  # a default of the hub, not a date
    assert (models["released_from"].notna() == models["released"].notna()).all()


def test_scores_are_fractions_and_no_two_models_share_them(models: pd.DataFrame) -> None:
    for name in SCORES:
        known = models[[name]].dropna().rename(columns={name: "score"})
        tables.check(known, ["score"])
        assert known["score"].max() > 0.3
    full = models[SCORES].dropna(subset=["mmlu", "hellaswag"])
    assert not full.duplicated().any()


def test_blank_scores_are_told_in_the_row_and_on_the_card(models: pd.DataFrame) -> None:
    told = models["note"].fillna("").str.extractall(r"(\w+) blank: sources disagree")[0]
    assert told.value_counts().to_dict() == {
        "gsm8k": 14,
        "hellaswag": 2,
        "winogrande": 1,
        "mmlu": 1,
    }
    for (row, _), score in told.items():
        assert np.isnan(models.loc[row, score])
    card = repr(datasets.card("public_models"))
    assert "18 scores are blank in all (14 GSM8K, 2 HellaSwag, 1 MMLU, 1 WinoGrande)" in card
    assert "12, 65, 48 and 6 models; 36 have no tokens" in card
    assert int(models["tokens"].isna().sum()) == 36
    assert int(models["released"].isna().sum()) == 40
    assert int((models["humaneval"] == 0).sum()) == 20


def test_known_facts_hold(models: pd.DataFrame) -> None:
    by_name = models.set_index("model")
    llama = by_name.loc["meta-llama/Llama-2-70b-hf"]
    assert (llama["params"], llama["tokens"], llama["flops"]) == (7e10, 2e12, 8.4e23)
    moe = by_name.loc["deepseek-ai/deepseek-moe-16b-base"]
    assert (moe["params"], moe["params_active"]) == (16.4e9, 2.8e9)
    assert moe["flops"] == pytest.approx(3.36e22)
    assert by_name.loc["cerebras/btlm-3b-8k-base", "tokens"] == 6.27e11
    assert by_name.loc["facebook/opt-66b", "tokens"] != by_name.loc["facebook/opt-66b", "tokens"]
    assert "microsoft/phi-4" not in by_name.index
