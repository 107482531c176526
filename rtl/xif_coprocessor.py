"""The coprocessor behind its CV-X-IF adapter: the module that sits beside a CV32E40X."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, connect, flipped

from tilewright.isa.machine import Machine
from tilewright.rtl.coprocessor import Coprocessor
from tilewright.rtl.port.xif import XifAdapter

__all__ = ["XifCoprocessor"]


class XifCoprocessor(wiring.Component):
    """A `Coprocessor` whose commands come from an `XifAdapter`.

    Parameters
    ----------
    machine : Machine

    Members
    -------
    All of both, except the stream between them.
    """

    def __init__(self, machine: Machine) -> None:
        self._adapter, self._coprocessor = XifAdapter(machine), Coprocessor(machine)
        # The adapter's own `idle` is an input, and gives way to the coprocessor's.
        super().__init__(_outside(self._adapter) | _outside(self._coprocessor))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.adapter = self._adapter
        m.submodules.coprocessor = self._coprocessor
        connect(m, self._adapter.commands, self._coprocessor.commands)
        m.d.comb += self._adapter.idle.eq(self._coprocessor.idle | self._coprocessor.fault)
        for part in (self._adapter, self._coprocessor):
            for name, member in _outside(part).items():
                if part is self._adapter and name == "idle":
                    continue
                inner, outer = getattr(part, name), getattr(self, name)
                if member.is_signature:
                    connect(m, inner, flipped(outer))
                elif member.dimensions:
                    m.d.comb += [i.eq(o) for i, o in zip(inner, outer, strict=True)]
                else:
                    m.d.comb += inner.eq(outer) if member.flow is In else outer.eq(inner)
        return m


def _outside(part: wiring.Component) -> dict[str, wiring.Member]:
    """Return the members of ``part`` without the stream of commands."""
    return {name: member for name, member in part.signature.members.items() if name != "commands"}
