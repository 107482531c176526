"""The counters that a coprocessor keeps and ``sta.status`` stores, in the order in which they are stored.

Every counter is 32 bits wide and wraps; of ``cycles`` a further word holds the upper half. In each cycle exactly one
of the ``mac_*`` counters steps, so that over any interval they add up to the cycles of the interval: cycles by cause,
with none left over.
"""

from dataclasses import dataclass

__all__ = [
    "COMMAND_CYCLES", "COUNTERS", "CYCLES_HIGH_WORD", "FAULTS", "FAULT_ADDRESS_WORD", "FAULT_WORD", "READ_ERROR",
    "READ_OUTSIDE", "RECORD_WORDS", "SEMAPHORE_OVERFLOW", "STOPPED", "STRAY_RESPONSE", "WATCHDOG", "WRITE_ERROR",
    "WRITE_OUTSIDE", "ZERO_COUNT", "Counter",
]


@dataclass(frozen=True, slots=True)
class Counter:
    """One counter: its name, what one step means, and its unit."""

    name: str
    unit: str
    effect: str


COUNTERS = (
    Counter("cycles", "cycles", "since reset"),
    Counter("mac_issue", "cycles", "a tile slot was issued to the multipliers"),
    Counter("mac_setup", "cycles", "the array took a command or prepared its first tiles"),
    Counter("mac_wait_activations", "cycles", "a command waited for act_ready"),
    Counter("mac_wait_weights", "cycles", "a command waited for wgt_ready"),
    Counter("mac_wait_post", "cycles", "results could not leave because post-processing was behind"),
    Counter("mac_idle_post", "cycles", "no command; post-processing or the store was busy"),
    Counter("mac_idle_load", "cycles", "no command; only the load was busy"),
    Counter("mac_idle_host", "cycles", "no command and nothing busy: the RISC-V core had not sent any"),
    Counter("tile_slots", "slots", "valid tile slots issued: x 16 x lanes = multiplications"),
    Counter("requantized", "values", "values that left the requantisers"),
    Counter("residual_added", "values", "values that left the residual adder"),
    Counter("activation_read", "bytes", "read from the activation buffer"),
    Counter("activation_written", "bytes", "written to the activation buffer"),
    Counter("weight_read", "bytes", "read from the weight memories"),
    Counter("weight_written", "bytes", "written to the weight and parameter memories and the value tables"),
    Counter("result_read", "bytes", "read from the result buffer"),
    Counter("result_written", "bytes", "written to the result buffer"),
    Counter("memory_read", "bytes", "read from main memory: bus beats x bus width"),
    Counter("memory_written", "bytes", "written to main memory: bytes with their strobe set"),
    Counter("load_busy", "cycles", "the load unit had work"),
    Counter("store_busy", "cycles", "the store unit had work"),
    Counter("post_busy", "cycles", "the post-processing unit had work"),
    Counter("commands", "commands", "commands taken from the RISC-V core"),
    Counter("table_read", "values", "values that a value table has mapped"),
)

RECORD_WORDS = 32
"""Words that ``sta.status`` stores: the counters, then zeros, the upper half of ``cycles``, fault code and address."""

CYCLES_HIGH_WORD = 29
FAULT_WORD = 30
FAULT_ADDRESS_WORD = 31

(_NO_FAULT, READ_OUTSIDE, WRITE_OUTSIDE, READ_ERROR, WRITE_ERROR, SEMAPHORE_OVERFLOW, WATCHDOG, ZERO_COUNT,
 STRAY_RESPONSE, STOPPED, COMMAND_CYCLES) = range(11)
"""Codes in the fault word."""

FAULTS = {
    _NO_FAULT: "none",
    READ_OUTSIDE: "read outside the windows",
    WRITE_OUTSIDE: "write outside the windows",
    READ_ERROR: "error response to a read",
    WRITE_ERROR: "error response to a write",
    SEMAPHORE_OVERFLOW: "a semaphore would overflow",
    WATCHDOG: "nothing moved while the host waited",
    ZERO_COUNT: "a count of zero, or a row longer than any buffer",
    STRAY_RESPONSE: "a response that no request waits for",
    STOPPED: "stopped from outside",
    COMMAND_CYCLES: "units worked for too long without taking another command",
}
"""Meanings of the fault word.

The fault address is that of the refused request, or of the failed burst; or the index of the semaphore. The watchdog's
and that of a command that takes too long is what the units did (`rtl.coprocessor.Status`), that of a count funct3 x 8 +
variant of the instruction.
"""

assert len(COUNTERS) <= CYCLES_HIGH_WORD
assert len({counter.name for counter in COUNTERS}) == len(COUNTERS)
