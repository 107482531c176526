"""What the runtime says when it cannot go on: one clear sentence each."""


class InputError(ValueError):
    """What the user gave cannot be used: a file, an array, a name, a place to write to."""


class RunError(RuntimeError):
    """A program was started and did not end as it must."""
