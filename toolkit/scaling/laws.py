"""The catalogue of laws, by name."""

from toolkit.errors import DataError
from toolkit.scaling.chinchilla import CHINCHILLA
from toolkit.scaling.law import Law

__all__ = ["CHINCHILLA", "LAWS", "get"]

LAWS: dict[str, Law] = {law.name: law for law in (CHINCHILLA,)}


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
