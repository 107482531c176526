"""What synthesis says when it cannot go on: one sentence each."""


class SynthesisError(RuntimeError):
    """A tool did not finish; the message names the log."""
