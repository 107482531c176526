"""The coprocessor behind one of its ports: the parts that all ports share."""

from collections.abc import Callable, Collection, Mapping
from typing import ClassVar

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect, flipped

from tilewright.isa.machine import Machine
from tilewright.rtl.coprocessor import Coprocessor

__all__ = ["PortedCoprocessor"]


class PortedCoprocessor(wiring.Component):
    """A `Coprocessor` whose commands come from an adapter.

    Parameters
    ----------
    machine : Machine
    adapter : Component
        Has the member ``commands``.
    told : dict of str to str
        Inputs of the adapter, and the coprocessor's outputs that drive them.
    asked : dict of str to str
        Inputs of the coprocessor, and the adapter's outputs that drive them; those that no adapter drives are 0. One
        that is a pin too, ``stop_request``, is driven by either.
    covered : collection of str
        Members of the coprocessor that are no pins, since the adapter has what stands for them.
    watched : bool
        As of `Coprocessor`.

    Members
    -------
    All of both, except what is between them; an output of the coprocessor that the adapter is told is there too, unless
    it is ``passes``.
    """

    COPROCESSOR: ClassVar[Callable[..., Coprocessor]] = Coprocessor

    def __init__(self, machine: Machine, adapter: wiring.Component, told: Mapping[str, str],
                 asked: Mapping[str, str], *, covered: Collection[str] = (), watched: bool = False) -> None:
        self._adapter, self._coprocessor = adapter, self.COPROCESSOR(machine, watched=watched)
        self._told, self._asked = told, asked
        inner = {"commands", "passes", "waits", "abort_request", "erase_request"}
        own = inner | set(told) | set(asked.values())
        self._outside = [(part, {name: member for name, member in part.signature.members.items() if name not in hidden})
                         for part, hidden in ((self._adapter, own), (self._coprocessor, inner | set(covered)))]
        super().__init__({name: member for _, members in self._outside for name, member in members.items()})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.adapter = self._adapter
        m.submodules.coprocessor = self._coprocessor
        connect(m, self._adapter.commands, self._coprocessor.commands)
        m.d.comb += [getattr(self._adapter, name).eq(getattr(self._coprocessor, source))
                     for name, source in self._told.items()]
        asked = {name: getattr(self._adapter, source) for name, source in self._asked.items()}
        pins = {name for _, members in self._outside for name in members}
        for name, value in asked.items():
            asks = getattr(self._coprocessor, name)
            if self._coprocessor.signature.members[name].dimensions:
                m.d.comb += [one.eq(other) for one, other in zip(asks, value, strict=True)]
            else:
                m.d.comb += asks.eq(value | getattr(self, name) if name in pins else value)
        for part, members in self._outside:
            for name, member in members.items():
                if name in asked:
                    continue
                inner, outer = getattr(part, name), getattr(self, name)
                if member.is_signature:
                    connect(m, inner, flipped(outer))
                elif member.dimensions:
                    m.d.comb += [i.eq(o) for i, o in zip(inner, outer, strict=True)]
                else:
                    m.d.comb += inner.eq(outer) if member.flow is In else outer.eq(inner)
        return m
