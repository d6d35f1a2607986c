"""The table of models behind a boundary: compute and score of each, checked and sorted."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit import tables
from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray

__all__ = ["Models", "training_compute"]

FLOPS_PER_PARAM_TOKEN = 6.0
MOST_TOKENS = 1e14  # no model has seen more; a slip of the unit gives 1e15
MOST_TOKENS_PER_PARAM = 1e5


@dataclass(frozen=True, slots=True)
class Models:
    """Checked models, sorted by compute, then score.

    Attributes
    ----------
    score : str
        Column of the score.
    flops, log_flops, scores, weights : array, shape (n,)
        Training compute in FLOPs and its log10, scores as fractions, row weights.
    labels : DataFrame
        n rows: the other columns, where given: ``model`` and the cluster.
    left_out : int
        Rows of the given table without score or compute.
    """

    score: str
    flops: FloatArray = field(repr=False)
    log_flops: FloatArray = field(repr=False)
    scores: FloatArray = field(repr=False)
    weights: FloatArray = field(repr=False)
    labels: pd.DataFrame = field(repr=False)
    left_out: int

    @classmethod
    def check(
        cls,
        models: pd.DataFrame | Mapping[str, npt.ArrayLike],
        score: str,
        *,
        ceiling: float,
        weights: str | None,
        cluster: str | None,
    ) -> Self:
        """Check a table of models and leave out those without score or compute.

        Raises
        ------
        DataError
            See `toolkit.boundary.fit`.
        """
        frame = models if isinstance(models, pd.DataFrame) else pd.DataFrame(models)
        sources = _compute_columns(frame)
        complete = _complete(frame, [name for name in (*sources, score) if name in frame.columns])
        others = [name for name in (weights, cluster) if name is not None]
        clean = tables.check(complete, [*sources, score, *others], optional=["model"])
        scores = clean[score]
        if score not in tables.COLUMNS:
            scores = tables.check_scores(complete[score], score)
        _check_ceiling(scores, score, ceiling)
        labels = [name for name in ("model", cluster) if name in clean]
        if "model" in labels:
            mend = "Keep one row per model; repeats of one model are not new evidence."
            tables.check_keys(clean, ["model"], mend)
        row_weights = np.ones(len(clean))
        if weights is not None:
            row_weights = tables.check_positive(clean[weights], weights).to_numpy()
        flops, y = training_compute(clean).to_numpy(), scores.to_numpy()
        order = np.argsort(flops)
        if (np.diff(flops[order]) == 0).any():  # rarely needed where there are many rows
            # Clusters are numbered as they appear: equal rows must not come in the order given.
            unit = np.zeros(len(clean), dtype=np.int64)
            if cluster is not None:
                unit = pd.factorize(clean[cluster], sort=True)[0]
            order = np.lexsort((unit, y, flops))
        return cls(
            score=score,
            flops=flops[order],
            log_flops=np.log10(flops[order]),
            scores=y[order],
            weights=row_weights[order],
            labels=clean[labels].take(order) if labels else pd.DataFrame(index=range(len(y))),
            left_out=len(frame) - len(complete),
        )

    @property
    def table(self) -> pd.DataFrame:
        """One row per model: ``flops``, the score, its name and cluster where given."""
        columns = {"flops": self.flops, self.score: self.scores}
        return pd.DataFrame(columns).join(self.labels.reset_index(drop=True))

    @property
    def effective(self) -> float:
        """Number of equally weighted rows that would carry as much (Kish 1965)."""
        return float(self.weights.sum() ** 2 / np.sum(self.weights**2))


def training_compute(table: pd.DataFrame) -> pd.Series:
    """Training compute of checked models in FLOPs: `flops`, or 6 * parameters * tokens.

    Parameters active per token count where the table has them: a mixture of experts trains no
    others. Tokens are those seen, repeats included.

    Raises
    ------
    DataError
        If tokens, or tokens per parameter, are implausibly many.
    """
    if "flops" in table:
        return table["flops"].astype(np.float64)
    size = table["params_active"] if "params_active" in table else table["params"]
    ratio = table["tokens"] / size
    wrong = (table["tokens"] > MOST_TOKENS) | (ratio > MOST_TOKENS_PER_PARAM)
    if wrong.any():
        rows = ", ".join(map(str, table.index[wrong][:5]))
        raise DataError(
            f"Column 'tokens': {wrong.sum()} of {len(table)} rows (first: {rows}) hold more than "
            f"{MOST_TOKENS:.0e} tokens or more than {MOST_TOKENS_PER_PARAM:.0e} per parameter "
            f"(first value {table['tokens'][wrong].iloc[0]:g}). A slip of the unit? Correct or "
            "drop the rows."
        )
    compute = FLOPS_PER_PARAM_TOKEN * size.astype(np.float64) * table["tokens"].astype(np.float64)
    return pd.Series(compute, name="flops")


def _complete(frame: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Drop the rows that miss a value; models that disclose no compute tell nothing here."""
    missing = np.zeros(len(frame), dtype=np.bool_)
    for name in columns:
        missing |= frame[name].isna().to_numpy()
    if len(frame) and missing.all():
        raise DataError(f"No row has a value in all of {', '.join(map(repr, columns))}.")
    return frame[~missing] if missing.any() else frame


def _compute_columns(frame: pd.DataFrame) -> list[str]:
    """Columns that the compute comes from."""
    size = "params_active" if "params_active" in frame.columns else "params"
    if "flops" not in frame.columns and {size, "tokens"} <= set(frame.columns):
        return [size, "tokens"]
    return ["flops"]


def _check_ceiling(scores: pd.Series, name: str, ceiling: float) -> None:
    above = (scores > ceiling).to_numpy()
    if above.any():
        rows = ", ".join(map(str, scores.index[above][:5]))
        raise DataError(
            f"Column {name!r}: {above.sum()} of {len(scores)} rows (first: {rows}) lie above the "
            f"ceiling {ceiling:g}. Give the highest score that is possible as ceiling."
        )
