"""Design under the bench of the Wishbone bridge: an AXI master with the bridge behind it."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.rtl.bus.axi import AxiMaster
from tilewright.rtl.bus.wishbone import WishboneBridge, wishbone_signature


class WishboneMaster(wiring.Component):
    """An `AxiMaster` with a `WishboneBridge` behind it: members as the master's, ``m_wb`` for ``m_axi``."""

    def __init__(self, data_bytes):
        self._master, self._bridge = AxiMaster(data_bytes), WishboneBridge(data_bytes)
        members = {name: member for name, member in self._master.signature.members.items() if name != "m_axi"}
        super().__init__({**members, "m_wb": Out(wishbone_signature(data_bytes))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.master, m.submodules.bridge = self._master, self._bridge
        connect(m, self._master.m_axi, self._bridge.s_axi)
        connect(m, self._bridge.m_wb, flipped(self.m_wb))
        for name, member in self._master.signature.members.items():
            if name == "m_axi":
                continue
            inner, outer = getattr(self._master, name), getattr(self, name)
            if member.is_signature:
                connect(m, inner, flipped(outer))
            else:
                m.d.comb += inner.eq(outer) if member.flow is In else outer.eq(inner)
        return m
