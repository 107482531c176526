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
    All of both, except what is between them.
    """

    def __init__(self, machine: Machine) -> None:
        self._adapter, self._coprocessor = XifAdapter(machine), Coprocessor(machine)
        super().__init__(_outside(self._adapter) | _outside(self._coprocessor))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.adapter = self._adapter
        m.submodules.coprocessor = self._coprocessor
        connect(m, self._adapter.commands, self._coprocessor.commands)
        m.d.comb += [
            self._adapter.idle.eq(self._coprocessor.passes),
            self._adapter.fault_code.eq(self._coprocessor.fault_code),
            self._coprocessor.waits.eq(self._adapter.waits),
        ]
        for part in (self._adapter, self._coprocessor):
            for name, member in _outside(part).items():
                inner, outer = getattr(part, name), getattr(self, name)
                if member.is_signature:
                    connect(m, inner, flipped(outer))
                elif member.dimensions:
                    m.d.comb += [i.eq(o) for i, o in zip(inner, outer, strict=True)]
                else:
                    m.d.comb += inner.eq(outer) if member.flow is In else outer.eq(inner)
        return m


def _outside(part: wiring.Component) -> dict[str, wiring.Member]:
    """Return the members of ``part`` without those that connect adapter and coprocessor."""
    inner = {"commands", "passes", "waits"} | ({"idle", "fault_code"} if isinstance(part, XifAdapter) else set())
    return {name: member for name, member in part.signature.members.items() if name not in inner}
