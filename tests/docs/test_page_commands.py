"""Every command in the pages parses: the command is there, and so are its options and arguments. None is run."""

import re
from importlib.util import find_spec

import pytest

from tests.docs.pages import PAGES, ROOT, blocks, commands, named_commands, read
from tilewright.cli.app import app
from tilewright.cli.reference.commands_page import command_tree

TREE = dict(command_tree(app))
FLAGS = {name for command in TREE.values() for each in command.params if getattr(each, "is_flag", False)
         for name in (*each.opts, *each.secondary_opts)} | {"--help"}
ELLIPSIS = re.compile(r"…|\.\.\.|\[OPTIONS\]")
PARAMETRISED = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
MAKE = re.compile(r"(?:^|`)make ([a-z][a-z-]+)", re.MULTILINE)
MODULE = re.compile(r"python -m (tilewright[\w.]*)")


def fault(words: list[str], *, whole: bool = True) -> str:
    """Return why a command line cannot be meant; empty if it can. One that is not ``whole`` may lack arguments."""
    length = max(count for count in range(len(words) + 1) if tuple(words[:count]) in TREE)
    command, rest = TREE[tuple(words[:length])], [word for word in words[length:] if word not in ("-q", "--quiet")]
    if hasattr(command, "commands"):
        known = rest and any(rest[0] in ("--help", *each.opts) for each in command.params)
        return "" if known or (not rest and not whole) else f"no command {' '.join(words[:length + 1])!r}"
    try:
        context = command.make_context(" ".join(words[:length]), [], resilient_parsing=True)
        context.resilient_parsing = False
        values, left, _ = command.make_parser(context).parse_args(args=list(rest))
        if left:
            return f"nothing takes {left[0]!r}"
        if whole:
            for each in command.get_params(context):
                if each.callback is None or each.param_type_name == "argument":
                    each.process_value(context, values.get(each.name))
    except Exception as error:  # noqa: BLE001 -- typer's own copy of click has no public names of its errors
        return str(getattr(error, "message", error)) or type(error).__name__
    return ""


def first_fault(words: list[str]) -> str:
    """Return why a command that prose names cannot be meant; ``a|b`` stands for both, an option needs no value."""
    if words[0] == "COMMAND":
        return ""
    ended = [*words, "value"] if words[-1].startswith("--") and words[-1] not in FLAGS else words
    choices = [word.split("|") for word in ended]
    lines = [[each[min(index, len(each) - 1)] for each in choices] for index in range(max(map(len, choices)))]
    return next((why for line in lines if (why := fault(line, whole=False))), "")


@PARAMETRISED
def test_commands_in_blocks_parse(page):
    given = [words for words in commands(read(page)) if not any(map(ELLIPSIS.search, words))]
    assert {" ".join(words): why for words in given if (why := fault(words))} == {}


@PARAMETRISED
def test_commands_in_prose_parse(page):
    assert {" ".join(words): why for words in named_commands(read(page)) if (why := first_fault(words))} == {}


@PARAMETRISED
def test_targets_of_make_and_modules_are_there(page):
    text = read(page)
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(MAKE.findall("\n".join(["", text]))) - targets - {"sure"} == set()
    assert [name for name in MODULE.findall(text) if find_spec(name) is None] == []


@PARAMETRISED
def test_blocks_of_python_compile(page):
    for number, block in enumerate(blocks(read(page))):
        if block.info.split()[:1] == ["python"]:
            compile(block.text, f"{page.name}, block {number}", "exec")


@pytest.mark.parametrize("line", [
    "runn lenet5", "run lenet5 --machin base", "run", "run lenet5 lenet5", "run lenet5 --engine slow",
    "board ulx3s fly", "explore lenet5 --trials many -o out", "cache --prune",
])
def test_what_cannot_be_meant_is_seen(line):
    assert fault(line.split())


@pytest.mark.parametrize("line", ["run lenet5 --engine rtl -q", "board ulx3s build -o out", "--version", "cache"])
def test_what_can_be_meant_passes(line):
    assert fault(line.split()) == ""


def test_there_are_commands():
    assert sum(len(list(commands(read(page)))) for page in PAGES) > 100
