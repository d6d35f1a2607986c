"""The Chinchilla fit: a search over the whole parameter space, and bootstrap replicates.

Peers are the loops that published fits use, written here with scipy: L-BFGS-B with numerical
gradients from each of the 4,500 published starts, and BFGS with the analytic gradient from the
optimum for each resample. Where the package ``chinchilla`` is installed, its own fit runs too.
"""

import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import minimize
from scipy.special import logsumexp

import toolkit as tk
from benchmarks.timing import Timing, cpu_seconds

DELTA = 1e-3
REPLICATES = 4000
PEER_REPLICATES = 200
SEARCH, REPLICATE = "global fit, 240 runs", "bootstrap replicate, 240 runs"


def load_runs() -> pd.DataFrame:
    """Return the 240 published runs, or as many simulated ones where those cannot be had."""
    if tk.datasets.available("chinchilla_points"):
        points = tk.datasets.load("chinchilla_points")
        return points[points["loss"].rank(method="first") <= 240].reset_index(drop=True)
    design = tk.datasets.isoflop_design(np.logspace(18, 22, 20), np.geomspace(1, 300, 12))
    return tk.datasets.simulate_runs("chinchilla", "besiroglu2024", design, noise=0.005, rng=0)


class Peer:
    """The published objective in plain numpy, in (log A, log B, log E, alpha, beta)."""

    def __init__(self, runs: pd.DataFrame) -> None:
        self.log_n = np.log(runs["params"].to_numpy())
        self.log_d = np.log(runs["tokens"].to_numpy())
        self.y = np.log(runs["loss"].to_numpy())

    def objective(self, theta: np.ndarray, rows: np.ndarray | slice = slice(None)) -> float:
        a, b, e, alpha, beta = theta
        log_n, log_d = self.log_n[rows], self.log_d[rows]
        terms = np.stack([a - alpha * log_n, b - beta * log_d, np.full_like(log_n, e)])
        r = np.abs(logsumexp(terms, axis=0) - self.y[rows])
        return float(np.sum(np.where(r < DELTA, r**2 / 2, DELTA * (r - DELTA / 2))))

    def objective_and_gradient(
        self, theta: np.ndarray, rows: np.ndarray
    ) -> tuple[float, np.ndarray]:
        a, b, e, alpha, beta = theta
        log_n, log_d = self.log_n[rows], self.log_d[rows]
        size, data, floor = np.exp(a - alpha * log_n), np.exp(b - beta * log_d), np.exp(e)
        loss = size + data + floor
        r = np.log(loss) - self.y[rows]
        score = np.clip(r, -DELTA, DELTA)
        pull = score / loss
        gradient = [pull @ size, pull @ data, pull.sum() * floor]
        gradient += [-(pull * size) @ log_n, -(pull * data) @ log_d]
        return float(np.sum(score * (r - score / 2))), np.array(gradient)


def run(starts: int) -> Iterator[Timing]:
    """Time both pieces of work; `starts` of the 4,500 published starts are given to the loop."""
    runs = load_runs()
    tk.warm_up()
    fit = tk.scaling.fit("chinchilla", runs)
    yield Timing(
        SEARCH,
        "toolkit",
        cpu_seconds(lambda: tk.scaling.fit("chinchilla", runs), repeats=20),
        "fit",
        fit.objective,
        f"{fit.starts['agrees'].sum()} of {len(fit.starts)} starts agree, certified",
    )
    peer = Peer(runs)
    yield _scipy_search(peer, starts)
    yield from _chinchilla_package(runs, peer)
    yield from _replicates(runs, peer, fit)


def _scipy_search(peer: Peer, starts: int) -> Timing:
    grid = tk.scaling.hoffmann_starts()
    grid[:, :3] = np.log(grid[:, :3])
    chosen = grid[np.random.default_rng(0).permutation(len(grid))[:starts]]
    found: list[float] = []

    def search() -> None:
        found.extend(
            float(minimize(peer.objective, start, method="L-BFGS-B").fun) for start in chosen
        )

    seconds = cpu_seconds(search) * len(grid) / len(chosen)
    near = np.mean(np.array(found) < 1.01 * min(found))
    note = f"4,500 starts, timed on {len(chosen)}; {near:.0%} end within 1 % of their best"
    return Timing(SEARCH, "scipy L-BFGS-B", seconds, "fit", min(found), note)


def _chinchilla_package(runs: pd.DataFrame, peer: Peer) -> Iterator[Timing]:
    try:
        from chinchilla import Chinchilla
        from chinchilla._metrics import log_huber
    except ImportError:
        return
    grid = {
        "e": np.linspace(-1, 1, 3),
        "a": np.linspace(0, 25, 3),
        "b": np.linspace(0, 25, 3),
        "alpha": np.linspace(0, 1, 3),
        "beta": np.linspace(0, 1, 3),
    }
    ranges = {"C": (1e18, 1e22), "N_to_D": (10, 100)}
    compute = 6 * runs["params"] * runs["tokens"]
    table = pd.DataFrame({"C": compute, "N": runs["params"], "D": runs["tokens"]})
    with tempfile.TemporaryDirectory() as folder:
        table.assign(loss=runs["loss"]).to_csv(Path(folder) / "df.csv", index=False)
        search = Chinchilla(
            folder,
            param_grid=grid,
            seed_ranges=ranges,
            loss_fn=lambda observed, predicted: log_huber(observed, predicted, delta=DELTA),
            log_level=60,
        )
        seconds = cpu_seconds(lambda: search.fit(parallel=False))
    theta = [np.log(search.A), np.log(search.B), np.log(search.E), search.alpha, search.beta]
    objective = peer.objective(np.array(theta))
    yield Timing(SEARCH, "chinchilla 0.2", seconds, "fit", objective, "a grid of 243 starts")


def _replicates(runs: pd.DataFrame, peer: Peer, fit: tk.scaling.ScalingFit) -> Iterator[Timing]:
    rng = np.random.default_rng(1)
    drawn = rng.integers(0, len(runs), (REPLICATES, len(runs)))
    fits: list[tk.scaling.ScalingFit] = []

    def ours() -> None:
        fits.append(tk.scaling.fit("chinchilla", runs, bootstrap=drawn))

    alone = cpu_seconds(lambda: tk.scaling.fit("chinchilla", runs), repeats=5)
    seconds = (cpu_seconds(ours, repeats=3) - alone) / REPLICATES
    working = fits[0].draws.to_numpy()[:PEER_REPLICATES].copy()
    working[:, :3] = np.log(working[:, :3])
    subset = drawn[:PEER_REPLICATES]
    reached = np.array([peer.objective(t, r) for t, r in zip(working, subset, strict=True)])
    failed = fits[0].bootstrap.failed if fits[0].bootstrap else REPLICATES
    note = f"{REPLICATES:,} resamples, {failed} without certificate; objective: mean of 200"
    yield Timing(REPLICATE, "toolkit", seconds, "replicate", float(reached.mean()), note)

    start = fit.values.copy()
    start[:3] = np.log(start[:3])
    others: list[float] = []

    def theirs() -> None:
        for rows in subset:
            answer = minimize(
                peer.objective_and_gradient, start, args=(rows,), jac=True, method="BFGS"
            )
            others.append(float(answer.fun))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        seconds = cpu_seconds(theirs) / PEER_REPLICATES
    above = np.sum(np.array(others) > reached * (1 + 1e-9))
    note = f"analytic gradient; {above} of {PEER_REPLICATES} end more than 1e-9 above the toolkit"
    yield Timing(REPLICATE, "scipy BFGS", seconds, "replicate", float(np.mean(others)), note)
