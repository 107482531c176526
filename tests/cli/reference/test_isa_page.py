"""The manual of the instructions: docs/isa.md says of every field where it lies in the operand it is encoded in."""

import re
from pathlib import Path

import pytest

from tilewright.cli.reference.isa_page import manual
from tilewright.isa.encoding import INSTRUCTIONS

PAGE = Path(__file__).parents[3] / "docs" / "isa.md"
VARIANTS = [pytest.param(instruction, variant, id=f"{instruction.mnemonic}.{variant.name}")
            for instruction in INSTRUCTIONS for variant in instruction.variants]


def test_the_manual_is_fresh():
    assert PAGE.read_text(encoding="utf-8") == manual(), "run: make docs"


def section_of(name):
    return manual().split(f"### {name}\n")[1].split("\n#")[0]


@pytest.mark.parametrize(("instruction", "variant"), VARIANTS)
def test_fields_stand_at_their_bits(instruction, variant):
    section = section_of(f"{instruction.mnemonic}.{variant.name}")
    if alike := re.search(r" Operands and flags are those of `(.*)`\.$", section, re.MULTILINE):
        first = instruction.variant(alike[1].removeprefix(f"{instruction.mnemonic}."))
        assert (first.flags, first is variant) == (variant.flags, False)
        section = section_of(alike[1])
    for register, fields in (("rs1", variant.rs1), ("rs2", variant.rs2)):
        found = re.findall(
            rf"^\| {register} \[(?:(\d+)\.\.)?(\d+)\]( signed)? \| `(\w+)` \| (.*) \|$", section,
            re.MULTILINE)
        # Shifts as an assembler would make them: each field begins where those before it end.
        expected = [(field.name, sum(each.width for each in fields[:place]), field.width, field.signed, field.effect)
                    for place, field in enumerate(fields)]
        assert [(name, int(low), int(high or low) - int(low) + 1, bool(signed), effect)
                for high, low, signed, name, effect in found] == expected
