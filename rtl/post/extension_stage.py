"""The stage of an extension beside the value tables: its parameters, its component, and the latency of a table."""

from amaranth import Cat, Module, Signal, Value, signed
from amaranth.lib.data import ArrayLayout, StructLayout
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out, PureInterface
from amaranth.utils import exact_log2

from tilewright.isa.extension import PostStage
from tilewright.isa.machine import TABLE_BYTES, TABLE_SLOTS, Machine
from tilewright.rtl.stream.commands import is_command, views
from tilewright.rtl.stream.extension_component import checked_component, fields_layout
from tilewright.rtl.stream.stages import flow

__all__ = ["ExtensionStage", "component_of", "take_settings"]


def component_of(stage: PostStage, lanes: int) -> Component:
    """Return the component of ``stage`` for ``lanes`` values a cycle, if it keeps to the contract."""
    return checked_component(stage, (lanes,), {
        "valid": In(1), "values": In(ArrayLayout(signed(8), lanes)),
        "parameters": In(ArrayLayout(8 * stage.parameter_bytes, lanes)),
        "settings": In(fields_layout((*stage.first, *stage.second))), "o": Out(ArrayLayout(signed(8), lanes))})


class ExtensionStage(Component):
    """Map vectors of ``post_lanes`` values by the stage of an extension, with the timing of `ValueTables`.

    Parameters
    ----------
    machine : Machine
    stage : PostStage

    Attributes
    ----------
    write : flow
        ``index`` of a bus word, counted over all table slots, and its ``data``; bits of the index beyond are ignored.
    slot, channel, settings : In
        Which slot holds the parameters, the channel of the layer that index 0 stands for, fields of the instruction.
    read : flow
        Index of a vector of ``post_lanes`` channels, ``READ_LATENCY`` cycles before its values.
    i : flow
        Values, signed bytes.
    o : list of bytes
        Results, ``LATENCY`` cycles later; they stay until the next ones arrive.
    """

    LATENCY = 3
    READ_LATENCY = 1

    def __init__(self, machine: Machine, stage: PostStage) -> None:
        self.machine, self.stage = machine, stage
        values = ArrayLayout(8, machine.post_lanes)
        super().__init__({
            "write": In(flow(StructLayout({"index": 16, "data": 8 * machine.bus_bytes}))),
            "slot": In(range(TABLE_SLOTS)),
            "channel": In(12),
            "settings": In(fields_layout((*stage.first, *stage.second))),
            "read": In(flow(StructLayout({"index": 12}))),
            "i": In(flow(values)),
            "o": Out(values),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        stage, lanes = self.stage, self.machine.post_lanes
        m.submodules.component = component = component_of(stage, lanes)
        bus, vector = 8 * self.machine.bus_bytes, 8 * stage.parameter_bytes * lanes
        width = max(vector, bus)
        m.submodules.memory = memory = Memory(shape=width, depth=8 * TABLE_SLOTS * TABLE_BYTES // width, init=[])
        write_port, read_port = memory.write_port(granularity=bus), memory.read_port()
        parts, vectors = exact_log2(width // bus), exact_log2(width // vector)
        index = self.write.payload.index
        m.d.comb += [
            write_port.addr.eq(index[parts:]),
            write_port.data.eq(self.write.payload.data.replicate(width // bus)),
            write_port.en.eq(self.write.valid << index[:parts]),
        ]
        per_slot = exact_log2(8 * TABLE_BYTES // vector)
        own = Signal(per_slot)
        place = Signal(max(1, vectors))
        m.d.comb += [
            own.eq(self.read.payload.index + self.channel[exact_log2(lanes):]),
            read_port.en.eq(self.read.valid),
            read_port.addr.eq(Cat(own, self.slot)[vectors:]),
        ]
        with m.If(self.read.valid):
            m.d.sync += place.eq(own[:vectors])
        parameters = read_port.data.word_select(place[:vectors], vector) if vectors else read_port.data

        m.d.comb += component.settings.eq(self.settings)
        valid, values, held = self.i.valid, Cat(self.i.payload), parameters
        for step in range(self.LATENCY - 1 - stage.latency):
            valid, values, held = (self._later(m, each, name, step) for each, name in (
                (valid, "valid"), (values, "values"), (held, "held")))
        m.d.comb += [component.valid.eq(valid), Cat(component.values).eq(values), Cat(component.parameters).eq(held)]
        comes = valid
        for step in range(stage.latency):
            comes = self._later(m, comes, "comes", step)
        with m.If(comes):
            m.d.sync += Cat(self.o).eq(Cat(component.o))
        return m

    @staticmethod
    def _later(m: Module, value: Value, name: str, step: int) -> Signal:
        register = Signal(value.shape(), name=f"{name}_{step}", reset_less=name != "valid" and name != "comes")
        m.d.sync += register.eq(value)
        return register


def take_settings(m: Module, stage: ExtensionStage, commands: PureInterface, allowed: Value) -> Signal:
    """Take the instruction of the extension from ``commands`` once it is ``allowed``; return whether it is on."""
    head = commands.payload
    first, second = views(head, "extension", "set_stage")
    on = Signal(name="stage_on")
    settings = Signal(stage.settings.shape())
    channel = Signal.like(stage.channel)
    bits = sum(each.width for each in stage.stage.first)
    m.d.comb += [stage.settings.eq(settings), stage.channel.eq(channel)]
    with m.If(is_command(head, "extension", "set_stage")):
        m.d.comb += commands.ready.eq(allowed)
        with m.If(commands.valid & allowed):
            m.d.sync += [
                on.eq(first.enable), channel.eq(first.channel),
                Value.cast(settings).eq(Cat(first.first[:bits], second.second)),
            ]
    return on
