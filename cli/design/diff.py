"""The command ``diff``: two reports, or two designs on one network, layer by layer."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tilewright.cli.options.arguments import (
    CompilerOptions,
    PredictionOptions,
    QuantiseOptions,
    ResultFileOptions,
    TechnologyName,
    command_line,
    with_groups,
    write_json,
)
from tilewright.errors import InputError
from tilewright.tools.files import require_place, write_file

if TYPE_CHECKING:
    pass

__all__ = ["diff", "register"]

_Side = Annotated[str, typer.Argument(
    show_default=False, help="A report written by `tilewright run --json`, or a design as for --machine.")]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(epilog="Example: tilewright diff base base,lanes=8 --model resnet18-32 --json diff.json")(diff)


@with_groups
def diff(first: _Side, second: _Side,
         model: Annotated[str | None, typer.Option("--model", metavar="MODEL", show_default=False,
                                                   help="The network on which designs are compared.")] = None,
         technology: TechnologyName = None, *, files: ResultFileOptions, prediction: PredictionOptions,
         compiler: CompilerOptions, quantise: QuantiseOptions) -> None:
    """Compare two reports, or two designs on one network: cycles, bytes and energy of each layer, and what changed.

    Designs are predicted without values. --memory, --clock, --technology and the compiler's options apply to both.
    """
    require_place(files.json_file, files.html_file, read=(first, second, model, quantise.calibrate))
    stated = [side for side in (first, second) if not side.endswith(".json")]
    if stated and model is None:
        raise InputError(f"Design {stated[0]!r} needs --model MODEL, the network to compare on; the name of a report "
                         "ends in .json")
    from tilewright.cli.tables.difference_table import print_difference
    from tilewright.cli.tables.text import console
    from tilewright.runtime.compare.report_difference import compare_reports, predicted_side, read_side
    from tilewright.runtime.design.design_flags import design_of
    from tilewright.runtime.predicted_network import PredictedNetwork
    from tilewright.tools.progress import Steps

    designs = {text: design_of(text, memory=prediction.memory, clock=prediction.clock, technology=technology)
               for text in stated}
    for design in designs.values():
        design.pricing.load()
    network: PredictedNetwork | None = None
    if model is not None and designs:
        network = PredictedNetwork(quantise.model(model), compiler.options(),
                                   outputs_only=prediction.outputs_only)
    sides: list[dict[str, Any]] = []
    for text in (first, second):
        if text not in designs or network is None:
            sides.append(read_side(Path(text)))
            continue
        with Steps().step(f"Predicting {network.name} on {text}"):
            sides.append(predicted_side(network, designs[text]))
    found = compare_reports(*sides)
    print_difference(found, console())
    if files.json_file is not None:
        write_json(files.json_file, found.to_json())
    if files.html_file is not None:
        from tilewright.runtime.views.difference_page import difference_page

        write_file(files.html_file, difference_page(found, command_line()).encode())
