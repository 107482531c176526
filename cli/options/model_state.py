"""Options on the model of the commands that know what it keeps from call to call."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.cli.options.arguments import QuantiseOptions
from tilewright.cli.options.input_texts import pairs_given

if TYPE_CHECKING:
    from tilewright.runtime.model_source import ModelSource

__all__ = ["StateOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateOptions(QuantiseOptions):
    """Options for reading a file, and pairs of an input and an output that carry state."""

    state: Annotated[list[str] | None, typer.Option(
        "--state", metavar="INPUT=OUTPUT", show_default=False,
        help="An output that an input is in the next call, such as h=hn: it stays in memory between calls; may be "
             "repeated.")] = None

    def model(self, name: str) -> "ModelSource":
        """Return the model that MODEL names, with the state that the options say."""
        given = pairs_given(self.state)
        return replace(QuantiseOptions.model(self, name), state=given)
