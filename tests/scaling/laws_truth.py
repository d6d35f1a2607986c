"""For each law of the catalogue: a truth, runs to see it in, and the quantity people quote.

``tests/scaling/test_catalogue.py`` asks every law to find its truth again, and
``python -m benchmarks.coverage`` measures how often the interval of the headline covers it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from toolkit.datasets import isoflop_design
from toolkit.scaling import laws

SIZE_AND_DATA = isoflop_design(np.logspace(18, 22, 20), np.geomspace(1, 300, 12))  # 240 runs


@dataclass(frozen=True)
class Truth:
    """A law's true parameters and the design of a study.

    Attributes
    ----------
    values : mapping of parameter name to value
    design : DataFrame
        The law's columns; 240 rows, so that times can be compared.
    headline : str
        A row of ``fit.conf_int()``: a parameter, or ``params_exponent``.
    noise : float
        Standard deviation of the log loss.
    fixed : mapping of parameter name to value
        What a study would pin.
    """

    values: Mapping[str, float]
    design: pd.DataFrame
    headline: str
    noise: float = 0.005
    fixed: Mapping[str, float] = field(default_factory=dict)


def grid(**columns):
    """Every combination of the columns' values."""
    meshes = np.meshgrid(*columns.values(), indexing="ij")
    return pd.DataFrame({name: mesh.ravel() for name, mesh in zip(columns, meshes, strict=True)})


def preset(law, name):
    return dict(laws.get(law).presets[name].values)


def repeats():
    """Fresh and repeated data, up to 1,000 times over, for models of 16 sizes."""
    design = grid(
        params=np.geomspace(1e7, 1e10, 16),
        tokens_unique=np.geomspace(1e8, 1e10, 3),
        epochs=np.array([1.0, 4.0, 16.0, 60.0, 1000.0]),
    )
    return design.assign(tokens=design["tokens_unique"] * design.pop("epochs"))


def random_bits(runs, *, after):
    """Draw runs whose precisions vary independently."""
    rng = np.random.default_rng(1)
    columns = ["bits_weights", "bits_activations", "bits_cache", "bits_after"][: 4 if after else 3]
    return pd.DataFrame(
        {
            "params": np.geomspace(3e7, 2.2e8, runs),
            "tokens": rng.permutation(np.geomspace(1.5e9, 2.6e10, runs)),
            **{name: rng.integers(2, 13, runs).astype(float) for name in columns},
        }
    )


CURVE_VALUES = {
    "pow2": {"A": 10.0, "alpha": 0.06},
    "pow3": {"A": 1e6, "c": 1.5, "alpha": 0.6},
    "pow4": {"A": 3.0, "c": 1.5, "S": 3e9, "alpha": 0.6},
    "exp3": {"A": 3.0, "c": 1.5, "S": 3e9},
    "weibull": {"A": 3.0, "c": 1.5, "S": 3e9, "alpha": 0.6},
    "vapor": {"A": 10.0, "S": 1e8, "alpha": 0.06},
    "ilog2": {"A": 30.0, "c": 1.5},
    "log_power": {"A": 3.0, "S": 3e11, "alpha": 0.6},
    "mmf": {"A": 3.0, "c": 1.5, "S": 3e9, "alpha": 0.6},
    "gompertz": {"A": 3.0, "c": 1.5, "S": 3e9, "alpha": 0.6},
    "logistic": {"A": 3.0, "c": 1.5, "S": 3e9},
    "bertalanffy": {"A": 3.0, "c": 1.5, "S": 3e9},
}

TRUTHS = {
    "chinchilla": Truth(
        preset("chinchilla", "besiroglu2024"), SIZE_AND_DATA, headline="params_exponent"
    ),
    "chinchilla_tied": Truth(
        preset("chinchilla_tied", "muennighoff2023-c4"), SIZE_AND_DATA, headline="alpha"
    ),
    "repeated_data": Truth(preset("repeated_data", "muennighoff2023"), repeats(), headline="R_D"),
    "kaplan_params": Truth(
        preset("kaplan_params", "kaplan2020"),
        grid(params=np.geomspace(1e4, 1.5e9, 240)),
        headline="alpha_N",
    ),
    "kaplan_tokens": Truth(
        preset("kaplan_tokens", "kaplan2020"),
        grid(tokens=np.geomspace(2.2e7, 2.3e10, 240)),
        headline="alpha_D",
    ),
    "kaplan_flops": Truth(
        preset("kaplan_flops", "kaplan2020"),
        grid(flops=np.geomspace(1e12, 8e20, 240)),
        headline="alpha_C",
    ),
    "kaplan": Truth(
        preset("kaplan", "kaplan2020"),
        grid(params=np.geomspace(1e5, 1.5e9, 20), tokens=np.geomspace(2.2e7, 2.3e10, 12)),
        headline="params_exponent",
    ),
    "kaplan_steps": Truth(
        preset("kaplan_steps", "kaplan2020"),
        grid(params=np.geomspace(1e5, 1.5e9, 20), steps=np.geomspace(3e3, 2.5e5, 12)),
        headline="alpha_S",
    ),
    "overtraining": Truth(
        preset("overtraining", "gadre2024-redpajama"), SIZE_AND_DATA, headline="eta"
    ),
    "skaling": Truth(
        {"A": 8e5, "B": 2e6, "E": 1.7, "alpha": 0.75, "beta": 0.7, "k": 0.5},
        SIZE_AND_DATA,
        headline="params_exponent",
        noise=0.002,
    ),
    "broken": Truth(
        {"a": 0.2, "b": 30.0, "c0": 0.1, "c1": 0.35, "d1": 3e8, "f1": 0.5},
        grid(tokens=np.geomspace(1e6, 1e11, 240)),
        headline="d1",
    ),
    "routed": Truth(
        preset("routed", "clark2022-s-base"),
        grid(params_active=np.geomspace(1.5e7, 1.3e9, 20), experts=2.0 ** np.arange(0, 12)),
        headline="b",
        noise=0.003,
    ),
    "granularity": Truth(
        preset("granularity", "krajewski2024"),
        grid(
            params=np.geomspace(1e8, 4e9, 8),
            tokens=np.geomspace(1e10, 3e11, 6),
            granularity=np.array([1.0, 2.0, 4.0, 8.0, 16.0]),
        ),
        headline="gamma",
        noise=0.001,
    ),
    "expert_sparsity": Truth(
        preset("expert_sparsity", "abnar2025"),
        grid(
            params=np.geomspace(1e8, 1e10, 8),
            tokens=np.geomspace(2e9, 1e11, 5),
            sparsity=np.array([0.0, 0.5, 0.75, 0.875, 0.9375, 0.98]),
        ),
        headline="gamma",
        noise=0.0002,
        fixed={"e": 0.94},
    ),
    "weight_sparsity": Truth(
        {"a_S": 16.8, "c_S": 45.2, "a_D": 6.9e8, "c": 0.65, "b_S": 0.72, "b_N": 0.245, "b_D": 0.2},
        grid(
            params_active=np.geomspace(1e6, 1e9, 8),
            tokens=np.geomspace(1e9, 1e11, 6),
            sparsity=np.array([0.0, 0.25, 0.5, 0.75, 0.875]),
        ),
        headline="b_S",
        noise=0.001,
    ),
    "precision_weights": Truth(
        preset("precision_weights", "kumar2024"),
        grid(
            params=np.geomspace(3e7, 2.2e8, 6),
            tokens=np.geomspace(1.5e9, 2.6e10, 5),
            bits_weights=np.array([2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 16.0]),
        ),
        headline="gamma_w",
        noise=0.002,
    ),
    "precision": Truth(
        preset("precision", "kumar2024"),
        random_bits(240, after=False),
        headline="gamma_a",
        noise=0.002,
    ),
    "precision_after": Truth(
        preset("precision_after", "kumar2024"),
        grid(
            params=np.geomspace(3e7, 2.2e8, 6),
            tokens=np.geomspace(1.5e9, 2.6e10, 5),
            bits_after=np.array([2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0]),
        ),
        headline="gamma_after",
        noise=0.002,
    ),
    "precision_unified": Truth(
        preset("precision_unified", "kumar2024"),
        random_bits(240, after=True),
        headline="gamma_after",
        noise=0.002,
    ),
    "compressed": Truth(
        {**preset("chinchilla", "besiroglu2024"), "F": 0.35, "C": 0.8},
        grid(
            params=np.geomspace(3e7, 1e9, 6),
            tokens=np.geomspace(1e9, 1e11, 5),
            representation_error=np.array([0.6, 0.36, 0.12, 0.035, 0.0095, 0.0026, 1e-3, 1e-4]),
        ),
        headline="F",
        noise=0.002,
    ),
    "finetuning": Truth(
        {"B": 60.0, "D_l": 90.0, "E": 1.1, "beta": 0.55},
        grid(examples=np.geomspace(100, 3e6, 240)),
        headline="beta",
    ),
    "finetuning_plain": Truth(
        {"A": 20.0, "E": 1.1, "beta": 0.4, "k": 0.7},
        grid(examples=np.geomspace(100, 3e6, 240)),
        headline="beta",
        noise=0.001,
    ),
    "farseer": Truth(
        {
            "a1": -0.03,
            "b1": -1.0,
            "alpha": 0.3,
            "a2": 0.15,
            "b2": 8.1,
            "beta": 0.25,
            "a3": -0.07,
            "b3": 0.85,
            "gamma": 0.2,
        },
        grid(params=np.geomspace(2e7, 6e9, 20), tokens=np.geomspace(1e9, 5e11, 12)),
        headline="b1",
        noise=0.002,
    ),
    "m1": Truth({"b": 30.0, "c": 0.1}, grid(tokens=np.geomspace(1e6, 1e11, 240)), headline="c"),
    "m2": Truth(
        {"a": 1.8, "b": 400.0, "c": 0.3}, grid(tokens=np.geomspace(1e6, 1e11, 240)), headline="c"
    ),
    "m3": Truth(
        {"b": 60.0, "c": 0.15, "s": 1e10},
        grid(tokens=np.geomspace(1e6, 1e12, 240)),
        headline="c",
    ),
    "m4": Truth(
        {"a": 1.8, "b": 3e3, "c": 0.5, "top": 10.8, "p": 0.7},
        grid(tokens=np.geomspace(1e4, 1e11, 240)),
        headline="c",
    ),
    **{
        f"curve_{family}": Truth(
            values, grid(tokens=np.geomspace(1e8, 1e12, 240)), headline=[*values][-1], noise=0.003
        )
        for family, values in CURVE_VALUES.items()
    },
}
