"""The statistics of scaling and evaluating language models.

Rooms, loaded on first use: `scaling` (scaling-law fits), `boundary` (capability boundaries),
`datasets` (tables to work on), `readers` (files of evaluation tools), `plots` (one function per
picture), `tables` (what a valid table is).
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from toolkit.errors import (
    ConvergenceWarning,
    DataError,
    DownloadError,
    ExtrapolationWarning,
    IdentifiabilityWarning,
    SmallSampleWarning,
)
from toolkit.warm import warm_up

if TYPE_CHECKING:
    from toolkit import boundary, datasets, plots, readers, scaling, tables

__version__ = "0.1.0"

_ROOMS = ("boundary", "datasets", "plots", "readers", "scaling", "tables")

__all__ = [
    "ConvergenceWarning",
    "DataError",
    "DownloadError",
    "ExtrapolationWarning",
    "IdentifiabilityWarning",
    "SmallSampleWarning",
    "boundary",
    "datasets",
    "plots",
    "readers",
    "scaling",
    "tables",
    "warm_up",
]


def __getattr__(name: str) -> ModuleType:
    if name in _ROOMS:
        return importlib.import_module(f"toolkit.{name}")
    raise AttributeError(f"module 'toolkit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_ROOMS])
