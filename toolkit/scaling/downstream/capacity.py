"""How much knowledge a model can hold, by the bits per parameter that were measured."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd

from toolkit import tables
from toolkit.errors import DataError, ExtrapolationWarning
from toolkit.results import Summary, significant

__all__ = ["BITS_PER_PARAM", "KnowledgeCapacity", "knowledge_capacity"]

SOURCE = "Allen-Zhu and Li 2024, arXiv:2404.05405"

#: Bits of knowledge per parameter, by how often each piece was seen in training; GPT-2 shapes.
BITS_PER_PARAM: Mapping[int, float] = MappingProxyType({100: 1.0, 1000: 2.0})
BITS_PER_PARAM_INT4 = 0.7  # after quantisation to 4 bits; 8 bits lose nothing


@dataclass(frozen=True, slots=True)
class KnowledgeCapacity:
    """Bits of knowledge that a model can hold.

    Attributes
    ----------
    params, exposures : float
        Parameters, and how often each piece of knowledge is seen in training.
    at_least, at_most : float
        Bits. Equal at the measured 1,000 exposures, apart between the measured points; NaN where
        nothing was measured.
    """

    params: float
    exposures: float
    at_least: float
    at_most: float

    def to_frame(self) -> pd.DataFrame:
        """Bits, bits per parameter, and gigabytes of the same information."""
        bits = np.array([self.at_least, self.at_most])
        return pd.DataFrame(
            {"bits": bits, "bits_per_param": bits / self.params, "gigabytes": bits / 8e9},
            index=["at least", "at most"],
        )

    def summary(self) -> Summary:
        """Text or HTML for reading."""
        facts = [
            ("parameters", significant(self.params)),
            ("exposures", f"{self.exposures:g} of each piece of knowledge"),
            ("source", SOURCE),
        ]
        notes = ["measured on synthetic biographies; text with much junk holds several times less"]
        return Summary("Knowledge capacity", facts, self.to_frame().map(significant), notes)

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


def knowledge_capacity(
    params: float, *, exposures: float = 1000, weight_bits: int = 16
) -> KnowledgeCapacity:
    """Bits of knowledge that a model can hold (Allen-Zhu and Li 2024).

    Two bits per parameter when each piece of knowledge is seen 1,000 times, one at 100 times;
    between, only these bounds are known. Weights of 8 bits hold as much, of 4 bits 0.7 bits per
    parameter.

    Parameters
    ----------
    params : float
        Parameters.
    exposures : float
        How often each piece of knowledge is seen in training.
    weight_bits : int
        Bits of a stored weight, 4, or 8 and more.

    Returns
    -------
    KnowledgeCapacity

    Raises
    ------
    DataError
        If the numbers are not positive, or weights of these bits were not measured.

    Warns
    -----
    ExtrapolationWarning
        If the exposures lie outside the 100 to 1,000 that were measured.

    Examples
    --------
    >>> from toolkit.scaling.downstream import knowledge_capacity
    >>> knowledge_capacity(7e9).at_most
    14000000000.0
    """
    size = float(tables.check({"params": [params]}, ["params"])["params"].iloc[0])
    if not 0 < exposures < np.inf:
        raise DataError(f"exposures must be a positive number; got {exposures!r}.")
    if weight_bits == 4:
        if exposures < 1000:
            raise DataError("Weights of 4 bits were measured at 1,000 exposures only.")
        least = most = BITS_PER_PARAM_INT4
    elif weight_bits >= 8:
        least, most = _bits(exposures)
    else:
        raise DataError(f"weight_bits must be 4, or 8 and more; got {weight_bits!r}.")
    if not 100 <= exposures <= 1000:
        warnings.warn(
            f"{exposures:g} exposures lie outside the 100 to 1,000 that were measured ({SOURCE}).",
            ExtrapolationWarning,
            stacklevel=2,
        )
    return KnowledgeCapacity(size, float(exposures), least * size, most * size)


def _bits(exposures: float) -> tuple[float, float]:
    """Bounds of the bits per parameter: knowledge grows with exposures and saturates."""
    few, many = BITS_PER_PARAM[100], BITS_PER_PARAM[1000]
    if exposures >= 1000:
        return many, many
    if exposures > 100:
        return few, many
    return (few, few) if exposures == 100 else (np.nan, few)
