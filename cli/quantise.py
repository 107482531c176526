"""The command ``quantise``: a model as a file with the bits that are chosen for its layers; see `runtime.precision`."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.cli.options.arguments import QuantiseOptions, say_ranges, with_groups
from tilewright.errors import InputError
from tilewright.tools.files import require_place, write_file

if TYPE_CHECKING:
    from tilewright.runtime.model_source import ModelSource

__all__ = ["quantise", "register"]


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(epilog="Example: tilewright quantise net.onnx --calibrate images.npz --weights int4:conv2,fc1 "
                       "-o net-int4.onnx")(quantise)


@with_groups
def quantise(model: Annotated[str, typer.Argument(metavar="MODEL", show_default=False,
                                                  help="A float or quantised .onnx file, or a built-in name.")],
             output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE.onnx", show_default=False,
                                                  help="File to write: Q and DQ, weights of 4 and 2 bits as int4.")],
             weights: Annotated[list[str] | None, typer.Option(
                 "--weights", metavar="int4[:LAYER,…]", show_default="int8",
                 help="Bits of weights, int8, int4 or int2, of all layers or of some: names, parts of names such as "
                      "conv1, patterns with *, or numbers; may be repeated, and the last one counts.")] = None,
             activations: Annotated[list[str] | None, typer.Option(
                 "--activations", metavar="int16[:LAYER,…]", show_default="int8",
                 help="Bits of what layers read, int8 or int16, likewise; 16 need a machine with wide_words.")] = None,
             *, options: QuantiseOptions) -> None:
    """Write MODEL quantised, with the bits that are chosen for its layers, as a file for every command.

    Weights are rounded by what their errors cost on the samples of --calibrate, which may also be given for a model
    that is quantised already; without samples, each for itself.
    """
    from tilewright.cli.tables.bits_table import bits_table
    from tilewright.cli.tables.text import console
    from tilewright.runtime.precision.layer_bits import bits_given
    from tilewright.runtime.precision.quantised_file import bits_model
    from tilewright.tools.progress import Steps

    if options.keep_float:
        raise InputError("Option --float excludes quantising; leave it out")
    if output.suffix != ".onnx":
        raise InputError(f"File to write must end in .onnx, not {output.name!r}")
    require_place(output, read=(model, options.calibrate))
    chosen = bits_given(weights, activations)
    source, samples = _source(model, options)
    with Steps().step(f"Quantising the layers of {model}"):
        found = bits_model(source, samples)
        made = found.written(chosen)
        write_file(output, made.SerializeToString())
    console().print(bits_table(found.rows(chosen), found.samples))
    say_ranges(source)
    typer.echo(output)


def _source(model: str, options: QuantiseOptions) -> "tuple[ModelSource, Path | None]":
    """Return a model, a float one quantised; and the samples to round by, where they have not been used for that."""
    from tilewright.runtime.precision.quantised_file import is_quantised

    if options.calibrate is not None and is_quantised(model):
        return replace(options, calibrate=None).model(model), options.calibrate
    return options.model(model), None
