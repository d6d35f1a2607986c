"""The capability boundary: an exact 0.98-quantile of 5,000 models, and its bootstrap replicates.

The peer is written here with scipy: L-BFGS-B on the smoothed pinball loss, whose width shrinks in
four stages, from the starts that the toolkit uses; a replicate goes through the last three stages
from the optimum. Objectives are exact pinball losses, so that equal means the same curve.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy import special, stats
from scipy.optimize import minimize

import toolkit as tk
from benchmarks.timing import Timing, cpu_seconds

TAU = 0.98
ROWS = 5000
KAPPAS = (50.0, 200.0, 1000.0, 4000.0)
REPLICATES = 200
PEER_REPLICATES = 20
MANY_ROWS = 500_000


def known_models(rows: int, values: int | None) -> pd.DataFrame:
    """Draw models whose 0.98-quantile is a known sigmoid; `values` ties their compute."""
    rng = np.random.default_rng(0)
    z = (
        rng.uniform(21, 25, rows)
        if values is None
        else rng.choice(np.linspace(21, 25, values), rows)
    )
    curve = tk.boundary.Curve(0.22, 0.60, 23.2, 1.9).attainable(10**z)
    share = rng.beta(4, 2, rows) / stats.beta(4, 2).ppf(TAU)
    return pd.DataFrame({"flops": 10**z, "score": 0.2 + (curve - 0.2) * share})


class Peer:
    """Smoothed and exact pinball loss in plain numpy, in (base, rise, midpoint, log steepness)."""

    def __init__(self, models: pd.DataFrame) -> None:
        self.z = np.log10(models["flops"].to_numpy())
        self.y = models["score"].to_numpy()
        self.bounds = [(0, 1), (0, 1), (self.z.min(), self.z.max()), (-3, 4)]

    def exact(self, theta: np.ndarray, w: np.ndarray) -> float:
        base, rise, midpoint, log_steepness = theta
        u = self.y - base - rise * special.expit(np.exp(log_steepness) * (self.z - midpoint))
        return float(np.sum(w * u * (TAU - (u < 0))))

    def smoothed(self, theta: np.ndarray, w: np.ndarray, kappa: float) -> tuple[float, np.ndarray]:
        base, rise, midpoint, log_steepness = theta
        steepness = np.exp(log_steepness)
        share = special.expit(steepness * (self.z - midpoint))
        u = self.y - base - rise * share
        loss = np.sum(w * (np.logaddexp(0, kappa * u) / kappa + (TAU - 1) * u))
        pull = w * (1 - TAU - special.expit(kappa * u))
        bend = pull * rise * share * (1 - share) * steepness
        gradient = [pull.sum(), pull @ share, -bend.sum(), bend @ (self.z - midpoint)]
        return float(loss), np.array(gradient)

    def descend(
        self, theta: np.ndarray, w: np.ndarray, kappas: tuple[float, ...]
    ) -> tuple[np.ndarray, float]:
        for kappa in kappas:
            theta = minimize(
                self.smoothed,
                theta,
                args=(w, kappa),
                jac=True,
                method="L-BFGS-B",
                bounds=self.bounds,
                options={"ftol": 1e-14, "maxiter": 500},
            ).x
        return theta, self.exact(theta, w)


def run() -> Iterator[Timing]:
    """Time fit and replicates, for compute that differs in every row and for 60 values of it."""
    tk.warm_up()
    for name, values in (("continuous", None), ("60 values", 60)):
        models = known_models(ROWS, values)
        yield from _fits(models, name)
        yield from _replicates(models, name)
    yield from _many_rows()


def _fits(models: pd.DataFrame, name: str) -> Iterator[Timing]:
    work = f"boundary fit, 5,000 models, {name}"
    fit = tk.boundary.fit(models, tau=TAU)
    seconds = cpu_seconds(lambda: tk.boundary.fit(models, tau=TAU), repeats=20)
    found = fit.searches[0]
    note = f"{found.agrees.sum()} of {len(found.agrees)} starts agree, certified"
    yield Timing(work, "toolkit", seconds, "fit", float(found.objective[found.best]), note)

    peer = Peer(models)
    starts = [
        np.array([0.2, 0.6, midpoint, np.log(steepness)])
        for midpoint in (22.0, 23.0, 24.0)
        for steepness in (1.0, 3.0)
    ]
    ends: list[float] = []
    weights = np.ones(ROWS)

    def search() -> None:
        ends.extend(peer.descend(start, weights, KAPPAS)[1] for start in starts)

    seconds = cpu_seconds(search)
    yield Timing(
        work, "scipy L-BFGS-B", seconds, "fit", min(ends), f"{len(starts)} starts, kappa 50 to 4000"
    )


def _replicates(models: pd.DataFrame, name: str) -> Iterator[Timing]:
    work = f"boundary replicate, {name}"
    fits: list[tk.boundary.BoundaryFit] = []

    def ours() -> None:
        fits.append(tk.boundary.fit(models, tau=TAU, bootstrap=REPLICATES, rng=0))

    alone = cpu_seconds(lambda: tk.boundary.fit(models, tau=TAU), repeats=5)
    seconds = (cpu_seconds(ours, repeats=5) - alone) / REPLICATES
    peer = Peer(fits[0].models.table)
    weights = _weights(ROWS, PEER_REPLICATES)
    draws = fits[0].draws
    assert draws is not None
    logged = draws[:PEER_REPLICATES, 0].copy()
    logged[:, 3] = np.log(logged[:, 3])
    reached = np.array([peer.exact(theta, w) for theta, w in zip(logged, weights, strict=True)])
    note = f"{REPLICATES} resamples, {fits[0].failed} not certified; objective: mean of 20"
    yield Timing(work, "toolkit", seconds, "replicate", float(reached.mean()), note)

    start = fits[0].values[0].copy()
    start[3] = np.log(start[3])
    others: list[float] = []

    def theirs() -> None:
        others.extend(peer.descend(start, w, KAPPAS[1:])[1] for w in weights)

    seconds = cpu_seconds(theirs) / PEER_REPLICATES
    above = np.sum(np.array(others) > reached * (1 + 1e-6))
    note = f"{above} of {PEER_REPLICATES} end more than 1e-6 above the toolkit"
    yield Timing(work, "scipy L-BFGS-B", seconds, "replicate", float(np.mean(others)), note)


def _weights(rows: int, resamples: int) -> np.ndarray:
    """Count the first resamples that the toolkit draws with rng=0."""
    drawn = np.random.default_rng(0).integers(0, rows, (resamples, rows), np.int32)
    return np.array([np.bincount(row, minlength=rows) for row in drawn]).astype(float)


def _many_rows() -> Iterator[Timing]:
    """Time a hundred times the rows; the note tells how the time grew."""
    few, many = known_models(ROWS, None), known_models(MANY_ROWS, None)
    short = cpu_seconds(lambda: tk.boundary.fit(few, tau=TAU), repeats=10)
    fit = tk.boundary.fit(many, tau=TAU)
    long = cpu_seconds(lambda: tk.boundary.fit(many, tau=TAU), repeats=3)
    found = fit.searches[0]
    yield Timing(
        "boundary fit, 500,000 models",
        "toolkit",
        long,
        "fit",
        float(found.objective[found.best]),
        f"{long / short:.0f} times the 5,000 models, with 100 times the rows",
    )
