"""Does a boundary keep its promise: coverage with its interval, loss, skill, height."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from toolkit.boundary.models import Models
from toolkit.boundary.search import pinball, weighted_quantile
from toolkit.numerics.compiling import FloatArray

__all__ = ["coverage_table"]

ON_THE_CURVE = 1e-9  # an exact fit runs through four models; rounding puts them a little beside


def coverage_table(
    models: Models, levels: Sequence[float], curves: FloatArray, level: float
) -> pd.DataFrame:
    """Lay out the quality of each curve, shape (levels, n), at the models."""
    y, w = models.scores, models.weights
    rows = []
    for tau, curve in zip(levels, curves, strict=True):
        share = float(w[y <= curve + ON_THE_CURVE].sum() / w.sum())
        low, high = _binomial_interval(share, models.effective, level)
        loss = pinball(y - curve, w, tau)
        constant = pinball(y - weighted_quantile(y, w, tau), w, tau)
        rows.append(
            {
                "tau": tau,
                "coverage": share,
                "lower": low,
                "upper": high,
                "error": share - tau,
                "pinball": loss / w.sum(),
                "skill": 1 - loss / constant if constant > 0 else np.nan,
                "height": float(w @ curve / w.sum()),
            }
        )
    return pd.DataFrame(rows).set_index("tau")


def _binomial_interval(share: float, count: float, level: float) -> tuple[float, float]:
    """Exact interval of a share (Clopper and Pearson 1934); `count` may be an effective number."""
    tail = (1 - level) / 2
    inside = share * count
    low = stats.beta.ppf(tail, inside, count - inside + 1) if share > 0 else 0.0
    high = stats.beta.ppf(1 - tail, inside + 1, count - inside) if share < 1 else 1.0
    return float(low), float(high)
