"""The list of tools and of the forms in which each writes a network: toolchains.toml."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.errors import InputError

__all__ = ["LIMITS", "QuantiserTool", "WrittenForm", "read_tools"]

LIMITS: dict[str, float | None] = {"int8": 1.1, "partly": 1.3, "dynamic": 3.0, "words": None}
"""By kind of form: the factor that a cell may have; None if there is no limit."""

_LIST = Path(__file__).with_name("toolchains.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenForm:
    """A form in which a tool writes a network; ``arguments`` are its module's, ``limit`` a key of `LIMITS`."""

    name: str
    limit: str = "int8"
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantiserTool:
    """A tool.

    Attributes
    ----------
    name : str
    module : str
        Of `tilewright.bench.toolchains.writers`, run in the tool's environment.
    packages : tuple of str
        That environment, pinned.
    forms : tuple of WrittenForm
    """

    name: str
    module: str
    packages: tuple[str, ...]
    forms: tuple[WrittenForm, ...]


def read_tools(path: Path = _LIST) -> tuple[QuantiserTool, ...]:
    """Return the tools of a list.

    Raises
    ------
    InputError
        If it cannot be read, or an entry has other keys than `QuantiserTool` and `WrittenForm` have fields.
    """
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"))["tool"]
        tools = tuple(QuantiserTool(**{**entry, "packages": tuple(entry["packages"]),
                              "forms": tuple(WrittenForm(**form) for form in entry["forms"])}) for entry in entries)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"List of tools {str(path)!r} must be TOML with [[tool]] entries of name, module, packages "
                         f"and forms: {error}") from error
    unknown = [form.limit for tool in tools for form in tool.forms if form.limit not in LIMITS]
    if unknown:
        raise InputError(f"Limit of a form must be one of {', '.join(LIMITS)}, not {unknown[0]!r}")
    return tools
