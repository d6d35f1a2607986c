"""How often intervals cover the truth: ``python -m benchmarks.coverage [LAW ...]``.

For each law of the catalogue, studies are simulated from its truth in ``tests.scaling.laws_truth``
and fitted with a bootstrap. Printed are the share of 95 % percentile intervals of the headline
quantity that hold the truth, with its standard error, how many studies withheld the interval
because the data did not determine the quantity, and the CPU time of a bootstrap replicate.
"""

import argparse
import warnings
from dataclasses import dataclass

import numpy as np

import toolkit as tk
from benchmarks.timing import cpu_seconds
from tests.scaling.laws_truth import TRUTHS, Truth
from toolkit.scaling.allocation import size_exponent


@dataclass(frozen=True)
class Coverage:
    """What the studies of one law gave."""

    law: str
    headline: str
    covered: int
    given: int
    studies: int
    uncertified: int
    seconds_per_replicate: float

    def __str__(self) -> str:
        share = self.covered / self.given if self.given else np.nan
        error = np.sqrt(share * (1 - share) / self.given) if self.given else np.nan
        return (
            f"{self.law:16} {self.headline:16} covered {share:6.1%} +- {error:.1%}, "
            f"withheld {self.studies - self.given} of {self.studies}, not certified "
            f"{self.uncertified}, {1e6 * self.seconds_per_replicate:5.0f} us CPU per replicate"
        )


def truth_of(name: str, truth: Truth) -> float:
    if truth.headline == "params_exponent":
        law = tk.scaling.laws.get(name)
        return float(size_exponent(law, law.values(truth.values)))
    return truth.values[truth.headline]


def measure(name: str, studies: int, resamples: int) -> Coverage:
    """Simulate and fit the studies of one law."""
    truth = TRUTHS[name]
    expected = truth_of(name, truth)
    covered = given = uncertified = 0
    for seed in range(studies):
        runs = tk.datasets.simulate_runs(
            name, truth.values, truth.design, noise=truth.noise, rng=seed
        )
        fit = tk.scaling.fit(name, runs, fixed=truth.fixed, bootstrap=resamples, rng=seed)
        uncertified += not fit.certified
        lower, upper = fit.conf_int(method="percentile").loc[truth.headline, ["lower", "upper"]]
        given += bool(np.isfinite(lower))
        covered += bool(lower <= expected <= upper)
    seconds = replicate_seconds(name, truth, resamples)
    return Coverage(name, truth.headline, covered, given, studies, uncertified, seconds)


def replicate_seconds(name: str, truth: Truth, resamples: int) -> float:
    """Return the CPU time that a bootstrap replicate adds to a fit."""
    runs = tk.datasets.simulate_runs(name, truth.values, truth.design, noise=truth.noise, rng=0)

    def fit(bootstrap: int) -> None:
        tk.scaling.fit(name, runs, fixed=truth.fixed, bootstrap=bootstrap, rng=0)

    alone = cpu_seconds(lambda: fit(0), repeats=3)
    return (cpu_seconds(lambda: fit(resamples), repeats=3) - alone) / resamples


def main() -> None:
    parser = argparse.ArgumentParser(description="Coverage of 95 % intervals, law by law.")
    parser.add_argument("laws", nargs="*", metavar="LAW", help="names of laws; all when missing")
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=400)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # studies that determine too little are counted instead
    for name in arguments.laws or TRUTHS:
        print(measure(name, arguments.studies, arguments.resamples), flush=True)


if __name__ == "__main__":
    main()
