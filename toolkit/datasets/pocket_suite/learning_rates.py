"""The small sweep that chose the learning rates and the batch, before everything else.

Its loss is measured on the tuning packages, which no other run sees, so that the choice does not
flatter the validation loss. The outcome lies in ``learning_rates.csv``.
"""

from __future__ import annotations

import csv
import math
from pathlib import Path

import torch

from toolkit.datasets.pocket_suite.data import held_out
from toolkit.datasets.pocket_suite.evaluate import by_kind, window_losses
from toolkit.datasets.pocket_suite.settings import Settings, Shape
from toolkit.datasets.pocket_suite.train import Progress, train

FILE = Path(__file__).with_name("learning_rates.csv")
# Shape, tokens, batch, and multiples of 0.016 * sqrt(32 / width).
TRIALS = (
    (Shape(16, 2), 500_000, 4, (0.5, 1, 2)),
    (Shape(32, 3), 500_000, 4, (0.5, 1, 2)),
    (Shape(64, 4), 500_000, 4, (0.5, 1, 2)),
    (Shape(128, 5), 500_000, 4, (0.5, 1)),
    (Shape(16, 2), 2_000_000, 4, (0.25, 0.5, 1)),
    (Shape(32, 3), 2_000_000, 4, (0.25, 0.5, 1)),
    (Shape(64, 4), 2_000_000, 4, (0.25, 0.5, 1)),
    (Shape(16, 2), 8_000_000, 4, (0.125, 0.25, 0.5, 1)),
    (Shape(32, 3), 500_000, 2, (0.7,)),
    (Shape(64, 4), 300_000, 2, (0.7, 1)),
    (Shape(64, 4), 300_000, 4, (1,)),
)


def settings() -> list[Settings]:
    """List the runs of the sweep."""
    return [
        Settings(
            shape,
            "code-50",
            tokens,
            learning_rate=round(0.016 * math.sqrt(32 / shape.width) * multiple, 6),
            batch=batch,
        )
        for shape, tokens, batch, multiples in TRIALS
        for multiple in multiples
    ]


def sweep(corpus: Path, out: Path = FILE) -> None:
    """Train every run of the sweep and write their losses.

    Parameters
    ----------
    corpus : Path
        Folder of the built corpus.
    out : Path
        Table to write: width, depth, tokens, batch, learning_rate, loss_code, loss_prose, loss,
        cpu_seconds.
    """
    torch.set_num_threads(1)
    windows = torch.from_numpy(held_out(corpus, "tuning")[0])
    rows = []
    for chosen in settings():

        def measure(progress: Progress, chosen: Settings = chosen) -> None:
            code, prose = by_kind(window_losses(progress.model, windows))
            shape = chosen.shape
            rows.append(
                {
                    "width": shape.width,
                    "depth": shape.depth,
                    "tokens": progress.tokens,
                    "batch": chosen.batch,
                    "learning_rate": chosen.learning_rate,
                    "loss_code": round(code, 5),
                    "loss_prose": round(prose, 5),
                    "loss": round((code + prose) / 2, 5),
                    "cpu_seconds": round(progress.cpu_seconds, 1),
                }
            )

        train(chosen, corpus, 1, measure)
    with out.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
