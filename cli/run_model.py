"""The commands ``run`` and ``simulate``: a model, or a compiled one, on an engine, compared with ONNX Runtime."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.cli.options.arguments import (
    CompilerOptions,
    EnergyOptions,
    Engine,
    EngineName,
    EngineOptions,
    Model,
    RangeOptions,
    RunFileOptions,
    TimingOptions,
    ViewOptions,
    command_line,
    with_groups,
    write_json,
)
from tilewright.cli.options.model_state import StateOptions
from tilewright.cli.options.refusals import FAILED
from tilewright.errors import InputError
from tilewright.isa.core_names import HOST_CORE, HostName
from tilewright.tools.files import require_place, write_arrays, write_file

if TYPE_CHECKING:
    from tilewright.compiler.network.options import Options
    from tilewright.energy.imported_power import ImportedPower
    from tilewright.runtime.advice.machine_changes import TriedChange
    from tilewright.runtime.compared_run import ComparedRun
    from tilewright.runtime.design.design import Design
    from tilewright.runtime.model_source import ModelSource
    from tilewright.sim.waves.wave import Wave

__all__ = ["register_run", "register_simulate", "run", "simulate"]


def register_run(app: typer.Typer) -> None:
    """Add ``run`` to the command line."""
    app.command(epilog="Example: tilewright run lenet5 --machine large --engine rtl --json report.json")(run)


def register_simulate(app: typer.Typer) -> None:
    """Add ``simulate`` to the command line."""
    app.command(epilog="Example: tilewright simulate out/lenet5 --engine rtl --wave run.fst --wave-layers 1:2")(
        simulate)


@with_groups
def run(model: Model, target: EngineOptions, files: RunFileOptions, view: ViewOptions, compiler: CompilerOptions,
        ranges: RangeOptions, energy: EnergyOptions, quantise: StateOptions) -> None:
    """Compile MODEL, simulate it, compare every layer with ONNX Runtime, and report.

    A model with state is called twice, from the start of its state on; the report is that of the second call.
    """
    wave = _wave(files, target.engine)
    by_ranges = ranges.wanted(target.engine, {"--wave": wave is not None, "--explain": view.explain,
                                              "--activity": energy.activity, "--outputs-only": view.outputs_only,
                                              "--host": target.host is not None, "--state": bool(quantise.state),
                                              "--stream": quantise.stream is not None,
                                              "--keep-weights": bool(compiler.keep_weights)})
    _require_rtl(target.engine, target.host)
    if target.wait == "wfi" and (target.engine is not Engine.rtl or by_ranges):
        raise InputError("Option --wait wfi needs --engine rtl, without --layers and --jobs: only there a core can "
                         "sleep")
    if view.outputs_only and view.statistics:
        raise InputError("Option --statistics excludes --outputs-only, which keeps no tensor between layers")
    if target.engine is Engine.cycles and (energy.activity or view.statistics or files.input_file is not None):
        raise InputError("Engine 'cycles' computes no values: it goes without --activity, --statistics and --input")
    _require_times(files, by_ranges=by_ranges)
    design = energy.priced(target.design())
    require_place(*files.written, read=(model, quantise.calibrate, files.input_file))
    power = energy.power()
    source = quantise.model(model)
    from tilewright.runtime.compared_run import run_model
    from tilewright.runtime.predicted_run import predict_model
    from tilewright.runtime.ranges.compared_ranges import RangeRequest, run_ranges
    from tilewright.runtime.run_options import RunOptions
    from tilewright.tools.progress import Steps

    options = compiler.options(bool(source.state))
    if target.engine is Engine.cycles:
        compared = predict_model(source, design, options, Steps(), outputs_only=view.outputs_only)
    elif by_ranges:
        request = RangeRequest(layers=ranges.layers, jobs=ranges.jobs, fresh=ranges.fresh, pricing=design.pricing,
                               memory=design.memory)
        compared = run_ranges(source, design.machine, files.input_file, request, options=options, steps=Steps())
    else:
        how = RunOptions(pricing=design.pricing, count_toggles=energy.activity, steps=Steps(), memory=design.memory,
                         host=target.host, wait=target.wait or "poll", outputs_only=view.outputs_only)
        compared = run_model(source, design.machine, target.engine.with_values, files.input_file, options=options,
                             wave=wave, run=how)
    tried = () if files.html_file is None or compared.job is None or target.host is not None else _tried(
        compared, source, design, options, outputs_only=view.outputs_only)
    _show(compared, files, view, power, tried, target.machine)


@with_groups
def simulate(directory: Annotated[Path, typer.Argument(metavar="DIR", show_default=False,
                                                       help="A folder written by `tilewright compile`.")],
             engine: EngineName = Engine.fast,
             output: Annotated[Path | None, typer.Option("--output", metavar="FILE", show_default=False,
                                                         help="Write the outputs as .npz.")] = None,
             *, files: RunFileOptions, timing: TimingOptions,
             ranges: RangeOptions, energy: EnergyOptions) -> None:
    """Run a compiled model, compare its outputs with ONNX Runtime, and print a report.

    With --layers or --jobs, the layers are compiled again with the same options, and each of their tensors is compared.
    """
    values = engine.with_values
    wave = _wave(files, engine)
    by_ranges = ranges.wanted(engine, {"--wave": wave is not None, "--activity": energy.activity,
                                       "--host": timing.host is not None})
    _require_rtl(engine, timing.host)
    if ranges.layers is not None and output is not None:
        raise InputError("Option --output excludes --layers: a range of layers may not include the outputs")
    _require_times(files, by_ranges=by_ranges)
    require_place(output, *files.written, read=(files.input_file,))
    from tilewright.compiler.emit.artefact import load_artefact
    from tilewright.isa.extension import load_extension
    from tilewright.runtime.compared_run import require_folder, run_artefact
    from tilewright.runtime.design.design import Design
    from tilewright.runtime.ranges.compared_ranges import RangeRequest, run_artefact_ranges
    from tilewright.runtime.run_options import RunOptions
    from tilewright.tools.progress import Steps

    own = None if timing.extension is None else load_extension(timing.extension)
    machine = load_artefact(require_folder(directory), own).manifest.machine
    design, power = energy.priced(timing.timed(Design(machine=machine))), energy.power()
    if by_ranges:
        request = RangeRequest(layers=ranges.layers, jobs=ranges.jobs, fresh=ranges.fresh, pricing=design.pricing,
                               memory=design.memory)
        compared = run_artefact_ranges(directory, files.input_file, request, steps=Steps())
    else:
        how = RunOptions(pricing=design.pricing, count_toggles=energy.activity, steps=Steps(), memory=design.memory,
                         host=timing.host)
        compared = run_artefact(directory, values, files.input_file, wave=wave, run=replace(how, extension=own))
    if output is not None:
        write_arrays(output, compared.outputs)
    _show(compared, files, ViewOptions(), power)


def _tried(compared: "ComparedRun", source: "ModelSource", design: "Design", options: "Options", *,
           outputs_only: bool) -> "tuple[TriedChange, ...]":
    """Predict what a page advises: the run with other machines."""
    from tilewright.runtime.advice.machine_changes import tried_changes
    from tilewright.tools.progress import Steps

    assert compared.job is not None
    return tried_changes(source, design, options, compared.report, Steps(), outputs_only=outputs_only,
                         commands=sum(1 for _ in compared.job.program.commands()))


def _require_rtl(engine: Engine, host: HostName | None) -> None:
    """Refuse another host than CV32E40X on an engine that has no other."""
    if host not in (None, HOST_CORE) and engine is not Engine.rtl:
        raise InputError(f"Option --host {host} needs --engine rtl: the other engines model only {HOST_CORE}")


def _wave(files: RunFileOptions, engine: Engine) -> "Wave | None":
    """Return the waveform that is asked for; refuse it on an engine without hardware."""
    if files.wave is not None and engine is not Engine.rtl:
        raise InputError("Option --wave needs --engine rtl: the other engines have no signals")
    return files.chosen()


def _require_times(files: RunFileOptions, *, by_ranges: bool) -> None:
    """Refuse a trace of a run in ranges, whose times belong to no run of the whole."""
    if files.trace_file is not None and by_ranges:
        raise InputError("Option --trace excludes --layers and --jobs: ranges that run separately have no times in "
                         "common")


def _show(compared: "ComparedRun", files: RunFileOptions, view: ViewOptions, power: "ImportedPower | None",
          tried: "Sequence[TriedChange]" = (), machine: str = "") -> None:
    """Print a report, with plan and values if asked for, and write it; exit with 1 if it is not the reference's."""
    from tilewright.cli.tables.plan_tables import print_plan
    from tilewright.cli.tables.report_tables import print_report, statistics_table
    from tilewright.cli.tables.text import console

    report = replace(compared.report, imported=power)
    content = report.to_json()
    if view.explain and compared.explanation is not None:
        print_plan(compared.explanation, console())
        content["plan"] = compared.explanation.to_json()
    if view.statistics:
        console().print(statistics_table(compared.statistics))
        content["statistics"] = [asdict(each) for each in compared.statistics]
    print_report(report, console())
    if files.json_file is not None:
        write_json(files.json_file, content)
    if files.csv_file is not None:
        from tilewright.runtime.execution.layer_rows import layers_csv

        write_file(files.csv_file, layers_csv(report).encode())
    if files.html_file is not None:
        from tilewright.runtime.views.run_page import run_page

        write_file(files.html_file, run_page(replace(compared, report=report), command_line(), tried,
                                             machine).encode())
    if files.trace_file is not None:
        from tilewright.runtime.views.perfetto_trace import perfetto_trace

        write_file(files.trace_file, json.dumps(perfetto_trace(compared), separators=(",", ":")).encode())
    if report.matches_reference is False:
        raise typer.Exit(FAILED)
