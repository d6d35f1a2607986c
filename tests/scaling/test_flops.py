"""Counts of parameters and compute against published models and tables; the check of 6 N D."""

import os

import numpy as np
import pandas as pd
import pytest

from tests.reference import hoffmann2022, transformers
from toolkit import datasets
from toolkit.errors import DataError
from toolkit.scaling import flops
from toolkit.scaling.budgets.flops import (
    Transformer,
    cross_check,
    transformer_flops,
    transformer_params,
)

SMALL = Transformer(layers=12, width=768, context=1024, vocabulary=50257, heads=12)


def test_integers_that_overflow_are_multiplied_as_floats():
    params, tokens = np.array([816341493]), np.array([1897148783])
    with np.errstate(over="ignore"):
        assert (6 * params * tokens)[0] < 0  # the trap
    assert flops.training_flops(params, tokens)[0] == pytest.approx(6 * 816341493 * 1897148783)
    assert flops.training_flops(7e10, 1.4e12) == pytest.approx(5.88e23)


def test_training_flops_broadcast():
    assert flops.training_flops([[1e8], [1e9]], [1e9, 1e10]).shape == (2, 2)
    with pytest.raises(DataError, match="need one shape"):
        flops.training_flops([1e8, 1e9], [1e9, 1e9, 1e9])
    with pytest.raises(DataError, match=r"tokens.*negative"):
        flops.training_flops(1e9, -1e9)


@pytest.mark.parametrize("name", ["LLAMA_2_7B", "LLAMA_3_8B", "GPT_2"])
def test_parameters_of_published_models(name):
    shape, count = getattr(transformers, name)
    assert transformer_params(Transformer(**shape)) == count


def test_active_parameters_of_a_mixture_of_experts():
    shape = Transformer(**transformers.MIXTRAL)
    assert f"{transformer_params(shape) / 1e9:.0f}" == "47"
    assert f"{transformer_params(shape, active=True) / 1e9:.0f}" == "13"
    dense = Transformer(layers=2, width=64, context=8, vocabulary=10)
    assert transformer_params(dense) == transformer_params(dense, active=True)
    shared = Transformer(
        layers=1, width=10, context=8, vocabulary=10, feed_forward=5, experts=4, shared_experts=1
    )
    # attention 4 * 10 * 10, router 10 * 4, experts of 2 * 10 * 5 each, five or two of them
    assert transformer_params(shared, embeddings=False) == 400 + 40 + 5 * 100
    assert transformer_params(shared, embeddings=False, active=True) == 400 + 40 + 2 * 100


def test_embeddings_are_counted_once_when_tied():
    untied = Transformer(layers=12, width=768, context=1024, vocabulary=50257, tied=False)
    matrix = 768 * 50257
    assert transformer_params(untied) - transformer_params(SMALL) == matrix
    assert transformer_params(SMALL) - transformer_params(SMALL, embeddings=False) == matrix


@pytest.mark.parametrize(("millions", "width", "ff", "head", "heads", "layers"), hoffmann2022.SIZES)
def test_sizes_of_hoffmann_2022(millions, width, ff, head, heads, layers):
    shape = Transformer(
        layers,
        width,
        hoffmann2022.CONTEXT,
        hoffmann2022.VOCABULARY,
        ff,
        heads=heads,
        head_width=head,
        positions="relative",
    )
    # the table is rounded, and counts biases and norms, 0.1 %
    assert transformer_params(shape) == pytest.approx(millions * 1e6, rel=0.002, abs=6e5)


@pytest.mark.parametrize(
    ("layers", "width", "ff", "heads", "head", "ratio"), hoffmann2022.FLOP_RATIOS
)
def test_flop_ratios_of_hoffmann_2022(layers, width, ff, heads, head, ratio):
    shape = Transformer(
        layers,
        width,
        hoffmann2022.CONTEXT,
        hoffmann2022.VOCABULARY,
        ff,
        heads=heads,
        head_width=head,
        positions="relative",
    )
    counted = transformer_flops(shape, unembedding=False, softmax=True)
    assert f"{counted / (6 * transformer_params(shape)):.2f}" == ratio
    as_listed = transformer_flops(shape, embedding=True, softmax=True)
    assert as_listed - counted == pytest.approx(6 * 2 * hoffmann2022.VOCABULARY * width)


def test_forward_pass_of_kaplan_2020():
    """Table 1: 2 N + 2 layers context width, N = 2 width layers (2 attention + feed-forward)."""
    size = 2 * 768 * 12 * (2 * 768 + 3072)
    assert transformer_params(SMALL, embeddings=False) == size
    counted = transformer_flops(SMALL, unembedding=False, attention="causal", backward=False)
    assert counted == 2 * size + 2 * 12 * 1024 * 768


def test_without_scores_and_output_layer_compute_is_6_n():
    counted = transformer_flops(SMALL, 1e9, unembedding=False, attention="none")
    assert counted == pytest.approx(6e9 * transformer_params(SMALL, embeddings=False))
    full = transformer_flops(SMALL, unembedding=False)
    causal = transformer_flops(SMALL, unembedding=False, attention="causal")
    none = transformer_flops(SMALL, unembedding=False, attention="none")
    assert full - none == pytest.approx(2 * (causal - none))
    assert transformer_flops(SMALL) - full == pytest.approx(6 * 768 * 50257)


def test_grouped_queries_save_parameters_but_no_scores():
    grouped = Transformer(12, 768, 1024, 50257, heads=12, kv_heads=4)
    saved = 12 * 2 * 768 * 768 * (1 - 4 / 12)
    assert transformer_params(SMALL) - transformer_params(grouped) == pytest.approx(saved)
    assert transformer_flops(SMALL) - transformer_flops(grouped) == pytest.approx(6 * saved)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layers": 0}, "layers must be a whole number, 1 or more; got 0"),
        ({"width": 768.5}, "width must be a whole number"),
        ({"heads": 7}, "no multiple of heads 7; give head_width"),
        ({"kv_heads": 5}, "no multiple of kv_heads 5"),
        ({"active_experts": 3}, "active_experts 3 is more than the experts 1"),
        ({"shared_experts": -1}, "shared_experts must be a whole number, 0 or more"),
        ({"positions": "rotary"}, "positions must be 'none', 'learned' or 'relative'"),
    ],
)
def test_shapes_that_cannot_be_are_refused(change, message):
    shape = {"layers": 12, "width": 768, "context": 1024, "vocabulary": 50257, "heads": 12}
    with pytest.raises(DataError, match=message):
        Transformer(**(shape | change))


def test_unknown_attention_and_no_tokens_are_refused():
    with pytest.raises(DataError, match="attention must be"):
        transformer_flops(SMALL, attention="sparse")
    with pytest.raises(DataError, match="tokens must be a positive number"):
        transformer_flops(SMALL, 0)


def stated(embeddings, counted):
    params = np.array([1e7, 1e8, 1e9])
    tokens = 20 * params
    compute = 6 * (params + embeddings * counted) * tokens
    return pd.DataFrame(
        {"params": params, "tokens": tokens, "flops": compute, "params_embedding": embeddings},
        index=["small", "medium", "large"],
    )


@pytest.mark.parametrize(
    ("counted", "definition"), [(0, "without embeddings"), (1, "with embeddings")]
)
def test_the_count_that_fits_is_named(counted, definition):
    check = cross_check(stated(np.array([1e7, 3e7, 1e8]), counted))
    assert check.definition == definition
    assert check.disagreeing.empty
    (note,) = check.notes
    assert "Embeddings are 9% to 50% of the parameters" in note
    assert note in check.summary().text()


def test_equal_embedding_shares_give_no_warning():
    table = stated(np.array([1e6, 1e7, 1e8]), 0)
    assert cross_check(table).notes == ()
    assert cross_check(table.drop(columns="params_embedding")).definition == "unknown"


def test_rows_that_disagree_keep_their_names_and_ratio():
    table = stated(np.array([1e6, 1e7, 1e8]), 0)
    table.loc["medium", "flops"] /= 3
    check = cross_check(table)
    assert check.disagreeing.index.tolist() == ["medium"]
    assert check.disagreeing["ratio"].tolist() == pytest.approx([1 / 3])
    assert "1 of 3" in check.summary().text()
    assert cross_check(table, tolerance=0.7).disagreeing.empty
    table["flops"] *= 2
    assert cross_check(table).definition == "neither"


@pytest.mark.parametrize("tolerance", [0, 1, 10, np.nan])
def test_tolerance_is_a_share(tolerance):
    with pytest.raises(DataError, match="tolerance is a share"):
        cross_check(stated(np.array([1e6, 1e7, 1e8]), 0), tolerance=tolerance)


@pytest.fixture
def registered():
    if not os.environ.get("TOOLKIT_DATA_DIR"):
        pytest.skip("TOOLKIT_DATA_DIR is not set, so the registered runs are not looked for")
    return datasets.load


def test_which_parameters_published_runs_count(registered):
    """(Mis)Fitting states compute without embeddings, Gadre et al. 2024 with them."""
    dense = registered("misfitting_dense").dropna(subset=["C4 Eval Loss", "N", "N_w_emb", "D", "C"])
    runs = {"params": dense["N"], "tokens": dense["D"], "flops": dense["C"]}
    runs["params_embedding"] = dense["N_w_emb"] - dense["N"]
    check = cross_check({name: column.to_numpy(dtype=float) for name, column in runs.items()})
    assert (check.definition, len(check.disagreeing)) == ("without embeddings", 0)
    assert "17% to 70%" in check.notes[0]

    over = registered("gadre_overtraining")
    over["params_embedding"] = over["params"] - over["params_without_embedding"]
    check = cross_check(over.assign(params=over["params_without_embedding"]))
    assert (check.definition, len(check.disagreeing)) == ("with embeddings", 0)


def test_runs_whose_integers_overflow_agree(registered):
    check = cross_check(registered("kyo_takano_runs"))
    assert check.disagreeing.empty
    assert check.table["ratio"].to_numpy() == pytest.approx(1, abs=1e-6)
