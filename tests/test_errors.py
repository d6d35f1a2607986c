import inspect
import warnings

import pytest

from toolkit import errors


def test_errors_are_caught_by_their_usual_kind() -> None:
    assert issubclass(errors.DataError, ValueError)
    assert issubclass(errors.DownloadError, OSError)


@pytest.mark.parametrize("name", [name for name in errors.__all__ if name.endswith("Warning")])
def test_each_doubt_can_be_silenced_alone(name: str) -> None:
    kind = getattr(errors, name)
    assert kind.__bases__ == (UserWarning,)
    with pytest.warns(kind, match="doubt"):
        warnings.warn("doubt", kind, stacklevel=2)


def test_everything_public_is_exported_and_explained() -> None:
    public = {name for name, found in inspect.getmembers(errors, inspect.isclass)}
    assert public == set(errors.__all__)
    assert all(inspect.getdoc(getattr(errors, name)) for name in errors.__all__)
