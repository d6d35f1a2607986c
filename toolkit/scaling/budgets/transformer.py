"""The shape of a transformer, from which parameters and compute are counted."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from toolkit.errors import DataError

__all__ = ["Transformer"]


@dataclass(frozen=True, slots=True)
class Transformer:
    """Shape of a decoder-only transformer.

    Biases and gains of norms, below 0.2 % of the parameters, are not counted.

    Attributes
    ----------
    layers, width, context, vocabulary : int
        Number of layers, width of the residual stream, sequence length and vocabulary in tokens.
    feed_forward : int, optional
        Width inside the feed-forward block, of one expert where there are several; four times
        the width by default.
    heads : int
        Attention heads.
    kv_heads : int, optional
        Heads of keys and values; as many as `heads` by default.
    head_width : int, optional
        Width of a head; ``width / heads`` by default.
    gated : bool
        Whether the feed-forward block has a third matrix that gates it (SwiGLU, GeGLU).
    experts, active_experts, shared_experts : int
        Routed experts per layer, how many of them a token visits, and experts it always visits.
    tied : bool
        Whether the output layer uses the embedding matrix.
    positions : {"none", "learned", "relative"}
        What holds parameters for positions: nothing (rotary), one vector per position, or one
        matrix of relative keys per layer (Transformer-XL, as in Hoffmann et al. 2022).

    Raises
    ------
    DataError
        If a number is not a positive whole one, heads do not divide, or more experts are active
        than there are.

    Examples
    --------
    >>> from toolkit.scaling import flops
    >>> small = flops.Transformer(layers=12, width=768, context=1024, vocabulary=50257, heads=12)
    >>> small.feed_forward_width, small.attention_width
    (3072, 768)
    """

    layers: int
    width: int
    context: int
    vocabulary: int
    feed_forward: int | None = None
    heads: int = 1
    kv_heads: int | None = None
    head_width: int | None = None
    gated: bool = False
    experts: int = 1
    active_experts: int = 1
    shared_experts: int = 0
    tied: bool = True
    positions: Literal["none", "learned", "relative"] = "none"

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if name in ("gated", "tied", "positions") or value is None:
                continue
            least = 0 if name == "shared_experts" else 1
            whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
            if not whole or value < least:
                raise DataError(f"{name} must be a whole number, {least} or more; got {value!r}.")
        if self.head_width is None and self.width % self.heads:
            raise DataError(
                f"width {self.width} is no multiple of heads {self.heads}; give head_width."
            )
        if self.heads % (self.kv_heads or self.heads):
            raise DataError(f"heads {self.heads} is no multiple of kv_heads {self.kv_heads}.")
        if self.active_experts > self.experts:
            raise DataError(
                f"active_experts {self.active_experts} is more than the experts {self.experts}."
            )
        if self.positions not in ("none", "learned", "relative"):
            raise DataError(
                f"positions must be 'none', 'learned' or 'relative'; got {self.positions!r}."
            )

    @property
    def feed_forward_width(self) -> int:
        """Width inside the feed-forward block, or inside one expert."""
        return 4 * self.width if self.feed_forward is None else self.feed_forward

    @property
    def attention_width(self) -> int:
        """Width of all heads together."""
        return self.width if self.head_width is None else self.heads * self.head_width

    @property
    def embedding_params(self) -> float:
        """Parameters of the embedding matrix, of the output layer if untied, and of positions."""
        matrices = 1 if self.tied else 2
        learned = self.context if self.positions == "learned" else 0
        return float(self.width) * (matrices * self.vocabulary + learned)

    @property
    def attention_params(self) -> float:
        """Parameters of attention in one layer: queries, keys, values, output, positions."""
        kv_share = 1.0 if self.kv_heads is None else self.kv_heads / self.heads
        matrices = 2 + 2 * kv_share
        relative = self.width if self.positions == "relative" else 0
        return self.width * (matrices * self.attention_width + relative)

    @property
    def expert_params(self) -> float:
        """Parameters of one expert; of the feed-forward block where there are no experts."""
        return float((3 if self.gated else 2) * self.width * self.feed_forward_width)

    @property
    def router_params(self) -> float:
        """Parameters of the router of one layer; none without experts to choose from."""
        return float(self.width * self.experts) if self.experts > 1 else 0.0
