"""Run the plan: one process per core, one finished run at a time, one file per run.

A run is written to ``raw/<run>.npz`` in one step when it ends, so that a stopped suite goes on
where it was: finished runs are skipped, the others start again. The same run gives the same
numbers on the same processor, PyTorch and number of threads.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import time
from collections.abc import Collection, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from toolkit.datasets.pocket_suite import evaluate, tasks, tokenizer
from toolkit.datasets.pocket_suite.data import held_out
from toolkit.datasets.pocket_suite.plan import Run
from toolkit.datasets.pocket_suite.train import Progress, train

# Loss along the way is measured on every fourth window: it costs a tenth of the training.
CURVE_STRIDE = 4


@dataclass(frozen=True)
class Bench:
    """What every run of a process shares: the corpus, the held-out windows and the items."""

    corpus: Path
    windows: Tensor
    batches: list[evaluate.Batch]


def open_bench(corpus: Path, items: bool = True) -> Bench:
    """Load and encode everything once; without items, runs are measured by their loss only."""
    torch.set_num_threads(1)
    windows = torch.from_numpy(held_out(corpus, "validation")[0])
    batches = evaluate.prepare(tasks.load(corpus), tokenizer.load()) if items else []
    return Bench(corpus, windows, batches)


def perform(run: Run, bench: Bench) -> dict[str, npt.NDArray[np.generic]]:
    """Train and evaluate one run.

    Returns
    -------
    dict of array
        ``facts`` (JSON text: settings and counts), and, one row per checkpoint, ``tokens``,
        ``train_loss``, ``cpu_seconds``, ``wall_seconds``, ``curve_loss`` (code, prose; on every
        fourth window), ``loss`` (code, prose; on all windows, not a number where not measured),
        ``scores`` (options' log-likelihoods, for the checkpoints in ``scored``).
    """
    windows = bench.windows
    rows: list[tuple[float, ...]] = []
    scores, scored = [], []
    evaluation_seconds = 0.0

    def look(progress: Progress) -> None:
        nonlocal evaluation_seconds
        start = time.process_time()
        last = progress.tokens >= run.settings.tokens_seen
        full = last or run.items_at_checkpoints
        curve = evaluate.by_kind(evaluate.window_losses(progress.model, windows[::CURVE_STRIDE]))
        loss = (np.nan, np.nan)
        if full:
            loss = evaluate.by_kind(evaluate.window_losses(progress.model, windows))
            scores.append(evaluate.score(progress.model, bench.batches))
            scored.append(len(rows))
        measured = (progress.train_loss, progress.cpu_seconds, progress.wall_seconds)
        rows.append((progress.tokens, *measured, *curve, *loss))
        evaluation_seconds += time.process_time() - start

    outcome = train(run.settings, bench.corpus, run.checkpoints, look)
    shape = run.settings.shape
    facts = {
        **asdict(run),
        "tokens_seen": run.settings.tokens_seen,
        "tokens_unique": outcome.tokens_unique,
        "diverged": outcome.diverged,
        "params": shape.params,
        "params_embedding": shape.params_embedding,
        "flops_exact": shape.flops_per_token * run.settings.tokens_seen,
        "evaluation_seconds": evaluation_seconds,
        "torch": torch.__version__,
        "processor": platform.processor() or platform.machine(),
    }
    table = np.asarray(rows, dtype=np.float64).reshape(len(rows), 8)
    return {
        "facts": np.asarray(json.dumps(facts)),
        "tokens": table[:, 0],
        "train_loss": table[:, 1],
        "cpu_seconds": table[:, 2],
        "wall_seconds": table[:, 3],
        "curve_loss": table[:, 4:6],
        "loss": table[:, 6:8],
        "scored": np.asarray(scored, dtype=np.int64),
        "scores": np.asarray(scores, dtype=np.float32),
    }


def save(run: Run, result: dict[str, npt.NDArray[np.generic]], out: Path) -> None:
    """Write a finished run in one step."""
    unfinished = out / "raw" / f".{run.run}.{os.getpid()}.npz"
    np.savez_compressed(unfinished, **result)  # type: ignore[arg-type]
    unfinished.replace(out / "raw" / f"{run.run}.npz")


def finished(out: Path) -> set[str]:
    """Names of the runs that have a file."""
    return {path.stem for path in (out / "raw").glob("[!.]*.npz")}


def run_suite(
    runs: Iterable[Run], corpus: Path, out: Path, workers: int = 2, done: Collection[str] = ()
) -> None:
    """Do all runs that are not done yet, in order, and print one line for each.

    Parameters
    ----------
    runs : iterable of Run
    corpus : Path
        Folder of the built corpus.
    out : Path
        Folder for the results. One suite at a time may write to it.
    workers : int
        Processes, each with one thread.
    done : collection of str
        Runs known from elsewhere, to be skipped too.

    Raises
    ------
    BlockingIOError
        Another process is running the suite into the same folder.
    """
    (out / "raw").mkdir(parents=True, exist_ok=True)
    with (out / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        skipped = finished(out) | set(done)
        todo = [run for run in runs if run.run not in skipped]
        print(f"{len(todo)} runs to do, {len(skipped)} done", flush=True)
        with ProcessPoolExecutor(workers, get_context("spawn"), _start_worker, (corpus,)) as pool:
            futures = [pool.submit(_work, run, out) for run in todo]
            for count, future in enumerate(as_completed(futures), start=1):
                print(
                    f"{time.strftime('%H:%M:%S')} {count}/{len(todo)} {future.result()}", flush=True
                )


_bench: Bench


def _start_worker(corpus: Path) -> None:
    global _bench
    _bench = open_bench(corpus)


def _work(run: Run, out: Path) -> str:
    result = perform(run, _bench)
    save(run, result, out)
    if not len(result["loss"]):
        return f"{run.run} diverged"
    loss = np.mean(result["loss"][-1])
    return f"{run.run} loss {loss:.4f} cpu {result['cpu_seconds'][-1]:.1f} s"
