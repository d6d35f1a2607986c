"""Score a model: loss on held-out windows and log-likelihoods of multiple-choice options.

The four options of an item follow its context in one row. A mask hides them from each other, so
the context is read once, and each option sees exactly what it would see alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from toolkit.datasets.pocket_suite.model import Model
from toolkit.datasets.pocket_suite.tasks import OPTIONS, Item

LONGEST_CONTEXT = 96
ROWS_PER_BATCH = 48
WINDOWS_PER_BATCH = 32


@dataclass(frozen=True)
class Batch:
    """Items of like length, ready for the model.

    Attributes
    ----------
    rows : array of int
        Places of the items in the list they came from.
    tokens, positions : Tensor, shape (rows, time)
    mask : Tensor of bool, shape (rows, 1, time, time)
    sources, targets, owners : Tensor of int
        For each token of an option: where in the flattened batch it is predicted from, which
        token it is, and which option (4 * row + place) it belongs to.
    """

    rows: npt.NDArray[np.int64]
    tokens: Tensor
    positions: Tensor
    mask: Tensor
    sources: Tensor
    targets: Tensor
    owners: Tensor


def prepare(items: Sequence[Item], encoder: Tokenizer) -> list[Batch]:
    """Encode items and sort them into batches by length."""
    rows = [_row(item, encoder) for item in items]
    order = np.argsort([len(tokens) for tokens, _ in rows], kind="stable")
    return [
        _batch(order[start : start + ROWS_PER_BATCH], rows)
        for start in range(0, len(order), ROWS_PER_BATCH)
    ]


@torch.no_grad()
def score(model: Model, batches: Sequence[Batch]) -> npt.NDArray[np.float32]:
    """Log-likelihood, in nats, of every option.

    Returns
    -------
    array of float32, shape (items, 4)
    """
    scores = np.empty((sum(len(batch.rows) for batch in batches), OPTIONS), dtype=np.float32)
    for batch in batches:
        hidden = model.hidden(batch.tokens, batch.positions, batch.mask).flatten(0, 1)
        logits = model.logits(hidden[batch.sources])
        tokens = -functional.cross_entropy(logits, batch.targets, reduction="none")
        sums = torch.zeros(len(batch.rows) * OPTIONS).index_add_(0, batch.owners, tokens)
        scores[batch.rows] = sums.view(-1, OPTIONS).numpy()
    return scores


@torch.no_grad()
def window_losses(model: Model, windows: Tensor) -> npt.NDArray[np.float32]:
    """Mean loss of each window, in nats per token."""
    losses = [model.loss(part, "none") for part in windows.split(WINDOWS_PER_BATCH)]
    return torch.cat(losses).view(len(windows), -1).mean(1).numpy()


def by_kind(losses: npt.NDArray[np.float32]) -> tuple[float, float]:
    """Mean loss on code and on prose: the first and the second half of the windows."""
    code, prose = np.split(losses, 2)
    return float(code.mean(dtype=np.float64)), float(prose.mean(dtype=np.float64))


def _row(item: Item, encoder: Tokenizer) -> tuple[list[int], list[int]]:
    """Tokens of context and options, and the segment of each: 0, or 1 to 4."""
    tokens = encoder.encode(item.context).ids[-LONGEST_CONTEXT:]
    segments = [0] * len(tokens)
    for place, option in enumerate(item.options, start=1):
        added = encoder.encode(option).ids
        tokens = tokens + added
        segments += [place] * len(added)
    return tokens, segments


def _batch(chosen: npt.NDArray[np.int64], rows: list[tuple[list[int], list[int]]]) -> Batch:
    length = max(len(rows[row][0]) for row in chosen)
    tokens = np.zeros((len(chosen), length), dtype=np.int64)
    segments = np.full((len(chosen), length), -1)
    positions = np.zeros((len(chosen), length), dtype=np.int64)
    sources, targets, owners = [], [], []
    for index, row in enumerate(chosen):
        ids, parts = rows[row]
        tokens[index, : len(ids)] = ids
        segments[index, : len(ids)] = parts
        context = parts.count(0)
        positions[index, :context] = np.arange(context)
        for place in range(1, OPTIONS + 1):
            where = np.flatnonzero(np.asarray(parts) == place)
            positions[index, where] = context + np.arange(len(where))
            previous = np.concatenate([[context - 1], where[:-1]])
            sources.append(index * length + previous)
            targets.append(tokens[index, where])
            owners.append(np.full(len(where), OPTIONS * index + place - 1))
    earlier = np.tri(length, dtype=bool)
    shared = (segments[:, None, :] == 0) | (segments[:, None, :] == segments[:, :, None])
    return Batch(
        chosen,
        torch.from_numpy(tokens),
        torch.from_numpy(positions),
        torch.from_numpy((earlier & shared)[:, None]),
        *(torch.from_numpy(np.concatenate(part)) for part in (sources, targets, owners)),
    )
