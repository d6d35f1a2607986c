"""The Chinchilla fit in plain numpy and scipy, written apart from the toolkit.

Nothing here is quick or clever: parameters are the raw logarithms of the published fits, the loss
is a log-sum-exp, minimisers are scipy's.
"""

import numpy as np
from scipy import optimize


def residuals(theta, log_params, log_tokens, log_loss):
    """Log of predicted over observed loss; theta is (log A, log B, log E, alpha, beta)."""
    return _terms(theta, log_params, log_tokens)[0] - log_loss


def huber(r, delta):
    """Huber loss: ``r**2 / 2`` up to delta, linear with slope delta beyond."""
    size = np.abs(r)
    return np.where(size <= delta, 0.5 * r**2, delta * (size - 0.5 * delta))


def objective(theta, log_params, log_tokens, log_loss, weights=1.0, delta=1e-3):
    """Sum of Huber losses."""
    return np.sum(weights * huber(residuals(theta, log_params, log_tokens, log_loss), delta))


def objective_and_gradient(theta, log_params, log_tokens, log_loss, weights=1.0, delta=1e-3):
    """Sum of Huber losses and its gradient in theta."""
    log_sum, shares = _terms(theta, log_params, log_tokens)
    r = log_sum - log_loss
    score = weights * np.clip(r, -delta, delta)
    size, data, floor = score * shares
    return np.sum(weights * huber(r, delta)), np.array(
        [
            size.sum(),
            data.sum(),
            floor.sum(),
            -np.sum(size * log_params),
            -np.sum(data * log_tokens),
        ]
    )


def published_refit(start, log_params, log_tokens, log_loss):
    """Fit once by BFGS from one start, as Besiroglu et al. refitted each resample."""
    return optimize.minimize(
        objective_and_gradient, start, (log_params, log_tokens, log_loss), jac=True, method="BFGS"
    )


def thorough_fit(start, log_params, log_tokens, log_loss, weights=1.0, delta=1e-3, rounds=6):
    """Alternate BFGS and Nelder-Mead on centred logarithms until neither finds anything lower.

    The answer is in raw coordinates again.
    """
    centre = np.array([np.mean(log_params), np.mean(log_tokens)])
    data = (log_params - centre[0], log_tokens - centre[1], log_loss, weights, delta)
    theta = _shift(np.asarray(start, dtype=float), -centre)
    best = np.inf
    for _ in range(rounds):
        smooth = optimize.minimize(
            objective_and_gradient, theta, data, jac=True, method="BFGS", options={"gtol": 1e-13}
        )
        simplex = optimize.minimize(
            objective,
            smooth.x,
            data,
            method="Nelder-Mead",
            options={"xatol": 1e-12, "fatol": 1e-20, "maxiter": 3000, "maxfev": 6000},
        )
        found = min(smooth, simplex, key=lambda result: result.fun)
        theta = found.x
        if not found.fun < best * (1 - 1e-14):
            break
        best = found.fun
    return _shift(theta, centre), best


def _shift(theta, centre):
    """Move the origin of the log columns by -centre: coefficients follow their exponents."""
    moved = theta.copy()
    moved[:2] += theta[3:] * centre
    return moved


def _terms(theta, log_params, log_tokens):
    a, b, e, alpha, beta = theta
    exponents = np.array(
        [a - alpha * log_params, b - beta * log_tokens, np.full_like(log_params, e)]
    )
    largest = exponents.max(axis=0)
    terms = np.exp(exponents - largest)
    total = terms.sum(axis=0)
    return largest + np.log(total), terms / total
