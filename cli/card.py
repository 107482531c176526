"""The command ``card``: what models cost on several designs; see `runtime.card.model_card`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.cli.options.arguments import (
    ClockText,
    JsonFile,
    QuantiseOptions,
    designs_listed,
    with_groups,
    write_json,
)
from tilewright.cli.options.refusals import BAD_INPUT
from tilewright.errors import InputError
from tilewright.tools.files import require_place, write_file

if TYPE_CHECKING:
    from tilewright.compiler.errors import CompileError
    from tilewright.runtime.accuracy.data_set import DataFiles
    from tilewright.runtime.card.model_card import ModelCard
    from tilewright.runtime.model_source import ModelSource

__all__ = ["CardOptions", "card", "register"]

_DESIGNS = "nano,base,large"


@dataclass(frozen=True, slots=True, kw_only=True)
class CardOptions:
    """The designs, the labelled images, and where the cards go."""

    designs: Annotated[str, typer.Option(
        "--designs", metavar="DESIGN,…", help="Designs, as --machine of run states them; changes follow the "
                                              "design that they change: base,base,lanes=16.")] = _DESIGNS
    input_file: Annotated[Path | None, typer.Option(
        "--input", metavar="FILE", show_default=False,
        help="Images to measure accuracy with, as evaluate takes them. A built-in model "
             "has its own.")] = None
    labels: Annotated[Path | None, typer.Option(
        "--labels", metavar="FILE", show_default=False, help="Correct class of each image, as .npy.")] = None
    markdown: Annotated[Path | None, typer.Option(
        "--markdown", metavar="FILE", show_default=False, help="Also write the cards as a table in Markdown.")] = None

    def files(self, source: "ModelSource") -> "DataFiles | None":
        """Return the labelled images; those of a model that comes with some, if none are given."""
        from tilewright.runtime.accuracy.data_set import DataFiles
        from tilewright.runtime.accuracy.evaluation import default_files
        from tilewright.runtime.model_source import ModelOrigin

        if self.input_file is not None:
            return DataFiles(images=self.input_file, labels=self.labels)
        return default_files(source) if source.origin is ModelOrigin.BUILT_IN else None


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(epilog="Example: tilewright card mlperf-kws net.onnx --designs nano,base --markdown cards.md")(card)


@with_groups
def card(models: Annotated[list[str], typer.Argument(metavar="MODEL…", show_default=False,
                                                     help=".onnx files, or built-in models, as run takes them.")],
         clock: ClockText = None, json_file: JsonFile = None, *, chosen: CardOptions,
         quantise: QuantiseOptions) -> None:
    """Show what each MODEL costs on several designs: cycles, time, energy, bytes, the core's share; and its accuracy.

    Cycles are predicted, with only the outputs stored, as `run --engine cycles --outputs-only` predicts them. The exit
    status is 2 if a design cannot take a model.
    """
    if len(models) > 1 and (chosen.input_file is not None or quantise.calibrate is not None):
        raise InputError("Options --input and --calibrate hold arrays for one model: give one MODEL with them")
    if chosen.labels is not None and chosen.input_file is None:
        raise InputError("Option --labels needs --input, the images that the labels belong to")
    require_place(json_file, chosen.markdown, read=(*models, quantise.calibrate, chosen.input_file, chosen.labels))
    from tilewright.cli.tables.card_tables import card_table, cards_markdown, print_notes
    from tilewright.cli.tables.text import console

    named = [(name, _source(name, quantise)) for name in models]
    found = []
    for name, source in named:
        found.append(_card(name, source, chosen, clock))
        console().print(card_table(found[-1]))
        print_notes(found[-1], console())
    if chosen.markdown is not None:
        write_file(chosen.markdown, (cards_markdown(found) + "\n").encode())
    if json_file is not None:
        write_json(json_file, {"cards": [each.to_json() for each in found]})
    if not all(each.compiles for each in found):
        raise typer.Exit(BAD_INPUT)


def _source(name: str, quantise: QuantiseOptions) -> "ModelSource | CompileError":
    """Return the model that is named, or why its file cannot be compiled: the other models have their cards then."""
    from tilewright.compiler.errors import CompileError

    try:
        return quantise.model(name)
    except CompileError as error:
        return error


def _card(name: str, source: "ModelSource | CompileError", chosen: CardOptions, clock: str | None) -> "ModelCard":
    """Return the card of a model; of one that is refused, a card that says why."""
    from tilewright.runtime.card.model_card import CardRequest, card_of, refused_card
    from tilewright.runtime.model_source import ModelSource
    from tilewright.tools.progress import Steps

    designs = designs_listed(chosen.designs)
    if not isinstance(source, ModelSource):
        return refused_card(Path(name).stem, CardRequest(designs=designs, clock=clock), source.sentence)
    return card_of(source, CardRequest(designs=designs, clock=clock, files=chosen.files(source)), Steps())
