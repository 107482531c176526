"""Options on the model of the commands that know what it keeps from call to call."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, cast

import typer

from tilewright.cli.options.arguments import QuantiseOptions
from tilewright.cli.options.input_texts import pairs_given
from tilewright.errors import InputError

if TYPE_CHECKING:
    from tilewright.compiler.tflite.mark import EngineName
    from tilewright.runtime.model_source import ModelSource

__all__ = ["StateOptions", "TfliteEngine"]


class TfliteEngine(StrEnum):
    """Whose arithmetic a .tflite file is computed in: `compiler.tflite.mark.EngineName`."""

    litert = "litert"
    litert_reference = "litert-reference"
    tflm = "tflm"


@dataclass(frozen=True, slots=True, kw_only=True)
class StateOptions(QuantiseOptions):
    """Options for reading a file, and what is kept between calls: pairs of ends, or all that a stream needs."""

    reference: Annotated[TfliteEngine | None, typer.Option(
        "--reference", show_default=False,
        help="Whose arithmetic a .tflite file is computed in: litert, its default session (as without the option), "
             "litert-reference, its reference kernels, or tflm, TensorFlow Lite Micro. The last two need a machine "
             "with integer_requantise; see docs/tflite.md.")] = None

    state: Annotated[list[str] | None, typer.Option(
        "--state", metavar="INPUT=OUTPUT", show_default=False,
        help="An output that an input is in the next call, such as h=hn: it stays in memory between calls; may be "
             "repeated.")] = None

    stream: Annotated[int | None, typer.Option(
        "--stream", metavar="AXIS", show_default=False,
        help="Compute only the new frames of a window of time, along this axis of the input, and keep what layers need "
             "of those before as state.")] = None

    def model(self, name: str, engine: "EngineName | None" = None) -> "ModelSource":
        """Return the model that MODEL names, with the state that the options say.

        Raises
        ------
        InputError
            If there is no such model, or it cannot be what the options say.
        """
        given = pairs_given(self.state)
        engine = engine or cast("EngineName | None", self.reference and self.reference.value)
        if self.stream is None:
            found = QuantiseOptions.model(self, name, engine)
            return replace(found, state={**found.state, **given})
        if given:
            raise InputError("Options --stream and --state exclude each other: a stream has the state that it needs")
        from tilewright.runtime.streamed_model import streamed_source
        from tilewright.tools.progress import Steps

        return streamed_source(QuantiseOptions.model(self, name, engine), self.stream, Steps())
