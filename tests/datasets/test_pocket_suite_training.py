"""The pocket suite's training and scoring; needs PyTorch and tokenizers (the `suite` extra)."""

import os
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra `suite`: PyTorch is not installed")
pytest.importorskip("tokenizers", reason="needs the extra `suite`: tokenizers is not installed")

from toolkit.datasets.pocket_suite import corpus, data, demo, evaluate, tokenizer, train  # noqa: E402
from toolkit.datasets.pocket_suite.model import Model  # noqa: E402
from toolkit.datasets.pocket_suite.settings import (  # noqa: E402
    CONTEXT,
    RECIPES,
    VOCABULARY,
    Settings,
    Shape,
)
from toolkit.datasets.pocket_suite.tasks import Item  # noqa: E402

BUNDLED_RUNS = Path(corpus.__file__).parents[1] / "bundled" / "pocket_runs.parquet"
SHAPE = Shape(16, 2)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make a corpus whose code counts up and whose prose counts down."""
    made = tmp_path_factory.mktemp("corpus")
    up = np.tile(np.arange(1, 401, dtype=np.uint16), 400)
    for split in ("train", "validation"):
        np.save(made / f"{split}_code.npy", up)
        np.save(made / f"{split}_prose.npy", up[::-1].copy())
    return made


def _model(seed=0):
    return Model(SHAPE, torch.Generator().manual_seed(seed))


def test_model_has_exactly_the_counted_parameters():
    for shape in (SHAPE, Shape(40, 3), Shape(112, 4)):
        model = Model(shape, torch.Generator())
        assert sum(weight.numel() for weight in model.parameters()) == shape.total_params


def test_model_sees_only_the_past():
    tokens = torch.randint(VOCABULARY, (1, 20), generator=torch.Generator().manual_seed(1))
    changed = tokens.clone()
    changed[0, 12:] = 3
    with torch.no_grad():
        before, after = _model().hidden(tokens), _model().hidden(changed)
    torch.testing.assert_close(before[0, :12], after[0, :12])
    assert not torch.allclose(before[0, 12:], after[0, 12:])


def test_same_settings_train_to_the_same_loss_and_other_seeds_do_not(folder):
    def final(seed):
        losses = []
        settings = Settings(SHAPE, "code-50", 30_000, 0.02, seed=seed)
        train.train(settings, folder, 2, lambda progress: losses.append(progress.train_loss))
        return losses

    first = final(5)
    assert first == final(5)
    assert first != final(6)
    assert first[1] < first[0] < np.log(VOCABULARY)


def test_checkpoints_and_outcome(folder):
    seen = []
    settings = Settings(SHAPE, "code", 10_000, 0.01, unique=2_560, seed=1)
    outcome = train.train(settings, folder, 5, lambda progress: seen.append(progress.tokens))
    assert seen == [2048, 4096, 6144, 8192, 10240]
    assert outcome.tokens_unique == 2_560
    assert not outcome.diverged


def test_run_that_learns_nothing_is_flagged(folder):
    assert train.train(Settings(SHAPE, "code", 5_000, 50.0), folder).diverged


def test_schedule_warms_up_and_ends_at_zero():
    shares = [train.schedule(step, 1000) for step in range(1000)]
    assert shares[:3] == pytest.approx([0.01, 0.02, 0.03])
    assert max(shares) == 1.0
    assert shares.index(1.0) == 99
    assert 0 < shares[-1] < 1e-5


def test_recipe_sets_the_share_of_code(folder):
    rng = np.random.default_rng(0)
    stream = data.Stream(folder, RECIPES["code-75"], 400, None, rng)
    windows = stream.batch(0, 400)
    rising = (np.median(np.diff(windows, axis=1), axis=1) == 1).sum()
    assert windows.shape == (400, CONTEXT + 1)
    assert rising == 300
    assert stream.unique == 400


def test_repeated_data_shows_each_window_equally_often(folder):
    stream = data.Stream(folder, RECIPES["code-50"], 120, 30, np.random.default_rng(0))
    starts = list(zip(stream._kinds.tolist(), stream._starts.tolist(), strict=True))
    counts = {start: starts.count(start) for start in starts}
    assert stream.unique == 30
    assert set(counts.values()) == {4}


def test_noise_replaces_the_stated_share(folder):
    clean = data.Stream(folder, RECIPES["code-50"], 200, None, np.random.default_rng(0))
    noisy = data.Stream(folder, RECIPES["code-50-noisy"], 200, None, np.random.default_rng(0))
    changed = (clean.batch(0, 200) != noisy.batch(0, 200)).mean()
    assert changed == pytest.approx(0.1, abs=0.01)


def test_held_out_windows_and_their_bytes(folder):
    windows, sizes = data.held_out(folder, "validation")
    assert windows.shape == (768, CONTEXT + 1)
    assert (np.median(np.diff(windows[:384], axis=1), axis=1) == 1).all()
    assert all(384 * CONTEXT <= size < 3 * 384 * CONTEXT for size in sizes)


def test_scoring_in_one_row_equals_scoring_each_option_alone():
    model, encoder = _model(), tokenizer.load()
    texts = (" one", " two words", "(", "\n        ")
    items = [
        Item("cloze", "a", "plain", "p", "Some words of context and", texts, 0, {}),
        Item("cloze", "b", "plain", "p", "def other(x):\n    return", texts[::-1], 2, {}),
        Item("cloze", "c", "plain", "p", "long " * 150, texts, 1, {}),
    ]
    scores = evaluate.score(model, evaluate.prepare(items, encoder))
    for item, row in zip(items, scores, strict=True):
        context = encoder.encode(item.context).ids[-evaluate.LONGEST_CONTEXT :]
        for option, score in zip(item.options, row, strict=True):
            added = encoder.encode(option).ids
            with torch.no_grad():
                losses = model.loss(torch.tensor([context + added]), "none")
            assert score == pytest.approx(-losses[-len(added) :].sum().item(), abs=1e-3)


def test_tokenizer_is_the_committed_one_and_loses_nothing():
    encoder = tokenizer.load()
    source = 'def f(x):\n    return {"a": [x, 1.5]}  # naïve\n'
    assert encoder.get_vocab_size() == VOCABULARY
    assert encoder.decode(encoder.encode(source).ids) == source
    # Marks are never merged, and a line break keeps its indentation.
    assert len(encoder.encode("))").ids) == 2
    assert len(encoder.encode("\n        ").ids) == 1


def test_manifest_names_every_source():
    names = [source.package for source in corpus.sources()]
    assert len(names) == len(set(names)) == 56
    assert {source.split for source in corpus.sources()} == {
        "train",
        "validation",
        "tuning",
        "items",
    }


def test_other_corpus_is_refused():
    wrong = {"arrays": {"train_code": {"sha256": "0"}}, "python": "3.99.0"}
    with pytest.raises(corpus.CorpusError, match=r"train_code.*this is 3\.99\.0"):
        corpus.check(wrong)


def test_demonstration_reproduces_the_bundled_losses():
    built = os.environ.get("POCKET_SUITE_CORPUS")
    if not built:
        pytest.skip("needs the corpus: build it and name its folder in POCKET_SUITE_CORPUS")
    table = demo.compare(Path(built), BUNDLED_RUNS)
    assert table["within"].all(), table.to_string()
