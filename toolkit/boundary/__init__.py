"""Capability boundaries: the score that training compute can buy, and how sure that is."""

from toolkit.boundary.curve import Curve
from toolkit.boundary.fit import fit
from toolkit.boundary.result import BoundaryFit

__all__ = ["BoundaryFit", "Curve", "fit"]
