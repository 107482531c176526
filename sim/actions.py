"""What a run did, in actions that a technology can price: from the counters of isa.counters and the machine's sizes.

An action is ``component.event``. The event of a memory access is ``read`` or ``write`` with the size of one memory
macro and its port: ``activation_buffer.read@8192x8`` is the read of one byte of a macro of 8,192 bytes, 8 bits wide.
"""

from collections.abc import Mapping

from tilewright.isa.machine import TABLE_BYTES, TABLE_SLOTS, TILE_BYTES, Machine

RAM_BYTES = 32 * 1024
"""Macro size at which instruction fetches and the RISC-V core's data are priced: a small core's local memory."""

CORE_REGISTERS = 2200
"""Flip-flops of the RISC-V core: 31 x 32 of the register file, the rest of the pipeline and CSRs (estimate)."""

REGISTERS_PER_MULTIPLIER = 70
"""Flip-flops of a multiplier's operands, product and accumulator: 1,120 for 16 in the design measured."""

OTHER_REGISTERS = 6000
"""Flip-flops of the coprocessor outside its array: queues, sequencer, DMA, post-processing (estimate)."""

INPUT_ADDS = 32
"""Additions of B^T d B of one patch, which all lanes share."""

LANE_ADDS = 12
"""Additions of A^T (U * V) A and of the four sums in a lane, less the 16 that come with the multiplications."""

WEIGHT_PORT_BYTES = 8
PARAMETER_PORT_BITS = 64


def actions_of(counters: Mapping[str, int], machine: Machine, riscv_instructions: int) -> dict[str, int]:
    """Return how often each action happened.

    Parameters
    ----------
    counters : Mapping[str, int]
        Counters of `tilewright.isa.counters` by name, of a whole run or of one layer (differences of records).
    machine : Machine
        Its buffer sizes set the macros: a sixteenth of the activation buffer for each bank, one byte wide; the
        result buffer in byte-wide banks, as many as a bus word or a vector has bytes; weight memories 64 bits wide,
        two for each cluster; the value tables as wide as the bus.
    riscv_instructions : int
        Instructions the RISC-V core retired; each is also one 32-bit read of its memory.
    """
    slots = counters["tile_slots"]
    activation_bank = f"{machine.activation_bytes // TILE_BYTES}x8"
    result_bank = f"{machine.result_bytes // max(machine.bus_bytes, machine.post_lanes)}x8"
    weight_bank = f"{machine.weight_bytes // machine.clusters // 2}x{8 * WEIGHT_PORT_BYTES}"
    parameter_bank = f"{8 * machine.parameter_channels // machine.post_lanes}x{PARAMETER_PORT_BITS}"
    table_bank = f"{TABLE_SLOTS * TABLE_BYTES}x{8 * machine.bus_bytes}"
    registers = REGISTERS_PER_MULTIPLIER * machine.multipliers + OTHER_REGISTERS + CORE_REGISTERS
    return {
        "array.multiply": slots * machine.multipliers,
        "array.add": slots * (INPUT_ADDS + LANE_ADDS * machine.lanes),
        "post_processing.requantize": counters["requantized"],
        "post_processing.residual_add": counters["residual_added"],
        f"activation_buffer.read@{activation_bank}": counters["activation_read"],
        f"activation_buffer.write@{activation_bank}": counters["activation_written"],
        f"weight_buffer.read@{weight_bank}": -(-counters["weight_read"] // WEIGHT_PORT_BYTES),
        f"weight_buffer.write@{weight_bank}": -(-counters["weight_written"] // min(WEIGHT_PORT_BYTES,
                                                                                   machine.bus_bytes)),
        f"parameter_buffer.read@{parameter_bank}": counters["requantized"],
        f"value_table.read@{table_bank}": counters["table_read"],
        f"result_buffer.read@{result_bank}": counters["result_read"],
        f"result_buffer.write@{result_bank}": counters["result_written"],
        "main_memory.dram_byte": counters["memory_read"] + counters["memory_written"],
        "riscv_core.instruction": riscv_instructions,
        f"riscv_core.read@{RAM_BYTES}x32": riscv_instructions,
        "clock.register_cycle": registers * counters["cycles"],
    }


def core_actions(cycles: int, instructions: int, loads: int = 0, stores: int = 0) -> dict[str, int]:
    """Return the actions of a RISC-V core alone, as the baselines run: every instruction is fetched, 32 bits wide.

    ``loads`` and ``stores`` count data accesses, all to local memory. It favours the baseline: the same macro of
    ``RAM_BYTES`` is charged however large the program's data are.
    """
    return {
        "riscv_core.instruction": instructions,
        f"riscv_core.read@{RAM_BYTES}x32": instructions + loads,
        f"riscv_core.write@{RAM_BYTES}x32": stores,
        "clock.register_cycle": CORE_REGISTERS * cycles,
    }
