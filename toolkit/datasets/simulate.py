"""Runs drawn from a known law: for teaching, and for checking that intervals cover the truth."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit import tables
from toolkit.datasets.cards import Card
from toolkit.datasets.catalog import Simulated
from toolkit.errors import DataError
from toolkit.numerics.compiling import FloatArray
from toolkit.scaling import laws
from toolkit.scaling.allocation import FLOPS_PER_PARAM_TOKEN
from toolkit.scaling.law import Law

__all__ = ["EXAMPLE", "isoflop_design", "simulate_runs"]


def isoflop_design(budgets: npt.ArrayLike, tokens_per_param: npt.ArrayLike) -> pd.DataFrame:
    """Lay out runs as isoFLOP groups: at each budget, one run for each ratio of data to size.

    Parameters
    ----------
    budgets : array_like
        Training compute of each group, in FLOPs (``6 N D``).
    tokens_per_param : array_like
        Ratios D / N inside a group.

    Returns
    -------
    DataFrame
        Columns params, tokens, flops; ``len(budgets) * len(tokens_per_param)`` rows.

    Examples
    --------
    >>> from toolkit.datasets import isoflop_design
    >>> isoflop_design([6e20], [20.0]).round(-9).values.tolist()
    [[2000000000.0, 45000000000.0, 6e+20]]
    """
    flops, ratio = (
        grid.ravel()
        for grid in np.meshgrid(
            np.atleast_1d(np.asarray(budgets, dtype=float)),
            np.atleast_1d(np.asarray(tokens_per_param, dtype=float)),
            indexing="ij",
        )
    )
    if not (np.isfinite(flops * ratio).all() and (flops > 0).all() and (ratio > 0).all()):
        raise DataError("budgets and tokens_per_param must be finite and positive.")
    params = np.sqrt(flops / (FLOPS_PER_PARAM_TOKEN * ratio))
    return pd.DataFrame({"params": params, "tokens": ratio * params, "flops": flops})


def simulate_runs(
    law: str | Law,
    params: str | Mapping[str, float] | Sequence[float] | FloatArray,
    design: pd.DataFrame | Mapping[str, npt.ArrayLike],
    *,
    noise: float | Any = 0.005,
    rng: np.random.Generator | int | None = None,
) -> pd.DataFrame:
    """Draw runs whose log loss is a known law plus noise.

    Parameters
    ----------
    law : str or Law
        The law that is true.
    params : str, mapping or sequence
        Its parameter values, or the name of a preset.
    design : DataFrame or mapping
        The law's columns, one row per run; other columns are kept.
    noise : float or frozen scipy.stats distribution
        Standard deviation of a normal error of the log loss (0.005 is 0.5 % of the loss), or a
        distribution to draw the error from, for example ``scipy.stats.t(3, scale=0.003)``.
    rng : Generator, int or None
        Source of the noise.

    Returns
    -------
    DataFrame
        The design with ``run`` in front, unless it names its runs, and ``loss`` (nats per token)
        added; the truth is in ``.attrs["truth"]``.

    Raises
    ------
    DataError
        If the design or the parameters are not valid, or the noise is negative.

    Examples
    --------
    >>> from toolkit.datasets import isoflop_design, simulate_runs
    >>> design = isoflop_design([1e19, 1e20, 1e21], [5, 20, 80])
    >>> runs = simulate_runs("chinchilla", "besiroglu2024", design, noise=0.0)
    >>> runs["loss"].round(3).tolist()[:3]
    [2.972, 2.928, 2.952]
    """
    law = laws.get(law)
    values = law.values(params)
    frame = pd.DataFrame(design).reset_index(drop=True)
    tables.check(frame, law.columns)
    clean = law.predict(values, frame)
    generator = np.random.default_rng(rng)
    if hasattr(noise, "rvs"):
        error = noise.rvs(size=len(frame), random_state=generator)
    elif isinstance(noise, (int, float, np.number)) and 0 <= noise < np.inf:
        error = generator.normal(0.0, float(noise), size=len(frame))
    else:
        raise DataError(
            f"noise must be a standard deviation of log loss, 0 or more; got {noise!r}."
        )
    if "run" not in frame:
        frame.insert(0, "run", np.arange(len(frame)))
    frame["loss"] = clean * np.exp(error)
    frame.attrs["truth"] = dict(zip(law.parameter_names, values.tolist(), strict=True))
    return frame


EXAMPLE_BUDGETS = (1e18, 3e18, 1e19, 3e19, 1e20, 3e20, 1e21, 3e21)
EXAMPLE_RATIOS = (2.0, 5.0, 10.0, 20.0, 40.0, 80.0, 200.0)
EXAMPLE_LAW, EXAMPLE_PRESET, EXAMPLE_NOISE, EXAMPLE_SEED = "chinchilla", "besiroglu2024", 0.005, 1


def example_runs() -> pd.DataFrame:
    """Return the runs of the dataset ``simulated_runs``: 8 isoFLOP groups of 7 runs."""
    design = isoflop_design(EXAMPLE_BUDGETS, EXAMPLE_RATIOS)
    return simulate_runs(EXAMPLE_LAW, EXAMPLE_PRESET, design, noise=EXAMPLE_NOISE, rng=EXAMPLE_SEED)


EXAMPLE = Simulated(
    example_runs,
    Card(
        name="simulated_runs",
        kind="simulated",
        what="one training run whose loss follows a known Chinchilla law, with noise",
        good_for="learning to fit; checking that a fit finds the truth and an interval covers it",
        rows=len(EXAMPLE_BUDGETS) * len(EXAMPLE_RATIOS),
        width=5,
        columns={
            "run": "one training run",
            "params": "parameters (count)",
            "tokens": "tokens seen in training (count)",
            "flops": "training compute, 6 N D (FLOPs)",
            "loss": "validation cross-entropy (nats per token)",
        },
        source="simulate_runs with the preset besiroglu2024 and 0.5 % normal noise in the loss",
        licence="MIT",
        truth=dict(laws.get(EXAMPLE_LAW).presets[EXAMPLE_PRESET].values),
    ),
)
