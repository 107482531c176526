"""Sizes and names for the proof of how long a stop lasts."""

from collections.abc import Mapping

from tilewright.isa.command_port import BY_REGISTER, PortName

__all__ = ["STOP_OUTSTANDING", "port_stop_exposed", "port_stop_values", "stop_exposed", "stop_values"]

STOP_OUTSTANDING = 4
"""Open bursts in each direction in the model. The coprocessor has 16, whose sums of lengths take the solver minutes."""


def stop_values() -> Mapping[str, object]:
    """Return the values of stop.sv.j2; ``words`` is the most words that open bursts may still owe."""
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


_WRITE = ("has_address", "has_data", "write_address", "write_data", "write_strobes")


def port_stop_values(port: PortName) -> Mapping[str, object]:
    """Return the values of stop_ports.sv.j2: registers as their word, fields of ``control`` as their bit."""
    control = BY_REGISTER["control"]
    return {"port": port, "write": _WRITE, "control": control.offset // 4,
            "command": BY_REGISTER["command"].offset // 4,
            **{name: control.field(name).low for name in ("stop", "abort", "erase")}}


def port_stop_exposed(port: PortName) -> tuple[str, ...]:
    """Return the signals of the coprocessor behind ``port`` that the template names."""
    held = (*(f"{prefix}{name}" for prefix in ("", "following_") for name in _WRITE), "acted", "stale", "sends")
    return (*(f"adapter.{name}" for name in ("abort", *(held if port == "axi4lite" else ()))),
            *(f"coprocessor.control.{name}" for name in ("phase", "hold", "clear", "dead", "quiet", "aborting")))
