"""The command ``machine``: the parameters of a design, their limits, and derived values."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.cli.options.arguments import (
    ClockText,
    EnergyOptions,
    ExtensionFile,
    JsonFile,
    MemoryText,
    design_named,
    with_groups,
    write_json,
)
from tilewright.isa.dram.parts import PARTS
from tilewright.isa.machine import ARRAYS, DEFAULT_MACHINE, LIMITS, SWITCHES, Machine

if TYPE_CHECKING:
    from rich.table import Table

    from tilewright.runtime.design.design import Design

__all__ = ["derived", "machine", "register"]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(epilog="Example: tilewright machine base,lanes=8,clusters=2 --clock 80MHz --json design.json")(machine)


@with_groups
def machine(design: Annotated[str, typer.Argument(
                metavar="DESIGN", help="A preset, a design file (.toml), or either with changes.")] = DEFAULT_MACHINE,
            memory: MemoryText = None, clock: ClockText = None, json_file: JsonFile = None,
            extension: ExtensionFile = None, *, energy: EnergyOptions) -> None:
    """Show the parameters of a design, their limits, and the values derived from them."""
    found = energy.priced(design_named(design, memory=memory, clock=clock, extension=extension))
    from tilewright.cli.tables.text import console

    console().print(_table(found))
    for line in _lines(found):
        console().print(line, highlight=False, markup=False, soft_wrap=True)
    if json_file is not None:
        write_json(json_file, found.to_json() | {"limits": {key: list(each) for key, each in LIMITS.items()},
                                                 "arrays": list(ARRAYS), "units": list(SWITCHES),
                                                 "derived": derived(found.machine),
                                                 "predicted_area": _areas(found.machine)})


def derived(machine: Machine) -> dict[str, Any]:
    """Return the values derived from a machine's parameters alone."""
    return {"multipliers": machine.multipliers, "peak_macs_per_cycle": machine.peak_macs,
            "buffer_bytes": machine.activation_bytes + machine.result_bytes + (
                machine.weight_bytes * 9 // 8 if machine.winograd else machine.weight_bytes),
            "kernels": machine.kernels}


def _areas(machine: Machine) -> dict[str, Any]:
    """Return the predicted area of the coprocessor: totals and blocks, by target."""
    from tilewright.hardware.area_model.predicted_area import predict_area

    found = {target: predict_area(machine, target) for target in ("ecp5-85k", "sky130")}
    return {target: {"total": area.totals(), "errors": {name: asdict(each) for name, each in area.errors.items()},
                     "blocks": area.blocks, "beyond": area.beyond} for target, area in found.items()}


def _area_lines(machine: Machine) -> list[str]:
    """Return the predicted area in words, and which ECP5 holds it."""
    from tilewright.hardware.synthesis.families.fpga_family import Fpga
    from tilewright.hardware.synthesis.targets import TARGETS

    found = _areas(machine)
    ecp5, cells = found["ecp5-85k"]["total"], found["sky130"]["total"]
    fits = []
    for name in ("ecp5-25k", "ecp5-85k"):
        target = TARGETS[name]
        assert isinstance(target, Fpga)
        places = ecp5 | {"LUT": ecp5["LUT"] + sum(ecp5[each] * logic for each, logic in target.logic_per.items())}
        (device, has), = target.capacity.items()
        fits.append(f"{'fits' if all(places[each] <= has[each] for each in has) else 'does not fit'} {device}")
    off = {target: {name: f"± {100 * each['rms']:.1f} % (at most {100 * each['worst']:.0f} %)"
                    for name, each in of["errors"].items()} for target, of in found.items()}
    on_ecp5, in_cells = off["ecp5-85k"], off["sky130"]
    lines = [(f"predicted area on ECP5: {ecp5['LUT']:,.0f} LUT4 {on_ecp5['LUT']}, {ecp5['carry']:,.0f} CCU2C "
              f"{on_ecp5['carry']}, {ecp5['FF']:,.0f} flip-flops {on_ecp5['FF']}, {ecp5['DSP']:,.0f} MULT18X18D, "
              f"{ecp5['BRAM']:,.0f} DP16KD; {', '.join(fits)}"),
             (f"predicted area in sky130: {cells['area'] / 1e6:.2f} mm² of cells {in_cells['area']}, "
              f"{cells['memory'] / 1e6:.2f} mm² of static RAM"),
             "errors are those of synthesised machines, each predicted from all the others: rms and largest"]
    if beyond := dict.fromkeys((*found["ecp5-85k"]["beyond"], *found["sky130"]["beyond"])):
        lines.append(f"area is extrapolated: no machine was synthesised with this {', '.join(beyond)}")
    return lines


def _table(design: "Design") -> "Table":
    from tilewright.tools.fitted_table import FittedTable

    table = FittedTable(title=f"Design {design.machine.name}")
    table.column("parameter", least=26)
    table.column("value", number=True)
    table.column("from", goes=1)
    table.column("to", number=True, goes=1)
    for key, value in asdict(design.machine).items():
        if key in LIMITS:
            table.add_row(f"machine.{key}", f"{value:,}", *(f"{limit:,}" for limit in LIMITS[key]))
    machine = design.machine
    table.add_row("machine.array", machine.array, " | ".join(ARRAYS), "")
    for unit in SWITCHES:
        has = bool(getattr(machine, unit)) and (unit != "column_reuse" or machine.winograd)
        table.add_row(f"machine.{unit}", "yes" if has else "no", "no", "yes")
    table.add_row("memory.latency_cycles", f"{design.timing.latency_cycles:,}", "1", "")
    table.add_row("memory.bytes_per_cycle", f"{design.timing.bytes_per_cycle:,}", "1", "")
    stated = design.timing.to_json()
    table.add_row("memory.dram", str(stated.get("dram", "none")), " | ".join(PARTS), "")
    return table


def _lines(design: "Design") -> list[str]:
    size, pricing = design.machine, design.pricing
    found = derived(size)
    technology = pricing.load()
    peak = ", ".join(f"{count:g} by {name}" for name, count in found["peak_macs_per_cycle"].items())
    return [
        "Every size of the machine is a power of two.",
        f"multipliers: {found['multipliers']}; multiply-accumulates per cycle, at most: {peak}",
        f"buffers: {found['buffer_bytes']:,} bytes; {found['kernels']:,} 3x3 kernels fit the weight memories",
        (f"clock: {pricing.clock(technology).mhz:g} MHz; energy in {pricing.describe(technology)}, "
         f"main memory {pricing.dram}"),
        *_area_lines(size),
    ]
