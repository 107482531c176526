"""Errors of tools/, word by word."""

from pathlib import Path

import pytest

from tests.support.wording import raised_by
from tilewright.tools.files import require_place, write_file

SENTENCES = {
    "InputError: File '/dev/full' cannot be written: No space left on device; free some space, or name a place on "
    "another disk":
        lambda: write_file(Path("/dev/full"), b"report"),
    "InputError: File '/none/report.json' cannot be written: No such file or directory":
        lambda: write_file(Path("/none/report.json"), b"report"),
    "InputError: File '/none/report.json' cannot be written: /none must be a folder with room for it":
        lambda: require_place(Path("/none/report.json")),
    "InputError: File '/dev' cannot be written, because it is a folder; name a file in it":
        lambda: require_place(Path("/dev")),
    "InputError: File 'a/../report' is to hold two results; give one of them another name":
        lambda: require_place(Path("report"), None, Path("a/../report")),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_wording(sentence):
    assert raised_by(SENTENCES[sentence]) == tuple(sentence.split(": ", 1))
