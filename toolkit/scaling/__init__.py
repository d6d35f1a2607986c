"""Scaling laws: loss as a function of size, data and compute, and how far to trust the fit."""

from toolkit.scaling import laws
from toolkit.scaling.chinchilla import CHINCHILLA, hoffmann_starts
from toolkit.scaling.fit import fit
from toolkit.scaling.law import Law, Parameter, Preset
from toolkit.scaling.result import ScalingFit

__all__ = [
    "CHINCHILLA",
    "Law",
    "Parameter",
    "Preset",
    "ScalingFit",
    "fit",
    "hoffmann_starts",
    "laws",
]
