"""The bus master behind its window checks, wired as in the coprocessor, for the proofs of windows and of stops."""

from amaranth import Cat, Module, ResetInserter
from amaranth.lib import stream
from amaranth.lib.wiring import Component, In, Out, connect, flipped

from tilewright.rtl.bus.axi import AxiMaster, BusRequest, read_beat, write_beat
from tilewright.rtl.bus.axi_channels import axi4_signature
from tilewright.rtl.port.window_check import MemoryWindow, WindowCheck

__all__ = ["GuardedMaster"]


class GuardedMaster(Component):
    """An `AxiMaster` that receives only requests that have passed a `WindowCheck`.

    Parameters
    ----------
    data_bytes, outstanding
        Of the master.
    windows
        How many there are.

    Members
    -------
    quiet : ``Out(1)``
        As `rtl.port.fault_control.FaultControl` is told: nothing is asked for, and no write is under way.
    """

    def __init__(self, data_bytes: int, *, outstanding: int, windows: int) -> None:
        self.data_bytes = data_bytes
        self.outstanding = outstanding
        self.count = windows
        super().__init__({
            "windows": In(MemoryWindow).array(windows),
            "halt": In(1),
            "clear": In(1),
            "quiet": Out(1),
            "read": In(stream.Signature(BusRequest)),
            "read_data": Out(stream.Signature(read_beat(data_bytes))),
            "write": In(stream.Signature(BusRequest)),
            "write_data": In(stream.Signature(write_beat(data_bytes))),
            "m_axi": Out(axi4_signature(data_bytes)),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.axi = axi = AxiMaster(self.data_bytes, outstanding=self.outstanding)
        checks = []
        for name, is_write, request, target in (("read_check", False, self.read, axi.read),
                                                ("write_check", True, self.write, axi.write)):
            check = ResetInserter(self.clear)(
                WindowCheck(self.data_bytes, is_write=is_write, windows=self.count))
            m.submodules[name] = check
            checks.append(check)
            connect(m, flipped(request), check.i)
            connect(m, check.o, target)
            m.d.comb += check.halt.eq(self.halt)
            m.d.comb += [inner.eq(outer) for inner, outer in zip(check.windows, self.windows, strict=True)]
        m.d.comb += [axi.halt.eq(self.halt), axi.clear.eq(self.clear)]
        m.d.comb += self.quiet.eq(~axi.read_asks & axi.write_idle & ~Cat(check.busy for check in checks).any())
        connect(m, axi.read_data, flipped(self.read_data))
        connect(m, flipped(self.write_data), axi.write_data)
        connect(m, axi.m_axi, flipped(self.m_axi))
        return m
