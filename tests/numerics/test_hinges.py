"""Sums of hinges under constraints against linear programming."""

import numpy as np
import pytest
from scipy import optimize

from toolkit.numerics.hinges import hinge_optimum, invert


def problem(seed, p, rounded):
    """40 hinges, and constraints that hold at 0 and keep d in a box."""
    rng = np.random.default_rng(seed)
    rows, value = rng.normal(size=(40, p)), rng.normal(size=40)
    if rounded:  # many rows vanish together: degenerate vertices
        rows, value = np.round(rows), np.round(value)
    box = np.vstack([np.eye(p), -np.eye(p)])
    return rng.normal(size=p), value, rows, rng.uniform(0.1, 2.0, 40), -np.ones(2 * p), box


def solve(gradient, value, rows, weight, slack, box):
    basis, step = np.empty(len(gradient), dtype=np.int64), np.empty(len(gradient))
    promised = hinge_optimum(
        gradient,
        np.concatenate([value, slack]),
        np.ascontiguousarray(np.vstack([rows, box]).T),
        weight,
        1e-12,
        basis,
        step,
    )
    return promised, basis, step


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("p", [1, 2, 4, 5])
@pytest.mark.parametrize("seed", range(4))
def test_the_optimum_is_that_of_the_linear_programme(seed, p, rounded):
    gradient, value, rows, weight, slack, box = problem(seed, p, rounded)
    promised, _, step = solve(gradient, value, rows, weight, slack, box)
    above = np.block([[rows, -np.eye(40)], [box, np.zeros((2 * p, 40))]])
    expected = optimize.linprog(
        np.concatenate([gradient, weight]),
        A_ub=above,
        b_ub=np.concatenate([-value, -slack]),
        bounds=[(None, None)] * p + [(0, None)] * 40,
        method="highs",
    ).fun
    reached = gradient @ step + weight @ np.maximum(value + rows @ step, 0)
    assert reached == pytest.approx(expected, abs=1e-9)
    assert weight @ np.maximum(value, 0) - promised == pytest.approx(expected, abs=1e-9)
    assert (box @ step + slack <= 1e-12).all()


def test_basis_rows_vanish_at_the_solution():
    gradient, value, rows, weight, slack, box = problem(3, 4, rounded=False)
    _, basis, step = solve(gradient, value, rows, weight, slack, box)
    everything = np.concatenate([value + rows @ step, slack + box @ step])
    np.testing.assert_allclose(everything[basis], 0.0, atol=1e-12)


def test_a_coordinate_that_nothing_depends_on_stays():
    rows = np.array([[1.0, -1.0], [0.0, 0.0]])
    basis, step = np.empty(2, dtype=np.int64), np.empty(2)
    promised = hinge_optimum(
        np.zeros(2), np.array([1.0, 0.0]), rows, np.ones(2), 1e-12, basis, step
    )
    assert promised == pytest.approx(0.0)  # |.|-like: between -1 and 0 all are optimal
    assert step[1] == 0.0
    assert -2 in basis


def test_a_problem_without_bound_is_told():
    basis, step = np.empty(1, dtype=np.int64), np.empty(1)
    rows = np.array([[1.0]])
    assert (
        hinge_optimum(np.array([1.0]), np.zeros(1), rows, np.ones(1), 1e-12, basis, step) == -np.inf
    )


def test_singular_matrices_are_refused():
    inverse = np.empty((2, 2))
    assert invert(np.array([[0.0, 2.0], [1.0, 0.0]]), inverse)
    np.testing.assert_allclose(inverse, [[0.0, 1.0], [0.5, 0.0]])
    assert not invert(np.ones((2, 2)), inverse)
