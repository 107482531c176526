"""Bias and scale of every output channel, read for all lanes of a vector at once."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib.data import ArrayLayout, StructLayout, View
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out, PureInterface
from amaranth.utils import exact_log2

from tilewright.isa.machine import Machine
from tilewright.rtl.arithmetic.requantise import MANTISSA_BITS
from tilewright.rtl.stream.stages import Pipeline, flow

__all__ = ["CHANNEL", "ParameterBuffer", "groups_since", "kept_writes", "parameter_group"]

CHANNEL = StructLayout({"bias": 32, "mantissa": MANTISSA_BITS, "shift": 8})
"""The parameters of a channel as they lie in memory, little-endian."""


class ParameterBuffer(Component):
    """Parameters of ``parameter_channels`` channels; one read and one write per cycle.

    Parameters
    ----------
    machine : Machine

    Attributes
    ----------
    read : flow
        Index of a vector of ``post_lanes`` channels.
    data : list of CHANNEL
        Their parameters, ``LATENCY`` cycles later; they stay until the next ones come.
    write : flow
        ``index`` of a bus word, and its ``data``.
    """

    LATENCY = 2

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        bus = 8 * machine.bus_bytes
        super().__init__({
            "read": In(flow(range(machine.parameter_channels // machine.post_lanes))),
            "data": Out(ArrayLayout(CHANNEL, machine.post_lanes)),
            "write": In(flow(StructLayout({"index": 16, "data": bus}))),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        machine, bus = self.machine, 8 * self.machine.bus_bytes
        vector = CHANNEL.size * machine.post_lanes
        width = max(vector, bus)
        depth = CHANNEL.size * machine.parameter_channels // width
        m.submodules.memory = memory = Memory(shape=width, depth=depth, init=[])
        write_port, read_port = memory.write_port(granularity=bus), memory.read_port()

        parts = exact_log2(width // bus)
        index = self.write.payload.index
        m.d.comb += [
            write_port.addr.eq(index[parts:]),
            write_port.data.eq(self.write.payload.data.replicate(width // bus)),
            write_port.en.eq(self.write.valid << index[:parts]),
        ]

        vectors = exact_log2(width // vector)
        read = self.read.payload
        arrived = Signal()
        place = Signal(vectors)
        m.d.comb += [read_port.en.eq(self.read.valid), read_port.addr.eq(read[vectors:])]
        m.d.sync += arrived.eq(self.read.valid)
        with m.If(self.read.valid):
            m.d.sync += place.eq(read[:vectors])
        data = Signal(vector, reset_less=True)
        with m.If(arrived):
            m.d.sync += data.eq(read_port.data.word_select(place, vector))
        m.d.comb += Cat(self.data).eq(data)
        return m


def kept_writes(m: Module, parameters: PureInterface, tables: PureInterface, target: PureInterface) -> Pipeline:
    """Register what the load writes, as it comes from far: to the parameters, and to tables, which are returned."""
    kept = [Pipeline(m, port.valid, prefix=f"{name}_", payload=port.payload)
            for name, port in (("parameter_write", parameters), ("table_write", tables))]
    for pipe in kept:
        pipe.step()
    parameter_write, table_write = kept
    m.d.comb += [target.valid.eq(parameter_write.valid), target.payload.eq(parameter_write.payload)]
    return table_write


def groups_since(machine: Machine, first: Value, step: View, by_pixel: Value) -> Value:
    """Return the number of a step's lane group, counted from ``first``."""
    number: Value = (step.group - first)[:len(first)]
    if machine.pairs_channels:
        return Mux(by_pixel, number >> exact_log2(machine.channel_parameters), number)[:len(first)]
    return number


def parameter_group(machine: Machine, step: View, by_pixel: Value) -> Value:
    """Return which parameters of a lane's are meant: with pairs of channels each pixel of a tile has its own."""
    if not machine.pairs_channels:
        return step.group
    return (step.group | Mux(by_pixel, step.pixel, 0))[:len(step.group)]
