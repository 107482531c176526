"""The stage of an extension alone in Amaranth's simulator: parameters loaded, vectors sent, results collected."""

from collections.abc import Mapping, Sequence

from amaranth.sim import Simulator
from amaranth.sim._async import TestbenchContext

from tilewright.isa.extension import ExtendedMachine, StageVector, stage_of
from tilewright.rtl.post.extension_stage import ExtensionStage

__all__ = ["run_stage"]


def run_stage(machine: ExtendedMachine, slots: bytes, settings: Mapping[str, int], channel: int,
              vectors: Sequence[StageVector]) -> list[list[int]]:
    """Return the bytes that come out for each vector, as int8.

    Parameters
    ----------
    slots : bytes
        All table slots.
    settings, channel
        Operands of the stage's instruction.
    vectors
        Each is sent after its gap, the first as soon as parameters are loaded; a table slot changes in a gap only, as
        post-processing drains then.
    """
    stage = stage_of(machine)
    assert stage is not None
    dut, bus = ExtensionStage(machine, stage), machine.bus_bytes
    lanes = machine.post_lanes
    found: list[list[int]] = []
    sent: list[StageVector | None] = []
    for vector in vectors:
        sent += [None] * vector.gap + [vector]
    sent += [None] * (dut.LATENCY + dut.READ_LATENCY)

    async def drive(ctx: TestbenchContext) -> None:
        ctx.set(dut.settings, dict(settings))
        ctx.set(dut.channel, channel)
        for index in range(len(slots) // bus):
            ctx.set(dut.write.valid, 1)
            ctx.set(dut.write.payload.index, index)
            ctx.set(dut.write.payload.data, int.from_bytes(slots[bus * index:bus * (index + 1)], "little"))
            await ctx.tick()
        ctx.set(dut.write.valid, 0)
        before: list[StageVector | None] = [None] * (dut.LATENCY + dut.READ_LATENCY)
        for vector in sent:
            ctx.set(dut.read.valid, vector is not None)
            if vector is not None:
                ctx.set(dut.slot, vector.slot)
                ctx.set(dut.read.payload.index, vector.index)
            enters = before[-dut.READ_LATENCY]
            ctx.set(dut.i.valid, enters is not None)
            if enters is not None:
                ctx.set(dut.i.payload, [each & 0xFF for each in enters.values])
            if before[0] is not None:
                values = [ctx.get(dut.o[lane]) for lane in range(lanes)]
                found.append([each - 256 if each > 127 else each for each in values])
            before = [*before[1:], vector]
            await ctx.tick()

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    simulator.add_testbench(drive)
    simulator.run()
    return found
