"""The benchmark's own arithmetic; its timings are printed on request and never tested."""

import numpy as np
import pytest

import toolkit as tk
from benchmarks import boundary, chinchilla, exponent_grid
from benchmarks.timing import Timing, cpu_seconds, table


def test_ratios_are_taken_within_one_piece_of_work():
    rows = table(
        [
            Timing("fit", "toolkit", 0.01, "fit", 1.0),
            Timing("fit", "peer", 60.0, "fit", 1.1, "stops early"),
            Timing("replicate", "toolkit", 20e-6, "replicate", 2.0),
            Timing("replicate", "peer", 3e-3, "replicate", 2.0),
        ]
    ).splitlines()
    assert [row.split()[1:] for row in rows[1:]] == [
        ["toolkit", "10", "ms", "fit", "1", "1"],
        ["peer", "60", "s", "fit", "6,000", "1.1", "stops", "early"],
        ["toolkit", "20", "us", "replicate", "1", "2"],
        ["peer", "3", "ms", "replicate", "150", "2"],
    ]


def test_cpu_time_is_the_least_of_the_repeats():
    calls = []
    assert 0 <= cpu_seconds(lambda: calls.append(sum(range(1000))), repeats=3) < 1
    assert len(calls) == 3


def test_peer_and_toolkit_minimise_the_same_objective():
    runs = tk.datasets.load("simulated_runs")
    fit = tk.scaling.fit("chinchilla", runs)
    theta = fit.values.copy()
    theta[:3] = np.log(theta[:3])
    peer = chinchilla.Peer(runs)
    every_row = np.arange(len(runs))
    value, gradient = peer.objective_and_gradient(theta, every_row)
    assert value == pytest.approx(fit.objective, rel=1e-9)
    assert peer.objective(theta) == pytest.approx(fit.objective, rel=1e-9)
    assert np.abs(gradient).max() < 1e-6


def test_the_boundary_peer_minimises_the_same_loss():
    models = boundary.known_models(3000, 60)
    fit = tk.boundary.fit(models, tau=boundary.TAU)
    peer, weights = boundary.Peer(models), np.ones(3000)
    theta = fit.values[0].copy()
    theta[3] = np.log(theta[3])
    found = fit.searches[0]
    assert peer.exact(theta, weights) == pytest.approx(found.objective[found.best], rel=1e-9)
    end, loss = peer.descend(np.array([0.2, 0.6, 23.0, 0.7]), weights, boundary.KAPPAS)
    assert found.objective[found.best] <= loss <= found.objective[found.best] * (1 + 1e-2)
    shifted = end + np.array([0.0, 0.0, 1e-6, 0.0])
    change = peer.smoothed(shifted, weights, 50.0)[0] - peer.smoothed(end, weights, 50.0)[0]
    assert change == pytest.approx(1e-6 * peer.smoothed(end, weights, 50.0)[1][2], rel=1e-3)


def test_the_grid_of_exponents_comes_near_the_same_optimum_from_above():
    runs = tk.datasets.load("simulated_runs")
    fit = tk.scaling.fit("chinchilla", runs)
    reached, params = exponent_grid.search(runs, np.arange(0.30, 0.43, 0.01))
    assert fit.objective <= reached <= 1.05 * fit.objective
    assert chinchilla.Peer(runs).objective(
        np.concatenate([np.log(params[:3]), params[3:]])
    ) == pytest.approx(reached, rel=1e-9)
    np.testing.assert_allclose(params[3:], fit.values[3:], atol=0.03)
