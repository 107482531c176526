"""The error of synthesis."""

from tilewright.errors import ToolError


class SynthesisError(ToolError):
    """A tool did not finish; the message names the log."""
