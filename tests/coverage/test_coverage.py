"""Functional points are met by directed programs and a few random words, and a point that is not is told."""

from dataclasses import replace

import pytest

from tests.coverage import coverage_page
from tests.coverage.coverage_page import explanation, measure, measure_networks
from tests.coverage.directed import programs
from tests.coverage.lines import Counts, Covered
from tests.coverage.networks import EXAMPLES
from tests.coverage.points import CAUSES, Monitor, Point, points
from tests.coverage.untouched import UNKNOWN, untouched
from tests.fuzz.machine_code import MACHINE, RS1, RS2, Expected, Word
from tilewright.compiler.network.layers import Layer
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
    (Expected(code=5), Point("fault", "lda.linear", "a semaphore would overflow: act_ready")),
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
    assert all(len(each.words) == len(each.codes) <= 768 for each in programs())


def _counted(*points: tuple[str, str, str, int]) -> str:
    """Return a file as Verilator writes it: kind, module, what it is about and count of each point."""
    return "# SystemC::Coverage-3\n" + "".join(
        f"C '\x01f\x02c.v\x01l\x025\x01page\x02{kind}/{module}\x01o\x02{what}' {count}\n"
        for kind, module, what, count in points)


def test_counts_of_verilator_are_added_up_by_part(tmp_path) -> None:
    total = Counts()
    for count in (0, 3):
        path = tmp_path / f"{count}.dat"
        path.write_text(_counted(("v_branch", "coprocessor.coprocessor.axi.reader", "if", count),
                                ("v_toggle", "coprocessor.coprocessor.axi.reader", "o___05Fvalid[0]:0->1", 0),
                                ("v_toggle", "coprocessor.coprocessor.axi.reader", "ready:0->1", count)))
        total.add(path)
    assert total.by_part() == {"axi.reader": Covered(lines=1, lines_met=1, toggles=2, toggles_met=1)}
    assert total.toggles() == {("axi.reader", "o__valid"): 0, ("axi.reader", "ready"): 3}
    assert untouched([total]) == {UNKNOWN: {("`o__valid`",): ["axi.reader"]}}


def test_file_without_points_or_with_others_is_refused(tmp_path) -> None:
    for name, text in (("empty", _counted()), ("one", _counted(("v_line", "a", "", 1))),
                       ("other", _counted(("v_line", "b", "", 1)))):
        (tmp_path / name).write_text(text)
    total = Counts()
    with pytest.raises(ValueError, match="must have points"):
        total.add(tmp_path / "empty")
    total.add(tmp_path / "one")
    with pytest.raises(ValueError, match="its points are others"):
        total.add(tmp_path / "other")


def test_networks_have_layers_of_every_kind() -> None:
    layers = [layer for example in EXAMPLES for network in example.networks(MACHINE) for layer in network.layers
              if isinstance(layer, Layer)]
    windows = {(layer.pool.kernel, layer.pool.strides, max(layer.pool.pads) > 0) for layer in layers if layer.pool}
    assert {layer.kind for layer in layers} == {"conv", "average", "pass"}
    assert len(windows) >= 7
    assert any(layer.table_first for layer in layers)
    assert any(layer.table is not None and layer.residual is None for layer in layers)
    assert any(layer.groups == layer.in_shape[0] > 1 and layer.kind == "conv" for layer in layers)
    assert {max(layer.strides) for layer in layers} >= {1, 2, 3}
    assert {max(layer.dilations) for layer in layers} >= {1, 2, 3}
    assert any(max(layer.pads) and layer.pad_value for layer in layers)
    assert len({layer.residual for layer in layers if layer.residual}) >= 3


def test_networks_are_kept_once_they_are_right(tmp_path, monkeypatch) -> None:
    wrong, ran = [["a tensor differs"]], []

    def run(example, machine, folder, counted):
        ran.append(example.name)
        counted.write_text(_counted(("v_line", "a", "", 2)))
        yield from wrong

    monkeypatch.setattr(coverage_page, "EXAMPLES", EXAMPLES[:1])
    monkeypatch.setattr(coverage_page, "run", run)
    kept, total = tmp_path / "kept", Counts()
    kept.mkdir()
    assert measure_networks(MACHINE, tmp_path, kept, total) == ["a tensor differs"]
    assert not total.points
    wrong[0] = []
    for _ in range(2):
        assert measure_networks(MACHINE, tmp_path, kept, total) == []
    assert ran == [EXAMPLES[0].name] * 2
    assert total.met.tolist() == [4]


def test_signal_that_toggles_on_one_machine_is_touched(tmp_path) -> None:
    totals = [Counts(), Counts()]
    for number, total in enumerate(totals):
        path = tmp_path / f"{number}.dat"
        path.write_text(_counted(("v_toggle", "coprocessor.coprocessor.mac.cluster_0", "lane[0]:0->1", number),
                                 ("v_toggle", "coprocessor.coprocessor.axi.reader", "stray:0->1", 0),
                                 ("v_toggle", "coprocessor.coprocessor.axi.writer", "stray:0->1", 0)))
        total.add(path)
    ((why, signals),) = untouched(totals).items()
    assert "`bus_master`" in why
    assert signals == {("`stray`",): ["axi.reader", "axi.writer"]}


def test_parts_are_added_up() -> None:
    assert Covered.sum([Covered(1, 1, 4, 2), Covered(3, 2, 8, 5)]) == Covered(4, 3, 12, 7)
    assert Covered.sum([]) == Covered()
