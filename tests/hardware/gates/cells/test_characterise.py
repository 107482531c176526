"""Cells and memories are characterised as physics asks, and what is found survives the way into its file."""

import re
from dataclasses import replace

import pytest

from tilewright.energy.sram import SramPoint, sram_tables
from tilewright.hardware.gates.cells import cacti, circuit, flop
from tilewright.hardware.gates.cells import characterise as cells
from tilewright.hardware.gates.cells.characterise import LOADS, SLEWS, Edge, LogicFigures, characterise
from tilewright.hardware.gates.cells.circuit import CharacterisationError, CircuitDeck, step
from tilewright.hardware.gates.cells.flop import FlopFigures
from tilewright.hardware.gates.cells.liberty import read_library
from tilewright.hardware.gates.cells.liberty_text import library_text
from tilewright.hardware.gates.cells.sky130_cells import LOGIC, VOLTAGE, CellSource
from tilewright.hardware.gates.cells.truth_tables import truth_table

NAND = next(cell for cell in LOGIC if cell.name == "nand2_1")
INVERTER = next(cell for cell in LOGIC if cell.name == "inv_1")


def test_functions_of_the_cells_are_those_of_their_names():
    """The truth tables are written here once more, by Python's own operators."""
    expected = {
        "inv": lambda a: not a, "buf": lambda a: a, "nand2": lambda a, b: not (a and b),
        "nor2": lambda a, b: not (a or b), "and2": lambda a, b: a and b, "or2": lambda a, b: a or b,
        "xor2": lambda a, b: a != b, "xnor2": lambda a, b: a == b, "nand3": lambda a, b, c: not (a and b and c),
        "nor3": lambda a, b, c: not (a or b or c), "a21oi": lambda a, b, c: not ((a and b) or c),
        "o21ai": lambda a, b, c: not ((a or b) and c), "mux2": lambda a, b, s: b if s else a,
        "a22oi": lambda a, b, c, d: not ((a and b) or (c and d))}
    for cell in LOGIC:
        wanted = expected[cell.name.rpartition("_")[0]]
        table = truth_table(cell.function, cell.inputs)
        for state in range(1 << len(cell.inputs)):
            bits = [bool(state >> place & 1) for place in range(len(cell.inputs))]
            assert bool(table >> state & 1) == bool(wanted(*bits)), (cell.name, bits)


def test_a_source_steps_at_the_times_that_are_asked():
    assert step("low", (0.3, 0.05), (1.9, 0.05)) == "PWL(0 0.0 0.3000n 0.0 0.3500n 1.8 1.9000n 1.8 1.9500n 0.0)"
    assert step("high", (1.0, 0.1)) == "PWL(0 1.8 1.0000n 1.8 1.1000n 0.0)"


def made_up(deck: CircuitDeck) -> dict[str, float]:
    """Return what ngspice would, of a cell that loses 3 fJ on each change of its output, 1 fJ on other changes."""
    loads = {int(k): float(load) for k, load in re.findall(r"cl(\d+) \S+ 0 ([\d.e-]+)p", "\n".join(deck.lines))}
    moving = {int(line.split()[2].partition("x")[2]) for line in deck.measures if line.split()[2].startswith("d")}
    rises = {line.split()[2] for line in deck.measures
             if line.split()[2].startswith("d") and "rise=1" in line.partition("targ")[2]}
    found = {f"leak{k}": 1e-12 for k in loads}
    for line in deck.measures:
        name = line.split()[2]
        k = int(re.sub(r"^[a-z]+\d?x|^c", "", name))
        if name.startswith("q"):
            lost = 3e-15 if k in moving else 1e-15
            charged = loads[k] * 1e-12 * VOLTAGE**2 if f"d{name[1]}x{k}" in rises else 0.0
            found[name] = -(lost + charged) / VOLTAGE
        elif name.startswith("c"):
            found[name] = -2e-15 * VOLTAGE
        else:
            found[name] = (0.05 + loads[k]) * 1e-9
    return found


@pytest.fixture
def no_circuits(monkeypatch):
    """A cell without files, and the made-up cell's figures for simulation."""
    source = CellSource(None, "nand", ("A", "B", "VGND", "VNB", "VPB", "VPWR", "Y"), 3.75)
    monkeypatch.setattr(cells, "source_of", lambda name: source)
    monkeypatch.setattr(CircuitDeck, "run", made_up)


def test_energy_is_what_the_supply_gives_less_what_the_load_keeps(no_circuits):
    figures = characterise(NAND)
    assert figures.leakage == pytest.approx(1e-3 * VOLTAGE)
    assert figures.capacitance == {"A": pytest.approx(0.002), "B": pytest.approx(0.002)}
    for pin in "AB":
        assert figures.unateness[pin] == "negative_unate"
        assert figures.hidden[pin] == (pytest.approx(0.001), pytest.approx(0.001))
        for edge in figures.edges[pin]:
            assert [energy for row in edge.energy for energy in row] == pytest.approx([0.003] * 4)
            assert edge.delay == tuple(tuple(pytest.approx(0.05 + load) for load in LOADS) for _ in SLEWS)


def test_a_figure_that_is_missing_is_named(monkeypatch, tmp_path):
    class Silent:
        stdout, stderr, returncode = "", "Error: no such model", 1

    deck = CircuitDeck(CellSource(tmp_path / "x.spice", "nand", ("A", "Y", "VPWR"), 1.0), 1.0)
    deck.copy({"A": circuit.GROUND}, 0.002, "Y")
    deck.charge("q1x1", "vs1", 0.0, 1.0)
    monkeypatch.setattr(circuit, "models", lambda: tmp_path)
    monkeypatch.setattr(circuit, "debian_tool", lambda name: name)
    monkeypatch.setattr(circuit.subprocess, "run", lambda *_, **__: Silent)
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    with pytest.raises(CharacterisationError, match=r"2 are missing, leak1 .*no such model"):
        deck.run()
    assert not list(tmp_path.rglob("*.json"))


def grid(base: float) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(base * (1 + slew + load) for load in LOADS) for slew in SLEWS)


EDGES = (Edge(grid(0.1), grid(0.2), grid(0.003)), Edge(grid(0.11), grid(0.21), grid(0.004)))
FIGURES = LogicFigures(3.75, 0.5, {"A": 0.0017, "B": 0.0018}, {"A": EDGES, "B": EDGES},
                       {"A": "negative_unate", "B": "negative_unate"}, {"A": (0.0, 0.0), "B": (0.001, -0.0005)})
FLOP = FlopFigures(20.0, 1.5, 0.0014, 0.0011, ((0.006, 0.010), (0.005, 0.011)), (0.0005, 0.0029), EDGES)


def test_liberty_text_is_read_back_as_it_was_written(tmp_path):
    path = tmp_path / "cells.lib"
    path.write_text(library_text({NAND: FIGURES}, FLOP))
    library = read_library(path)
    assert (library.voltage, library.nanoseconds, library.picofarads) == (VOLTAGE, 1.0, 1.0)
    nand = library.cell("sky130_fd_sc_hd__nand2_1")
    assert (nand.area, nand.leakage) == (3.75, 0.5)
    assert [pin.capacitance for pin in nand.inputs] == [0.0017, 0.0018]
    assert truth_table(nand.pins["Y"].function, ("A", "B")) == 0b0111
    assert [arc.related for arc in nand.pins["Y"].energies] == ["A", "B"]
    arc = nand.pins["Y"].energies[1]
    for slew in SLEWS:
        for load in LOADS:
            assert arc.rise(slew, load) == pytest.approx(0.003 * (1 + slew + load), rel=1e-5)
            assert arc.fall(slew, load) == pytest.approx(0.004 * (1 + slew + load), rel=1e-5)
            assert nand.pins["Y"].delays[0].rise(slew, load) == pytest.approx(0.1 * (1 + slew + load), rel=1e-5)
            assert nand.pins["Y"].slews[0].fall(slew, load) == pytest.approx(0.21 * (1 + slew + load), rel=1e-5)
    assert not nand.pins["A"].energies
    assert nand.pins["B"].energies[0].mean(0.1, 0) == pytest.approx(0.00025)


def test_the_flip_flop_keeps_its_states_apart(tmp_path):
    path = tmp_path / "cells.lib"
    path.write_text(library_text({}, FLOP))
    cell = read_library(path).cell("sky130_fd_sc_hd__dfxtp_1")
    assert cell.storage.kind == "ff"
    assert (cell.storage.data, cell.storage.clock) == ("D", "CLK")
    clock = cell.pins["CLK"]
    assert clock.is_clock
    assert [(arc.when, arc.rise(0, 0), arc.fall(0, 0)) for arc in clock.energies] == [
        ("!D", 0.006, 0.010), ("D", 0.005, 0.011)]
    assert cell.pins["D"].energies[0].fall(0, 0) == 0.0029
    assert cell.pins["Q"].energies[0].related == "CLK"


@pytest.mark.slow
def test_an_inverter_in_ngspice_obeys_its_load(monkeypatch):
    """From transistors, without the cache: a larger load takes C V² more on the rise alone, and longer on both."""
    monkeypatch.setattr(CircuitDeck, "run", lambda deck: deck._simulated(deck.deck()))
    figures = characterise(INVERTER)
    rise, fall = figures.edges["A"]
    assert 0.001 < figures.capacitance["A"] < 0.004
    assert 0 < figures.leakage < 1
    for edge in (rise, fall):
        for row, energies in zip(edge.delay, edge.energy, strict=True):
            assert row[0] < row[1]
            # What is left after C V² is taken off does not hang on the load: 97 fJ of it were charged.
            assert abs(energies[0] - energies[1]) < 0.02 * LOADS[1] * VOLTAGE**2
        assert edge.delay[0][0] < edge.delay[1][0]
    assert 0 < rise.energy[0][0] + fall.energy[0][0] < 0.01


@pytest.mark.slow
def test_the_flip_flop_in_ngspice_costs_clock_energy_in_every_state():
    figures = flop.characterise_flop()
    for state in figures.clock:
        assert 0.01 < sum(state) < 0.03
    for edge in figures.edges:
        assert all(0.005 < energy < 0.05 for row in edge.energy for energy in row)
        assert edge.delay[0][0] < edge.delay[0][1]
    assert 0.001 < figures.clock_capacitance < 0.003


def test_cactis_input_has_its_quotation_mark_and_the_flavour(tmp_path):
    defaults = tmp_path / "default_cfg.cfg"
    defaults.write_text('-Data array cell type - "itrs-lstp"\n-Tag array peripheral type - "itrs-lstp\n-end\n')
    text = cacti._configuration(cacti.Macro(45, "hp", 8192, 64), defaults)
    assert text.startswith('-Data array cell type - "itrs-hp"\n-Tag array peripheral type - "itrs-hp"\n-end\n')
    assert "-technology (u) 0.045" in text
    assert "-block size (bytes) 8\n" in text


def test_a_table_written_is_a_table_read(tmp_path, monkeypatch):
    monkeypatch.setattr(cacti, "run", lambda macro: None if macro.size < macro.bits else SramPoint(
        macro.size * 1e-3, macro.bits * 1.0, 0.5, macro.nanometres * 10.0))
    seen = []
    cacti.write_table(tmp_path / "sram.toml", lambda what, done, total: seen.append((done, total)))
    tables = cacti_tables(tmp_path)
    assert set(tables) == set(cacti.TABLES)
    assert tables["hp45"].macro(4096, 32) == SramPoint(pytest.approx(4.096), pytest.approx(32), pytest.approx(0.5),
                                                       pytest.approx(450))
    assert min(tables["lstp90"].points[-1]) == 128
    assert seen[0] == (0, seen[0][1])
    assert len(seen) == seen[0][1]


def cacti_tables(folder):
    from tilewright.energy.sram import parse_tables
    return parse_tables((folder / "sram.toml").read_text())


@pytest.mark.slow
def test_cacti_gives_the_committed_figures():
    for name, size, bits in (("lstp90", 8192, 64), ("lstp45", 4096, 8)):
        nanometres, flavour = cacti.TABLES[name]
        point = cacti.run(cacti.Macro(nanometres, flavour, size, bits))
        kept = sram_tables()[name].macro(size, bits)
        assert replace(point) == SramPoint(*(pytest.approx(value, rel=1e-3) for value in (
            kept.read_pj, kept.write_pj, kept.leakage_uw, kept.area_um2)))
