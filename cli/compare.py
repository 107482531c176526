"""The command ``compare``; see `runtime.compare.layer_report`."""

import typer

from tilewright.cli.arguments import (
    Calibrate,
    Engine,
    EngineName,
    InputFile,
    JsonFile,
    KeepFloat,
    MachineName,
    Model,
    machine_named,
    model_named,
    write_json,
)
from tilewright.cli.refusals import FAILED
from tilewright.tools.output_files import require_place


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(epilog="Example: tilewright compare detector.onnx --calibrate images.npz --engine rtl")(compare)


def compare(model: Model, machine: MachineName = "base", engine: EngineName = Engine.fast, input_file: InputFile = None,
            json_file: JsonFile = None, calibrate: Calibrate = None, keep_float: KeepFloat = False) -> None:
    """Hold ONNX Runtime, integer reference and engine side by side, layer by layer, up to the first that differs.

    There it names the element, its address, and the instruction that wrote it. Of a float model it also tells how far
    each tensor is from its float self, and how often the answers agree.
    """
    size = machine_named(machine)
    require_place(json_file)
    file = model_named(model, calibrate, keep_float)
    from tilewright.runtime.compare.layer_report import compare_layers, print_comparison
    from tilewright.runtime.execution.report_tables import console
    from tilewright.tools.progress import Steps

    comparison = compare_layers(file, size, engine.value, input_file, steps=Steps())
    print_comparison(comparison, console())
    if json_file is not None:
        write_json(json_file, comparison.to_json())
    if not comparison.matches:
        raise typer.Exit(FAILED)
