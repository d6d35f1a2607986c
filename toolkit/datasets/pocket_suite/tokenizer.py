"""The byte-pair encoder of 512 tokens, kept in ``tokenizer.json``.

Marks of punctuation are never merged, and a line break with the indentation that follows it is
one unit, so the options of every multiple-choice task are encoded as they are in running text.
"""

from __future__ import annotations

from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from toolkit.datasets.pocket_suite.settings import VOCABULARY

FILE = Path(__file__).with_name("tokenizer.json")
END = 0
END_TOKEN = "<|end|>"
UNITS = r"\n[ ]*| ?[A-Za-z_]+| ?[0-9]| ?[^A-Za-z_0-9\s]|\s+"
# Enough text for 255 merges; more would only cost memory.
TRAINING_CHARACTERS = 8_000_000


def load_or_train(code: list[str], prose: list[str]) -> Tokenizer:
    """Load the committed encoder, or train and save it where there is none yet."""
    if not FILE.exists():
        _train([*_head(code), *_head(prose)]).save(str(FILE))
    return load()


def load() -> Tokenizer:
    """Load the committed encoder."""
    return Tokenizer.from_file(str(FILE))


def _train(texts: list[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(UNITS), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END_TOKEN],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def _head(texts: list[str]) -> list[str]:
    kept, size = [], 0
    for document in texts:
        if size >= TRAINING_CHARACTERS:
            break
        kept.append(document)
        size += len(document)
    return kept
