"""The coprocessor behind its command registers: the module for a core without CV-X-IF, or any bus master."""

from tilewright.isa.machine import Machine
from tilewright.isa.registers.host_registers import WindowPins
from tilewright.rtl.port.command_registers import CommandRegisters
from tilewright.rtl.ported_coprocessor import PortedCoprocessor

__all__ = ["AxiLiteCoprocessor"]


class AxiLiteCoprocessor(PortedCoprocessor):
    """A `Coprocessor` whose commands come from `CommandRegisters`; members as in `PortedCoprocessor`.

    While a host waits at a full queue or a fence, its command stands at the coprocessor, whose watchdog counts. With
    ``windows="registers"`` there are no pins for windows, and ``irq`` is that of `HostRegisters`.
    """

    def __init__(self, machine: Machine, *, watched: bool = False, windows: WindowPins = "pins") -> None:
        asked = {"abort_request": "abort", "erase_request": "erase", "stop_request": "stop"}
        told = {name: name for name in ("idle", "fault", "fault_code", "fault_address")} | {"quiet": "passes"}
        by_registers = windows == "registers"
        super().__init__(machine, CommandRegisters(machine, windows=windows), watched=watched,
                         asked=asked | ({"windows": "windows"} if by_registers else {}),
                         told=told | ({"done": "irq"} if by_registers else {}),
                         covered=("windows", "irq") if by_registers else ())
