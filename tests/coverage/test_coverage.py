"""Functional points are met by directed programs and a few random words, and a point that is not is told."""

from dataclasses import replace

import pytest

from tests.coverage.coverage_page import explanation, measure
from tests.coverage.directed import programs
from tests.coverage.lines import Covered, added, by_module, untouched
from tests.coverage.points import CAUSES, Monitor, Point, points
from tests.fuzz.machine_code import RS1, RS2, Expected, Word
from tilewright.isa.assembler import command, encode_word


def word(*args, **operands) -> Word:
    made = command(*args, **operands)
    return Word(encode_word(made, RS1, RS2), made.rs1, made.rs2)


def test_every_point_is_met_or_explained(tmp_path) -> None:
    result = measure(2000, 0, tmp_path, lines=False)
    assert not result.failures
    assert not [point for point in result.missing() if explanation(point) is None]
    assert result.counts.keys() <= points()


def test_every_kind_has_points() -> None:
    assert {point.kind for point in points()} == CAUSES.keys()


@pytest.mark.parametrize(("ended", "met"), [
    (Expected(), Point("signal", "lda.linear", "act_ready")),
    (Expected(code=5), Point("fault", "lda.linear", "more events than a semaphore counts: act_ready")),
    (Expected(code=1), Point("fault", "lda.linear", "read outside the windows")),
])
def test_how_a_word_ends_is_a_point(ended, met) -> None:
    monitor = Monitor()
    monitor.observe(word("lda", "linear", ("signal_act_ready",), rows=3, base=0, address=0, y=0), ended)
    others = {point for point in monitor.counts if point.kind != "operand"}
    assert others == {met}
    assert Point("operand", "lda.linear", "rows between") in monitor.counts


def test_starving_wait_is_a_stall_of_that_wait() -> None:
    monitor = Monitor()
    monitor.observe(word("lda", "linear", ("wait_act_free",), rows=1, base=0, address=0, y=0), Expected(code=6))
    assert {point for point in monitor.counts if point.kind == "stall"} == {Point("stall", "lda.linear", "act_free")}


def test_trapped_word_meets_no_operand() -> None:
    monitor = Monitor()
    monitor.observe(replace(word("sta", "status", address=0), word=0x7000 | 0x0B), Expected(trapped=True))
    assert {point.kind for point in monitor.counts} == {"trap"}


def test_directed_programs_fit_the_table() -> None:
    assert all(len(each.words) == len(each.codes) < 1000 for each in programs())


def test_counts_of_verilator_are_added_up_by_module(tmp_path) -> None:
    def point(kind: str, module: str, what: str, count: int) -> str:
        return f"C '\x01f\x02c.v\x01l\x025\x01page\x02{kind}/{module}\x01o\x02{what}' {count}\n"

    for name, count in (("one", 0), ("two", 3)):
        (tmp_path / f"{name}.dat").write_text(
            "# SystemC::Coverage-3\n" + point("v_branch", "coprocessor.axi.reader", "if", count)
            + point("v_toggle", "coprocessor.axi.reader", "valid[0]:0->1", 0)
            + point("v_toggle", "coprocessor.axi.reader", "ready", count))
    met = added(tmp_path.glob("*.dat"))
    assert by_module(met) == {"axi.reader": Covered(lines=1, lines_met=1, toggles=2, toggles_met=1)}
    assert untouched(met) == {"axi.reader": ["`valid`"]}


def test_file_without_points_is_refused(tmp_path) -> None:
    (tmp_path / "empty.dat").write_text("# SystemC::Coverage-3\n")
    with pytest.raises(ValueError, match="must have points"):
        added(tmp_path.glob("*.dat"))
