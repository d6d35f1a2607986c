"""Compute and parameters of a transformer, counted, and a check of stated compute against 6 N D."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit import tables
from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray
from toolkit.results import Summary, significant
from toolkit.scaling.allocation import FLOPS_PER_PARAM_TOKEN
from toolkit.scaling.budgets.transformer import Transformer

__all__ = [
    "FlopsCheck",
    "Transformer",
    "cross_check",
    "training_flops",
    "transformer_flops",
    "transformer_params",
]

SOFTMAX_FLOPS = 3.0  # per score and head: subtract the largest, exponentiate, divide
BACKWARD = 2.0  # the backward pass costs twice the forward pass
SHARE_VARIES = 0.1  # change of the embedding share between runs from which the count matters


def training_flops(params: npt.ArrayLike, tokens: npt.ArrayLike) -> FloatArray:
    """Training compute ``6 N D`` of dense models, in float64 so that no product overflows.

    Parameters
    ----------
    params : array_like
        Parameters (count). Without embeddings in Kaplan et al. 2020, with them in Hoffmann et
        al. 2022; active parameters of a mixture of experts.
    tokens : array_like
        Training tokens (count), broadcast against `params`.

    Returns
    -------
    array
        FLOPs: two per parameter and token in the forward pass, four in the backward pass.

    Raises
    ------
    DataError
        If the shapes do not fit, or a count is no number, not positive, or of an implausible
        magnitude.

    Examples
    --------
    >>> from toolkit.scaling import flops
    >>> print(f"{flops.training_flops(816341493, 1897148783):.3e}")  # more than int64 holds
    9.292e+18
    """
    try:
        size, data = np.broadcast_arrays(*map(np.asarray, (params, tokens)))
    except ValueError as error:
        raise DataError(f"params and tokens need one shape: {error}.") from error
    columns = {"params": size.ravel(), "tokens": data.ravel()}
    checked = tables.check(columns, ["params", "tokens"])
    product = FLOPS_PER_PARAM_TOKEN * checked["params"] * checked["tokens"]
    flops: FloatArray = product.to_numpy().reshape(size.shape)[()]
    return flops


def transformer_params(
    shape: Transformer, *, embeddings: bool = True, active: bool = False
) -> float:
    """Count the parameters of a transformer.

    Parameters
    ----------
    shape : Transformer
    embeddings : bool
        Whether to count the embedding matrix, an output layer of its own and learned positions.
        Kaplan et al. 2020 leave them out, Hoffmann et al. 2022 count them.
    active : bool
        Whether to count only the experts that one token visits.

    Returns
    -------
    float
        Number of parameters.

    Examples
    --------
    GPT-3 without embeddings, ``12 * layers * width**2`` (Kaplan et al. 2020, table 1):

    >>> from toolkit.scaling import flops
    >>> gpt3 = flops.Transformer(layers=96, width=12288, context=2048, vocabulary=50257, heads=96)
    >>> flops.transformer_params(gpt3, embeddings=False) == 12 * 96 * 12288**2
    True
    """
    experts = (shape.active_experts if active else shape.experts) + shape.shared_experts
    layer = shape.attention_params + shape.router_params + experts * shape.expert_params
    return shape.layers * layer + (shape.embedding_params if embeddings else 0.0)


def transformer_flops(
    shape: Transformer,
    tokens: float = 1.0,
    *,
    embedding: bool = False,
    unembedding: bool = True,
    attention: Literal["full", "causal", "none"] = "full",
    softmax: bool = False,
    backward: bool = True,
) -> float:
    """Count the FLOPs that a transformer spends on tokens, two per multiplication and addition.

    Matrix products and, on request, the softmax are counted; norms, activation functions and
    relative positions are not.

    Parameters
    ----------
    shape : Transformer
    tokens : float
        Number of tokens; the default gives FLOPs per token.
    embedding : bool
        Whether to count the look-up of embeddings as a product with one-hot vectors, as the
        appendix of Hoffmann et al. 2022 lists it. No implementation spends it.
    unembedding : bool
        Whether to count the output layer.
    attention : {"full", "causal", "none"}
        Scores between all positions of the context, which most implementations compute and
        Hoffmann et al. 2022 count; only with earlier positions, half as many (the term of Kaplan
        et al. 2020, table 1); or none (``6 N``).
    softmax : bool
        Whether to count three FLOPs per score and head (Hoffmann et al. 2022, appendix F).
    backward : bool
        Whether to add the backward pass, twice the forward pass.

    Returns
    -------
    float
        FLOPs.

    Raises
    ------
    DataError
        If the number of tokens is not positive or `attention` is unknown.

    Examples
    --------
    The forward pass of Kaplan et al. 2020, table 1: ``2 N + 2 layers context width``.

    >>> from toolkit.scaling import flops
    >>> shape = flops.Transformer(layers=12, width=768, context=1024, vocabulary=50257, heads=12)
    >>> counted = flops.transformer_flops(
    ...     shape, unembedding=False, attention="causal", backward=False)
    >>> size = flops.transformer_params(shape, embeddings=False)
    >>> counted == 2 * size + 2 * 12 * 1024 * 768
    True
    """
    share = {"full": 1.0, "causal": 0.5, "none": 0.0}
    if attention not in share:
        raise DataError(f"attention must be 'full', 'causal' or 'none'; got {attention!r}.")
    if not 0 < tokens < np.inf:
        raise DataError(f"tokens must be a positive number; got {tokens!r}.")
    blocks = transformer_params(shape, embeddings=False, active=True)
    if shape.positions == "relative":
        blocks -= shape.layers * shape.width**2
    positions = share[attention] * shape.context
    scores = 2 * 2 * shape.attention_width * positions
    if softmax:
        scores += SOFTMAX_FLOPS * shape.heads * positions
    vocabulary = (embedding + unembedding) * shape.vocabulary * shape.width
    forward = 2 * (blocks + vocabulary) + shape.layers * scores
    return float(tokens * forward * (1 + BACKWARD if backward else 1))


@dataclass(frozen=True, slots=True)
class FlopsCheck:
    """Stated compute beside ``6 N D``.

    Attributes
    ----------
    table : DataFrame
        Every row: params, tokens, flops, ``ratio`` (stated over 6 N D), ``agrees``; with a
        column of embeddings also ``embedding_share`` (of all parameters) and
        ``ratio_with_embeddings``. The index is that of the table given.
    definition : str
        Count of parameters that fits the stated compute better over all rows: "without
        embeddings" (params), "with embeddings" (params + params_embedding), "neither", or
        "unknown" where the table has no embeddings.
    tolerance : float
        Largest relative difference that agrees.
    notes : tuple of str
        What to know before a fit.
    """

    table: pd.DataFrame
    definition: str
    tolerance: float
    notes: tuple[str, ...]

    @property
    def disagreeing(self) -> pd.DataFrame:
        """Rows whose stated compute is not ``6 N D``, whichever parameters are counted."""
        return self.table[~self.table["agrees"]]

    def summary(self) -> Summary:
        """Return the disagreeing rows, the definition that fits, and the doubts."""
        facts = [
            ("rows that disagree", f"{len(self.disagreeing)} of {len(self.table)}"),
            ("tolerance", f"{self.tolerance:.0%}"),
            ("count of parameters that fits", self.definition),
        ]
        shown = self.disagreeing.drop(columns="agrees").map(significant)
        return Summary("Stated compute against 6 N D", facts, shown, self.notes)

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


def cross_check(
    table: pd.DataFrame | Mapping[str, npt.ArrayLike], *, tolerance: float = 0.1
) -> FlopsCheck:
    """Compare the stated compute of runs with ``6 N D``.

    Parameters
    ----------
    table : DataFrame or mapping
        Columns params (without embeddings), tokens, flops; params_embedding where known.
    tolerance : float
        Largest difference from 6 N D that agrees, as a share of it, in (0, 1).

    Returns
    -------
    FlopsCheck

    Raises
    ------
    DataError
        If the table is not valid (see `toolkit.tables.check`) or the tolerance is out of range.

    Examples
    --------
    >>> from toolkit.scaling import flops
    >>> runs = {"params": [1e8, 1e9], "tokens": [2e9, 2e10], "flops": [1.2e18, 2.4e20]}
    >>> flops.cross_check(runs).disagreeing["ratio"].tolist()
    [2.0]
    """
    if not 0 < tolerance < 1:
        raise DataError(f"tolerance is a share of 6 N D between 0 and 1; got {tolerance!r}.")
    checked = tables.check(table, ["params", "tokens", "flops"], optional=["params_embedding"])
    if isinstance(table, pd.DataFrame):
        checked.index = table.index
    known = "params_embedding" in checked
    checked["ratio"] = checked["flops"] / training_flops(checked["params"], checked["tokens"])
    checked["agrees"] = (checked["ratio"] - 1).abs() <= tolerance
    if not known:
        return FlopsCheck(checked, "unknown", tolerance, ())
    total = checked["params"] + checked["params_embedding"]
    checked["embedding_share"] = checked["params_embedding"] / total
    checked["ratio_with_embeddings"] = checked["flops"] / training_flops(total, checked["tokens"])
    without, within = checked["agrees"], (checked["ratio_with_embeddings"] - 1).abs() <= tolerance
    checked["agrees"] = without | within
    return FlopsCheck(checked, _definition(checked, tolerance), tolerance, _doubts(checked))


def _definition(checked: pd.DataFrame, tolerance: float) -> str:
    """Count whose ratio is nearer to one in the median run, if it is near at all."""
    distance = {
        "without embeddings": float((checked["ratio"] - 1).abs().median()),
        "with embeddings": float((checked["ratio_with_embeddings"] - 1).abs().median()),
    }
    nearest = min(distance, key=lambda name: distance[name])
    return nearest if distance[nearest] <= tolerance else "neither"


def _doubts(checked: pd.DataFrame) -> tuple[str, ...]:
    low, high = checked["embedding_share"].min(), checked["embedding_share"].max()
    if high - low <= SHARE_VARIES:
        return ()
    return (
        f"Embeddings are {low:.0%} to {high:.0%} of the parameters: exponents of size depend on "
        "whether they are counted. Fit with both counts and report which one is meant.",
    )
