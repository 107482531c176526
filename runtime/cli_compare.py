"""The command ``compare``; see `runtime.layer_comparison`."""

import typer

from tilewright.runtime.cli_options import (
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
from tilewright.runtime.files import require_place
from tilewright.runtime.refusals import FAILED


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
    from tilewright.runtime.layer_comparison import compare_layers, print_comparison
    from tilewright.runtime.progress import Steps
    from tilewright.runtime.tables import console

    comparison = compare_layers(file, size, engine.value, input_file, steps=Steps())
    print_comparison(comparison, console())
    if json_file is not None:
        write_json(json_file, comparison.to_json())
    if not comparison.matches:
        raise typer.Exit(FAILED)
