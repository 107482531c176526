"""Blocks of TOML on pages are files, or parts of files, that the tool takes."""

import re
import tomllib

from tests.docs.pages import ROOT, blocks, read
from tilewright.energy.estimate import Technology
from tilewright.runtime.design.design_file import read_design

SKY130 = (ROOT / "energy" / "technology" / "sky130.toml").read_text(encoding="utf-8")


def toml(page):
    """Return the blocks of TOML of a page."""
    return [block.text for block in blocks(read(ROOT / "docs" / page)) if block.info.split()[:1] == ["toml"]]


def with_section(section):
    """Return sky130's file with one section in the place of its price of the same name."""
    name = next(iter(tomllib.loads(section)["scaled"]))
    rest, count = re.subn(rf"^\[price\.{name}\]\n.*?(?=^\[)", "", SKY130, count=1, flags=re.MULTILINE | re.DOTALL)
    assert count == 1
    return f"{rest}\n{section}"


def test_the_section_of_a_technology_is_taken():
    section, _ = toml("your-technology.md")
    found = Technology.parse(with_section(section)).price("riscv_core.instruction").picojoules
    assert found == tomllib.loads(section)["scaled"]["instruction"]["factor"] * (
        Technology.load("osu018").price("riscv_core.instruction").picojoules)


def test_designs_are_taken(tmp_path):
    (tmp_path / "mine.toml").write_text(SKY130)
    _, second = toml("your-technology.md")
    (third,) = toml("your-design.md")
    for index, text in enumerate((second, third)):
        (tmp_path / f"design{index}.toml").write_text(text)
    priced, mine = (read_design(tmp_path / f"design{index}.toml") for index in range(2))
    assert priced.pricing.gated
    assert priced.pricing.load().name == "sky130"
    assert (mine.machine.activation_bytes, mine.machine.value_tables, mine.mhz) == (64 << 10, False, 65)


def test_every_block_is_of_a_page_above():
    found = {page.name for page in (ROOT / "docs").glob("*.md") if toml(page.name)}
    assert found == {"your-design.md", "your-technology.md"}
