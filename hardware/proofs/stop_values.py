"""Sizes and names for the proof of how long a stop lasts."""

from collections.abc import Mapping

__all__ = ["STOP_OUTSTANDING", "stop_exposed", "stop_values"]

STOP_OUTSTANDING = 4
"""Bursts in each direction; of the coprocessor 16, whose sums of lengths take the solver minutes."""


def stop_values() -> Mapping[str, object]:
    """Return the values of stop.sv.j2; ``words`` is the most that bursts which have begun may lack."""
    from tilewright.rtl.bus.axi import MAX_BURST, WRITES_AHEAD

    places = STOP_OUTSTANDING.bit_length() - 1
    return {"outstanding": STOP_OUTSTANDING, "level_bits": places + 1, "place_bits": places,
            "words": MAX_BURST + WRITES_AHEAD - 1}


def stop_exposed() -> tuple[str, ...]:
    """Return the signals of the guarded master that the template names."""
    queues = (f"axi.writer.{queue}.{name}" for queue in ("lengths", "pending")
              for name in ("level", "has_entry", "has_room"))
    return (*queues, "axi.writer.lengths.storage*", "axi.writer.lengths.r_port__addr",
            "axi.writer.lengths.w_port__addr", "axi.writer.owed", "axi.writer.sent",
            *(f"axi.{unit}.splitter.busy" for unit in ("reader", "writer")),
            *(f"{check}_check.held" for check in ("read", "write")))
