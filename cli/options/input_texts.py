"""Shapes and values of a model's inputs, as options state them."""

import re
from collections.abc import Sequence

from tilewright.errors import InputError

__all__ = ["pairs_given", "shape_given", "shapes_given", "values_given"]


def shapes_given(texts: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """Return names and extents of the options ``--shape``; raises the same error as :func:`shape_given`."""
    return dict(map(shape_given, texts or ()))


def shape_given(text: str) -> tuple[str, tuple[int, ...]]:
    """Return name and extents of an option ``--shape``.

    Raises
    ------
    InputError
        If the text is not of that form.
    """
    name, equals, extents = text.rpartition("=")
    if not equals or not name or not re.fullmatch(r"[0-9]{1,9}(,[0-9]{1,9})*", extents):
        raise InputError(f"Option --shape must have the form image=1,3,320,320 or height=320, not {text!r}")
    shape = tuple(map(int, extents.split(",")))
    if 0 in shape:
        raise InputError(f"Option --shape must have sizes of at least 1, not {text!r}")
    return name, shape


def pairs_given(texts: Sequence[str] | None) -> dict[str, str]:
    """Return the outputs of the options ``--state``, by input.

    Raises
    ------
    InputError
        If a text is not of that form, or an input is there twice.
    """
    found: dict[str, str] = {}
    for text in texts or ():
        name, equals, output = text.partition("=")
        if not equals or not name or not output:
            raise InputError(f"Option --state must have the form h=hn, an input and the output that it is in the next "
                             f"call, not {text!r}")
        if name in found:
            raise InputError(f"Option --state must name each input once, and {name!r} is there twice")
        found[name] = output
    return found


def values_given(texts: Sequence[str] | None) -> dict[str, tuple[float, ...]]:
    """Return names and values of the options ``--input-value``.

    Raises
    ------
    InputError
        If a text is not of that form.
    """
    found = {}
    for text in texts or ():
        name, _, numbers = text.rpartition("=")
        try:
            found[name] = tuple(map(float, numbers.split(",")))
        except ValueError:
            name = ""
        if not name:
            raise InputError(f"Option --input-value must have the form sr=16000 or size=320,320, not {text!r}")
    return found
