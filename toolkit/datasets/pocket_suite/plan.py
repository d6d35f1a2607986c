"""The list of all runs, the same every time it is made, in the order they are worth having.

Parts of the suite:

``grid``
    Eight budgets from 3e11 to 3e13 FLOPs, seven sizes each, with more seeds near the expected
    optimum.
``seeds``
    Five seeds at four points of the grid, with items at twenty checkpoints.
``repeated``
    Four amounts of unique tokens by five numbers of epochs by two sizes.
``recipes``
    Seven recipes by four sizes by three seeds, twenty tokens per parameter.
``population``
    250 runs of random shape, learning rate, batch, recipe and budget; a fifth of them tuned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from toolkit.datasets.pocket_suite.settings import RECIPES, Settings, Shape

BUDGETS = tuple(float(f"{budget:.2e}") for budget in np.geomspace(3e11, 3e13, 8))
LADDER = tuple(
    Shape(width, depth)
    for width, depth in [
        (16, 2), (24, 2), (32, 3), (40, 3), (48, 3), (64, 4),
        (80, 4), (96, 4), (112, 4), (128, 5), (160, 5), (176, 5),
    ]
)  # fmt: skip
SIZES_PER_BUDGET = 7
# A first look at two budgets put the optimum here; it only centres the grid.
TOKENS_PER_PARAMETER = 9
SEED_POINTS = ((0, Shape(40, 3)), (1, Shape(48, 3)), (2, Shape(64, 4)), (3, Shape(64, 4)))
SEED_CHECKPOINTS = 20
CURVE_CHECKPOINTS = 10
UNIQUE_TOKENS = (65_536, 131_072, 262_144, 524_288)
EPOCHS = (1, 2, 4, 8, 16)
POPULATION = 250
POPULATION_BUDGETS = (3e10, 3e12)
# Above 1 there are more small runs than large ones, as on a leaderboard.
POPULATION_SKEW = 2.5
FIRST_BUDGETS = (0, 2)


@dataclass(frozen=True)
class Run:
    """One planned run.

    Attributes
    ----------
    run : str
        Its name, which also fixes its seed.
    part : str
        Part of the suite.
    settings : Settings
    checkpoints : int
        How many times it is evaluated, at equal distances.
    items_at_checkpoints : bool
        Whether the tasks are answered at every checkpoint, not only at the end.
    tuned : bool
        Whether shape and learning rate follow the rules of the grid.
    """

    run: str
    part: str
    settings: Settings
    checkpoints: int = CURVE_CHECKPOINTS
    items_at_checkpoints: bool = False
    tuned: bool = True


def learning_rate(shape: Shape, tokens: float) -> float:
    """Learning rate that the sweep suggests for a shape and a number of tokens.

    At 0.5 million tokens the best rates of widths 16, 32, 64 and 128 lie near 0.6 / width; they
    fall slowly with more tokens.
    """
    return float(f"{0.6 / shape.width * (5e5 / tokens) ** 0.2:.3g}")


def make() -> list[Run]:
    """List all runs in the order to do them.

    A first look at the grid comes first; then all parts advance together, so that the tables
    of an unfinished suite hold something of each.
    """
    grid = _grid()
    first = [run for run in grid if run.settings.seed == 0 and _budget_index(run) in FIRST_BUDGETS]
    rest = [run for run in grid if run not in first]
    parts = [_spread(rest), _spread(_seeds()), _spread(_repeated()), _spread(_recipes())]
    parts.append(_population())
    keyed = [
        ((place + 0.5) / len(part), run.run, run)
        for part in parts
        for place, run in enumerate(part)
    ]
    return first + [run for _, _, run in sorted(keyed, key=lambda row: row[:2])]


def _grid() -> list[Run]:
    runs = []
    for index, budget in enumerate(BUDGETS):
        near = _nearest_optimum(budget)
        cells = [(shape, 0) for shape in near[:SIZES_PER_BUDGET]]
        cells += [(shape, 1) for shape in near[: 3 if index < 6 else 2]]
        cells += [(shape, 2) for shape in near[: 3 if index < 4 else 0]]
        runs += [_at_budget("grid", budget, shape, seed) for shape, seed in cells]
    return runs


def _seeds() -> list[Run]:
    return [
        _at_budget("seeds", BUDGETS[index], shape, seed, SEED_CHECKPOINTS, True)
        for seed in range(10, 15)
        for index, shape in SEED_POINTS
    ]


def _repeated() -> list[Run]:
    runs = []
    for shape in (Shape(32, 3), Shape(64, 4)):
        for unique in UNIQUE_TOKENS:
            for epochs in EPOCHS:
                tokens = unique * epochs
                rate = learning_rate(shape, tokens)
                settings = Settings(shape, "code-50", tokens, rate, unique=unique, seed=20)
                name = f"repeated-{_name(shape)}-{unique // 1024}k-x{epochs}"
                runs.append(Run(name, "repeated", settings))
    return runs


def _recipes() -> list[Run]:
    runs = []
    for shape in (Shape(16, 2), Shape(24, 2), Shape(32, 3), Shape(48, 3)):
        tokens = 20 * shape.total_params
        for recipe in RECIPES:
            for seed in range(30, 33):
                settings = Settings(shape, recipe, tokens, learning_rate(shape, tokens), seed=seed)
                runs.append(Run(f"recipes-{recipe}-{_name(shape)}-s{seed}", "recipes", settings))
    return runs


def _population() -> list[Run]:
    rng = np.random.default_rng(40)
    low, high = POPULATION_BUDGETS
    runs = []
    for number in range(POPULATION):
        budget = low * (high / low) ** (rng.random() ** POPULATION_SKEW)
        tuned = number % 5 == 0
        if tuned:
            shape = _nearest_optimum(budget)[0]
            tokens = budget / (6 * shape.total_params)
            recipe, batch, rate = "code-50", 4, learning_rate(shape, tokens)
        else:
            shape, tokens = _random_shape(budget, rng)
            recipe = str(rng.choice(list(RECIPES)))
            batch = int(rng.choice([2, 4, 8, 16]))
            rate = float(f"{3e-3 * (5e-2 / 3e-3) ** rng.random():.3g}")
        settings = Settings(shape, recipe, round(tokens), rate, batch=batch, seed=1000 + number)
        runs.append(Run(f"population-{number:03d}", "population", settings, tuned=tuned))
    return runs


def _random_shape(budget: float, rng: np.random.Generator) -> tuple[Shape, float]:
    """Draw a shape that the budget trains on 2 to 200 tokens per parameter, and those tokens."""
    while True:
        shape = Shape(int(rng.choice(range(16, 129, 8))), int(rng.integers(1, 7)))
        tokens = budget / (6 * shape.total_params)
        if 2 < tokens / shape.total_params < 200:
            return shape, tokens


def _nearest_optimum(budget: float) -> list[Shape]:
    """Sort the ladder by distance from the size expected to be best for a budget."""
    optimum = math.sqrt(budget / (6 * TOKENS_PER_PARAMETER))

    def distance(shape: Shape) -> float:
        return abs(math.log(shape.total_params / optimum))

    return sorted(LADDER, key=distance)


def _at_budget(
    part: str,
    budget: float,
    shape: Shape,
    seed: int,
    checkpoints: int = CURVE_CHECKPOINTS,
    items: bool = False,
) -> Run:
    tokens = round(budget / (6 * shape.total_params))
    settings = Settings(shape, "code-50", tokens, learning_rate(shape, tokens), seed=seed)
    return Run(f"{part}-{budget:.1e}-{_name(shape)}-s{seed}", part, settings, checkpoints, items)


def _budget_index(run: Run) -> int:
    return [f"{budget:.1e}" for budget in BUDGETS].index(run.run.split("-")[1])


def _name(shape: Shape) -> str:
    return f"d{shape.width}l{shape.depth}"


def _spread(runs: list[Run]) -> list[Run]:
    """Mix cheap and dear runs."""
    return [runs[index] for index in np.random.default_rng(50).permutation(len(runs))]
