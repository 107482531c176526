"""The command ``tilewright``: results on standard output, progress and refusals on standard error.

Exit status: 0 if the run ended and every value compared equals ONNX Runtime's, 1 if not, 2 for bad input.
What a command needs is imported when it runs, so that ``--help`` and ``isa`` answer at once.
"""

import io
import json
import math
import shlex
import signal
import sys
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.cli import board as cli_board
from tilewright.cli import calibrate as cli_calibrate
from tilewright.cli import check as cli_check
from tilewright.cli import compare as cli_compare
from tilewright.cli import synth as cli_synth
from tilewright.cli import verilog as cli_verilog
from tilewright.cli.arguments import (
    Activity,
    Calibrate,
    DramPart,
    Engine,
    EngineName,
    Gated,
    ImportPower,
    InputFile,
    JsonFile,
    KeepFloat,
    MachineName,
    Model,
    TechnologyName,
    imported,
    machine_named,
    model_named,
    priced,
    say_ranges,
    write_json,
)
from tilewright.cli.refusals import FAILED, OneSentence
from tilewright.compiler.network.options import Options
from tilewright.energy.estimate import DRAM
from tilewright.energy.pricing import TECHNOLOGY
from tilewright.errors import InputError
from tilewright.tools.output_files import require_place, write_arrays

if TYPE_CHECKING:
    from tilewright.energy.imported_power import ImportedPower
    from tilewright.runtime.evaluate import Evaluation

app = typer.Typer(cls=OneSentence, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
                  help="From ONNX to a RISC-V program with seven custom instructions, simulated bit for bit.")


class Core(StrEnum):
    """Which core a baseline runs on."""

    cv32e40x = "cv32e40x"
    cv32e40p = "cv32e40p"


class Format(StrEnum):
    """How ``isa`` shows the instructions."""

    table = "table"
    json = "json"
    header = "header"


PlanFile = Annotated[Path | None, typer.Option("--json", metavar="FILE", show_default=False,
                                               help="Write the plan as JSON.")]
Folder = Annotated[Path, typer.Option("-o", "--output", metavar="DIR", show_default=False, help="Where to put it.")]
Explain = Annotated[bool, typer.Option("--explain", help="Show the plan: tiles, loops, costs, bounds by layer.")]
Statistics = Annotated[bool, typer.Option("--statistics", help="Show how much of its int8 range each layer uses.")]
Layers = Annotated[str | None, typer.Option("--layers", metavar="A:B", show_default=False,
                                            help="Simulate only layers A to B - 1, in RTL; either may be left out.")]
Jobs = Annotated[int | None, typer.Option("--jobs", metavar="N", show_default=False,
                                          help="Cut the run at layer borders; simulate N ranges in RTL at a time.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Simulate again the ranges that an earlier run has finished.")]
NoFusePool = Annotated[bool, typer.Option("--no-fuse-pool", help="Make every max pooling a layer of its own.")]
NoWinograd = Annotated[bool, typer.Option("--no-winograd", help="Compute 3x3 convolutions with conv, not conv23.")]
NoReuse = Annotated[bool, typer.Option("--no-reuse", help="Let conv23 read whole patches, without column reuse.")]
NoChaining = Annotated[bool, typer.Option("--no-chaining", help="Let every layer read its input from main memory.")]


def main() -> None:
    """Run the command line."""
    print_in_any_locale()
    end_in_order_when_terminated()
    app(prog_name="tilewright")


def print_in_any_locale() -> None:
    """Let a letter that the locale's encoding lacks be printed as ?, instead of ending the run."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def end_in_order_when_terminated() -> None:
    """Let SIGTERM end this process as an exception does: tools that it started end with it, drafts are removed."""
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))


@app.command(epilog="Example: tilewright run lenet5 --machine large --engine rtl --json report.json")
def run(model: Model, machine: MachineName = "base", engine: EngineName = Engine.fast,
        input_file: InputFile = None, json_file: JsonFile = None, explain: Explain = False,
        statistics: Statistics = False, no_fuse_pool: NoFusePool = False, no_winograd: NoWinograd = False,
        no_reuse: NoReuse = False, no_chaining: NoChaining = False, layers: Layers = None,
        jobs: Jobs = None, fresh: Fresh = False, technology: TechnologyName = TECHNOLOGY, dram: DramPart = DRAM,
        gated: Gated = False, activity: Activity = False, import_power: ImportPower = None,
        calibrate: Calibrate = None, keep_float: KeepFloat = False) -> None:
    """Compile MODEL, simulate it, compare every layer with ONNX Runtime, and report."""
    by_ranges = _by_ranges(layers, jobs, fresh, engine, {"--explain": explain, "--activity": activity})
    size = machine_named(machine)
    require_place(json_file)
    pricing = priced(technology, dram, gated=gated)
    power = imported(import_power)
    file = model_named(model, calibrate, keep_float)
    from tilewright.runtime.evaluate import evaluate_model
    from tilewright.runtime.ranges.evaluate_ranges import Request, evaluate_ranges
    from tilewright.tools.progress import Steps

    options = _options(no_fuse_pool, no_winograd, no_reuse, no_chaining)
    if by_ranges:
        request = Request(layers=layers, jobs=jobs, fresh=fresh, pricing=pricing)
        evaluation = evaluate_ranges(file, size, input_file, request, options=options, steps=Steps())
    else:
        evaluation = evaluate_model(file, size, engine.value, input_file, options=options, pricing=pricing,
                                    count_toggles=activity, steps=Steps())
    _show(evaluation, json_file, explain=explain, statistics=statistics, power=power)


@app.command(name="compile", epilog="Example: tilewright compile models/lenet5.onnx -o out/lenet5 --machine nano")
def compile_(model: Model,
             output: Annotated[Path | None, typer.Option("-o", "--output", metavar="DIR", show_default=False,
                                                         help="Where to put it; may be left out with --explain.")]
             = None, machine: MachineName = "base", explain: Explain = False, json_file: PlanFile = None,
             no_fuse_pool: NoFusePool = False, no_winograd: NoWinograd = False, no_reuse: NoReuse = False,
             no_chaining: NoChaining = False,
             calibrate: Calibrate = None, keep_float: KeepFloat = False) -> None:
    """Compile MODEL to a folder: manifest, C, ELF, weights, memory map."""
    if output is None and not explain:
        raise InputError("Compiled model must be given a folder with -o DIR, or be only explained with --explain")
    size = machine_named(machine)
    require_place(json_file)
    file = model_named(model, calibrate, keep_float)
    from tilewright.cli.plan_tables import print_plan
    from tilewright.compiler.compile import compile_file, emit_artifact
    from tilewright.compiler.explain import explain as explanation_of
    from tilewright.runtime.execution.report_tables import console
    from tilewright.tools.progress import Steps

    with Steps().step(f"Compiling {model}"):
        compiled = compile_file(file, size, options=_options(no_fuse_pool, no_winograd, no_reuse, no_chaining))
        if output is not None:
            emit_artifact(compiled, file, output)
    if explain:
        print_plan(explanation_of(compiled), console())
    if json_file is not None:
        write_json(json_file, explanation_of(compiled).to_json())
    say_ranges(file)
    if output is not None:
        typer.echo(output)


@app.command(epilog="Example: tilewright simulate out/lenet5 --engine rtl --output logits.npz --wave run.vcd")
def simulate(directory: Annotated[Path, typer.Argument(metavar="DIR", show_default=False,
                                                       help="What `tilewright compile` wrote.")],
             engine: EngineName = Engine.fast, input_file: InputFile = None,
             output: Annotated[Path | None, typer.Option("--output", metavar="FILE", show_default=False,
                                                         help="Write the outputs as .npz.")] = None,
             json_file: JsonFile = None,
             wave: Annotated[Path | None, typer.Option("--wave", metavar="FILE", show_default=False,
                                                       help="Write all signals as VCD; engine rtl only.")] = None,
             layers: Layers = None, jobs: Jobs = None, fresh: Fresh = False,
             technology: TechnologyName = TECHNOLOGY, dram: DramPart = DRAM, gated: Gated = False,
             activity: Activity = False, import_power: ImportPower = None) -> None:
    """Run a compiled model, compare its outputs with ONNX Runtime, and report.

    With --layers or --jobs, layers are compiled again, as the whole was, and every tensor of theirs is compared.
    """
    by_ranges = _by_ranges(layers, jobs, fresh, engine, {"--wave": wave is not None, "--activity": activity})
    if layers is not None and output is not None:
        raise InputError("Option --output must be given without --layers: some layers alone need not have the outputs")
    require_place(output, json_file, wave)
    pricing = priced(technology, dram, gated=gated)
    power = imported(import_power)
    from tilewright.runtime.evaluate import evaluate_artifact
    from tilewright.runtime.ranges.evaluate_ranges import Request, evaluate_artifact_ranges
    from tilewright.tools.progress import Steps

    if by_ranges:
        request = Request(layers=layers, jobs=jobs, fresh=fresh, pricing=pricing)
        evaluation = evaluate_artifact_ranges(directory, input_file, request, steps=Steps())
    else:
        evaluation = evaluate_artifact(directory, engine.value, input_file, wave=wave, pricing=pricing,
                                       count_toggles=activity, steps=Steps())
    if output is not None:
        write_arrays(output, evaluation.outputs)
    _show(evaluation, json_file, power=power)


cli_check.register(app)
cli_compare.register(app)
cli_synth.register(app)
cli_verilog.register(app)
cli_board.register(app)
cli_calibrate.register(app)


@app.command(epilog="Example: tilewright baseline lenet5 --json baseline.json")
def baseline(model: Model,
             core: Annotated[Core, typer.Option("--core", help="The host core and plain C, or PULP's SIMD.")]
             = Core.cv32e40x, input_file: InputFile = None, json_file: JsonFile = None,
             technology: TechnologyName = TECHNOLOGY,
             calibrate: Calibrate = None, keep_float: KeepFloat = False) -> None:
    """Run MODEL as C on a core alone, in the same simulator, with memory that never waits.

    Large models are run in parts, and their cycles scaled.
    """
    require_place(json_file)
    pricing = priced(technology, DRAM, gated=False)
    file = model_named(model, calibrate, keep_float)
    from tilewright.energy.baseline_energy import energy_of_baseline
    from tilewright.runtime.evaluate import evaluate_baseline
    from tilewright.runtime.execution.report import energy_json
    from tilewright.runtime.execution.report_tables import baseline_table, console, energy_text
    from tilewright.tools.progress import Steps

    result = evaluate_baseline(file, input_file, core=core.value, steps=Steps())
    out = console()
    out.print(baseline_table(file.stem, result))
    say_ranges(file)
    energy = energy_of_baseline(result, pricing)
    out.print(energy_text(energy, pricing.describe(pricing.load())), highlight=False, soft_wrap=True)
    out.print(f"every layer equal to the integer reference: {'yes' if result.matches else 'NO'}", highlight=False)
    if json_file is not None:
        write_json(json_file, {
            "model": file.stem, "core": result.core, "cycles": result.cycles, "instructions": result.instructions,
            "macs": sum(layer.macs for layer in result.layers), "matches_reference": result.matches,
            "energy": energy_json(energy) | {"technology": technology},
            "layers": [asdict(layer) for layer in result.layers]})
    if not result.matches:
        raise typer.Exit(FAILED)


@app.command(epilog="Example: tilewright isa --format header > tilewright.h")
def isa(form: Annotated[Format, typer.Option("--format", help="For a person, a program, or a C compiler.")]
        = Format.table) -> None:
    """Show the seven instructions."""
    from tilewright.cli.isa import instruction_table, instructions_json
    from tilewright.isa.emit_c import header
    from tilewright.runtime.execution.report_tables import console

    if form is Format.header:
        typer.echo(header(), nl=False)
    elif form is Format.json:
        typer.echo(json.dumps(instructions_json(), indent=2))
    else:
        console().print(instruction_table())


@app.command(epilog="Example: tilewright doctor")
def doctor() -> None:
    """Look for every tool, see whether it runs, and say how to get what is missing."""
    from tilewright.cli.doctor import examine
    from tilewright.runtime.execution.report_tables import console, doctor_table
    from tilewright.tools.progress import Steps

    with Steps().step("Asking every tool for its version"):
        findings = examine()
    console().print(doctor_table(findings))
    if not all(finding.works for finding in findings if finding.required):
        raise typer.Exit(FAILED)


@app.command(epilog="Example: tilewright bench --quick --engine fast")
def bench(quick: Annotated[bool, typer.Option("--quick", help="Only LeNet-5 and the networks for 3x32x32.")] = False,
          engine: EngineName = Engine.rtl,
          only: Annotated[str | None, typer.Option("--only", metavar="A,B", show_default=False,
                                                   help="Only these networks, by name.")] = None,
          machines: Annotated[str | None, typer.Option(
              "--machines", metavar="A,B", show_default=False,
              help="On which machines. Without it all, and images of 224x224 in RTL on base alone.")] = None,
          output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The page to write.")]
          = Path("docs/benchmarks.md"),
          energy: Annotated[Path | None, typer.Option("--energy", metavar="FILE", show_default=False,
                                                      help="Also write the page on energy: docs/energy.md.")] = None,
          rtl_cycles: Annotated[float | None, typer.Option("--rtl-cycles", metavar="N", show_default=False,
                                                           help="Only predict what takes more cycles than this.")]
          = None,
          all_baselines: Annotated[bool, typer.Option(
              "--all-baselines", help="The baselines of every network, not only of the main ones.")] = False,
          fresh: Annotated[bool, typer.Option("--fresh", help="Run again what has been run before.")] = False) -> None:
    """Run networks on machines with and without each optimisation, beside the baselines, and write a page of tables.

    Results are kept: an interrupted bench goes on where it was.
    """
    require_place(output)
    if energy is not None:
        require_place(energy)
    from tilewright.bench.bench import bench as run_bench
    from tilewright.bench.cases import FULL, QUICK, matrix
    from tilewright.bench.figure_store import FigureStore
    from tilewright.tools.progress import Steps

    if quick and only is not None:
        raise InputError("Networks to bench must be given by --quick or by --only, not both")
    names = only.split(",") if only is not None else QUICK if quick else FULL
    cases = matrix(names, machines.split(",") if machines is not None else None, engine.value)
    given = {"--engine": None if engine is Engine.rtl else engine.value, "--only": only, "--machines": machines,
             "--rtl-cycles": rtl_cycles, "--energy": energy}
    words = [word for name, value in given.items() if value is not None for word in (name, str(value))]
    flags = [flag for flag, given in (("--quick", quick), ("--all-baselines", all_baselines)) if given]
    command = shlex.join(["tilewright", "bench", *flags, *words])
    if not run_bench(cases, output, Steps(), store=FigureStore.open(fresh=fresh), command=command, energy=energy,
                     all_baselines=all_baselines, rtl_cycles=math.inf if rtl_cycles is None else rtl_cycles):
        raise typer.Exit(FAILED)


@app.command(epilog="Example: tilewright demo")
def demo(output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="Where to leave the results.")]
         = Path("out/demo")) -> None:
    """Take both LeNets from ONNX to the report, in RTL, beside plain C on the core alone."""
    from tilewright.cli.demo import demonstrate
    from tilewright.runtime.execution.report_tables import console
    from tilewright.tools.progress import Steps

    if not demonstrate(machine_named("base"), output, Steps(), console()):
        raise typer.Exit(FAILED)


def _by_ranges(layers: str | None, jobs: int | None, fresh: bool, engine: Engine, others: dict[str, bool]) -> bool:
    """Tell whether a run is cut into ranges of layers, which ``others`` (options, and whether given) do not go with."""
    ranges = layers is not None or jobs is not None
    if ranges and (engine is not Engine.rtl or any(others.values())):
        raise InputError(f"Options --layers and --jobs must be given with --engine rtl, and without "
                         f"{' or '.join(others)}")
    if fresh and not ranges:
        raise InputError("Option --fresh must be given with --layers or --jobs: nothing else is kept between runs")
    return ranges


def _options(no_fuse_pool: bool, no_winograd: bool, no_reuse: bool, no_chaining: bool) -> Options:
    return Options(fuse_pool=not no_fuse_pool, winograd="never" if no_winograd else "auto", reuse=not no_reuse,
                   chain=not no_chaining)


def _show(evaluation: "Evaluation", json_file: Path | None, *, explain: bool = False,
          statistics: bool = False, power: "ImportedPower | None" = None) -> None:
    """Print a report, with plan and values if asked for, and write it; exit with 1 if the reference's is another."""
    from tilewright.cli.plan_tables import print_plan
    from tilewright.runtime.execution.report_tables import console, print_report
    from tilewright.runtime.oracle.value_ranges import statistics_table

    report = replace(evaluation.report, imported=power)
    content = report.to_json()
    if explain and evaluation.explanation is not None:
        print_plan(evaluation.explanation, console())
        content["plan"] = evaluation.explanation.to_json()
    if statistics:
        console().print(statistics_table(evaluation.statistics))
        content["statistics"] = [asdict(each) for each in evaluation.statistics]
    print_report(report, console())
    if json_file is not None:
        write_json(json_file, content)
    if report.matches_reference is False:
        raise typer.Exit(FAILED)
