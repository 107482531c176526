"""Sentences for wrong command lines: what is missing or too much, what may be meant, and what to type instead."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import typer

from tilewright.errors import nearest
from tilewright.isa.machine import NAMED

__all__ = ["usage_sentence"]

_EXAMPLES = {
    "MODEL": "a file (.onnx) or a built-in network, such as lenet5",
    "--target": "what to synthesise for: ecp5-25k, ecp5-85k, ice40up5k, xc7, osu018 or sky130",
}
"""Values to give for an argument or an option that is missing, where its help does not say it in a few words."""

_MACHINE = "--machine"


def usage_sentence(error: typer.TyperException, words: Sequence[str]) -> str:
    """Return the sentence for a command line, its words, that cannot be understood."""
    message = " ".join(error.format_message().split())
    context: Any = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "tilewright"
    if (name := getattr(error, "option_name", None)) is not None and type(error).__name__ == "NoSuchOption":
        return f"Command {command} has no option {name}{_near_option(name, context)}"
    if type(error).__name__ == "MissingParameter":
        return _missing(error, command, context, words)
    if "extra argument" in message:
        return _swallowed(words, context) or _extra(message, command, context)
    if message.startswith("No such command"):
        return _no_command(message, command, context)
    return message.replace("Value error, ", "")


def _missing(error: Any, command: str, context: Any, words: Sequence[str]) -> str:
    """Return what is missing, what it may be, and what else on the line may be meant by another option."""
    parameter = error.param
    option = parameter.param_type_name == "option"
    name = parameter.opts[-1] if option else (parameter.metavar or parameter.name).upper()
    what = _EXAMPLES.get(name) or (parameter.help or "").split(";")[0].split(". ")[0].rstrip(".")
    machine = next((word for before, word in pairwise(("", *words)) if word.partition(",")[0] in NAMED
                    and before != _MACHINE), None)
    hint = f"; {machine} is a machine: give it as {_MACHINE} {machine}" if machine and _takes_machine(context) else ""
    return f"Command {command} needs {name}{f', {what[0].lower()}{what[1:]}' if what else ''}{hint}"


def _takes_machine(context: Any) -> bool:
    return context is not None and any(_MACHINE in each.opts for each in context.command.params)


def _swallowed(words: Sequence[str], context: Any) -> str:
    """Return which option has taken the name of the next one for its value; empty if none has."""
    options = {name: each for each in (context.command.params if context is not None else ()) for name in each.opts
               if name.startswith("-")}
    for option, value in pairwise(words):
        if option in options and value in options and not getattr(options[option], "is_flag", False):
            what = options[option].metavar or "a value"
            return f"Option {option} needs {what}, and was given {value!r}, which is an option; write {option} {what}"
    return ""


def _extra(message: str, command: str, context: Any) -> str:
    """Return what is too much, and the option that it may belong to."""
    words = message.rpartition("(")[2].rstrip(".").rstrip(")")
    first = words.split(" ")[0]
    if first.partition(",")[0] in NAMED and _takes_machine(context):
        return f"Command {command} takes no argument {first!r}: a machine is given as {_MACHINE} {first}"
    return f"Command {command} takes no more arguments, and was given {words!r}; {command} --help lists its options"


def _no_command(message: str, command: str, context: Any) -> str:
    """Return which command may be meant."""
    name = message.split("'")[1] if "'" in message else ""
    known = [] if context is None else context.command.list_commands(context)
    ending = nearest(name, known) or f"; {command} --help lists them"
    return f"There is no command {command} {name}{ending}"


def _near_option(name: str, context: Any) -> str:
    """Return which option may be meant."""
    known = [] if context is None else [each for parameter in context.command.params for each in parameter.opts
                                        if each.startswith("--")]
    return nearest(name, known) or ("" if context is None else f"; {context.command_path} --help lists them")
