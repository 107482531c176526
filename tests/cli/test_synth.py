"""The command synth: tables, JSON, files, refusals; and the page made from such runs."""

import json
import shutil
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from tests.cli.test_app import NO_MACHINE, invoke, refused
from tilewright.hardware.synthesis import area_page as synth_page
from tilewright.hardware.synthesis import flow, fpga
from tilewright.hardware.synthesis import picture as synth_picture
from tilewright.hardware.synthesis.cached_steps import Tool
from tilewright.hardware.synthesis.ecp5.block_places import places_of
from tilewright.hardware.synthesis.sources import verilog_design
from tilewright.hardware.synthesis.synthesis_report import (
    CriticalPath,
    FinishedStep,
    SynthesisReport,
    SynthesisRequest,
    Timing,
)
from tilewright.hardware.synthesis.synthesis_tables import shortened, summary
from tilewright.hardware.synthesis.targets import TARGETS, target_named

COUNTER = "module coprocessor(input clk, output reg [7:0] q);\n  always @(posedge clk) q <= q + 1;\nendmodule\n"


@pytest.fixture
def counter(tmp_path, monkeypatch):
    """Let every machine be a counter of eight bits, and the cache be empty."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("tilewright.hardware.synthesis.sources.machine_design",
                        lambda machine, *, with_core: verilog_design(machine.name, COUNTER, "coprocessor"))


def test_a_run_shows_area_and_frequency_and_writes_them(counter, tmp_path):
    done = invoke("synth", "--target", "ecp5-25k", "--machine", "nano", "--seed", "7", "--json", tmp_path / "area.json",
                  "-o", tmp_path / "files")
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "area.json").read_text())
    assert found["total"]["FF"] == 8
    assert (found["machine"], found["seed"], found["device"]) == ("nano", 7, "LFE5U-25F")
    assert f"Fmax: {found['timing']['fmax_mhz']:.1f} MHz" in done.stdout
    assert "fits LFE5U-25F" in done.stdout
    names = {path.name for path in (tmp_path / "files").rglob("*")}
    assert {"netlist.json", "design.v", "report.json", "log"} <= names


ADDER = """module coprocessor(clk, rst, a, sum);
  input clk;
  input rst;
  input [8:0] a;
  output reg [17:0] sum;
  always @(posedge clk) sum <= rst ? 0 : sum + a * a;
endmodule
"""


@pytest.mark.parametrize("target", [
    "gw5a-25", "cyclonev", "gatemate-a1", pytest.param("nexus-40", marks=pytest.mark.slow),
    pytest.param("gw2a-18", marks=pytest.mark.slow)])
def test_every_family_knows_its_cells_and_those_with_a_nextpnr_have_a_frequency(target, tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("tilewright.hardware.synthesis.sources.machine_design",
                        lambda machine, *, with_core: verilog_design(machine.name, ADDER, "coprocessor"))
    done = invoke("synth", "--target", target, "--machine", "nano", "--json", tmp_path / "area.json")
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "area.json").read_text())
    placed = target in ("nexus-40", "gw2a-18")
    assert (found["timing"] is not None) == placed
    assert found["total"]["FF"] == 18 + 27 * placed     # nine bits in, eighteen out
    assert placed or "not placed: " in " ".join(found["notes"])


def test_no_place_asks_for_no_place_and_route(counter, monkeypatch):
    for module in (fpga, flow):
        monkeypatch.setattr(module, "nextpnr", lambda *_: pytest.fail("it was asked for"))
    done = invoke("synth", "--target", "ecp5-25k", "--no-place")
    assert done.exit_code == 0, done.output
    assert "Fmax" not in done.stdout


@pytest.mark.slow
def test_blocks_of_a_real_netlist_are_known_by_name(tmp_path):
    """Yosys makes these names; if it makes others, nothing gets a place, and base does not route."""
    done = invoke("synth", "--target", "ecp5-85k", "--machine", "base,lanes=2", "--no-place", "-o", tmp_path)
    assert done.exit_code == 0, done.output
    netlist = next(tmp_path.glob("*/netlist.json"))
    cells = [cell["type"] for module in json.loads(netlist.read_text())["modules"].values()
             for cell in module["cells"].values()]
    places = places_of(netlist, target_named("ecp5-85k").sites)
    assert len(places) == cells.count("MULT18X18D") + cells.count("DP16KD") > 100


def test_without_nextpnr_it_is_told_how_to_get_it(counter, monkeypatch):
    there_is = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, **more: None if "nextpnr" in name else there_is(name, **more))
    monkeypatch.setattr("tilewright.hardware.synthesis.sources.machine_design",
                        lambda *_, **__: pytest.fail("it was built before the tools were looked for"))
    sentence = "Place and route needs nextpnr-ecp5, which was not found; install it with"
    assert refused(1, "synth", "--target", "ecp5-25k") == (
        f"{sentence} pip install 'tilewright[synth]', or leave this step out with --no-place")


def test_a_tool_that_fails_is_one_sentence(counter, monkeypatch):
    monkeypatch.setattr("tilewright.hardware.synthesis.sources.machine_design",
                        lambda machine, *, with_core: verilog_design("broken", "module coprocessor(\n", "coprocessor"))
    sentence = refused(1, "synth", "--target", "xc7")
    assert sentence.startswith("Yosys could not finish 'Synthesising broken for xc7': syntax error")
    assert sentence.endswith("log")


@pytest.mark.parametrize(("arguments", "sentence"), [
    (("--target", "virtex"), f"Target must be one of {', '.join(TARGETS)}, not 'virtex'"),
    (("--target", "xc7", "--machine", "huge"), NO_MACHINE),
    (("--target", "xc7", "--clock", "0"),
     "Clock must be a frequency above 0 and of at most 10000 MHz, such as 80MHz, not '0'"),
])
def test_what_cannot_be_is_refused(arguments, sentence):
    assert refused(2, "synth", *arguments) == sentence


def test_sky130_must_be_characterised_first(counter):
    assert refused(1, "synth", "--target", "sky130").endswith("with 'tilewright calibrate --tech sky130'")


def finding(target, tmp_path, **changes):
    """Return a report as one could be, of two blocks."""
    wanted = TARGETS[target]
    yosys = Tool("Yosys", ("yosys",), "Yosys 0.70 (git sha1 28ba3cb92)")
    step = FinishedStep("Synthesising", yosys, tmp_path, 12.5, kept=False)
    request = SynthesisRequest(verilog_design("nano", COUNTER, "coprocessor"), "nano")
    blocks = {name: dict.fromkeys(wanted.units, number) for name, number in (("load", 300), ("mac: lanes", 100))}
    return SynthesisReport.of(request, wanted, units=wanted.units, steps=[step], blocks={**blocks, **changes},
                              capacity=wanted.capacity, logic_per=wanted.logic_per)


def test_blocks_come_in_the_tables_order_and_add_up(tmp_path):
    report = finding("xc7", tmp_path)
    assert list(report.blocks) == ["mac: lanes", "load"]
    assert report.total("FF") == 400
    assert report.needed("LUT") == 400 + 400, "LUTs as memory are LUTs too"


def test_the_smallest_device_that_holds_everything_is_named(tmp_path):
    report = finding("xc7", tmp_path)
    assert report.device == "XC7A200T", "400 DSP blocks are too many for the others"
    told = "fits XC7A200T, as synthesised: 1 % of its logic cells (800: its LUT2-LUT6, and those that"
    assert any(line.startswith(told) for line in summary(report))
    many = {**dict.fromkeys(TARGETS["gw2a-18"].units, 0), "FF": 15000, "LUT RAM": 90}
    assert finding("gw2a-18", tmp_path, load=many).needed("FF") == 15000 + 100 + 6 * 190
    full = finding("ecp5-25k", tmp_path)
    assert full.lacking == "LFE5U-25F is too small: it would need 400 MULT18X18D of 28 and 400 DP16KD of 56"
    assert any(line == f"does not fit: {full.lacking}" for line in summary(full))


def test_the_page_has_a_row_and_a_section_for_each_case(tmp_path):
    path = CriticalPath("a", "b", "load", "mac: lanes", 4.0, 6.0, 3)
    placed = replace(finding("ecp5-85k", tmp_path, load=dict.fromkeys(TARGETS["ecp5-85k"].units, 1)), seed=1,
                     timing=Timing(100.0, 80.0, path, "by hand"))
    cases = [synth_page.AreaCase("nano", "ecp5-85k"), synth_page.AreaCase("nano", "xc7", with_core=True, place=False)]
    reports = list(zip(cases, [placed, finding("xc7", tmp_path)], strict=True))
    reports.append((synth_page.AreaCase("base", "cyclonev", place=False, row_only=True), finding("cyclonev", tmp_path)))
    text = synth_page.page(reports, "area.svg")
    assert "Yosys 0.70" in text
    assert "| nano | ecp5-85k | 101 LUT | 101 | 101 | 101 | LFE5U-85F | 100.0 | load to mac: lanes, 10.0 ns: " in text
    assert "`tilewright synth --target xc7 --machine nano --with-core --no-place`" in text
    assert "| cyclonev |" in text
    assert text.count("\n## ") == 2, "a case of a row has no section"
    assert "Not run for this page: base@ecp5-85k, base,array=winograd@ecp5-85k, nano@ecp5-25k, " in text
    for line in (line for line in text.splitlines() if line.startswith("| load")):
        assert line.count("|") == 8


def test_the_picture_s_bars_are_the_shares(tmp_path):
    report = finding("xc7", tmp_path)
    assert synth_picture.shares(report) == {"mac: lanes": 0.25, "load": 0.75}
    bars = ElementTree.fromstring(synth_picture.picture([report])).findall(".//*[{http://www.w3.org/2000/svg}title]")
    widths = [float(bar.get("width")) for bar in bars]
    assert widths[1] == pytest.approx(3 * widths[0], abs=0.2)


def test_every_case_of_the_page_is_a_target_and_a_machine():
    names = [case.name for case in synth_page.CASES]
    assert len(set(names)) == len(names)
    assert {case.target for case in synth_page.CASES} <= set(TARGETS)


@pytest.mark.parametrize(("cell", "register"), [
    ("coprocessor.mac.buffer.raw_TRELLIS_FF_Q_12", "coprocessor.mac.buffer.raw"),
    ("coprocessor.store.front._signal_53_OAI21X1_C_B_OR2X2_Y_B_OR2X2_B", "coprocessor.store.front._signal_53"),
    ("coprocessor.load.front.phase_sky130_fd_sc_hd__dfxtp_1_Q_D_sky130_fd_sc_hd__mux2_1_X",
     "coprocessor.load.front.phase"),
    ("coprocessor.mac.buffer.bank_7.0.0", "coprocessor.mac.buffer.bank_7.0.0"),
    ("x" * 100, "x" * 60 + "…"),
])
def test_ends_of_a_path_are_registers_of_the_source(cell, register):
    assert shortened(cell) == register
