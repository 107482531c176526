"""Sentences of errors: each folder's are pinned in its ``test_wording_*.py``, elsewhere only their facts."""

from collections.abc import Callable
from typing import Any

import pytest

__all__ = ["raised_by"]


def raised_by(action: Callable[[], Any]) -> tuple[str, str]:
    """Return the class of the error that ``action`` must raise, by name, and its sentence."""
    with pytest.raises(Exception, match=r".") as caught:
        action()
    return caught.type.__name__, str(caught.value)
