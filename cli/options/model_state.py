"""Options on the model of the commands that know what it keeps from call to call."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.cli.options.arguments import QuantiseOptions
from tilewright.cli.options.input_texts import pairs_given
from tilewright.errors import InputError

if TYPE_CHECKING:
    from tilewright.runtime.model_source import ModelSource

__all__ = ["StateOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateOptions(QuantiseOptions):
    """Options for reading a file, and what is kept between calls: pairs of ends, or all that a stream needs."""

    state: Annotated[list[str] | None, typer.Option(
        "--state", metavar="INPUT=OUTPUT", show_default=False,
        help="An output that an input is in the next call, such as h=hn: it stays in memory between calls; may be "
             "repeated.")] = None

    stream: Annotated[int | None, typer.Option(
        "--stream", metavar="AXIS", show_default=False,
        help="Compute only the new frames of a window of time, along this axis of the input, and keep what layers need "
             "of those before as state.")] = None

    def model(self, name: str) -> "ModelSource":
        """Return the model that MODEL names, with the state that the options say.

        Raises
        ------
        InputError
            If there is no such model, or it cannot be what the options say.
        """
        given = pairs_given(self.state)
        if self.stream is None:
            found = QuantiseOptions.model(self, name)
            return replace(found, state={**found.state, **given})
        if given:
            raise InputError("Options --stream and --state exclude each other: a stream has the state that it needs")
        from tilewright.runtime.streamed_model import streamed_source
        from tilewright.tools.progress import Steps

        return streamed_source(QuantiseOptions.model(self, name), self.stream, Steps())
