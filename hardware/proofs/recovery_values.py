"""Names and codes of the tables for the proofs of faults, erasure and semaphores, and the machines that are proved."""

from collections.abc import Mapping
from dataclasses import replace

from tilewright.isa.counters import COMMAND_CYCLES, WATCHDOG
from tilewright.isa.encoding import BY_MNEMONIC, INSTRUCTIONS, SEMAPHORE_WIDTH, SEMAPHORES
from tilewright.isa.erasure import ERASED_ALWAYS, erasing_commands
from tilewright.isa.machine import Machine, preset

__all__ = [
    "ERASING", "QUEUES", "RECOVERING", "erasure_exposed", "erasure_values", "recovery_exposed", "recovery_values",
    "semaphore_exposed", "semaphore_values",
]

RECOVERING: Machine = replace(preset("nano"), name="proved", queue_depth=4, watchdog_cycles=256, command_cycles=4096)
"""A machine in which everything that does not matter to faults is as small as possible."""

ERASING: Machine = replace(RECOVERING, command_cycles=0, erasure=ERASED_ALWAYS)
"""The same, where every abort erases the buffers."""

QUEUES = ("load", "mac", "post", "store")
_NAMES = tuple(semaphore.name for semaphore in SEMAPHORES)


def recovery_values() -> Mapping[str, object]:
    """Return the values of the template; commands as their six lowest bits."""
    return {"units": QUEUES, "semaphores": _NAMES, "count_bits": SEMAPHORE_WIDTH, "watchdog_code": WATCHDOG,
            "watchdog": RECOVERING.watchdog_cycles, "endless_code": COMMAND_CYCLES,
            "command_cycles": RECOVERING.command_cycles, "fence": _code("fence"), "record": _code("status")}


def recovery_exposed() -> tuple[str, ...]:
    """Return the signals of the coprocessor that the template names."""
    control = ("phase", "aborting", "still", "hold", "clear", "dead", "raised", "code", "address", "moves", "waits",
               "moved", "waited", "spent", "begins")
    dispatcher = ("quiet", "idle", "busy", "abort_taken", "fence_taken", "zero_count", "store.o__payload",
                  "store.fifo.storage*", "store.fifo.w_port__addr")
    queues = ("fifo.inner_level", "fifo.r_rdy", "fifo.r_port__addr", "i__valid", "o__ready")
    kept = ("reader.pending", "writer.pending", "writer.lengths")
    bus = ("read_data__valid", *(f"{queue}.{name}" for queue in kept for name in ("level", "has_room", "has_entry")),
           "reader.ends", "reader.orphans", "reader.has_orphans", "reader.splitter.o__valid",
           "writer.splitter.o__valid", "reader.error", "writer.error", "reader.stray",
           "writer.stray")
    return (*(f"control.{name}" for name in control),
            *(f"dispatcher.{name}" for name in dispatcher),
            *(f"dispatcher.{unit}.{name}" for unit in QUEUES for name in queues),
            *(f"semaphores.{name}{place}" for name in _NAMES for place in ("_count", "_available")),
            "semaphores.overflow", "semaphores.lost",
            *(f"axi.{name}" for name in bus),
            *(f"{check}.{name}" for check in ("read_check", "write_check") for name in ("held", "fault")))


def erasure_values() -> Mapping[str, object]:
    """Return the values of erasure.sv.j2: the commands that erase the buffers, in hex, and their number's width."""
    commands = [f"{each.funct3 | (each.funct7 >> 4) << 3 | each.rs1 << 10 | each.rs2 << 42:x}"
                for each in erasing_commands(ERASING)]
    return {"commands": commands, "step_bits": len(commands).bit_length()}


def erasure_exposed() -> tuple[str, ...]:
    """Return the signals of the coprocessor that the template names."""
    control = ("phase", "aborting", "erasing", "wants_erasure", "hold", "still", "clear")
    return (*(f"control.{name}" for name in control),
            *(f"eraser.{name}" for name in ("step", "settled", "o__valid", "o__ready", "o__payload", "busy")),
            *(f"dispatcher.{unit}.i__valid" for unit in QUEUES))


def semaphore_values() -> Mapping[str, object]:
    """Return the values of semaphores.sv.j2: each name with the number of units that signal it."""
    signallers = {name: {variant.unit for instruction in INSTRUCTIONS for variant in instruction.variants
                         for flag in variant.flags if flag is not None and flag.name == f"signal_{name}"}
                  for name in _NAMES}
    return {"semaphores": [(name, len(signallers[name])) for name in _NAMES], "bits": SEMAPHORE_WIDTH,
            "limit": (1 << SEMAPHORE_WIDTH) - 1}


def semaphore_exposed() -> tuple[str, ...]:
    """Return the signals of the semaphores that the template names."""
    return (*(f"{name}_count" for name in _NAMES), "lost")


def _code(variant: str) -> int:
    """Return funct3 and, above it, the variant's code of ``sta.VARIANT``."""
    instruction = BY_MNEMONIC["sta"]
    return instruction.funct3 | instruction.variant(variant).code << 3
