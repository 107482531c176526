"""The coprocessor behind its CV-X-IF 1.0 adapter: the module beside a CVA6, or any core that speaks this version."""

from tilewright.isa.machine import Machine
from tilewright.rtl.port.split_xif import SplitXifAdapter
from tilewright.rtl.ported_coprocessor import PortedCoprocessor

__all__ = ["SplitXifCoprocessor"]


class SplitXifCoprocessor(PortedCoprocessor):
    """A `Coprocessor` whose commands come from a `SplitXifAdapter`; members as in `PortedCoprocessor`."""

    def __init__(self, machine: Machine, *, watched: bool = False) -> None:
        super().__init__(machine, SplitXifAdapter(machine), told={"idle": "passes", "fault_code": "fault_code"},
                         asked={"waits": "waits", "abort_request": "abort", "erase_request": "erase"}, watched=watched)
