"""Constrained splits against plain numeric minimisation, their first-order condition, limits."""

import dataclasses

import numpy as np
import pytest
from scipy import optimize

from toolkit.datasets.simulate import isoflop_design, simulate_runs
from toolkit.errors import DataError, ExtrapolationWarning
from toolkit.numerics import splitting
from toolkit.scaling import CHINCHILLA, fit, least_compute, least_loss
from toolkit.scaling.budgets.constrained import BOX

pytestmark = pytest.mark.filterwarnings("ignore::toolkit.errors.ExtrapolationWarning")

FREE = (np.inf, 0.0, BOX[1])  # unique tokens, decay of repeats, largest size
PRESETS = ["besiroglu2024-unrounded", "hoffmann2022-unrounded"]


@pytest.fixture(scope="module")
def fitted(runs):
    return fit("chinchilla", runs, bootstrap=60, rng=0)


@pytest.fixture(scope="module")
def point(runs):
    return fit("chinchilla", runs)


def split(kind, values, *requests):
    """Params, tokens and loss of each request for one set of values."""
    theta = CHINCHILLA.to_working(np.atleast_2d(values), np.zeros(2))
    found = getattr(splitting, kind)(CHINCHILLA.model, theta, np.array(requests), BOX)
    return np.exp(found[0])


def loss_of(values, params, tokens):
    a, b, e, alpha, beta = values
    return e + a * params**-alpha + b * tokens**-beta


def effective(tokens, unique, decay):
    """Muennighoff et al. 2023, equation 5, written out."""
    if tokens <= unique:
        return tokens
    return unique + unique * decay * (1 - np.exp(-(tokens / unique - 1) / decay))


def lowest(function, low, high):
    """Least value over a range of logarithms: a grid, then a bounded search around its best."""
    grid = np.linspace(np.log(low), np.log(high), 4001)
    values = np.array([function(np.exp(x)) for x in grid])
    k = int(np.nanargmin(values))
    bounds = grid[max(k - 1, 0)], grid[min(k + 1, 4000)]
    found = optimize.minimize_scalar(
        lambda x: function(np.exp(x)), bounds=bounds, method="bounded", options={"xatol": 1e-12}
    )
    return min((float(found.fun), float(np.exp(found.x))), (values[k], float(np.exp(grid[k]))))


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("flops", [1e19, 5.76e23])
def test_without_constraints_the_split_is_the_closed_form(preset, flops):
    values = CHINCHILLA.values(preset)
    params, tokens, loss = split("least_loss", values, (flops, 0.0, *FREE))[0]
    expected = CHINCHILLA.allocate(values, np.array(flops / 6))
    assert (params, tokens) == pytest.approx(expected, rel=1e-8)
    assert loss == pytest.approx(loss_of(values, *expected), rel=1e-12)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("served", [1e10, 1e12, 1e14])
def test_least_loss_with_inference_is_the_minimum(preset, served):
    values, flops = CHINCHILLA.values(preset), 1e23
    params, tokens, loss = split("least_loss", values, (flops, served, *FREE))[0]
    assert 6 * params * tokens + 2 * params * served == pytest.approx(flops, rel=1e-10)

    def at(size):
        data = (flops / size - 2 * served) / 6
        return loss_of(values, size, data) if data > 1 else np.nan

    best, size = lowest(at, 1e6, flops / (2 * served + 6) * 0.999)
    assert loss <= best * (1 + 1e-12)
    assert params == pytest.approx(size, rel=1e-4)  # the loss is flat there


@pytest.mark.parametrize("served", [0.0, 1e12])
@pytest.mark.parametrize("decay", [0.0, 5.0, 15.4])
def test_least_loss_with_little_data_is_the_minimum(served, decay):
    values, flops, unique = CHINCHILLA.values(PRESETS[0]), 1e23, 2e10
    request = (flops, served, np.log(unique), decay, BOX[1])
    params, tokens, loss = split("least_loss", values, request)[0]

    def at(size):
        data = (flops / size - 2 * served) / 6
        if data <= 1:
            return np.nan
        worth = effective(data, unique, decay) if decay else min(data, unique)
        return loss_of(values, size, worth)

    best, size = lowest(at, 1e6, flops / (2 * served + 6) * 0.999)
    assert loss <= best * (1 + 1e-12)
    assert params == pytest.approx(size, rel=1e-3)
    if decay == 0:
        assert tokens == pytest.approx(unique, rel=1e-9)
    else:
        assert tokens > unique


def test_a_size_cap_trains_the_largest_model_for_longer():
    values, flops = CHINCHILLA.values(PRESETS[0]), 1e23
    params, tokens, _ = split("least_loss", values, (flops, 0.0, np.inf, 0.0, np.log(1e9)))[0]
    assert params == pytest.approx(1e9)
    assert tokens == pytest.approx(flops / 6e9)


def test_a_cap_on_size_and_data_leaves_budget_over():
    values = CHINCHILLA.values(PRESETS[0])
    request = (1e23, 0.0, np.log(1e10), 0.0, np.log(1e9))
    params, tokens, _ = split("least_loss", values, request)[0]
    assert (params, tokens) == pytest.approx((1e9, 1e10))


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("served", [0.0, 1e11, 2e12, 1e14])
@pytest.mark.parametrize("loss", [2.1, 2.6])
def test_least_compute_meets_the_first_order_condition(preset, served, loss):
    values = CHINCHILLA.values(preset)
    a, b, _, alpha, beta = values
    params, tokens, _ = split("least_compute", values, (np.log(loss), served, *FREE))[0]
    assert loss_of(values, params, tokens) == pytest.approx(loss, rel=1e-9)
    elasticities = (alpha * a * params**-alpha) / (beta * b * tokens**-beta)
    assert elasticities == pytest.approx(1 + served / (3 * tokens), rel=1e-6)


@pytest.mark.parametrize(
    "limits",
    [
        FREE,
        (np.log(3e10), 0.0, BOX[1]),
        (np.log(3e10), 15.4, BOX[1]),
        (np.inf, 0.0, np.log(2e9)),
        (np.log(3e11), 3.0, np.log(4e9)),
    ],
)
@pytest.mark.parametrize("served", [0.0, 1e12])
def test_least_compute_is_the_minimum(limits, served):
    values, loss = CHINCHILLA.values(PRESETS[0]), 2.3
    unique, decay, largest = np.exp(limits[0]), limits[1], np.exp(limits[2])
    params, tokens, _ = split("least_compute", values, (np.log(loss), served, *limits))[0]

    def size_for(data):
        """Smallest model that reaches the loss with so much data; NaN where none does."""
        a, b, e, alpha, beta = values
        worth = effective(data, unique, decay) if decay else min(data, unique)
        rest = loss - e - b * worth**-beta
        size = (a / rest) ** (1 / alpha) if rest > 0 else np.inf
        return size if size <= largest else np.nan

    def cost(data):
        return np.log(size_for(data) * (6 * data + 2 * served))

    best, _ = lowest(cost, 1e9, unique if decay == 0 and np.isfinite(unique) else 1e15)
    assert np.log(params * (6 * tokens + 2 * served)) <= best + 1e-9
    assert params <= largest * (1 + 1e-9)
    worth = effective(tokens, unique, decay) if decay else tokens
    assert worth <= unique * (1 + decay) * (1 + 1e-9)
    assert loss_of(values, params, worth) == pytest.approx(loss, rel=1e-8)


def test_budget_and_target_are_two_sides_of_one_problem(point):
    plan = least_loss(point, [1e21, 1e22], inference_tokens=1e12)
    back = least_compute(point, plan["loss"], inference_tokens=1e12)
    np.testing.assert_allclose(back["flops"], plan["flops"], rtol=1e-6)
    np.testing.assert_allclose(back["params"], plan["params"], rtol=1e-5)


def test_the_free_split_is_the_optimal_allocation(fitted):
    plan = least_loss(fitted, [1e20, 1e21])
    best = fitted.optimal_allocation([1e20, 1e21], method="percentile")
    for name in ("params", "tokens", "tokens_per_param", "loss"):
        for column in (name, f"{name}_lower", f"{name}_upper"):
            np.testing.assert_allclose(plan[column], best[column], rtol=1e-7)
    np.testing.assert_allclose(plan["flops_training"], plan["flops"])


def test_who_serves_more_trains_a_smaller_model_for_longer(point):
    plan = least_compute(point, 2.3, inference_tokens=[0, 1e10, 1e11, 1e12, 1e13])
    assert plan["params"].is_monotonic_decreasing
    assert plan["tokens"].is_monotonic_increasing
    assert plan["flops_training"].is_monotonic_increasing
    training = plan["flops_training"] + 2 * plan["params"] * plan["inference_tokens"]
    np.testing.assert_allclose(plan["flops"], training)
    assert list(plan) == [
        *("loss", "inference_tokens", "params", "tokens", "tokens_per_param"),
        *("flops", "flops_training"),
    ]


def test_bounds_are_quantiles_of_the_splits_of_the_draws(fitted):
    plan = least_compute(fitted, 2.3, inference_tokens=1e12, level=0.8).iloc[0]
    found = np.array(
        [
            split("least_compute", draw, (np.log(2.3), 1e12, *FREE))[0, :2]
            for draw in fitted.draws.to_numpy()
        ]
    )
    for name, values in {
        "params": found[:, 0],
        "tokens": found[:, 1],
        "flops": found[:, 0] * (6 * found[:, 1] + 2e12),
    }.items():
        low, high = np.exp(np.quantile(np.log(values), [0.1, 0.9]))
        assert plan[f"{name}_lower"] == pytest.approx(low, rel=1e-9)
        assert plan[f"{name}_upper"] == pytest.approx(high, rel=1e-9)
    assert plan["unreachable"] == 0


def test_what_a_constraint_sets_does_not_vary(fitted):
    plan = least_loss(fitted, 1e21, max_params=1e8).iloc[0]
    assert plan[["params", "params_lower", "params_upper"]].tolist() == pytest.approx([1e8] * 3)
    assert plan["loss_lower"] < plan["loss"] < plan["loss_upper"]


def test_a_loss_near_the_floor_has_no_bounds(fitted):
    floor = fitted.params["E"]
    plan = least_compute(fitted, floor * 1.006).iloc[0]
    assert 0.025 < plan["unreachable"] < 1
    assert np.isnan(plan[["params_lower", "params_upper", "flops_upper"]].astype(float)).all()
    assert np.isfinite(plan["params"])


@pytest.mark.parametrize(
    ("loss", "options", "lowest"),
    [
        (1.5, {}, r"the lowest loss of the fitted law there is 1\.8"),
        (2.1, {"max_params": 1e8}, r"there is 2\.59"),
        (2.1, {"unique_tokens": 1e9}, r"there is 2\.8"),
    ],
)
def test_a_loss_out_of_reach_says_what_is_in_reach(point, loss, options, lowest):
    with pytest.raises(DataError, match=f"no size and data within these constraints.*{lowest}"):
        least_compute(point, [2.9, loss], **options)


def test_a_budget_that_cannot_serve_says_what_can(point):
    with pytest.raises(DataError, match=r"feasible from 2e\+16 FLOPs"):
        least_loss(point, 1e15, inference_tokens=1e14)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inference_tokens": -1.0}, "inference_tokens are numbers of tokens, 0 or more"),
        ({"inference_tokens": np.nan}, "inference_tokens are numbers"),
        ({"inference_tokens": [1e9, 1e10, 1e11]}, "need one shape"),
        ({"unique_tokens": 7}, "'tokens'.*outside"),
        ({"max_params": -1e9}, "'params'.*negative"),
        ({"repeat_decay": 15.4}, "give how many there are"),
        ({"unique_tokens": 1e10, "repeat_decay": -1}, "repeat_decay is a number of epochs"),
        ({"method": "bca"}, "method must be 'percentile' or 'basic'"),
        ({"level": 95}, "level must lie between 0 and 1"),
    ],
)
@pytest.mark.parametrize(
    ("solve", "wanted"), [(least_loss, [1e20, 1e21]), (least_compute, [2.4, 2.6])]
)
def test_requests_that_make_no_sense_are_refused(point, solve, wanted, options, message):
    with pytest.raises(DataError, match=message):
        solve(point, wanted, **options)


def test_laws_of_other_columns_are_refused(point):
    law = dataclasses.replace(point.law, columns=("params", "steps"))
    other = dataclasses.replace(point, problem=dataclasses.replace(point.problem, law=law))
    with pytest.raises(DataError, match="is a law of params, steps"):
        least_loss(other, 1e20)


@pytest.mark.filterwarnings("ignore::toolkit.errors.IdentifiabilityWarning")
@pytest.mark.filterwarnings("ignore::toolkit.errors.ConvergenceWarning")
def test_exponents_that_are_not_identified_give_no_plan():
    design = isoflop_design(np.geomspace(1e18, 1e21, 12), [20.0])
    runs = simulate_runs("chinchilla", PRESETS[0], design, noise=0.003, rng=0)
    plan = least_loss(fit("chinchilla", runs), 1e20)
    assert plan[["params", "tokens", "loss"]].isna().all(axis=None)


@pytest.mark.filterwarnings("error::toolkit.errors.ExtrapolationWarning")
def test_extrapolation_of_compute_or_of_the_ratio_is_warned_of(point):
    least_loss(point, 1e21)
    with pytest.warns(ExtrapolationWarning, match="beyond the compute of the largest run"):
        least_loss(point, 1e23)
    with pytest.warns(ExtrapolationWarning, match="largest tokens per parameter"):
        least_loss(point, 1e20, max_params=1e7)
