# amaranth: UnusedElaboratable=no
"""When the post-processing unit takes its commands, and what it refuses; its results: tests/cocotb/test_post.py."""

from dataclasses import replace

import pytest

from tests.support.streams import simulate
from tilewright.isa.encoding import BY_MNEMONIC
from tilewright.isa.machine import preset
from tilewright.rtl.post.post import PostUnit
from tilewright.rtl.stream.commands import Command, flag

WIDTH = 12
NANO = preset("nano")
RUN = {"base": 0, "rows": 1, "winograd": 0, "parameter_base": 0, "channels": 1, "residual": 0, "pooled": 0}


def command(mnemonic, variant, *flags, **values):
    """Return a `Command`; operands that are not named are zero."""
    chosen = BY_MNEMONIC[mnemonic].variant(variant)
    registers = []
    for fields in (chosen.rs1, chosen.rs2):
        places = [sum(f.width for f in fields[:i]) for i in range(len(fields))]
        registers.append(sum(values.get(f.name, 0) << place for f, place in zip(fields, places, strict=True)))
    return Command.const({"funct3": BY_MNEMONIC[mnemonic].funct3, "variant": chosen.code,
                          "flags": sum(1 << flag(mnemonic, variant, name) for name in flags),
                          "rs1": registers[0], "rs2": registers[1]})


OUTPUT = command("act", "set_output", width=WIDTH, pixel_step=1, row_step=WIDTH)


def taken(commands, *, sums=lambda cycle: True, out_free=lambda cycle: True, machine=NANO):
    """Offer ``commands`` to a unit; return it, the cycles in which each was taken, and the trace by output."""
    dut = PostUnit(machine)
    cycles, trace = [], {"requests": [], "out_ready": [], "takes": [], "busy": []}

    async def drive(ctx):
        responses = []
        waiting = list(commands)
        for cycle in range(250):
            ctx.set(dut.commands.valid, bool(waiting))
            if waiting:
                ctx.set(dut.commands.payload, waiting[0])
            ctx.set(dut.sums_available, sums(cycle))
            ctx.set(dut.out_free_available, out_free(cycle))
            ctx.set(dut.sums_response.valid, cycle in responses)
            if waiting and ctx.get(dut.commands.ready):
                waiting.pop(0)
                cycles.append(cycle)
            if ctx.get(dut.sums_request.valid):
                responses.append(cycle + dut.sums_latency)
                trace["requests"].append(cycle)
            for name, port in (("out_ready", dut.out_ready_signal), ("takes", dut.out_free_take), ("busy", dut.busy)):
                if ctx.get(port):
                    trace[name].append(cycle)
            await ctx.tick()

    simulate(dut, drive)
    return dut, cycles, trace


def test_run_waits_for_its_semaphore_and_takes_one():
    _, cycles, trace = taken([OUTPUT, command("act", "run", "wait_out_free", "signal_out_ready", **RUN)],
                             out_free=lambda cycle: cycle >= 20)
    assert cycles == [0, 20]
    assert trace["takes"] == [20]
    assert len(trace["out_ready"]) == 1


def test_run_without_flags_waits_and_signals_nothing():
    _, cycles, trace = taken([OUTPUT, command("act", "run", **RUN)], out_free=lambda cycle: False)
    assert cycles == [0, 2]
    assert not trace["takes"]
    assert not trace["out_ready"]


def test_signal_follows_the_last_write_and_ends_busy():
    dut, _, trace = taken([OUTPUT, command("act", "run", "signal_out_ready", **RUN)])
    assert trace["out_ready"] == [trace["requests"][-1] + dut.latency + 1]
    assert trace["busy"] == list(range(3, trace["out_ready"][0] + 1))


def test_requests_wait_for_sums():
    _, _, trace = taken([OUTPUT, command("act", "run", **RUN)], sums=lambda cycle: cycle >= 30 and cycle % 2 == 0)
    assert trace["requests"] == list(range(30, 30 + 2 * WIDTH, 2))


def test_shape_changes_after_the_last_request_and_clamp_after_the_last_result():
    dut, cycles, trace = taken([OUTPUT, command("act", "run", **RUN), OUTPUT, command("act", "set_clamp")])
    assert cycles[2] == trace["requests"][-1] + 1
    assert cycles[3] == trace["requests"][-1] + dut.latency + 1


def test_runs_follow_at_once_unless_the_residual_comes_or_goes():
    plain, residual = command("act", "run", **RUN), command("act", "run", **RUN | {"residual": 1})
    dut, cycles, trace = taken([OUTPUT, plain, plain, residual])
    assert cycles[2] == trace["requests"][WIDTH - 1] + 1
    assert trace["requests"][WIDTH] - trace["requests"][WIDTH - 1] == 1 + dut.COMMAND_GAP
    assert cycles[3] == trace["requests"][2 * WIDTH - 1] + dut.latency + 1


def test_runs_follow_at_once_unless_the_table_changes():
    plain, first, second = (command("act", "run", **RUN | {"table": table, "table_slot": slot})
                            for table, slot in ((0, 0), (1, 2), (1, 3)))
    dut, cycles, trace = taken([OUTPUT, plain, first, first, second, plain])
    ends = [trace["requests"][WIDTH * run - 1] for run in range(1, 5)]
    late = dut.latency + dut.TABLE_LATENCY + 1
    assert cycles[2:] == [ends[0] + dut.latency + 1, ends[1] + 1, ends[2] + late, ends[3] + late]


def test_a_table_delays_the_signal_by_its_latency():
    dut, _, trace = taken([OUTPUT, command("act", "run", "signal_out_ready", **RUN | {"table": 1, "table_slot": 3})])
    assert trace["out_ready"] == [trace["requests"][-1] + dut.latency + dut.TABLE_LATENCY + 1]
    assert trace["busy"] == list(range(3, trace["out_ready"][0] + 1))


def test_a_curve_delays_the_signal_of_words_by_its_latency():
    curved = RUN | {"table": 1, "wide": 1}
    dut, cycles, trace = taken(
        [OUTPUT, command("act", "run", "signal_out_ready", **curved), command("act", "run", **curved | {"table": 0})],
        machine=replace(preset("nano"), wide_words=True, bus_bytes=8))
    ends = trace["requests"][2 * WIDTH - 1]
    assert trace["out_ready"] == [ends + dut.latency + dut.CURVE_LATENCY + 1] == [cycles[2]]


def test_refuses_sums_that_come_before_the_parameters():
    with pytest.raises(ValueError, match=r"PostUnit.*sums_latency.*not 1"):
        PostUnit(preset("nano"), sums_latency=1)
