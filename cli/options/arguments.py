"""Options and arguments that several commands share, alone and in groups, and the meaning of their values.

Options that go together are a dataclass, which a command takes as one parameter. Typer reads a command's options from
its signature, one parameter each, and knows no dataclasses, so ``with_groups`` shows it a longer signature than the
function has: a parameter whose type is a dataclass is replaced by that class's fields, in order, and the values that
typer finds for them are put together again before the call::

    @app.command()
    @with_groups
    def run(model: Model, target: EngineOptions) -> None:     # typer sees: model, --machine, --engine
        ...

Nothing heavy is imported here, so that ``--help`` and wrong arguments are answered at once.
"""

import inspect
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.cli.options.input_texts import shapes_given, values_given
from tilewright.cli.options.streams import STANDARD_OUTPUT, leave_standard_output, print_result
from tilewright.cli.options.waveforms import WaveOptions
from tilewright.errors import InputError
from tilewright.isa.command_port import WaitName
from tilewright.isa.core_names import HostName
from tilewright.isa.dram.parts import PARTS
from tilewright.isa.machine import DEFAULT_MACHINE, NAMED, Machine
from tilewright.isa.registers.host_registers import WindowPins
from tilewright.models import NAMES
from tilewright.tools.files import write_file

if TYPE_CHECKING:
    from tilewright.compiler.network.options import Options
    from tilewright.compiler.tflite.mark import EngineName as TfliteName
    from tilewright.energy.imported_power import ImportedPower
    from tilewright.energy.pricing import Pricing
    from tilewright.runtime.design.design import Design
    from tilewright.runtime.execution.engines import EngineName as EngineWithValues
    from tilewright.runtime.model_source import ModelSource

__all__ = [
    "DRAM",
    "TECHNOLOGY",
    "BatchSize",
    "CompilerOptions",
    "EnergyOptions",
    "Engine",
    "EngineName",
    "EngineOptions",
    "Explain",
    "ExtensionFile",
    "FenceWait",
    "FileOptions",
    "HostCore",
    "HtmlFile",
    "InputFile",
    "JsonFile",
    "MachineName",
    "MachineOptions",
    "Model",
    "OutputsOnly",
    "PageFileOptions",
    "PredictionOptions",
    "QuantiseOptions",
    "RangeOptions",
    "ResultFileOptions",
    "RunFileOptions",
    "TechnologyName",
    "TimingOptions",
    "TraceFile",
    "ViewOptions",
    "WindowsChoice",
    "command_line",
    "design_named",
    "designs_listed",
    "machine_named",
    "model_named",
    "priced",
    "say_ranges",
    "with_groups",
    "write_json",
]

TECHNOLOGY, DRAM = "generic45", "lpddr4"
"""Defaults of `energy.pricing` and `energy.estimate`, which take time to import; a test holds them to those."""


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Return ``command`` with the fields of its dataclass parameters as parameters of its own.

    Field and parameter names of a command must all differ. Annotations must be types, not strings.
    """
    parameters = inspect.signature(command).parameters
    groups = {each.name: each.annotation for each in parameters.values() if is_dataclass(each.annotation)}

    def call(**given: Any) -> None:
        values = {name: _taken(kind, given) for name, kind in groups.items()}
        command(**given, **values)

    flat = [each for parameter in parameters.values() for each in _flat(parameter)]
    call.__name__, call.__doc__, call.__module__ = command.__name__, command.__doc__, command.__module__
    call.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in flat}
    return call


def _taken(kind: Any, given: dict[str, Any]) -> Any:
    """Return a dataclass made of its fields in ``given``, which are removed there."""
    return kind(**{field.name: given.pop(field.name) for field in fields(kind)})


def _flat(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    """Yield a parameter, or one for each field of the dataclass that is its type; all by keyword."""
    if not is_dataclass(parameter.annotation):
        yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        return
    for field in fields(parameter.annotation):
        default = inspect.Parameter.empty if field.default is MISSING else field.default
        yield inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=field.type)


class Engine(StrEnum):
    """Engines that execute the program."""

    rtl = "rtl"
    fast = "fast"
    cycles = "cycles"

    @property
    def with_values(self) -> "EngineWithValues":
        """The engine, if it computes values.

        Raises
        ------
        InputError
            If it does not.
        """
        if self is Engine.cycles:
            raise InputError("Engine must be rtl or fast for this command, not 'cycles', which computes no values")
        return "rtl" if self is Engine.rtl else "fast"


Model = Annotated[str, typer.Argument(metavar="MODEL", show_default=False,
                                      help=f"An .onnx file, or one of {', '.join(NAMES)}.")]
MachineName = Annotated[str, typer.Option(
    "--machine", metavar="DESIGN", help=f"{', '.join(NAMED)}, a design file (.toml), or either with changes: "
                                        "base,lanes=8,clusters=2.")]
MemoryText = Annotated[str | None, typer.Option(
    "--memory", metavar="latency=N,bytes=N|dram=PART", show_default="20 cycles, then one bus word per cycle",
    help="Timing of main memory: cycles to the first word of a burst, then bytes per cycle; or a DRAM part at the "
         f"design's clock: {', '.join(PARTS)}. stalls=PERCENT,seed=N adds random stalls.")]
ExtensionFile = Annotated[Path | None, typer.Option(
    "--extension", metavar="FILE.py", show_default=False,
    help="Add the instruction that this file describes (docs/extensions.md). The file is executed.")]
ClockText = Annotated[str | None, typer.Option("--clock", metavar="FREQUENCY", show_default="the technology's",
                                               help="Clock frequency for milliseconds and milliwatts, such as 80MHz.")]
EngineName = Annotated[Engine, typer.Option(
    "--engine", help="rtl: the hardware in Verilator; fast: its model, with the same bits; cycles: only cycles and "
                     "energy, without values.")]
HostCore = Annotated[HostName | None, typer.Option(
    "--host", show_default="cv32e40x, or what a compiled model is for",
    help="The host core in engine rtl. Ibex has no CV-X-IF and sends its commands over AXI4-Lite.")]
FenceWait = Annotated[WaitName | None, typer.Option(
    "--wait", show_default="poll",
    help="How the core waits for the coprocessor: it polls, or sleeps until the interrupt (docs/integration.md).")]
WindowsChoice = Annotated[WindowPins | None, typer.Option(
    "--windows", show_default="registers with --port axi4lite, else pins",
    help="Where the windows come from: pins, or registers of the AXI4-Lite port, with a lock, the interrupt's causes, "
         "version and capability (docs/integration.md).")]
InputFile = Annotated[Path | None, typer.Option("--input", metavar="FILE", show_default=False,
                                                help="Input tensors: .npz with one array per input name, or .npy for a "
                                                     "single input.")]
BatchSize = Annotated[int, typer.Option(
    "--batch", metavar="N", min=1, max=1024,
    help="Compute N images at a time, loading every weight once for all of them; inputs and outputs hold N images.")]
JsonFile = Annotated[Path | None, typer.Option(
    "--json", metavar="FILE", show_default=False, callback=leave_standard_output,
    help="Also write the report as JSON; - writes it to standard output, and all else to standard error.")]
HtmlFile = Annotated[Path | None, typer.Option("--html", metavar="FILE", show_default=False,
                                               help="Also write an HTML page: one file that works offline.")]
TraceFile = Annotated[Path | None, typer.Option(
    "--trace", metavar="FILE", show_default=False,
    help="Also write a timeline of all units, as JSON for ui.perfetto.dev. Times are measured on engine rtl, and "
         "predicted on the others.")]
Explain = Annotated[bool, typer.Option("--explain", help="Show the plan of each layer: tiles, loops, cost and bound.")]
OutputsOnly = Annotated[bool, typer.Option(
    "--outputs-only", help="Store only the tensors that the network needs, as a compiled model does; a run then "
                           "compares only its outputs.")]
TechnologyName = Annotated[str | None, typer.Option(
    "--technology", metavar="NAME", show_default=f"the design's, or {TECHNOLOGY}",
    help="Technology that prices energy: a name from energy/technology, or a file of the same form (.toml).")]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingOptions:
    """Options beside a compiled model: its host, main memory and clock of its machine, the file of its extension."""

    host: HostCore = None
    extension: ExtensionFile = None
    memory: MemoryText = None
    clock: ClockText = None

    def timed(self, design: "Design") -> "Design":
        """Return ``design`` with the memory and the clock that the options state."""
        from tilewright.runtime.design.design_flags import clock_of, memory_of

        memory = design.memory if self.memory is None else memory_of(self.memory, design.machine)
        clock = design.pricing.clock_mhz if self.clock is None else clock_of(self.clock)
        return replace(design, memory=memory, pricing=replace(design.pricing, clock_mhz=clock))


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """The machine, its memory and clock, the engine that runs the program on it, and the host core."""

    machine: MachineName = DEFAULT_MACHINE
    extension: ExtensionFile = None
    memory: MemoryText = None
    clock: ClockText = None
    engine: EngineName = Engine.fast
    host: HostCore = None
    wait: FenceWait = None

    def design(self) -> "Design":
        """Return the design that the options state."""
        return design_named(self.machine, memory=self.memory, clock=self.clock, extension=self.extension)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineOptions:
    """The machine, with or without an instruction of the user's own."""

    machine: MachineName = DEFAULT_MACHINE
    extension: ExtensionFile = None

    def design(self, *, memory: str | None = None, clock: str | None = None) -> "Design":
        """Return the design that the options state."""
        return design_named(self.machine, memory=memory, clock=clock, extension=self.extension)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictionOptions:
    """The memory, the clock and the stored tensors of a run that is predicted."""

    memory: MemoryText = None
    clock: ClockText = None
    outputs_only: OutputsOnly = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOptions:
    """The inputs, and where the report goes."""

    input_file: InputFile = None
    json_file: JsonFile = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFileOptions(FileOptions):
    """The same, and where a page to look at goes."""

    html_file: HtmlFile = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFileOptions:
    """Where results go that are of no single run: as JSON, and as a page to look at."""

    json_file: JsonFile = None
    html_file: HtmlFile = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFileOptions(WaveOptions, PageFileOptions):
    """The same, and where the layers, the trace and the waveform of a run go."""

    csv_file: Annotated[Path | None, typer.Option(
        "--csv", metavar="FILE", show_default=False,
        help="Also write a row for each layer as CSV: cycles, main stall, bytes and energy.")] = None
    trace_file: TraceFile = None

    @property
    def written(self) -> tuple[Path | None, ...]:
        """The files to write."""
        return self.json_file, self.html_file, self.csv_file, self.trace_file, self.wave


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewOptions:
    """Tables to show beside the report, and whether tensors between layers are stored to be compared."""

    explain: Explain = False
    statistics: Annotated[bool, typer.Option(
        "--statistics", help="Show how much of the int8 range each layer uses.")] = False
    outputs_only: OutputsOnly = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilerOptions:
    """The batch, and optimisations to leave out."""

    batch: BatchSize = 1
    no_fuse_pool: Annotated[bool, typer.Option(
        "--no-fuse-pool", help="Make every max pooling a separate layer.")] = False
    no_winograd: Annotated[bool, typer.Option(
        "--no-winograd", help="Compute 3x3 convolutions with conv instead of conv23.")] = False
    no_reuse: Annotated[bool, typer.Option(
        "--no-reuse", help="Let conv23 read whole patches, without column reuse.")] = False
    no_chaining: Annotated[bool, typer.Option(
        "--no-chaining", help="Let every layer read its input from main memory.")] = False
    no_bands: Annotated[bool, typer.Option(
        "--no-bands",
        help="Compute each layer whole, not several by bands of rows or blocks of channels.")] = False

    all_channels: Annotated[bool, typer.Option(
        "--all-channels", help="Compute channels that hold constants or that nothing reads, too.")] = False

    keep_weights: Annotated[bool | None, typer.Option(
        "--keep-weights/--load-weights", show_default=False,
        help="Let weights stay on the chip from call to call, as many as have room, or load all in each call; without, "
             "they stay in networks with state.")] = None

    def options(self, state: bool = False) -> "Options":
        """Return the compiler's options; of a model that keeps ``state`` between calls, weights stay too."""
        from tilewright.compiler.network.options import Options

        return Options(fuse_pool=not self.no_fuse_pool, winograd="never" if self.no_winograd else "auto",
                       reuse=not self.no_reuse, chain=not self.no_chaining, bands=not self.no_bands,
                       narrow=not self.all_channels, batch=self.batch,
                       keep_weights=True if state and self.keep_weights is None else self.keep_weights)


@dataclass(frozen=True, slots=True, kw_only=True)
class RangeOptions:
    """Ranges of layers to cut a run in RTL into."""

    layers: Annotated[str | None, typer.Option(
        "--layers", metavar="A:B", show_default=False,
        help="Simulate only layers A to B - 1, in RTL. A or B may be left out.")] = None
    jobs: Annotated[int | None, typer.Option(
        "--jobs", metavar="N", show_default=False,
        help="Cut the run at layer borders, and simulate N ranges in RTL at a time.")] = None
    fresh: Annotated[bool, typer.Option(
        "--fresh", help="Simulate all ranges again, including those that an earlier run has finished.")] = False

    def wanted(self, engine: Engine, others: dict[str, bool]) -> bool:
        """Tell whether to cut the run; ``others`` are options that exclude it, and whether they are given.

        Raises
        ------
        InputError
            If the options exclude each other.
        """
        ranges = self.layers is not None or self.jobs is not None
        if ranges and (engine is not Engine.rtl or any(others.values())):
            *first, last = others
            excluded = f"{', '.join(first)} and {last}" if first else last
            raise InputError(f"Options --layers and --jobs need --engine rtl, and exclude {excluded}")
        if self.fresh and not ranges:
            raise InputError("Option --fresh needs --layers or --jobs: nothing else is saved between runs")
        return ranges


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyOptions:
    """Options for counting and pricing energy."""

    technology: TechnologyName = None
    dram: Annotated[str | None, typer.Option(
        "--dram", metavar="PART", show_default=f"the design's, or {DRAM}",
        help="DRAM part that prices main memory.")] = None
    gated: Annotated[bool, typer.Option(
        "--gated", help="Price energy with clock gates on the registers' enables.")] = False
    activity: Annotated[bool, typer.Option(
        "--activity", help="Count register toggles in RTL instead of predicting them.")] = False
    import_power: Annotated[Path | None, typer.Option(
        "--import-power", metavar="FILE", show_default=False,
        help="Also give the energy on an FPGA, "
             "from Vivado's report_power or from JSON (energy/imported_power.py).")] = None

    def priced(self, design: "Design") -> "Design":
        """Return ``design`` with the prices that the options name; refuse those that do not exist."""
        own = design.pricing
        pricing = replace(own, technology=self.technology or own.technology, dram=self.dram or own.dram,
                          gated=self.gated or own.gated)
        pricing.clock(pricing.load())
        return replace(design, pricing=pricing)

    def power(self) -> "ImportedPower | None":
        """Return the content of the power report, if one is given."""
        from tilewright.energy.imported_power import read_power

        return None if self.import_power is None else read_power(self.import_power)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantiseOptions:
    """Options for reading a file: samples to quantise a float model, or none, and shapes for open dimensions."""

    calibrate: Annotated[Path | None, typer.Option(
        "--calibrate", metavar="FILE", show_default=False,
        help="Quantise a float model with these samples: .npz with one array per input, whose first axis counts "
             "samples, or .npy for a single input. Without this option the ranges come from noise, which is good only "
             "for a quick look.")] = None
    keep_float: Annotated[bool, typer.Option(
        "--float", help="Do not quantise a float model; compute it on the core.")] = False
    shape: Annotated[list[str] | None, typer.Option(
        "--shape", metavar="NAME=N,…", show_default=False,
        help="Shape of an input with open dimensions, such as image=1,3,320,320, or the size of one dimension, such as "
             "height=320; may be repeated.")] = None

    input_value: Annotated[list[str] | None, typer.Option(
        "--input-value", metavar="NAME=V,…", show_default=False,
        help="Value of an input that is always the same, such as sr=16000: it becomes a constant; may be "
             "repeated.")] = None

    end: Annotated[list[str] | None, typer.Option(
        "--end", metavar="TENSOR", show_default=False,
        help="Let the model end at this tensor, and leave what only comes behind it to the host, such as a detector's "
             "TopK or NonMaxSuppression; may be repeated.")] = None

    def model(self, name: str, engine: "TfliteName | None" = None) -> "ModelSource":
        """Return the model that MODEL names, of an ``engine``'s arithmetic; a float one quantised as options say."""
        return model_named(name, calibrate=self.calibrate, keep_float=self.keep_float, engine=engine,
                           shapes=shapes_given(self.shape), values=values_given(self.input_value),
                           ends=self.end or ())


def model_named(name: str, *, calibrate: Path | None = None, keep_float: bool = False,
                shapes: Mapping[str, Sequence[int]] | None = None,
                values: Mapping[str, Sequence[float]] | None = None, ends: Sequence[str] = (),
                engine: "TfliteName | None" = None) -> "ModelSource":
    """Return the model that MODEL names: built-in, built now if need be, or a file; a float one quantised."""
    from tilewright.runtime.model_source import find_model
    from tilewright.tools.progress import Steps

    return find_model(name, Steps(), calibrate=calibrate, keep_float=keep_float, shapes=shapes, values=values,
                      ends=ends, engine=engine)


def say_ranges(source: "ModelSource") -> None:
    """Say on standard error what a model's ranges are from, if it is a float model: where no report does."""
    for note in source.notes if source.quantised is not None else ():
        typer.echo(note, err=True)


def design_named(text: str, *, memory: str | None = None, clock: str | None = None,
                 extension: Path | None = None) -> "Design":
    """Return the design that ``--machine`` states: a preset, a file, or either with changes; and its other flags."""
    from tilewright.runtime.design.design_flags import design_of

    return design_of(text, memory=memory, clock=clock, extension=extension)


def designs_listed(text: str) -> tuple[str, ...]:
    """Return the designs in a list, whose changes follow them: of ``nano,base,lanes=8`` nano, and base with 8 lanes."""
    found: list[str] = []
    for part in text.split(","):
        if "=" in part and found:
            found[-1] += f",{part}"
        else:
            found.append(part)
    return tuple(found)


def machine_named(text: str) -> Machine:
    """Return the machine of the design that ``--machine`` states."""
    return NAMED[text] if text in NAMED else design_named(text).machine


def priced(technology: str | None, clock: str | None = None) -> "Pricing":
    """Return the prices of a technology at a clock; raise an error for unknown names before anything runs."""
    from tilewright.energy.pricing import Pricing
    from tilewright.runtime.design.design_flags import clock_of

    pricing = Pricing(technology=technology or TECHNOLOGY, clock_mhz=None if clock is None else clock_of(clock))
    pricing.clock(pricing.load())
    return pricing


def command_line() -> str:
    """Return the command that is running, as one types it in a shell."""
    return shlex.join(["tilewright", *sys.argv[1:]])


def write_json(path: Path, data: dict[str, Any]) -> None:
    """Write what a command has found as JSON; to standard output if ``path`` says so."""
    text = json.dumps(data, indent=2) + "\n"
    if path == STANDARD_OUTPUT:
        print_result(text)
    else:
        write_file(path, text.encode())
