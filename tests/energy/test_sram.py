"""The table of static RAM is read between its points by power laws, and behaves as memories do."""

import pytest

from tilewright.energy.prices import TechnologyError
from tilewright.energy.sram import TABLE, parse_tables, sram_tables
from tilewright.isa.machine import PRESETS

HEAD = """[table.toy]
node = "none"
source = "this test"
columns = ["bytes", "bits", "read_pJ", "write_pJ", "leakage_uW", "area_um2"]
points = [
"""
GRID = "[1024, 8, 1, 2, 10, 100], [4096, 8, 4, 8, 40, 400], [1024, 32, 4, 2, 10, 100], [4096, 32, 16, 8, 40, 1600],"
TOY = f"{HEAD}{GRID}]\n"


@pytest.mark.parametrize(("size", "bits", "read"), [
    (1024, 8, 1.0), (4096, 32, 16.0),
    (2048, 8, 2.0), (1024, 16, 2.0), (2048, 16, 4.0),   # halfway on logarithmic scales
    (8192, 8, 8.0), (256, 8, 0.25), (1024, 64, 8.0),   # the power law goes on outside the table
])
def test_power_laws_in_size_and_width(size, bits, read):
    macro = parse_tables(TOY)["toy"].macro(size, bits)
    assert macro.read_pj == pytest.approx(read)
    if bits == 8:
        assert macro.area_um2 == pytest.approx(100 * size / 1024)


@pytest.mark.parametrize(("size", "bits", "message"), [
    (20000, 16, "must have 256 to 16384 bytes"),
    (1024, 1, "must have 2 to 128 bits"), (1024, 256, "must have 2 to 128 bits"),
])
def test_far_outside_the_table_there_is_no_price(size, bits, message):
    with pytest.raises(TechnologyError, match=rf"{size} bytes .* {bits} bits {message}: .*toy"):
        parse_tables(TOY)["toy"].macro(size, bits)


def test_smaller_macros_than_the_table_reaches_cost_what_the_least_one_does():
    table = parse_tables(TOY)["toy"]
    assert table.macro(128, 8) == table.macro(16, 8) == table.macro(256, 8) != table.macro(512, 8)


@pytest.mark.parametrize("name", sram_tables())
def test_larger_and_wider_macros_cost_more_on_the_whole(name):
    table = sram_tables()[name]
    for row in table.points:
        sizes = tuple(row)
        assert sizes == tuple(sorted(sizes))
        for small, large in zip(sizes, sizes[4:], strict=False):   # CACTI's organisations jump: not each step of 2
            assert row[small].read_pj < row[large].read_pj
            assert row[small].area_um2 < row[large].area_um2
    for size in table.points[-1]:
        narrow, wide = (table.macro(size, bits) for bits in (table.bits[0], table.bits[-1]))
        assert narrow.read_pj < wide.read_pj


def test_a_smaller_node_costs_less_and_the_fast_flavour_leaks():
    tables = sram_tables()
    for size, bits in ((4096, 8), (8192, 64), (65536, 32)):
        reads = [tables[name].macro(size, bits).read_pj for name in ("lstp45", "lstp65", "lstp90")]
        assert reads == sorted(reads)
        assert tables["hp45"].macro(size, bits).leakage_uw > 1000 * tables["lstp45"].macro(size, bits).leakage_uw


def test_figures_of_an_earlier_run_of_cacti_by_hand():
    # 8 KiB through 64 bits: read 20.8 pJ at 90 nm, 11.1 at 65, 6.14 at 45, 5.29 in the fast flavour.
    for name, read in (("lstp90", 20.8), ("lstp65", 11.1), ("lstp45", 6.14), ("hp45", 5.29)):
        assert sram_tables()[name].macro(8192, 64).read_pj == pytest.approx(read, rel=0.005)


@pytest.mark.parametrize("machine", PRESETS.values(), ids=lambda machine: machine.name)
def test_macros_of_every_preset_lie_in_reach(machine):
    for size, bits in ((machine.activation_bytes // 16, 8), (machine.weight_bytes // machine.clusters // 2, 64),
                       (64, 32)):
        assert sram_tables()["lstp90"].macro(size, bits).read_pj > 0


@pytest.mark.parametrize(("old", "new", "message"), [
    ("1, 2, 10, 100", "-1, 2, 10, 100", r"read_pJ of table toy .*not -1$"),
    ("1, 2, 10, 100", "nan, 2, 10, 100", r"read_pJ of table toy .*not nan$"),
    ("1, 2, 10, 100", "1, 2, 10", r"Points of table toy .*not \[1024, 8, 1, 2, 10\]$"),
    ("[4096, 8, 4, 8, 40, 400], ", "", r"Points of table toy .*two widths"),
    ("[4096, 8,", "[1024, 8,", r"Points of table toy .*not 4 points"),
    ('"read_pJ", "write_pJ"', '"write_pJ", "read_pJ"', r"Columns of table toy .*read_pJ"),
    ('source = "this test"\n', "", r"static RAM .*but source is missing$"),
    ("[table.toy]", "[toy]", r"Table of static RAM .*not toy$"),
    ("points = [", "points = ", r"Table of static RAM .*be TOML:"),
])
def test_a_table_that_makes_no_sense_is_refused(old, new, message):
    assert old in TOY
    with pytest.raises(TechnologyError, match=message):
        parse_tables(TOY.replace(old, new, 1))


def test_the_table_says_what_wrote_it():
    assert "tilewright calibrate --tech sram" in TABLE.read_text()
