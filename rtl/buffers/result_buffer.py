"""The result buffer: byte banks shared by post-processing (with priority), the store, and the load of residuals."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.data import ArrayLayout, StructLayout
from amaranth.lib.wiring import Component, In, Out
from amaranth.utils import exact_log2

from tilewright.isa.machine import Machine
from tilewright.rtl.buffers.byte_banks import ByteBanks
from tilewright.rtl.stream.stages import flow

__all__ = ["ADDRESS_WIDTH", "ResultBuffer", "residual_write"]

ADDRESS_WIDTH = 20
"""Bits of a buffer address in a command; the buffers take as many as they need."""


def residual_write(machine: Machine) -> StructLayout:
    """Return the layout of a write of residuals: ``count`` bytes of a bus word for byte ``address``."""
    return StructLayout({"address": ADDRESS_WIDTH, "count": max(5, machine.bus_bytes.bit_length()),
                         "data": 8 * machine.bus_bytes})


class ResultBuffer(Component):
    """``result_bytes`` of results and residuals, any run of bytes at any byte address.

    One read and one write per cycle.  Post-processing's are never refused, the streams' only in a cycle in which it
    uses the port.  Both kinds of read answer ``READ_LATENCY`` cycles later, in order; a read sees what was written
    in earlier cycles.

    Parameters
    ----------
    machine : Machine

    Attributes
    ----------
    post_read : flow
        ``address``, ``count``: up to ``post_lanes`` bytes.
    post_data : list of bytes
        ``post_lanes`` of them, ``READ_LATENCY`` cycles after ``post_read``.
    post_write : flow
        ``address``, ``count``, ``data``: up to ``post_lanes`` bytes.
    store_read : stream
        ``address`` of ``bus_bytes`` bytes.
    store_data : flow
        The bytes, ``READ_LATENCY`` cycles after each request.
    residual_write : stream
        ``address``, ``count``, ``data``: up to ``bus_bytes`` bytes.
    bytes_read, bytes_written : Out
        Bytes of the accesses begun in this cycle; the store's count as ``bus_bytes`` each.
    """

    READ_LATENCY = ByteBanks.READ_LATENCY

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.banks = max(machine.bus_bytes, machine.post_lanes)
        self.address_width = exact_log2(machine.result_bytes)
        lanes, bus = machine.post_lanes, machine.bus_bytes
        read = StructLayout({"address": self.address_width, "count": range(lanes + 1)})
        write = StructLayout({"address": self.address_width, "count": range(lanes + 1),
                              "data": ArrayLayout(8, lanes)})
        super().__init__({
            "post_read": In(flow(read)),
            "post_data": Out(ArrayLayout(8, lanes)),
            "post_write": In(flow(write)),
            "store_read": In(stream.Signature(ADDRESS_WIDTH)),
            "store_data": Out(flow(8 * bus)),
            "residual_write": In(stream.Signature(residual_write(machine))),
            "bytes_read": Out(range(self.banks + 1)),
            "bytes_written": Out(range(self.banks + 1)),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.banks = banks = ByteBanks(self.banks, self.machine.result_bytes // self.banks)
        post, store = self.post_read, self.store_read
        m.d.comb += [
            store.ready.eq(~post.valid),
            banks.read.valid.eq(post.valid | store.valid),
            banks.read.payload.address.eq(Mux(post.valid, post.payload.address, store.payload)),
            banks.read.payload.count.eq(Mux(post.valid, post.payload.count, self.machine.bus_bytes)),
            self.post_data.eq(banks.data),
            self.store_data.payload.eq(banks.data),
            self.bytes_read.eq(Mux(banks.read.valid, banks.read.payload.count, 0)),
        ]
        answers = Signal(self.READ_LATENCY)
        m.d.sync += answers.eq((answers << 1) | (store.valid & store.ready))
        m.d.comb += self.store_data.valid.eq(answers[-1])

        post, load = self.post_write, self.residual_write
        m.d.comb += [
            load.ready.eq(~post.valid),
            banks.write.valid.eq(post.valid | load.valid),
            banks.write.payload.address.eq(Mux(post.valid, post.payload.address, load.payload.address)),
            banks.write.payload.count.eq(Mux(post.valid, post.payload.count, load.payload.count)),
            banks.write.payload.data.eq(Mux(post.valid, post.payload.data.as_value(), load.payload.data)),
            self.bytes_written.eq(Mux(banks.write.valid, banks.write.payload.count, 0)),
        ]
        return m
