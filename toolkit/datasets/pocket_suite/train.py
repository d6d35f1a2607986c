"""Train one model, with its evaluations along the way."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from toolkit.datasets.pocket_suite.data import Stream
from toolkit.datasets.pocket_suite.model import Model
from toolkit.datasets.pocket_suite.settings import CONTEXT, RECIPES, Settings

WARM_UP = 0.1
CLIP = 1.0
BETAS = (0.9, 0.95)
# A run is called diverged when its training loss ends above this, just below ln 512 = 6.24: it
# has learned less than the frequencies of single tokens.
DIVERGED_LOSS = 5.9


@dataclass
class Progress:
    """State of a run at a checkpoint."""

    model: Model
    tokens: int
    train_loss: float
    cpu_seconds: float
    wall_seconds: float


@dataclass(frozen=True)
class Outcome:
    """How a run ended: different tokens seen, and whether it diverged."""

    tokens_unique: int
    diverged: bool


def train(
    settings: Settings,
    corpus: Path,
    checkpoints: int = 1,
    at_checkpoint: Callable[[Progress], None] = lambda progress: None,
) -> Outcome:
    """Train a model and call ``at_checkpoint`` at equal distances, the last at the end.

    Parameters
    ----------
    settings : Settings
    corpus : Path
        Folder of the built corpus.
    checkpoints : int
    at_checkpoint : callable
        Time spent in it is not counted as training time.

    Returns
    -------
    Outcome
    """
    torch.manual_seed(settings.seed)
    generator = torch.Generator().manual_seed(settings.seed)
    model = Model(settings.shape, generator)
    optimiser = torch.optim.AdamW(
        model.parameters(), betas=BETAS, weight_decay=settings.weight_decay, fused=True
    )
    steps, batch = settings.steps, settings.batch
    unique = None if settings.unique is None else settings.unique // CONTEXT
    rng = np.random.default_rng(settings.seed)
    stream = Stream(corpus, RECIPES[settings.recipe], steps * batch, unique, rng)
    marks = {round(steps * k / checkpoints): k for k in range(1, checkpoints + 1)}
    average = math.log(512)
    cpu, wall = 0.0, 0.0
    cpu_start, wall_start = time.process_time(), time.perf_counter()
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = settings.learning_rate * schedule(step, steps)
        loss = model.loss(torch.from_numpy(stream.batch(step * batch, batch)))
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        average += (loss.item() - average) * max(1 / (step + 1), 0.02)
        if not math.isfinite(average):
            break
        if step + 1 in marks:
            cpu += time.process_time() - cpu_start
            wall += time.perf_counter() - wall_start
            seen = (step + 1) * batch * CONTEXT
            at_checkpoint(Progress(model, seen, average, cpu, wall))
            cpu_start, wall_start = time.process_time(), time.perf_counter()
    diverged = not math.isfinite(average) or average > DIVERGED_LOSS
    return Outcome(stream.unique * CONTEXT, diverged)


def schedule(step: int, steps: int) -> float:
    """Share of the learning rate: linear warm-up over a tenth, then a cosine to zero.

    Examples
    --------
    >>> schedule(4, 100), schedule(9, 100), schedule(99, 100) < 0.001
    (0.5, 1.0, True)
    """
    warm = max(1, round(WARM_UP * steps))
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1 + math.cos(math.pi * (step + 1 - warm) / (steps - warm + 1)))
