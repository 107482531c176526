"""Print docs/commands.md: the page of commands, of the command line as it is."""

from tilewright.cli.app import app
from tilewright.cli.reference.commands_page import commands_page

if __name__ == "__main__":
    print(commands_page(app), end="")
