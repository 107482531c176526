"""Turn every failure of a command into one sentence on standard error and an exit status, never a traceback.

Only a mistake in Tilewright itself, :exc:`tilewright.errors.InternalError`, keeps its traceback.
"""

import shlex
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from tilewright.errors import CompileError, Error, InputError, InternalError
from tilewright.tools.files import disk_way_out, reason

__all__ = ["BAD_INPUT", "FAILED", "INTERRUPTED", "QUIET", "OneSentence", "refuse"]

FAILED = 1
"""Exit status of a run that did not end, or whose output is not the reference's."""

BAD_INPUT = 2
"""Exit status of everything that is the caller's to change: options, files, models, a full disk."""


INTERRUPTED = 130
"""Exit status behind Ctrl-C: 128 and the number of SIGINT, as typer returns it."""

QUIET = ("-q", "--quiet")
"""An option of all commands, which may stand behind them."""


class OneSentence(TyperGroup):
    """A group of commands with exceptions that end in one sentence, without click's own boxes and hints."""

    def main(self, args: Sequence[str] | None = None, *_: Any, **extra: Any) -> Any:
        """Run a command and exit with its status."""
        extra["standalone_mode"] = False
        words = _quiet_first(sys.argv[1:] if args is None else args)
        try:
            status = super().main(words or ["--help"], **extra)
        except InternalError:
            raise
        except Error as error:
            given = sys.argv[1:] if args is None else args
            refuse(error.sentence + _command_with(error, given),
                   BAD_INPUT if isinstance(error, (InputError, CompileError)) else FAILED)
        except OSError as error:
            place = f"{error.filename!r} cannot be used: " if error.filename else ""
            room = disk_way_out(error, "let TILEWRIGHT_CACHE name a folder with room")
            refuse(f"{place}{reason(error)}{room}", BAD_INPUT)
        except typer.TyperException as error:
            from tilewright.cli.options.usage_sentences import usage_sentence

            refuse(usage_sentence(error, words), error.exit_code)
        if status == INTERRUPTED:
            refuse("Interrupted; finished steps are kept, and no file is left incomplete", INTERRUPTED)
        if not words:
            status = BAD_INPUT
        sys.exit(status if isinstance(status, int) else 0)


def _command_with(error: Error, words: Sequence[str]) -> str:
    """Return the end of a sentence: the command with the options that the error proposes; empty if there are none."""
    options = getattr(error, "options", ())
    return f"; the command is {shlex.join(['tilewright', *words, *options])}" if options else ""


def _quiet_first(words: Sequence[str]) -> list[str]:
    """Return the words of a command line with those of ``QUIET`` before the command, where click looks for them."""
    return sorted(words, key=lambda word: word not in QUIET)


def refuse(sentence: str, status: int) -> None:
    """Say one sentence on standard error and exit."""
    print(f"tilewright: {' '.join(sentence.split()).rstrip('.')}.", file=sys.stderr)
    sys.exit(status)
