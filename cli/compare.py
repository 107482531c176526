"""The command ``compare``; see `runtime.compare.layer_report` and, for other references, `other_references`."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, cast

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
from tilewright.cli.options.model_state import TfliteEngine
from tilewright.cli.options.refusals import FAILED
from tilewright.tools.files import require_place, write_file

if TYPE_CHECKING:
    from tilewright.compiler.tflite.mark import EngineName as TfliteName
    from tilewright.runtime.compare.layer_report import LayerComparison
    from tilewright.runtime.compare.other_references import ReferenceComparison
    from tilewright.runtime.oracle.plain_sessions import PlainName

__all__ = ["ReferenceName", "arithmetic_advice", "compare", "register"]


class ReferenceName(StrEnum):
    """The reference to compare with."""

    integer = "integer"
    default = "default"
    unfused = "unfused"
    litert = "litert"
    litert_reference = "litert-reference"
    tflm = "tflm"


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(epilog="Example: tilewright compare detector.onnx --calibrate images.npz --engine rtl")(compare)


@with_groups
def compare(model: Model, memory: MemoryText = None, engine: EngineName = Engine.fast,
            reference: Annotated[ReferenceName, typer.Option(
                "--reference", help="integer: ONNX Runtime's integer kernels, which we equal; default: a plain session "
                                    "of the file; unfused: the same with nothing fused, in float; see "
                                    "docs/exactness.md. Of a .tflite file also litert, which we equal, its reference "
                                    "kernels, and tflm, TensorFlow Lite Micro; see docs/tflite.md."),
            ] = ReferenceName.integer,
            arithmetic: Annotated[TfliteEngine | None, typer.Option(
                "--arithmetic", show_default=False,
                help="Whose arithmetic we compute a .tflite file in: --reference of run.")] = None,
            *, chosen: MachineOptions, files: PageFileOptions, quantise: QuantiseOptions) -> None:
    """Compare ONNX Runtime, the integer reference and an engine layer by layer, up to the first layer that differs.

    For that layer the command names the element, its address, and the instruction that wrote it. For a float model it
    also shows how far each int8 tensor is from its float original, and how often the answers agree. Another --reference
    is compared with the integer reference for information: where it is off, and which operator starts that.
    """
    design, values = chosen.design(memory=memory), engine.with_values
    require_place(files.json_file, files.html_file, read=(model, quantise.calibrate, files.input_file))
    source = quantise.model(model, cast("TfliteName | None", arithmetic and arithmetic.value))
    from tilewright.cli.tables.comparison_tables import print_comparison, print_reference
    from tilewright.cli.tables.text import console
    from tilewright.runtime.compare.layer_report import compare_layers
    from tilewright.runtime.compare.other_references import compare_reference
    from tilewright.tools.progress import Steps

    if reference is not ReferenceName.integer:
        beside = compare_reference(source, cast("PlainName | TfliteName", reference.value), files.input_file,
                                   steps=Steps())
        print_reference(beside, console(), arithmetic_advice(reference, arithmetic))
        _write(beside, files, f"{beside.model} beside {beside.engine}, {reference}")
        return
    comparison = compare_layers(source, design.machine, values, files.input_file, memory=design.memory, steps=Steps())
    print_comparison(comparison, console())
    title = f"{comparison.model} on {comparison.machine}, engine {comparison.engine}: layers compared"
    _write(comparison, files, title)
    if not comparison.matches:
        raise typer.Exit(FAILED)


def arithmetic_advice(reference: ReferenceName, arithmetic: TfliteEngine | None) -> str:
    """Return how to compute a .tflite file in the arithmetic of ``reference``, if ours is another one's."""
    ours = "litert" if arithmetic is None else arithmetic.value
    if reference.value not in {engine.value for engine in TfliteEngine} or reference.value == ours:
        return ""
    return f"Our values are in the arithmetic of {ours}; for those of {reference}, add --arithmetic {reference}"


def _write(comparison: "LayerComparison | ReferenceComparison", files: PageFileOptions, title: str) -> None:
    """Write what was found as JSON and as a page, if asked for."""
    found = comparison.to_json()
    if files.json_file is not None:
        write_json(files.json_file, found)
    if files.html_file is None:
        return
    from tilewright.runtime.execution.verdict import count_text, headline
    from tilewright.runtime.views.tables_page import TablesPage, rows_table

    figures = [(f"{what} equal to ONNX Runtime", headline(verdicts), count_text(verdicts, what))
               for what, verdicts in (("outputs", comparison.output_verdicts), ("layers", comparison.verdicts))]
    page = TablesPage(title=title, command=command_line(), figures=figures,
                      tables=[rows_table("Outputs", found["outputs"]), rows_table("Layers", found["layers"])],
                      notes=[f"input: {comparison.origin}"])
    write_file(files.html_file, page.html().encode())
