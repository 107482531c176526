"""The page docs/commands.md: each command with its arguments and options, as typer declares them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer

from tilewright.tools.templates import render

__all__ = ["CommandHelp", "command_tree", "commands_page"]

_TEMPLATE = Path(__file__).with_name("commands_page.md.j2")


@dataclass(frozen=True, slots=True)
class CommandHelp:
    """The help text of one command.

    Attributes
    ----------
    name : str
        With the words before it, such as ``board ulx3s build`` without ``tilewright``.
    usage, example : str
        Example is empty if there is none.
    paragraphs : tuple of str
    arguments, options : tuple of (str, str)
        Names, and what they mean.
    also : tuple of str
        Names of commands that differ in nothing but the group they are in.
    """

    name: str
    usage: str
    example: str
    paragraphs: tuple[str, ...]
    arguments: tuple[tuple[str, str], ...]
    options: tuple[tuple[str, str], ...]
    also: tuple[str, ...] = ()


def commands_page(app: typer.Typer) -> str:
    """Return the page's text."""
    commands = [_help(name, command) for name, command in command_tree(app) if not hasattr(command, "commands")]
    return render(_TEMPLATE, commands=list(_once(commands)))


def _once(commands: Sequence[CommandHelp]) -> Iterator[CommandHelp]:
    """Yield each command once, with the names of those that do the same for another thing (``board BOARD build``)."""
    alike: dict[Any, list[CommandHelp]] = {}
    for each in commands:
        words = each.name.split()
        alike.setdefault((words[0], words[-1], each.paragraphs, each.arguments, each.options), []).append(each)
    for first, *others in alike.values():
        yield replace(first, also=tuple(each.name for each in others))


def command_tree(app: typer.Typer) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield each command and each group of commands under its words, without the program's name."""
    yield from _below((), typer.main.get_command(app))


def _below(words: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield words, command
    for name, each in sorted(getattr(command, "commands", {}).items()):
        yield from _below((*words, name), each)


def _help(words: tuple[str, ...], command: Any) -> CommandHelp:
    name = " ".join(words)
    context = command.make_context(name, [], resilient_parsing=True)
    records = [(each.param_type_name, each.get_help_record(context)) for each in command.get_params(context)]
    rows = {kind: tuple((_cell(row[0]), _cell(row[1])) for found, row in records
                        if row is not None and found == kind and row[0] != "--help") for kind in ("argument", "option")}
    text = " ".join((command.help or "").split("\n\n")[0].split())
    rest = tuple(" ".join(each.split()) for each in (command.help or "").split("\n\n")[1:])
    usage = " ".join(("tilewright", name, *command.collect_usage_pieces(context)))
    example = (command.epilog or "").removeprefix("Example: ")
    return CommandHelp(name, usage, example, (text, *rest), rows["argument"], rows["option"])


def _cell(text: str) -> str:
    """Return a text that stands in a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|")
