"""Which windows of the corpus a run sees, and in which order.

A window is 128 tokens and the next one. Recipes mix windows of code and of prose; runs on
repeated data see a small set of windows, drawn from the whole corpus, several times.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from toolkit.datasets.pocket_suite import tokenizer
from toolkit.datasets.pocket_suite.corpus import KINDS, load_tokens
from toolkit.datasets.pocket_suite.settings import CONTEXT, Recipe

VALIDATION_WINDOWS = 384

Windows = npt.NDArray[np.int64]


class Stream:
    """The windows of one run.

    Parameters
    ----------
    folder : Path
        The built corpus.
    recipe : Recipe
    windows : int
        How many windows the run sees.
    unique : int or None
        How many different windows it may see; None for as many as the corpus has.
    rng : numpy.random.Generator
        Chooses the windows, their order and the noise.
    """

    def __init__(
        self,
        folder: Path,
        recipe: Recipe,
        windows: int,
        unique: int | None,
        rng: np.random.Generator,
    ) -> None:
        suffix = "_repeated" if recipe.repeated else ""
        self._tokens = [load_tokens(folder, f"train_{kind}{suffix}") for kind in KINDS]
        self._noise, self._rng = recipe.noise, rng
        starts: list[npt.NDArray[np.int64]] = []
        kinds: list[npt.NDArray[np.int64]] = []
        self.unique = 0
        for index, share in enumerate((recipe.code, 1 - recipe.code)):
            wanted = round(windows * recipe.code) if index == 0 else windows - len(starts[0])
            limit = None if unique is None else round(unique * share)
            chosen, different = _choose(self._tokens[index].size, wanted, limit, rng)
            starts.append(chosen)
            kinds.append(np.full(wanted, index))
            self.unique += different
        order = _interleave(len(starts[0]), len(starts[1]), rng)
        self._starts = np.concatenate(starts)[order]
        self._kinds = np.concatenate(kinds)[order]

    def batch(self, first: int, count: int) -> Windows:
        """Windows ``first`` to ``first + count``, shape (count, 129)."""
        chosen = slice(first, first + count)
        pairs = zip(self._kinds[chosen], self._starts[chosen], strict=True)
        rows = [self._tokens[kind][start : start + CONTEXT + 1] for kind, start in pairs]
        tokens = np.stack(rows).astype(np.int64)
        if self._noise:
            replaced = self._rng.random(tokens.shape) < self._noise
            tokens[replaced] = self._rng.permutation(tokens.ravel())[: replaced.sum()]
        return tokens


def held_out(folder: Path, split: str) -> tuple[Windows, list[int]]:
    """Windows spread evenly over a held-out split, code first.

    Returns
    -------
    windows : array of int, shape (768, 129)
    tokens_bytes : list of int
        Bytes of text in the predicted tokens of each kind.
    """
    decoder = tokenizer.load()
    windows, sizes = [], []
    for kind in KINDS:
        tokens = load_tokens(folder, f"{split}_{kind}")
        starts = np.linspace(0, tokens.size - CONTEXT - 1, VALIDATION_WINDOWS).astype(int)
        rows = np.stack([tokens[start : start + CONTEXT + 1] for start in starts]).astype(np.int64)
        windows.append(rows)
        sizes.append(sum(_bytes(decoder.id_to_token(token)) for token in rows[:, 1:].ravel()))
    return np.concatenate(windows), sizes


def _bytes(token: str) -> int:
    # In the byte-level alphabet every character stands for one byte.
    return 0 if token == tokenizer.END_TOKEN else len(token)


def _choose(
    size: int, wanted: int, limit: int | None, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], int]:
    """Choose ``wanted`` windows in shuffled passes over at most ``limit`` different ones."""
    pool = rng.permutation((size - 1) // CONTEXT)[:limit]
    passes = [pool]
    while sum(map(len, passes)) < wanted:
        passes.append(rng.permutation(pool))
    return np.concatenate(passes)[:wanted] * CONTEXT, min(wanted, len(pool))


def _interleave(first: int, second: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Order that mixes two queues at random and keeps each queue's own order."""
    labels = rng.permutation(np.repeat([0, 1], [first, second]))
    order = np.empty(first + second, dtype=np.int64)
    order[labels == 0] = np.arange(first)
    order[labels == 1] = first + np.arange(second)
    return order
