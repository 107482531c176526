"""Signals that cross the border of each module, used on both sides of it, and which way each of them goes."""

from collections.abc import Iterator
from dataclasses import dataclass

from amaranth.hdl import _ast
from amaranth.hdl._ir import Design, Fragment, Instance, PortDirection
from amaranth.hdl._mem import MemoryInstance
from amaranth.hdl._xfrm import TransformedElaboratable
from amaranth.lib import wiring

__all__ = ["Crossing", "ModuleBorders", "kind_of", "members_of"]


@dataclass(frozen=True, slots=True)
class Crossing:
    """A port: its name inside, the signal, and whether the module drives it."""

    name: str
    signal: _ast.Signal
    is_output: bool

    @property
    def direction(self) -> PortDirection:
        """As Amaranth says it."""
        return PortDirection.Output if self.is_output else PortDirection.Input


class ModuleBorders:
    """Ports of the modules of a design; what it has found out is kept."""

    def __init__(self, design: Design) -> None:
        self._design = design
        self._driven: dict[Fragment, _ast.SignalSet] = {}

    def crossings(self, fragment: Fragment) -> list[Crossing]:
        """Return the ports of a module below the top: clock and reset, members of its signature, then all others.

        A member that one of the two sides does not use is none.
        """
        info = self._design.fragments[fragment]
        outside = self._design.fragments[info.parent]
        driven, members = self.driven(fragment), members_of(fragment)
        found = []
        for signal in info.used_signals:
            if signal in outside.used_signals and len(signal) and signal.name:
                found.append(Crossing(members.get(signal, signal.name), signal, signal in driven))
        order = {"clk": -2, "rst": -1} | {name: number for number, name in enumerate(members.values())}
        return sorted(found, key=lambda port: order.get(port.name, len(order)))

    def driven(self, fragment: Fragment) -> _ast.SignalSet:
        """Return the signals that a fragment and those below it drive."""
        if fragment not in self._driven:
            found = _ast.SignalSet(_driven_here(fragment))
            if type(fragment) is Fragment:
                for below, _, _ in fragment.subfragments:
                    found.update(self.driven(below))
            self._driven[fragment] = found
        return self._driven[fragment]


def kind_of(fragment: Fragment) -> type | None:
    """Return the class that a module was made from; None for a part of another one's ``elaborate``."""
    made = _made_by(fragment)
    return None if made is None else type(made)


def members_of(fragment: Fragment) -> _ast.SignalDict:
    """Return the signals of a component's signature with their names, its members joined by ``__``."""
    made, found = _made_by(fragment), _ast.SignalDict()
    signature = getattr(made, "signature", None)
    if isinstance(signature, wiring.Signature):
        for path, _, value in signature.flatten(made):
            signal = _ast.Value.cast(value)
            if isinstance(signal, _ast.Signal):
                found[signal] = "__".join(map(str, path))
    return found


def _made_by(fragment: Fragment) -> object | None:
    """Return what was elaborated to ``fragment``, without what renamed its domains or inserted a reset."""
    for made in fragment.origins or ():
        while isinstance(made, TransformedElaboratable):
            made = made._elaboratable_
        if type(made).__module__.startswith("amaranth.hdl"):
            continue
        return made
    return None


def _driven_here(fragment: Fragment) -> Iterator[_ast.Signal]:
    if isinstance(fragment, Instance):
        for value, direction in fragment.ports.values():
            if direction == "o" and isinstance(value, _ast.Value):
                yield from value._lhs_signals()
    elif isinstance(fragment, MemoryInstance):
        for port in fragment._read_ports:
            yield from port._data._lhs_signals()
    else:
        for statements in fragment.statements.values():
            yield from statements._lhs_signals()
