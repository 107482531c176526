"""Shapes and values of a model's inputs, as options state them."""

import re
from collections.abc import Container, Sequence

from tilewright.errors import InputError

__all__ = ["pairs_given", "shape_given", "shapes_given", "values_given"]


def shapes_given(texts: Sequence[str] | None) -> dict[str, tuple[int, ...]]:
    """Return names and extents of the options ``--shape``.

    Raises
    ------
    InputError
        If a text is not of the form of `shape_given`, or a name is there twice.
    """
    found: dict[str, tuple[int, ...]] = {}
    for text in texts or ():
        name, shape = shape_given(text)
        _require_new("--shape", name, found)
        found[name] = shape
    return found


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
        _require_new("--state", name, found)
        found[name] = output
    return found


def values_given(texts: Sequence[str] | None) -> dict[str, tuple[float, ...]]:
    """Return names and values of the options ``--input-value``.

    Raises
    ------
    InputError
        If a text is not of that form, or an input is there twice.
    """
    found: dict[str, tuple[float, ...]] = {}
    for text in texts or ():
        name, _, numbers = text.rpartition("=")
        try:
            value = tuple(map(float, numbers.split(",")))
        except ValueError:
            name = ""
        if not name:
            raise InputError(f"Option --input-value must have the form sr=16000 or size=320,320, not {text!r}")
        _require_new("--input-value", name, found)
        found[name] = value
    return found


def _require_new(option: str, name: str, found: Container[str]) -> None:
    if name in found:
        raise InputError(f"Option {option} must name {name!r} once, and it is there twice")
