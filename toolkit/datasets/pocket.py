"""Read the answers of the pocket suite, which are bundled in a compact form.

The file has one row per question and prompt. Its binary columns hold one value per evaluated
checkpoint, in the order listed in the file's metadata: whether the answer was right, one bit; the
probability of the first three options in hundredths; and the log-likelihood per byte of the right
option, the square root of its negative in steps of 1/32.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow.parquet as parquet

__all__ = ["EVALUATIONS", "LOGLIK_STEPS", "OPTIONS", "STORED_OPTIONS", "decode_loglik", "items"]

OPTIONS = ("choice_1", "choice_2", "choice_3", "choice_4")
STORED_OPTIONS = OPTIONS[:3]  # the fourth is what is missing to a hundred
EVALUATIONS = b"evaluations"
LOGLIK_STEPS = 32


def items(path: Path) -> pd.DataFrame:
    """Read the answers of every evaluated checkpoint as a tidy table.

    Parameters
    ----------
    path : Path
        ``pocket_items.parquet``.

    Returns
    -------
    DataFrame
        One row per run, checkpoint, task, prompt and item. `score` is 1.0 where the right option
        had the highest log-likelihood; `probability` is that of the right option among the four
        and `choice_1` to `choice_4` those of all, right to 0.01; `loglik_per_byte` is the
        log-likelihood of the right option, in nats per byte of it, within 0.032 times the square
        root of its size, and at least -63; `bytes` is the length of the right option, so that
        the product of the two is its whole log-likelihood.
    """
    stored = parquet.read_table(path)
    evaluations = json.loads(stored.schema.metadata[EVALUATIONS])
    table = stored.to_pandas()
    runs = [run for run, _ in evaluations]
    count, questions = len(evaluations), len(table)

    def values(column: str) -> npt.NDArray[np.uint8]:
        # One row per evaluation after the transposition, as the tidy table is ordered.
        return np.frombuffer(b"".join(table[column]), np.uint8).reshape(questions, -1).T

    correct = np.unpackbits(values("correct").T, axis=1, count=count).T
    stored_choices = np.stack([values(option) for option in STORED_OPTIONS])
    last = 100 - stored_choices.sum(0, dtype=np.uint8)
    choices = np.stack([*stored_choices, last]).astype(np.float32) / 100
    right = np.broadcast_to(table["answer"].to_numpy(), (count, questions))
    labels: Mapping[str, pd.Series | pd.Categorical] = {
        name: _repeat(table[name], count) for name in ("task", "prompt", "item", "cluster")
    }
    return pd.DataFrame(
        {
            "run": pd.Categorical(np.repeat(runs, questions), categories=list(dict.fromkeys(runs))),
            "checkpoint": np.repeat([tokens for _, tokens in evaluations], questions),
            **labels,
            "bytes": np.tile(table["bytes"].to_numpy(), count),
            "score": correct.ravel().astype(np.float64),
            "probability": np.take_along_axis(choices, right[None], 0)[0].ravel(),
            **{name: choice.ravel() for name, choice in zip(OPTIONS, choices, strict=True)},
            "loglik_per_byte": decode_loglik(values("loglik")).ravel(),
        }
    )


def decode_loglik(codes: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """Turn stored codes into log-likelihoods per byte, in nats.

    Examples
    --------
    >>> import numpy as np
    >>> decode_loglik(np.array([0, 32, 64], dtype=np.uint8)).tolist()
    [-0.0, -1.0, -4.0]
    """
    return -np.square(codes.astype(np.float32) / LOGLIK_STEPS)


def _repeat(column: pd.Series, times: int) -> pd.Categorical:
    codes, categories = pd.factorize(column)
    return pd.Categorical.from_codes(np.tile(codes, times), categories=categories)
