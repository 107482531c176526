"""Every way a command can end badly becomes one sentence on standard error and an exit status, never a traceback."""

import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from tilewright.compiler.emit.elf import ToolchainError
from tilewright.compiler.emit.manifest import ArtifactError
from tilewright.compiler.errors import CompileError
from tilewright.errors import InputError, RunError
from tilewright.tools.output_files import reason
from tilewright.tools.toolchain import ToolMissingError

FAILED = 1
"""Exit status of a run that did not end, or whose output is not the reference's."""

BAD_INPUT = 2
"""Exit status of everything that is the caller's to change: options, files, models, a full disk."""


class OneSentence(TyperGroup):
    """A group of commands whose exceptions end in a sentence; click's own boxes and hints are left out."""

    def main(self, args: Sequence[str] | None = None, *_: Any, **extra: Any) -> Any:
        """Run a command and exit with its status."""
        extra["standalone_mode"] = False
        try:
            status = super().main(args, **extra)
        except CompileError as error:
            refuse(error.sentence, BAD_INPUT)
        except (InputError, ArtifactError) as error:
            refuse(str(error), BAD_INPUT)
        except OSError as error:
            place = f"{error.filename!r} cannot be used: " if error.filename else ""
            refuse(f"{place}{reason(error)}", BAD_INPUT)
        except (RunError, ToolMissingError, ToolchainError) as error:
            refuse(str(error), FAILED)
        except typer.TyperException as error:
            refuse(error.format_message(), error.exit_code)
        sys.exit(status if isinstance(status, int) else 0)


def refuse(sentence: str, status: int) -> None:
    """Say one sentence on standard error and exit."""
    print(f"tilewright: {' '.join(sentence.split()).rstrip('.')}.", file=sys.stderr)
    sys.exit(status)
