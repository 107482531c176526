"""The command ``compile``: a model as a folder of manifest, C, ELF and weights."""

import tempfile
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tilewright.cli.options.arguments import (
    CompilerOptions,
    Explain,
    FenceWait,
    MachineOptions,
    Model,
    WindowsChoice,
    say_ranges,
    with_groups,
    write_json,
)
from tilewright.cli.options.model_state import StateOptions
from tilewright.cli.options.streams import leave_standard_output
from tilewright.errors import InputError
from tilewright.isa.command_port import PortName
from tilewright.tools.files import require_place

__all__ = ["Target", "compile_", "register"]


class Target(StrEnum):
    """Kinds of folder that a compiled model is written as."""

    SIMULATOR = "simulator"
    BAREMETAL = "baremetal"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformOptions:
    """The platform of the program, besides the machine."""

    target: Annotated[Target, typer.Option(
        "--target", help="Kind of output: an artefact for `tilewright simulate`, or a C project for a board.")] \
        = Target.SIMULATOR
    port: Annotated[PortName, typer.Option(
        "--port", help="How the host sends commands: as instructions of a core with CV-X-IF, or as stores to registers "
                       "(docs/integration.md).")] = "cvxif"
    wait: FenceWait = None
    windows: WindowsChoice = None


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(name="compile", epilog="Example: tilewright compile models/lenet5.onnx -o out/lenet5 --machine nano")(
        compile_)


@with_groups
def compile_(model: Model,
             output: Annotated[Path | None, typer.Option("-o", "--output", metavar="DIR", show_default=False,
                                                         help="Folder to write; not required with --explain.")]
             = None, explain: Explain = False,
             json_file: Annotated[Path | None, typer.Option(
                 "--json", metavar="FILE", show_default=False, callback=leave_standard_output,
                 help="Write the plan as JSON; - writes it "
                      "to standard output, and all else to standard error.")] = None,
             *, platform: PlatformOptions, chosen: MachineOptions, compiler: CompilerOptions,
             quantise: StateOptions) -> None:
    """Compile MODEL to a folder with manifest, C, ELF, weights and memory map."""
    if output is None and not explain:
        raise InputError("Give -o DIR to write the compiled model, or --explain to see only its plan")
    if platform.windows is not None and platform.target is not Target.BAREMETAL:
        raise InputError("Option --windows must be given with --target baremetal, whose program sets the windows; the "
                         "simulator sets those of other programs")
    size = chosen.design().machine
    require_place(json_file, read=(model, quantise.calibrate))
    wait = platform.wait or "poll"
    source = quantise.model(model)
    from tilewright.cli.tables.plan_tables import print_plan
    from tilewright.cli.tables.text import console
    from tilewright.compiler.compile import compile_file, emit_artefact
    from tilewright.compiler.emit.baremetal import write_project
    from tilewright.compiler.explain import explain as explanation_of
    from tilewright.runtime.oracle.inputs import node_args
    from tilewright.runtime.state_pairs import check_state, state_sentences
    from tilewright.tools.progress import Steps

    with Steps().step(f"Compiling {model}"):
        compiled = compile_file(source.path, size, options=compiler.options(bool(source.state)))
        network = compiled.network
        check_state(source.state, node_args(network.inputs, network.unread), node_args(network.outputs),
                    batch=compiler.batch)
        if output is not None and platform.target is Target.BAREMETAL:
            with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
                write_project(emit_artefact(compiled, source.path, Path(folder, "artefact"), port=platform.port,
                                            state=source.state), output, wait=wait, windows=platform.windows)
        elif output is not None:
            emit_artefact(compiled, source.path, output, port=platform.port, wait=wait, state=source.state)
    if explain:
        print_plan(explanation_of(compiled), console())
    if json_file is not None:
        write_json(json_file, explanation_of(compiled).to_json())
    say_ranges(source)
    for sentence in state_sentences(source.state, network.inputs):
        typer.echo(sentence, err=True)
    if output is not None:
        typer.echo(output)
