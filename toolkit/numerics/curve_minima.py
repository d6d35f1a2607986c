"""Where curves through points are lowest, for many curves at once."""

import numpy as np
from scipy.interpolate import Akima1DInterpolator

from toolkit.numerics.compiling import FloatArray

__all__ = ["akima_minima", "parabola_minima"]


def parabola_minima(
    x: FloatArray, y: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Vertices of weighted least-squares parabolas, for y and weights of shape (batch, n).

    A parabola that bends down or has fewer than three sizes under it has a vertex of NaN.
    """
    middle, scale = x.mean(), np.ptp(x)
    design = np.vander((x - middle) / scale, 3)
    normal = np.einsum("bn,ni,nj->bij", weights, design, design)
    right = np.einsum("bn,ni,bn->bi", weights, design, np.broadcast_to(y, weights.shape))
    singular = np.linalg.cond(normal) > 1e12
    normal[singular] = np.eye(3)
    c2, c1, c0 = np.linalg.solve(normal, right[..., None])[..., 0].T
    with np.errstate(divide="ignore", invalid="ignore"):
        vertex = np.where((c2 > 0) & ~singular, -c1 / (2 * c2), np.nan)
    return middle + scale * vertex, c0 + c1 * vertex + c2 * vertex**2


def akima_minima(x: FloatArray, y: FloatArray, grid: int | None) -> tuple[FloatArray, FloatArray]:
    """Find the least values of Akima interpolants through y, shape (batch, n): x and y there."""
    spline = Akima1DInterpolator(x, y.T)
    if grid is not None:
        points = np.linspace(x[0], x[-1], grid * (len(x) - 1))
        values = spline(points)
        best = values.argmin(axis=0)
        # The first and last point may differ from the sizes by rounding, which hides an edge.
        return np.clip(points[best], x[0], x[-1]), values.min(axis=0)
    c3, c2, c1, _ = spline.c
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(c2**2 - 3 * c3 * c1)
        # This form of the root with positive curvature does not cancel where c3 is small.
        inner = np.where(c2 > 0, -c1 / (c2 + root), (root - c2) / (3 * c3))
    width = np.diff(x)[:, None]
    inside = (inner > 0) & (inner < width)
    shift = np.where(inside, inner, 0.0)
    at = np.concatenate([x[:-1, None] + shift, np.full((1, y.shape[0]), x[-1])])
    values = np.concatenate([((c3 * shift + c2) * shift + c1) * shift + spline.c[3], y.T[-1:]])
    best = values.argmin(axis=0)[None, :]
    return np.take_along_axis(at, best, 0)[0], np.take_along_axis(values, best, 0)[0]
