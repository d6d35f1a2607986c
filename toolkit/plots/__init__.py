"""One function per picture: takes a result, draws it on ``ax`` (the current axes), returns it.

A picture draws what the result computed and nothing else. No function shows or saves a figure,
or changes a global setting: layout, style and size are the caller's.
"""

from toolkit.plots.budgets import allocation
from toolkit.plots.diagnostics import bootstrap_cloud, residuals
from toolkit.plots.losses import isoflop, loss_vs_compute

__all__ = ["allocation", "bootstrap_cloud", "isoflop", "loss_vs_compute", "residuals"]
