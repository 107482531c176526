"""Errors of energy/, word by word."""

from pathlib import Path

import pytest

from tests.support.wording import raised_by
from tilewright.energy.estimate import Technology
from tilewright.energy.imported_power import read_power
from tilewright.energy.technology_text import parse_dram, technologies

SENTENCES = {
    (f"TechnologyError: Technology must be one of {', '.join(technologies())}, or a file like those of "
     "energy/technology, which ends in .toml, not 'generic7'; generic45 is near"):
        lambda: Technology.load("generic7"),
    "InputError: Power report '/none.rpt' cannot be read: No such file or directory":
        lambda: read_power(Path("/none.rpt")),
    "TechnologyError: List of DRAM parts must have entries [dram.PART] and nothing else, not x":
        lambda: parse_dram("x = 1"),
    "TechnologyError: Entry dram.x must have pJ, node, kind, source, effect, relative, absolute, but node is missing":
        lambda: parse_dram("[dram.x]\npJ = 1.0"),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_wording(sentence):
    assert raised_by(SENTENCES[sentence]) == tuple(sentence.split(": ", 1))
