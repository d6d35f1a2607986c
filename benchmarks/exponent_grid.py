"""The grid peer: every pair of exponents on a grid, the other three parameters solved inside.

Given the exponents the law is linear in A, B and E. The log-Huber objective over these three is
minimised by reweighted least squares, for all nodes of the grid at once in numpy.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

import toolkit as tk
from benchmarks.chinchilla import DELTA, SEARCH
from benchmarks.timing import Timing, cpu_seconds

EXPONENTS = np.arange(0.20, 0.601, 0.01)  # the neighbourhood of any sensible answer
REWEIGHTINGS = 30


def search(runs: pd.DataFrame, exponents: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the least objective on the grid and its parameters (A, B, E, alpha, beta)."""
    log_n, log_d, loss = (np.log(runs[name].to_numpy()) for name in ("params", "tokens", "loss"))
    observed = np.exp(loss)
    n_mean, d_mean = log_n.mean(), log_d.mean()
    best, found = np.inf, np.empty(5)
    for alpha in exponents:
        size = np.broadcast_to(np.exp(-alpha * (log_n - n_mean)), (len(exponents), len(loss)))
        data = np.exp(-exponents[:, None] * (log_d - d_mean))
        design = np.stack([size, data, np.ones_like(data)], axis=2)
        weights = np.ones_like(data)
        for _ in range(REWEIGHTINGS):
            weighted = design * (weights / observed**2)[:, :, None]
            coefficients = np.linalg.solve(
                np.einsum("kni,knj->kij", weighted, design),
                np.einsum("kni,n->ki", weighted, observed)[:, :, None],
            )[:, :, 0]
            fitted = np.einsum("kni,ki->kn", design, coefficients)
            r = np.log(np.maximum(fitted, 1e-9)) - loss
            weights = np.minimum(1.0, DELTA / np.maximum(np.abs(r), 1e-300))
        size_r = np.abs(r)
        objective = np.where(size_r < DELTA, r**2 / 2, DELTA * (size_r - DELTA / 2)).sum(axis=1)
        k = int(objective.argmin())
        if objective[k] < best:
            a, b, floor = coefficients[k]
            best = float(objective[k])
            scale = (np.exp(alpha * n_mean), np.exp(exponents[k] * d_mean))
            found = np.array([a * scale[0], b * scale[1], floor, alpha, exponents[k]])
    return best, found


def run(runs: pd.DataFrame) -> Iterator[Timing]:
    """Time the grid on the work of the global fit."""
    reached: list[float] = []
    seconds = cpu_seconds(lambda: reached.append(search(runs, EXPONENTS)[0]))
    note = f"{len(EXPONENTS)} x {len(EXPONENTS)} exponents, {REWEIGHTINGS} reweightings inside"
    yield Timing(SEARCH, "grid of exponents", seconds, "fit", reached[0], note)


def growth() -> Iterator[Timing]:
    """Time fits with 100 resamples as the number of runs doubles; the note gives the growth."""
    before = np.nan
    for rows in 2 ** np.arange(11) * 100:
        sizes = np.geomspace(1e7, 1e10, int(rows))
        order = np.random.default_rng(0).permutation(int(rows))
        design = {"params": sizes, "tokens": np.geomspace(1e9, 1e12, int(rows))[order]}
        runs = tk.datasets.simulate_runs(
            "chinchilla", "besiroglu2024-unrounded", design, noise=0.005, rng=0
        )
        fits: list[tk.scaling.ScalingFit] = []
        seconds = cpu_seconds(
            lambda runs=runs, fits=fits: fits.append(
                tk.scaling.fit("chinchilla", runs, bootstrap=100, rng=0)
            ),
            repeats=3,
        )
        note = "" if np.isnan(before) else f"{seconds / before:.2f} times half the runs"
        work = f"fit with 100 resamples, {rows:,} runs"
        yield Timing(work, "toolkit", seconds, "fit", fits[0].objective, note)
        before = seconds
