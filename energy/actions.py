"""Actions of a run that a technology can price, from counters, register toggles and the machine's sizes.

An action is ``component.event``. Events of a block of the coprocessor (`sim.verilog.energy_blocks.ENERGY_BLOCKS`) and
of the core:

register_cycle
    One flip-flop clocked for one cycle.
register_toggle
    One flip-flop that changes, with the logic behind it.
leakage_ns
    One flip-flop's share of the logic, powered for one nanosecond.

The event of a memory access is ``read`` or ``write`` with the size of one memory macro and its port:
``activation_buffer.read@8192x8`` is the read of one byte of a macro of 8,192 bytes, 8 bits wide; ``leakage_ns@8192x8``
is such a macro powered for one nanosecond.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.energy.added_logic import product_toggles
from tilewright.energy.registers import CORE_REGISTERS, registers_of
from tilewright.isa.core_names import HOST_CORE, XPULP_CORE, CoreName
from tilewright.isa.machine import TABLE_BYTES, TABLE_SLOTS, Machine
from tilewright.sim.verilog.energy_blocks import ENERGY_BLOCKS

__all__ = ["CORE_COMPONENTS", "RAM_BYTES", "Clock", "actions_of", "busy_cycles", "core_actions"]

CORE_COMPONENTS = {HOST_CORE: "riscv_core", XPULP_CORE: "xpulp_core"}
"""Components of actions by core: the host core, and that of the baseline with XPULP's SIMD instructions."""

RAM_BYTES = 32 * 1024
"""Macro size at which instruction fetches and the RISC-V core's data are priced: a small core's local memory."""

_SUM_BYTES = 64
"""Of a lane's memory of sums: 16 words of 32 bits. Each lane has four for the running sums and four for finished."""

_SUMS_PER_LANE = 4
_WEIGHT_PORT_BYTES = 8
_NINTH_PORT_BYTES = 16
_PARAMETER_PORT_BITS = 64
_NANOSECONDS_PER_MICROSECOND = 1000


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of a run: its frequency, and whether registers that keep their values are clocked.

    Attributes
    ----------
    mhz : float
        Decides how long cycles leak.
    ungated : Mapping[str, float] or None
        By block and core, the share of its clock that stays with clock gates, whatever happens; None if there are none.
        What is clocked where registers change is in the price of toggles or instructions, `Technology.with_gates`.
    """

    mhz: float
    ungated: Mapping[str, float] | None = None

    def share(self, part: str) -> float:
        """Return the share of the clock of a block or a core that runs whatever happens."""
        return 1 if self.ungated is None else self.ungated[part]

    def nanoseconds(self, cycles: int) -> float:
        """Return how long ``cycles`` take."""
        return cycles * _NANOSECONDS_PER_MICROSECOND / self.mhz


def busy_cycles(counters: Mapping[str, int]) -> dict[str, int]:
    """Return in how many cycles each block has work, from the counters.

    The array works where slots are issued, and while it is set up, in which time the slots before drain. Buffers work
    with the array and while they are written, which counts twice where both happen.
    """
    cycles = counters["cycles"]
    array = counters["mac_issue"] + counters["mac_setup"]
    idle = counters["mac_idle_post"] + counters["mac_idle_load"] + counters["mac_idle_host"]
    filled = min(cycles, array + counters["load_busy"])
    return {"array": array, "sequencer": cycles - idle, "activation_buffer": filled, "weight_buffer": filled,
            "post_processing": counters["post_busy"], "load": counters["load_busy"], "store": counters["store_busy"],
            "control": cycles}


def actions_of(counters: Mapping[str, int], machine: Machine, riscv_instructions: int, toggles: Mapping[str, int],
               clock: Clock, *, asleep: int = 0, curved: int = 0) -> dict[str, int | float]:
    """Return how often each action happened.

    Parameters
    ----------
    counters : Mapping[str, int]
        Counters of `tilewright.isa.counters` by name, of a whole run or of one layer (differences of records).
    machine : Machine
        Its buffer sizes set the macros: a part of the activation buffer for each of its memories, one byte wide; the
        result buffer in byte-wide banks, as many as a bus word or a vector has bytes; weight memories 64 bits wide,
        two for each cluster, and one of 128 bits for the ninth weights; the value tables as wide as the bus.
    riscv_instructions : int
        Instructions the RISC-V core retired; each is also one 32-bit read of its memory.
    toggles : Mapping[str, int]
        Register bits that changed, by block; counted or predicted. Those of the core come with its instructions, and
        the products of an extension's stage and of curves are added, as toggles of post-processing.
    clock : Clock
    asleep : int
        Cycles in which the RISC-V core slept.
    curved : int
        Words of 16 bits that followed a curve.
    """
    registers = registers_of(machine)
    time = clock.nanoseconds(counters["cycles"])
    actions: dict[str, int | float] = {}
    for block in ENERGY_BLOCKS:
        actions[f"{block}.register_cycle"] = registers[block] * counters["cycles"] * clock.share(block)
        actions[f"{block}.register_toggle"] = toggles[block]
        actions[f"{block}.leakage_ns"] = registers[block] * time
    actions["post_processing.register_toggle"] += product_toggles(counters, machine, curved)
    actions |= _memory_accesses(counters, machine)
    actions |= {f"{component}.leakage_ns@{macro}": count * time
                for component, macro, count in _macros(machine)}
    actions["main_memory.dram_byte"] = counters["memory_read"] + counters["memory_written"]
    return actions | core_actions(counters["cycles"], riscv_instructions, clock, asleep=asleep)


@dataclass(frozen=True, slots=True)
class _Banks:
    """Sizes and ports of the macros that a machine's memories are made of."""

    activation: str
    weight: str
    ninth: str
    parameter: str
    table: str
    result: str
    result_count: int

    @classmethod
    def of(cls, machine: Machine) -> "_Banks":
        weight_bytes = machine.weight_bytes // machine.clusters
        result_count = max(machine.bus_bytes, machine.post_lanes)
        return cls(
            activation=f"{machine.activation_bytes // machine.activation_memories}x8",
            weight=f"{weight_bytes // 2}x{8 * _WEIGHT_PORT_BYTES}",
            ninth=f"{weight_bytes // 8}x{8 * _NINTH_PORT_BYTES}",
            parameter=f"{8 * machine.parameter_channels // machine.post_lanes}x{_PARAMETER_PORT_BITS}",
            table=f"{TABLE_SLOTS * TABLE_BYTES}x{8 * machine.bus_bytes}",
            result=f"{machine.result_bytes // result_count}x8",
            result_count=result_count)


_SUMS = f"{_SUM_BYTES}x32"


def _memory_accesses(counters: Mapping[str, int], machine: Machine) -> dict[str, int]:
    """Return reads and writes of every memory.

    A slot reads and writes four running sums of each lane, and a value that is requantised at most four finished ones.
    """
    banks = _Banks.of(machine)
    sums = counters["tile_slots"] * machine.lanes * _SUMS_PER_LANE
    return {
        f"activation_buffer.read@{banks.activation}": counters["activation_read"],
        f"activation_buffer.write@{banks.activation}": counters["activation_written"],
        f"weight_buffer.read@{banks.weight}": -(-counters["weight_read"] // _WEIGHT_PORT_BYTES),
        f"weight_buffer.write@{banks.weight}": -(-counters["weight_written"] // min(_WEIGHT_PORT_BYTES,
                                                                                    machine.bus_bytes)),
        f"sums.read@{_SUMS}": sums + _SUMS_PER_LANE * counters["requantized"],
        f"sums.write@{_SUMS}": sums,
        f"parameter_buffer.read@{banks.parameter}": counters["requantized"],
        f"value_table.read@{banks.table}": counters["table_read"],
        f"result_buffer.read@{banks.result}": counters["result_read"],
        f"result_buffer.write@{banks.result}": counters["result_written"],
    }


def _macros(machine: Machine) -> list[tuple[str, str, int]]:
    """Return component, size and number of the memory macros."""
    banks = _Banks.of(machine)
    return [("activation_buffer", banks.activation, machine.activation_memories),
            ("weight_buffer", banks.weight, 2 * machine.clusters),
            ("weight_buffer", banks.ninth, machine.clusters), ("sums", _SUMS, 2 * _SUMS_PER_LANE * machine.lanes),
            ("parameter_buffer", banks.parameter, machine.post_lanes), ("value_table", banks.table, 1),
            ("result_buffer", banks.result, banks.result_count)]


def core_actions(cycles: int, instructions: int, clock: Clock, *, core: CoreName = HOST_CORE, loads: int = 0,
                 stores: int = 0, asleep: int = 0) -> dict[str, int | float]:
    """Return the actions of a RISC-V core alone, as the baselines run: every instruction is fetched, 32 bits wide.

    ``loads`` and ``stores`` count data accesses, all to local memory. It favours the baseline: the same macro of
    ``RAM_BYTES`` is charged however large the program's data are. In ``asleep`` of the cycles the core's own clock gate
    is shut: its registers leak, and are not clocked.
    """
    registers, name = CORE_REGISTERS[core], CORE_COMPONENTS[core]
    time = clock.nanoseconds(cycles)
    return {
        f"{name}.instruction": instructions,
        f"{name}.read@{RAM_BYTES}x32": instructions + loads,
        f"{name}.write@{RAM_BYTES}x32": stores,
        f"{name}.register_cycle": registers * (cycles - asleep) * clock.share(name),
        f"{name}.leakage_ns": registers * time,
        f"{name}.leakage_ns@{RAM_BYTES}x32": time,
    }
