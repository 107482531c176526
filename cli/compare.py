"""The command ``compare``; see `runtime.compare.layer_report`."""

import typer

from tilewright.cli.options.arguments import (
    Engine,
    EngineName,
    MachineOptions,
    MemoryText,
    Model,
    PageFileOptions,
    QuantiseOptions,
    command_line,
    with_groups,
    write_json,
)
from tilewright.cli.options.refusals import FAILED
from tilewright.tools.files import require_place, write_file

__all__ = ["compare", "register"]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(epilog="Example: tilewright compare detector.onnx --calibrate images.npz --engine rtl")(compare)


@with_groups
def compare(model: Model, memory: MemoryText = None, engine: EngineName = Engine.fast, *, chosen: MachineOptions,
            files: PageFileOptions, quantise: QuantiseOptions) -> None:
    """Compare ONNX Runtime, the integer reference and an engine layer by layer, up to the first layer that differs.

    For that layer the command names the element, its address, and the instruction that wrote it. For a float model it
    also shows how far each int8 tensor is from its float original, and how often the answers agree.
    """
    design, values = chosen.design(memory=memory), engine.with_values
    require_place(files.json_file, files.html_file)
    source = quantise.model(model)
    from tilewright.cli.tables.comparison_tables import print_comparison
    from tilewright.cli.tables.text import console
    from tilewright.runtime.compare.layer_report import compare_layers
    from tilewright.tools.progress import Steps

    comparison = compare_layers(source, design.machine, values, files.input_file, memory=design.memory, steps=Steps())
    print_comparison(comparison, console())
    if files.json_file is not None:
        write_json(files.json_file, comparison.to_json())
    if files.html_file is not None:
        from tilewright.runtime.execution.verdict import count_text, headline
        from tilewright.runtime.views.tables_page import TablesPage, rows_table

        found = comparison.to_json()
        outputs = [each.verdict for each in comparison.found.outputs]
        page = TablesPage(
            title=f"{comparison.model} on {comparison.machine}, engine {comparison.engine}: layers compared",
            command=command_line(),
            figures=[("outputs equal to ONNX Runtime", headline(outputs), count_text(outputs, "outputs")),
                     ("layers equal to ONNX Runtime", headline(comparison.verdicts),
                      count_text(comparison.verdicts, "layers"))],
            tables=[rows_table("Outputs", found["outputs"]), rows_table("Layers", found["layers"])],
            notes=[f"input: {comparison.origin}"])
        write_file(files.html_file, page.html().encode())
    if not comparison.matches:
        raise typer.Exit(FAILED)
