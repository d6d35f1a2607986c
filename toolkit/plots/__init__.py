"""One function per picture: takes a result, draws it on ``ax`` (the current axes), returns it.

A picture draws what the result computed and nothing else. No function shows or saves a figure,
or changes a global setting: layout, style and size are the caller's.
"""

from toolkit.plots.boundary import boundary
from toolkit.plots.budgets import allocation
from toolkit.plots.diagnostics import bootstrap_cloud, residuals
from toolkit.plots.downstream import emergence, score_backtest, score_vs_compute, score_vs_loss
from toolkit.plots.frontiers import exponents, isoflop_minima
from toolkit.plots.lifetime import lifetime_compute
from toolkit.plots.losses import isoflop, loss_vs_compute
from toolkit.plots.profiles import profile
from toolkit.plots.validation import comparison, extrapolation_error, held_out, leverage_map

__all__ = [
    "allocation",
    "bootstrap_cloud",
    "boundary",
    "comparison",
    "emergence",
    "exponents",
    "extrapolation_error",
    "held_out",
    "isoflop",
    "isoflop_minima",
    "leverage_map",
    "lifetime_compute",
    "loss_vs_compute",
    "profile",
    "residuals",
    "score_backtest",
    "score_vs_compute",
    "score_vs_loss",
]
