"""The catalogue of laws, by name."""

from toolkit.errors import DataError
from toolkit.scaling.law import Law
from toolkit.scaling.laws.broken import BROKEN
from toolkit.scaling.laws.chinchilla import CHINCHILLA
from toolkit.scaling.laws.compressed import COMPRESSED
from toolkit.scaling.laws.extrapolation import EXTRAPOLATION_LAWS
from toolkit.scaling.laws.farseer import FARSEER
from toolkit.scaling.laws.finetuning import FINETUNING, FINETUNING_PLAIN
from toolkit.scaling.laws.granularity import GRANULARITY
from toolkit.scaling.laws.kaplan import (
    KAPLAN,
    KAPLAN_FLOPS,
    KAPLAN_PARAMS,
    KAPLAN_STEPS,
    KAPLAN_TOKENS,
)
from toolkit.scaling.laws.learning_curves import CURVES, learning_curve
from toolkit.scaling.laws.overtraining import OVERTRAINING
from toolkit.scaling.laws.precision import (
    PRECISION,
    PRECISION_AFTER,
    PRECISION_UNIFIED,
    PRECISION_WEIGHTS,
)
from toolkit.scaling.laws.repeated_data import REPEATED_DATA
from toolkit.scaling.laws.routed import ROUTED
from toolkit.scaling.laws.skaling import SKALING
from toolkit.scaling.laws.sparsity import EXPERT_SPARSITY, WEIGHT_SPARSITY
from toolkit.scaling.laws.tied import CHINCHILLA_TIED

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
        *(learning_curve(family) for family in CURVES),
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
