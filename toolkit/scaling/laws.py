"""The catalogue of laws, by name."""

from toolkit.errors import DataError
from toolkit.scaling.broken import BROKEN
from toolkit.scaling.chinchilla import CHINCHILLA
from toolkit.scaling.compressed import COMPRESSED
from toolkit.scaling.extrapolation import EXTRAPOLATION_LAWS
from toolkit.scaling.farseer import FARSEER
from toolkit.scaling.finetuning import FINETUNING, FINETUNING_PLAIN
from toolkit.scaling.granularity import GRANULARITY
from toolkit.scaling.kaplan import (
    KAPLAN,
    KAPLAN_FLOPS,
    KAPLAN_PARAMS,
    KAPLAN_STEPS,
    KAPLAN_TOKENS,
)
from toolkit.scaling.law import Law
from toolkit.scaling.overtraining import OVERTRAINING
from toolkit.scaling.precision import (
    PRECISION,
    PRECISION_AFTER,
    PRECISION_UNIFIED,
    PRECISION_WEIGHTS,
)
from toolkit.scaling.repeated_data import REPEATED_DATA
from toolkit.scaling.routed import ROUTED
from toolkit.scaling.skaling import SKALING
from toolkit.scaling.sparsity import EXPERT_SPARSITY, WEIGHT_SPARSITY
from toolkit.scaling.tied import CHINCHILLA_TIED

__all__ = ["CHINCHILLA", "LAWS", "get"]

LAWS: dict[str, Law] = {
    law.name: law
    for law in (
        CHINCHILLA,
        CHINCHILLA_TIED,
        KAPLAN_PARAMS,
        KAPLAN_TOKENS,
        KAPLAN_FLOPS,
        KAPLAN,
        KAPLAN_STEPS,
        REPEATED_DATA,
        OVERTRAINING,
        SKALING,
        FARSEER,
        BROKEN,
        *EXTRAPOLATION_LAWS,
        ROUTED,
        GRANULARITY,
        EXPERT_SPARSITY,
        WEIGHT_SPARSITY,
        PRECISION_WEIGHTS,
        PRECISION,
        PRECISION_AFTER,
        PRECISION_UNIFIED,
        COMPRESSED,
        FINETUNING,
        FINETUNING_PLAIN,
    )
}


def get(law: str | Law) -> Law:
    """Return a law by its name; a law is returned as it is.

    Examples
    --------
    >>> from toolkit.scaling import laws
    >>> laws.get("chinchilla").columns
    ('params', 'tokens')
    """
    if isinstance(law, Law):
        return law
    if law not in LAWS:
        raise DataError(f"No law {law!r}. Known laws: {', '.join(LAWS)}.")
    return LAWS[law]
