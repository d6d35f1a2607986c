"""How often 95 % intervals of the allocation exponent cover the truth: which method to trust.

``python -m benchmarks.interval_coverage`` simulates studies on the (params, tokens) of the 240
published runs, with the law that fits those: 1,000 studies of all of them, and 1,000 of 60 at
random (ten choices). Errors are independent, or half of their variance is shared inside clusters
of runs of similar size (40 of 6, 12 of 5); they have three degrees of freedom (Student's t) and a
standard deviation of 0.5 % of the loss. Each study is fitted and resampled 999 times, by rows and
by clusters: about 8 million fits, some minutes. Parts that stand in the result file are not done
again.
"""

import argparse
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

import toolkit as tk
from benchmarks.chinchilla import load_runs
from toolkit.results import Interval, bootstrap_interval, jackknife_interval
from toolkit.scaling.allocation import size_exponent
from toolkit.scaling.problem import Problem

RESULTS = Path(__file__).parent / "results" / "interval_coverage.csv"
METHODS = ("percentile", "bca", "basic", "jackknife", "jackknife_normal")
STUDIES, PART, RESAMPLES = 1000, 100, 999
DEVIATION, DEGREES = 0.005, 3  # of the error of the log loss
KEYS = ["runs", "errors", "resampled", "first"]


@dataclass(frozen=True)
class Design:
    """Studies of one kind: a problem without errors, its optimum, and who belongs together."""

    problem: Problem
    theta: np.ndarray
    cluster_of: np.ndarray
    clustered: bool

    def targets(self, studies: int, rng: np.random.Generator) -> np.ndarray:
        """Draw log losses, shape (studies, n)."""
        runs = self.cluster_of.size
        scale = DEVIATION / np.sqrt(stats.t(DEGREES).var())
        error = scale * rng.standard_t(DEGREES, (studies, runs))
        if self.clustered:
            shared = scale * rng.standard_t(DEGREES, (studies, self.cluster_of.max() + 1))
            error = (error + shared[:, self.cluster_of]) / np.sqrt(2)
        return self.problem.y + error


def make_design(points: pd.DataFrame, runs: int, clustered: bool, choice: int) -> Design:
    """Take runs from the published ones and give them the losses of the law that fits all.

    Where not all are taken, `choice` numbers the random choice.
    """
    truth = tk.scaling.fit("chinchilla", points).values
    chosen = np.sort(np.random.default_rng(choice).permutation(len(points))[:runs])
    table = points.iloc[chosen].sort_values("params", kind="stable")[["params", "tokens"]]
    table = table.assign(loss=tk.scaling.CHINCHILLA.predict(truth, table))
    fit = tk.scaling.fit("chinchilla", table, cluster="params")
    cluster_size = 5 if runs <= 60 else 6
    return Design(fit.problem, fit.theta, np.arange(runs) // cluster_size, clustered)


def exponents(problem: Problem, theta: np.ndarray) -> np.ndarray:
    return size_exponent(problem.law, problem.law.from_working(theta, problem.centre))


def study_intervals(
    problem: Problem,
    theta: np.ndarray,
    unit_of: np.ndarray,
    resamples: int,
    rng: np.random.Generator,
) -> dict[str, Interval]:
    """Fit the resamples of one study, and the study without each unit; bound the exponent."""
    units = int(unit_of.max()) + 1
    counts = rng.multinomial(units, np.full(units, 1 / units), resamples)
    weights = np.vstack([counts, 1 - np.eye(units)])[:, unit_of].astype(float)
    found = exponents(problem, problem.minimise(weights, theta[None, :], near=theta).theta)
    estimate = float(exponents(problem, theta[None, :])[0])
    draws, left_out = found[:resamples], found[resamples:]
    bounds = {
        method: bootstrap_interval(estimate, draws, method=method, left_out=left_out)
        for method in ("percentile", "bca", "basic")
    }
    bounds["jackknife"] = jackknife_interval(estimate, left_out)
    half = bounds["jackknife"].width / 2 * stats.norm.ppf(0.975) / stats.t.ppf(0.975, units - 1)
    bounds["jackknife_normal"] = replace(
        bounds["jackknife"], lower=estimate - half, upper=estimate + half
    )
    return bounds


def run_part(
    design: Design, by_cluster: bool, studies: int, resamples: int, seed: list[int]
) -> dict[str, float]:
    """Count covered truths and take the median width, by method, over some studies."""
    rng = np.random.default_rng(seed)
    problem = design.problem
    targets = design.targets(studies, rng)
    fits = problem.minimise(problem.weights[None, :], design.theta[None, :], targets=targets)
    unit_of = design.cluster_of if by_cluster else np.arange(problem.y.size)
    truth = float(exponents(problem, design.theta[None, :])[0])
    made = [
        study_intervals(replace(problem, y=y), theta, unit_of, resamples, rng)
        for y, theta in zip(targets, fits.theta, strict=True)
    ]
    row: dict[str, float] = {"studies": studies}
    for method in METHODS:
        row[method] = sum(truth in bounds[method] for bounds in made)
        row[f"{method}_width"] = float(np.median([bounds[method].width for bounds in made]))
    return row


def run(path: Path, studies: int = STUDIES) -> Iterator[str]:
    """Do what the result file lacks, part by part; say what was done."""
    points = load_runs()
    done = set()
    if path.exists():
        done = set(read(path)[KEYS].itertuples(index=False, name=None))
    kinds = itertools.product((60, 240), (False, True), (False, True), range(0, studies, PART))
    for runs, clustered, by_cluster, first in kinds:
        errors = "clustered" if clustered else "independent"
        key = (runs, errors, "clusters" if by_cluster else "rows", first)
        if key in done:
            continue
        design = make_design(points, runs, clustered, choice=first)
        row = run_part(design, by_cluster, PART, RESAMPLES, [runs, clustered, by_cluster, first])
        part = pd.DataFrame([dict(zip(KEYS, key, strict=True)) | row])
        part.to_csv(path, mode="a", header=not path.exists(), index=False, float_format="%.6g")
        yield " ".join(map(str, key))


def read(path: Path = RESULTS) -> pd.DataFrame:
    """Read the parts that are done, one row each."""
    return pd.read_csv(path)


def table(path: Path = RESULTS) -> pd.DataFrame:
    """Coverage of each method, one row per kind of study, and the widths of two of them."""
    groups = read(path).groupby(KEYS[:3])
    counted = groups[["studies", *METHODS]].sum()
    coverage = counted[list(METHODS)].div(counted["studies"], axis=0)
    return coverage.join(groups[["percentile_width", "bca_width"]].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description="Coverage of 95 % intervals, by method.")
    parser.add_argument("--results", type=Path, default=RESULTS, help="file that parts go to")
    path = parser.parse_args().results
    for done in run(path):
        print(done, flush=True)
    print(table(path).to_string(float_format="{:.3f}".format))


if __name__ == "__main__":
    main()
