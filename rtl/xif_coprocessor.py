"""The coprocessor behind its CV-X-IF adapter: the module that sits beside a CV32E40X."""

from tilewright.isa.machine import Machine
from tilewright.rtl.port.xif import XifAdapter
from tilewright.rtl.ported_coprocessor import PortedCoprocessor

__all__ = ["XifCoprocessor"]


class XifCoprocessor(PortedCoprocessor):
    """A `Coprocessor` whose commands come from an `XifAdapter`; members as in `PortedCoprocessor`."""

    def __init__(self, machine: Machine, *, watched: bool = False) -> None:
        super().__init__(machine, XifAdapter(machine), told={"idle": "passes", "fault_code": "fault_code"},
                         asked={"waits": "waits", "abort_request": "abort", "erase_request": "erase"}, watched=watched)
