"""The shared vocabulary: one name, meaning, unit and plausible range for each column."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

__all__ = ["COLUMNS", "SYNONYMS", "Column"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the shared vocabulary.

    Attributes
    ----------
    name : str
        Name used everywhere in the toolkit.
    meaning : str
        What a value says.
    unit : str
        Unit of a value; empty for labels.
    kind : {"count", "loss", "score", "number", "fraction", "label"}
        Which rules `check` applies. Laws of scaling see the logarithm of counts and numbers.
    lowest, highest : float
        Plausible range of a value, both ends allowed. A value outside it is an error: it is far
        more often a wrong unit than a real observation.
    """

    name: str
    meaning: str
    unit: str
    kind: Literal["count", "loss", "score", "number", "fraction", "label"]
    lowest: float = -np.inf
    highest: float = np.inf


def _vocabulary() -> dict[str, Column]:
    numbers = [
        Column("params", "parameters, without embeddings unless said", "count", "count", 1e2, 1e15),
        Column("params_embedding", "embedding parameters", "count", "count", 1e1, 1e13),
        Column("params_active", "parameters active per token", "count", "count", 1e2, 1e15),
        Column("tokens", "tokens seen in training", "count", "count", 1e4, 1e17),
        Column("tokens_unique", "distinct tokens", "count", "count", 1e3, 1e17),
        Column("flops", "training compute", "FLOPs", "count", 1e7, 1e32),
        Column("steps", "optimiser steps", "count", "count", 1.0, 1e9),
        Column("experts", "experts per layer, 1 for a dense model", "count", "count", 1.0, 1e6),
        Column("granularity", "feed-forward width over expert width", "ratio", "number", 1e-2, 1e4),
        Column("sparsity", "share of parameters left out per token", "fraction", "fraction"),
        Column("bits_weights", "precision of weights in training", "bits", "number", 0.5, 64),
        Column("bits_activations", "precision of activations", "bits", "number", 0.5, 64),
        Column("bits_cache", "precision of the key-value cache", "bits", "number", 0.5, 64),
        Column("bits_after", "precision after training", "bits", "number", 0.5, 64),
        Column("loss", "validation cross-entropy", "nats per token", "loss", 1e-4, 30.0),
        Column("score", "benchmark score, higher is better", "fraction", "score", 0.0, 1.0),
    ]
    labels = {
        "run": "one training run",
        "seed": "random seed of a run",
        "checkpoint": "tokens seen at the checkpoint",
        "recipe": "data recipe",
        "model": "name of a model",
        "family": "models of one maker and kind",
        "base_model": "the model it was tuned from",
        "released": "release date, ISO 8601",
        "task": "benchmark",
        "subtask": "part of a benchmark",
        "item": "one question",
        "cluster": "questions that belong together",
        "prompt": "prompt variant",
        "epoch": "repeat of a question",
        "filter": "answer extraction",
        "metric": "how an answer was scored",
    }
    columns = numbers + [Column(name, text, "", "label") for name, text in labels.items()]
    return {column.name: column for column in columns}


COLUMNS: Mapping[str, Column] = _vocabulary()

# Names that people use for ours; named in the error when a column is missing.
SYNONYMS: Mapping[str, Sequence[str]] = {
    "params": ("N", "n", "parameters", "n_params", "num_params", "model_size", "Model Size"),
    "tokens": ("D", "d", "n_tokens", "num_tokens", "dataset_size", "Training Tokens"),
    "flops": ("C", "c", "compute", "budget", "Training FLOP", "training_flops"),
    "loss": ("L", "Loss", "val_loss", "eval_loss", "validation_loss"),
    "score": ("accuracy", "acc", "Score", "performance"),
    "model": ("Model", "name", "model_name", "model_id"),
}
