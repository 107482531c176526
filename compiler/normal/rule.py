"""A rule of the normal form: a name, what it says, why it keeps every bit, and the function that applies it."""

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.compiler.normal.edit import Edit

__all__ = ["Rule"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rewriting.

    Attributes
    ----------
    name : str
        As docs/normal-form.md and the notes of a report call it.
    says : str
        What holds behind it, one sentence.
    because : str
        Why no value changes; or, of a rule that is not exact, by how much one may.
    apply : function
        Changes the graph of an :class:`Edit` in place and returns how often it did.
    exact : bool
        Whether no value changes. Of another rule each application is a note for the user.
    """

    name: str
    says: str
    because: str
    apply: Callable[[Edit], int]
    exact: bool = True
