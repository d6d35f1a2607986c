"""What can go wrong, as types: one error for bad data, one warning for each kind of doubt."""

__all__ = [
    "ConvergenceWarning",
    "DataError",
    "DownloadError",
    "ExtrapolationWarning",
    "IdentifiabilityWarning",
    "SmallSampleWarning",
]


class DataError(ValueError):
    """The data cannot support what was asked.

    The message names the column and the rows, says what is allowed and how to mend it.
    """


class DownloadError(OSError):
    """A registered file could not be had: missing, offline, corrupt, or not the pinned version."""


class ConvergenceWarning(UserWarning):
    """A minimiser stopped before its optimum was certified."""


class IdentifiabilityWarning(UserWarning):
    """The data do not determine some parameter, or only along with others."""


class SmallSampleWarning(UserWarning):
    """Too few independent units for the interval to be trusted."""


class ExtrapolationWarning(UserWarning):
    """The answer lies outside the range of the data it was fitted to."""
