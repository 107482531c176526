"""Technology files follow from the tables and figures that they name, and the manual page from the files."""

import math
import re
import tomllib
from pathlib import Path

import pytest

from tests.support.markdown_tables import number, numbers, rows, section
from tilewright.energy import technologies_page
from tilewright.energy.estimate import Technology
from tilewright.energy.prices import TechnologyError
from tilewright.energy.sram import sram_tables
from tilewright.energy.technology_text import FOLDER, dram_parts, parse_dram, technologies

PAGE = Path(__file__).parents[2] / "docs" / "technologies.md"
MACROS = [(4096, 8), (8192, 8), (32768, 64), (65536, 64), (4096, 64), (1024, 64), (32768, 32), (2048, 64), (256, 32),
          (512, 8), (131072, 8)]
VOLTAGES = {"lstp90": 1.3, "lstp65": 1.2, "lstp45": 1.1}
"""Supplies of CACTI's low standby power flavour, in its tech_params."""


def mean_ratio(field: str, of: str, to: str) -> float:
    tables = sram_tables()
    logarithms = [math.log(getattr(tables[of].macro(*macro), field) / getattr(tables[to].macro(*macro), field))
                  for macro in MACROS]
    return math.exp(sum(logarithms) / len(logarithms))


def exponent(of: str, to: str, shrink: float) -> float:
    """Return p of energy ~ F^p V², F being the feature size."""
    return math.log(mean_ratio("read_pj", of, to) / (VOLTAGES[of] / VOLTAGES[to]) ** 2) / math.log(shrink)


@pytest.mark.parametrize(("name", "nanometres"), [("sky130", 130), ("osu018", 180)])
def test_static_ram_is_scaled_by_the_law_that_its_own_table_follows(name, nanometres):
    sram = Technology.load(name).sram
    assert sram.table.name == "lstp90"
    power = exponent("lstp90", "lstp45", 2.0)
    assert power == pytest.approx(1.24, abs=0.005)
    assert 1.0 < power < exponent("lstp90", "lstp65", 90 / 65) < 1.55
    supply = (1.8 / VOLTAGES["lstp90"]) ** 2
    law = (nanometres / 90) ** power * supply
    assert sram.energy.value == pytest.approx(law, rel=0.01)
    for other in (1.0, 1.5):
        assert sram.energy.own.low < (nanometres / 90) ** other * supply / law < sram.energy.own.high
    assert sram.area.value == pytest.approx((nanometres / 90) ** 2, rel=0.01)
    assert mean_ratio("area_um2", "lstp90", "lstp45") == pytest.approx(3.8, abs=0.05)


def test_sky130s_area_reaches_up_to_a_macro_that_was_made():
    area = Technology.load("sky130").sram
    assert area.area_um2(1024, 32) * area.area.absolute.high == pytest.approx(479.78 * 397.5, rel=0.02)


def test_main_memory_by_data_sheet_follows_its_formula():
    ddr3, sdr = dram_parts()["ddr3"], dram_parts()["sdr"]
    assert ddr3.value == pytest.approx(1.5 * (135 + 150) / 2 * 1.25 / 4, rel=0.01)   # V, mA, ns, bytes: pJ
    assert sdr.value == pytest.approx(3.3 * 168 * 7 / 2 + 8 * 15 * 3.3**2 / 4, rel=0.01)
    # Opened again for each 64 bytes: what the relative range allows for.
    assert ddr3.relative.high > 1 + 1.5 * (55 - 32) * 48.75 / 64 / ddr3.value > 0.98 * ddr3.relative.high
    assert sdr.relative.high > 1 + 3.3 * (140 - 60) * 63 / 64 / sdr.value > 0.95 * sdr.relative.high


@pytest.mark.parametrize(("text", "message"), [
    ("", r"List of DRAM parts .*not $"),
    ("[dram.x]\npJ = 1.0", r"dram\.x .*but node is missing$"),
    ("[dram]\nx = 1.0", r"Entry dram\.x .*not 1\.0$"),
    ("[dram", r"List of DRAM parts .*be TOML:"),
])
def test_a_list_of_parts_that_makes_no_sense_is_refused(text, message):
    with pytest.raises(TechnologyError, match=message):
        parse_dram(text)


def test_older_processes_take_more():
    toggles = {name: Technology.load(name).price("array.register_toggle").picojoules for name in technologies()}
    assert toggles["generic45"] < toggles["sky130"]
    assert toggles["sky130"] < toggles["osu018"]


@pytest.mark.parametrize("name", technologies())
def test_a_toggle_costs_more_than_a_clock_and_leakage_less_than_either_at_the_stated_clock(name):
    technology = Technology.load(name)
    clock = technology.price("array.register_cycle").picojoules
    leaked = technology.price("array.leakage_ns").picojoules * 1000 / technology.clock_mhz
    assert technology.price("array.register_toggle").picojoules > 2 * clock
    assert leaked < clock


def test_the_page_is_up_to_date():
    assert PAGE.read_text(encoding="utf-8") == technologies_page.page(), "run: make docs"


@pytest.mark.parametrize("name", technologies())
def test_the_page_has_every_price_with_its_source_and_ranges(name):
    page = PAGE.read_text(encoding="utf-8")
    data = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    shown = {row["price"].split("`")[1]: row for row in rows(page, name)}
    whole, said = notes_of(section(page, name)), set()
    assert data["price"]
    for entry, each in data["price"].items():
        row = shown[entry]
        assert row["price"] == f"`{entry}`" if each["effect"] in said else row["price"].endswith(each["effect"])
        said.add(each["effect"])
        assert row["kind"] == each["kind"]
        assert number(row["pJ"]) == pytest.approx(each["pJ"], rel=0.006)
        assert numbers(row["relative"]) == pytest.approx(spread(each, "relative"), rel=0.006)
        assert_sourced(whole(row["source, and reasons of the ranges"]), each)


@pytest.mark.parametrize("name", ["osu018", "sky130"])
def test_the_page_has_every_price_of_a_block_with_its_source_and_ranges(name):
    page = PAGE.read_text(encoding="utf-8")
    blocks = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))["block"]
    whole = notes_of(section(page, name))
    shown = {row["block"].strip("`"): row for row in rows(page, name, table=1)}
    counted = 0
    for block, events in blocks.items():
        priced = {event: each for event, each in events.items() if event.startswith("register_") and "pJ" in each}
        cell = shown[block]["kinds, sources, and reasons of the ranges"] if priced else ""
        sources, counted = whole(cell).split(" · "), counted + len(priced)
        for event, each in sorted(priced.items()):
            figures = numbers(shown[block][f"`{event}`, pJ"])
            relative, absolute = spread(each, "relative"), spread(each, "relative", "absolute")
            ranges = relative if relative == absolute else relative + absolute
            assert figures == pytest.approx([each["pJ"], *ranges], rel=0.006)
            kind, _, source = sources.pop(0).partition(" ")
            assert kind == each["kind"]
            assert_sourced(source, each)
    assert counted >= 20


def spread(entry, *kinds):
    """Return a price's least and greatest value, by its factors of those kinds; nothing without any."""
    factors = [each for kind in kinds for each in entry[kind]]
    return [entry["pJ"] * math.exp(sign * math.sqrt(sum(math.log(each[place]) ** 2 for each in factors)))
            for place, sign in ((0, -1), (1, 1))] if factors else []


def assert_sourced(cell, entry):
    source, _, reasons = cell.partition(" Ranges: ")
    assert source == f"({entry['node']}): {entry['source']}."
    assert sorted(re.findall(r"(?:relative|absolute) \S+ to \S+: ", reasons)) == sorted(
        f"{kind} {low:g} to {high:g}: " for kind in ("relative", "absolute") for low, high, _ in entry[kind])
    for low, high, reason in entry["relative"] + entry["absolute"]:
        assert f"{low:g} to {high:g}: {reason}" in reasons


def notes_of(text):
    """Return what puts the texts of a section's notes into a cell."""
    notes = dict(re.findall(r"^(\d+)\. (.*)$", text, re.MULTILINE))
    number_of = re.compile(r"\bnotes? (\d+(?:, \d+)*)")
    return lambda cell: number_of.sub(lambda found: "; ".join(notes[each] for each in found[1].split(", ")), cell)
