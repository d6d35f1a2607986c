"""What decides a run: the shape of the model, the recipe of its text, and how it is trained.

This module needs nothing beyond the standard library, so that the plan can be read and the
tables packed without PyTorch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

VOCABULARY = 512
CONTEXT = 128


@dataclass(frozen=True)
class Shape:
    """Width and depth of a model.

    Attributes
    ----------
    width : int
        Multiple of 8.
    depth : int
        Number of blocks.

    Examples
    --------
    >>> Shape(32, 3).params, Shape(32, 3).params_embedding, Shape(32, 3).total_params
    (36864, 16384, 53248)
    """

    width: int
    depth: int

    @property
    def heads(self) -> int:
        """Attention heads: of 16 channels, or 12 or 20 where the width asks for it."""
        return max(1, round(self.width / 16))

    @property
    def params(self) -> int:
        """Parameters in the blocks."""
        return 12 * self.depth * self.width**2

    @property
    def params_embedding(self) -> int:
        """Parameters in the table shared by embedding and output."""
        return VOCABULARY * self.width

    @property
    def total_params(self) -> int:
        """Parameters with the shared table counted once: the N of 6ND."""
        return self.params + self.params_embedding

    @property
    def flops_per_token(self) -> int:
        """Exact training FLOPs per token: matrix products, attention and output, times three."""
        attention = 4 * self.depth * CONTEXT * self.width
        return 3 * (2 * self.params + attention + 2 * self.params_embedding)


@dataclass(frozen=True)
class Recipe:
    """What a run trains on.

    Attributes
    ----------
    code : float
        Share of the windows that are code; the others are prose.
    repeated : bool
        Train on the text from which duplicate blocks were not removed.
    noise : float
        Share of the tokens of a batch replaced by other tokens of the same batch.
    """

    code: float
    repeated: bool = False
    noise: float = 0.0


RECIPES = {
    "code": Recipe(1.0),
    "code-75": Recipe(0.75),
    "code-50": Recipe(0.5),
    "code-25": Recipe(0.25),
    "prose": Recipe(0.0),
    "code-50-duplicates": Recipe(0.5, repeated=True),
    "code-50-noisy": Recipe(0.5, noise=0.1),
}


@dataclass(frozen=True)
class Settings:
    """Everything that decides a run.

    Attributes
    ----------
    shape : Shape
    recipe : str
        A key of ``RECIPES``.
    tokens : int
        Tokens to see; rounded up to whole batches.
    learning_rate : float
        At the end of the warm-up, for all weights.
    unique : int or None
        Limit on the different tokens seen.
    batch : int
        Sequences of 128 tokens per step.
    weight_decay : float
    seed : int
        Initial weights, windows and their order.
    """

    shape: Shape
    recipe: str
    tokens: int
    learning_rate: float
    unique: int | None = None
    batch: int = 4
    weight_decay: float = 0.1
    seed: int = 0

    @property
    def steps(self) -> int:
        """Number of optimiser steps."""
        return max(1, math.ceil(self.tokens / (self.batch * CONTEXT)))

    @property
    def tokens_seen(self) -> int:
        """Tokens in whole batches."""
        return self.steps * self.batch * CONTEXT
