"""Every error that Tilewright raises on purpose: one base class, and one kind for each party who can put it right.

======================  ============================================================  ===========================
``InputError``          a file, an array, a name or an option cannot be used          the caller's to change
``CompileError``        a model cannot be compiled                                    the model's author's
``SimulationError``     a program was run and did not end as it must                  a fault of the program
``ToolError``           a tool, or a board, is missing or did not do its work         the installation's
``InternalError``       the compiler has broken a promise to itself                   ours: please report it
======================  ============================================================  ===========================

The message of each is one sentence without a full stop. Packages derive narrower classes from these five, so that
``except tilewright.Error`` catches whatever can go wrong. This file imports the standard library only: every package
may import it.
"""

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = [
    "CompileError", "Error", "FloatOnCoreWarning", "InputError", "InternalError", "SimulationError", "ToolError",
    "nearest",
]


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the end of a sentence that refuses ``word``: which known one may be meant; empty if none is like it.

    Examples
    --------
    >>> nearest("resnet18_32", ["resnet18-32", "vgg16-32"])
    '; resnet18-32 is near'
    """
    close = get_close_matches(word, list(known), 1)
    return f"; {close[0]} is near" if close else ""


class Error(Exception):
    """Base class of all errors that Tilewright raises on purpose."""

    @property
    def sentence(self) -> str:
        """The message, and what to do about it."""
        return str(self)


class InputError(Error, ValueError):
    """An argument cannot be used: a file, an array, a name, or a place to write to."""


class CompileError(Error):
    """A model cannot be compiled; the message is one sentence for the person who has the model.

    Parameters
    ----------
    message : str
        The sentence, without a full stop.
    way_out : str or None
        What to do about it, as the end of the sentence: the default of the class if None, empty if ``message`` includes
        it.
    """

    way_out: str = ""

    def __init__(self, message: str, way_out: str | None = None) -> None:
        super().__init__(message)
        if way_out is not None:
            self.way_out = way_out

    @property
    def sentence(self) -> str:
        """The message, and what to do about it."""
        return f"{self}; {self.way_out}" if self.way_out else str(self)


class SimulationError(Error, RuntimeError):
    """A program could not run, did not end correctly, or left records that contradict each other."""


class ToolError(Error, RuntimeError):
    """An external tool is missing or failed: a compiler, a simulator, a board."""


class InternalError(Error):
    """The compiler has violated one of its own invariants: a bug in Tilewright, not in the model."""


class FloatOnCoreWarning(UserWarning):
    """The host core computes layers in float that the coprocessor would compute in integers if the model were
    quantised."""
