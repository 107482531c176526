"""The component of an extension, made by its file and checked against the members of the contract."""

from collections.abc import Mapping
from typing import Any

from amaranth import signed
from amaranth.back.rtlil import convert
from amaranth.lib.data import StructLayout
from amaranth.lib.wiring import Component, Member

from tilewright.isa.encoding import Field
from tilewright.isa.extension import Extension, ExtensionError

__all__ = ["checked_component", "fields_layout"]


def fields_layout(fields: tuple[Field, ...]) -> StructLayout:
    """Return the layout of the instruction's own fields."""
    return StructLayout({each.name: signed(each.width) if each.signed else each.width for each in fields})


def checked_component(extension: Extension, arguments: tuple[Any, ...], wanted: Mapping[str, Member]) -> Component:
    """Return the component that the file builds from ``arguments``.

    Raises
    ------
    ExtensionError
        If it cannot be made or elaborated, or its members are not ``wanted``; the message names the file.
    """
    call = f"component({', '.join(map(str, arguments))})"
    try:
        component = extension.component(*arguments)
    except Exception as error:  # whatever a user's file raises
        raise ExtensionError(f"Extension {extension.path}: {call} fails: {type(error).__name__}: {error}") from error
    if not isinstance(component, Component):
        raise ExtensionError(f"Extension {extension.path}: {call} must return an amaranth.lib.wiring.Component, "
                             f"not {type(component).__name__}")
    found = dict(component.signature.members.items())
    for name, member in wanted.items():
        if found.get(name) != member:
            raise ExtensionError(f"Extension {extension.path}: member {name} of the component must be {member!r}, "
                                 f"not {found.get(name)!r}")
    if more := sorted(found.keys() - wanted.keys()):
        raise ExtensionError(f"Extension {extension.path}: the component must have the members {', '.join(wanted)} "
                             f"alone, not {more[0]} too")
    try:
        convert(extension.component(*arguments))
    except Exception as error:  # as above: elaborating it runs the user's file too
        raise ExtensionError(f"Extension {extension.path}: {call} cannot be elaborated: {type(error).__name__}: "
                             f"{error}") from error
    return component
