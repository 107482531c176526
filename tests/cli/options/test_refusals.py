"""An interrupted command ends in one sentence and the status that shells expect."""

import subprocess
import sys

import pytest
import typer

from tilewright.cli.options.refusals import INTERRUPTED, OneSentence


def test_ctrl_c_ends_a_command_in_a_sentence(capsys):
    app = typer.Typer(cls=OneSentence)

    @app.callback()
    def start() -> None:
        """Do nothing: a command follows."""

    @app.command()
    def wait() -> None:
        """Be interrupted."""
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as ended:
        app(["wait"])
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out, printed.err.count("\n")) == (INTERRUPTED, "", 1)


def test_ctrl_c_while_the_command_is_loaded_leaves_no_traceback():
    script = ("import sys\n"
              "class Interrupted:\n"
              "    def find_spec(self, name, *_):\n"
              "        if name == 'tilewright.cli.app':\n"
              "            raise KeyboardInterrupt\n"
              "sys.meta_path.insert(0, Interrupted())\n"
              "from tilewright.__main__ import main\n"
              "main()")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (INTERRUPTED, "", 1)
