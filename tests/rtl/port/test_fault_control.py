"""The watchdog of commands: units that work and take no further command for ``command_cycles`` are stopped."""

from amaranth.sim import Simulator

from tilewright.isa.counters import COMMAND_CYCLES
from tilewright.rtl.port.fault_control import FaultControl

LIMIT = 16
STATE = 0x1234


def run(begins, *, limit=LIMIT, works=lambda cycle: True, cycles=4 * LIMIT, quiet=lambda cycle: True):
    """Return the cycles with a fault, with code, address and ``hold``; in cycles ``begins`` a unit takes a command."""
    control = FaultControl(0, limit)
    faults = []

    async def bench(ctx):
        ctx.set(control.state, STATE)
        for cycle in range(cycles):
            ctx.set(control.quiet, quiet(cycle))
            ctx.set(control.begins, cycle in begins)
            ctx.set(control.works, works(cycle))
            if ctx.get(control.fault):
                faults.append((cycle, *(ctx.get(value) for value in (
                    control.fault_code, control.fault_address, control.hold))))
            await ctx.tick()

    simulator = Simulator(control)
    simulator.add_clock(1e-6)
    simulator.add_testbench(bench)
    simulator.run()
    return faults


def test_a_command_that_works_for_too_long_is_a_fault_that_says_what_worked():
    first, code, address, _ = run({3})[0]
    # It counts from the cycle behind 3, and the fault is told a cycle after its count.
    assert (first, code, address) == (3 + LIMIT + 2, COMMAND_CYCLES, STATE)


def test_commands_one_after_the_other_are_no_fault_however_many():
    assert run(range(3, 400, LIMIT), cycles=400) == []


def test_a_unit_without_work_is_no_fault():
    assert run({3}, works=lambda cycle: cycle < LIMIT) == []


def test_a_machine_without_the_limit_never_raises_it():
    assert run({3}, limit=0) == []


def test_units_stop_once_until_the_bus_is_quiet():
    held = [cycle for cycle, *_, hold in run({3}, quiet=lambda cycle: cycle > 3 * LIMIT, cycles=6 * LIMIT) if hold]
    assert held == list(range(3 + LIMIT + 2, 3 * LIMIT + 3))
