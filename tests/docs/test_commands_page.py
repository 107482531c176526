"""The page of commands is fresh, and has every option of every command."""

import re

from tests.docs.pages import ROOT, read
from tilewright.cli.app import app
from tilewright.cli.reference.commands_page import command_tree, commands_page

PAGE = ROOT / "docs" / "commands.md"


def test_the_page_is_fresh():
    assert read(PAGE) == commands_page(app), "run: make docs"


def test_every_option_stands_under_its_command():
    sections = dict(part.split("\n", 1) for part in read(PAGE).split("\n## ")[1:])
    for words, command in command_tree(app):
        if not hasattr(command, "commands"):
            name = " ".join(words)
            section = sections.get(name) or next(text for text in sections.values()
                                                 if re.search(rf"^Alike: .*`{name}`", text, re.MULTILINE))
            for each in command.params:
                assert max(each.opts, key=len) in section or each.name == "help" or each.metavar in section
