"""The bus master behind its window checks, wired as in the coprocessor, for the proof of the windows."""

from amaranth import Module
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
    """

    def __init__(self, data_bytes: int, *, outstanding: int, windows: int) -> None:
        self.data_bytes = data_bytes
        self.outstanding = outstanding
        self.count = windows
        super().__init__({
            "windows": In(MemoryWindow).array(windows),
            "halt": In(1),
            "read": In(stream.Signature(BusRequest)),
            "read_data": Out(stream.Signature(read_beat(data_bytes))),
            "write": In(stream.Signature(BusRequest)),
            "write_data": In(stream.Signature(write_beat(data_bytes))),
            "m_axi": Out(axi4_signature(data_bytes)),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.axi = axi = AxiMaster(self.data_bytes, outstanding=self.outstanding)
        for name, is_write, request, target in (("read_check", False, self.read, axi.read),
                                                ("write_check", True, self.write, axi.write)):
            m.submodules[name] = check = WindowCheck(self.data_bytes, is_write=is_write, windows=self.count)
            connect(m, flipped(request), check.i)
            connect(m, check.o, target)
            m.d.comb += check.halt.eq(self.halt)
            m.d.comb += [inner.eq(outer) for inner, outer in zip(check.windows, self.windows, strict=True)]
        connect(m, axi.read_data, flipped(self.read_data))
        connect(m, flipped(self.write_data), axi.write_data)
        connect(m, axi.m_axi, flipped(self.m_axi))
        return m
