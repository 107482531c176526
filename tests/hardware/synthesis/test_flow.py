"""Synthesis with the real tools, of designs so small that what they need can be counted by hand."""

import math
from contextlib import contextmanager

import pytest

from tilewright.hardware.gates.cells.liberty import read_library
from tilewright.hardware.synthesis.area_blocks import (
    CONTROL,
    CORE,
    SourceLines,
    area_block_of_module,
    area_block_of_name,
)
from tilewright.hardware.synthesis.attribution import area_blocks_of
from tilewright.hardware.synthesis.flow import synthesise
from tilewright.hardware.synthesis.sources import SynthesisSources, ports_only, verilog_design
from tilewright.hardware.synthesis.synthesis_report import SynthesisRequest
from tilewright.tools.debian import debian_data

# Blocks by the names of their modules: 7 registers and an adder in load; 9 x 9 bits multiplied, with 18 registers, in
# the sequencer; a memory of 1024 x 8 in post; one of 16 x 4 in store.
TINY = r"""
module \coprocessor.coprocessor.load (input clk, input [6:0] d, output reg [6:0] q);
  always @(posedge clk) q <= q + d;
endmodule
module \coprocessor.coprocessor.mac.sequencer (input clk, input [8:0] a, input [8:0] b, output reg [17:0] q);
  always @(posedge clk) q <= $signed(a) * $signed(b);
endmodule
module \coprocessor.coprocessor.post.buffer (input clk, input we, input [9:0] a, input [7:0] d, output reg [7:0] q);
  reg [7:0] words [1023:0];
  always @(posedge clk) begin if (we) words[a] <= d; q <= words[a]; end
endmodule
module \coprocessor.coprocessor.store (input clk, input we, input [3:0] a, input [3:0] d, output [3:0] q);
  reg [3:0] words [15:0];
  assign q = words[a];
  always @(posedge clk) if (we) words[a] <= d;
endmodule
module \coprocessor.coprocessor.mac (input clk, input [8:0] a, input [8:0] b, output [17:0] q);
  \coprocessor.coprocessor.mac.sequencer sequencer (.clk(clk), .a(a), .b(b), .q(q));
endmodule
module \coprocessor.coprocessor.post (input clk, input we, input [9:0] a, input [7:0] d, output [7:0] q);
  \coprocessor.coprocessor.post.buffer buffer (.clk(clk), .we(we), .a(a), .d(d), .q(q));
endmodule
module \coprocessor.coprocessor (input clk, input we, input [8:0] a, input [8:0] b,
                                 output [6:0] sum, output [17:0] product, output [7:0] byte_, output [3:0] nibble);
  \coprocessor.coprocessor.load load (.clk(clk), .d(a[6:0]), .q(sum));
  \coprocessor.coprocessor.mac mac (.clk(clk), .a(a), .b(b), .q(product));
  \coprocessor.coprocessor.post post (.clk(clk), .we(we), .a({1'b0, a}), .d(b[7:0]), .q(byte_));
  \coprocessor.coprocessor.store store (.clk(clk), .we(we), .a(a[3:0]), .d(b[3:0]), .q(nibble));
endmodule
"""
TOP = "coprocessor_coprocessor"


@contextmanager
def quiet(title):
    yield lambda detail: None


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Lend an empty cache, but with what packages brought, which takes a network."""
    library = debian_data("osu018_stdcells.lib")
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEWRIGHT_CACHE", str(folder))
        patch.setattr("tilewright.hardware.synthesis.flow.debian_data", lambda name: library)
        yield folder


def tiny(target, *, place=False):
    return synthesise(SynthesisRequest(verilog_design("tiny", TINY, TOP), "nano", place=place), target, quiet)


@pytest.mark.parametrize("target", ["ecp5-25k", "xc7", "ice40up5k"])
def test_an_fpga_needs_what_can_be_counted(cache, target):
    report = tiny(target)
    blocks = report.blocks
    assert blocks["load"]["FF"] == 7
    assert blocks["mac: sequencer"]["DSP"] == 1
    assert sum(block["BRAM"] for block in blocks.values()) == blocks["post: result buffer"]["BRAM"] >= 1
    if target == "ecp5-25k":
        assert blocks["post: result buffer"]["FF"] == 0, "the block RAM's own register is none of the fabric"
        assert blocks["store"] == {"LUT": 0, "carry": 0, "FF": 0, "DSP": 0, "BRAM": 0, "LUT RAM": 1}
    assert report.fits


def test_a_flip_flop_of_gowin_takes_a_lut_that_leads_to_it_or_none(cache):
    """An adder lies before those of load, a multiplier before those of the sequencer."""
    report = tiny("gw2a-18")
    load, sequencer = report.blocks["load"], report.blocks["mac: sequencer"]
    assert (load["FF"], load["lone FF"]) == (7, 0)
    assert (sequencer["FF"], sequencer["lone FF"]) == (18, 18)
    assert report.size(sequencer) == sequencer["LUT"] + 18


def test_place_and_route_gives_a_path_from_block_to_block(cache):
    report = tiny("ecp5-25k", place=True)
    path = report.timing.path
    assert {path.start_block, path.end_block} <= {"load", "mac: sequencer", "post: result buffer", "store"}
    assert path.logic_ns + path.wire_ns == pytest.approx(1000 / report.timing.fmax_mhz, rel=1e-3)
    assert 80 < report.timing.fmax_mhz < 1000
    assert report.seed == 1
    assert not any("places given" in note for note in report.notes), "the sites of this device are not known"


def test_the_report_says_how_many_blocks_were_given_places(cache):
    """Of a multiplier and a block RAM none, for there is no lane of xi."""
    report = tiny("ecp5-85k", place=True)
    assert any("places given to 0 of 2 multipliers and block RAMs" in note for note in report.notes)


def test_standard_cells_have_the_library_s_areas(cache):
    report = tiny("osu018", place=True)
    flop = read_library(debian_data("osu018_stdcells.lib")).cell("DFFPOSX1")
    # The small memory is 16 x 4 flip-flops, the large one is left out, and its output register with it.
    assert {name: block["flip-flops"] for name, block in report.blocks.items() if block["flip-flops"]} == {
        "load": 7, "mac: sequencer": 18, "store": 64}
    for block in report.blocks.values():
        assert block["area"] > block["flip-flops"] * flop.area
    assert any("1 memories of 1.0 KiB" in note for note in report.notes)
    assert math.isnan(report.timing.path.wire_ns)
    assert report.timing.path.end_block == "load", "what is multiplied comes from pins, what is added from registers"
    assert report.to_json()["timing"]["path"]["wire_ns"] is None


PLACED = r"""
module \coprocessor.coprocessor.post.buffer (input clk, input we, input [9:0] a, input [7:0] d, output reg [7:0] q,
                                             output reg [9:0] here);
  reg [7:0] words [1023:0];
  reg [9:0] place;
  always @(posedge clk) begin
    here <= a; place <= here * here;
    if (we) words[place] <= d;
    q <= words[place];
  end
endmodule
module \coprocessor.coprocessor (input clk, input we, input [9:0] a, input [7:0] d, output [7:0] q,
                                 output [9:0] here);
  \coprocessor.coprocessor.post.buffer buffer (.clk(clk), .we(we), .a(a), .d(d), .q(q), .here(here));
endmodule
"""
"""A register that nothing but a memory reads, behind a product."""


def test_timing_knows_registers_that_only_memories_read(cache):
    request = SynthesisRequest(verilog_design("placed", PLACED, TOP), "nano", place=True)
    path = synthesise(request, "osu018", quiet).timing.path
    assert path.start_block == path.end_block == "post: result buffer"
    assert path.logic_ns > 1, "the product is on it"


def test_a_second_question_starts_no_tool(cache, monkeypatch):
    first = tiny("ecp5-25k")
    monkeypatch.setattr("tilewright.hardware.synthesis.cached_steps._run", lambda *_: pytest.fail("it was run again"))
    second = tiny("ecp5-25k")
    assert second.blocks == first.blocks
    assert [step.kept for step in second.steps] == [True]


@pytest.mark.parametrize(("name", "block"), [
    ("coprocessor.mac.buffer.word_3_TRELLIS_FF_Q", "mac: activation buffer"),
    ("coprocessor.coprocessor.mac.cluster_0.lane_3.inverse.y_LUT4_Z", "mac: lanes"),
    ("coprocessor.mac.cluster_1.weights.low.0.0", "mac: weight memories"),
    ("coprocessor.post.residual_232.slots.storage.0.0", "post: residual add"),
    ("coprocessor.post.values_TRELLIS_FF_Q", "post: control"),
    ("adapter.committed.storage_LUT4_Z", CONTROL),
    ("accept_LUT4_Z", CONTROL),
    ("host.core.ex_stage_i.alu_i.result_LUT4_Z", CORE),
])
def test_a_cell_is_placed_by_its_path(name, block):
    assert area_block_of_name(name) == block


@pytest.mark.parametrize(("module", "block"), [
    ("coprocessor_coprocessor_mac_cluster_0_lane_0_multipliers", "mac: lanes"),
    ("coprocessor_coprocessor_mac_cluster_0_weights", "mac: weight memories"),
    ("coprocessor_coprocessor_post_pool_219", "post: max pool"),
    ("coprocessor_coprocessor_load_front", "load"),
    ("coprocessor_adapter", CONTROL),
    ("coprocessor", CONTROL),
])
def test_a_module_is_placed_by_its_name(module, block):
    assert area_block_of_module(module) == block


def test_a_line_is_placed_by_the_module_around_it():
    lines = SourceLines(
        "design.v", "module coprocessor_coprocessor_load(a);\n\nendmodule\nmodule \\coprocessor_adapter (b);\n")
    assert lines.block("design.v:3.1-3.9|/share/lattice/cells_map.v:83.1") == "load"
    assert lines.block("/share/lattice/cells_map.v:83.1|design.v:5.1") == CONTROL
    assert lines.block("cv32e40x_alu.sv:12.1-13.2") == CORE
    assert lines.block("tilewright_soc.sv:80.3") == CONTROL
    assert lines.block("/share/lattice/cells_map.v:83.1") is None


def test_ports_alone_are_a_black_box():
    text = "module top(a,\n  q);\n  input [3:0] a;\n  wire a;\n  output q;\n  assign q = a[0];\nendmodule\n"
    assert ports_only(text, "top") == "(* blackbox *)\nmodule top(a,\n  q);\n  input [3:0] a;\n  output q;\nendmodule\n"
    with pytest.raises(ValueError, match="must have the module 'bottom'"):
        ports_only(text, "bottom")


def test_what_does_not_fit_is_told_with_figures(cache):
    wide = "module coprocessor(input clk, output [71:0] q);\n" + "".join(
        f"  reg [7:0] a{n}, b{n}; reg [15:0] p{n};\n  always @(posedge clk) begin a{n} <= a{n} + {2 * n + 1}; "
        f"b{n} <= b{n} + {n + 3}; p{n} <= a{n} * b{n}; end\n  assign q[{8 * n} +: 8] = p{n}[15:8];\n"
        for n in range(9)) + "endmodule\n"
    design = SynthesisSources("nine", "coprocessor", {"design.v": wide}, "read_verilog design.v\n")
    report = synthesise(SynthesisRequest(design, "nano"), "ice40up5k", quiet)
    assert not report.fits
    assert report.device is None
    assert report.lacking == "iCE40UP5K is too small: it would need 9 SB_MAC16 of 8"


def test_a_target_that_there_is_not_is_refused():
    with pytest.raises(ValueError, match=r"Target.*not 'virtex'"):
        tiny("virtex")


def gate(pins, outputs=("Y",), kind="NAND", src=""):
    return {"type": kind, "attributes": {"src": src} if src else {},
            "connections": {pin: [bit] for pin, bit in pins.items()},
            "port_directions": {pin: "output" if pin in outputs else "input" for pin in pins}}


def test_logic_belongs_to_what_most_of_it_leads_to():
    load, store = "design.v:1.1", "design.v:2.1"
    lines = SourceLines("design.v", "module coprocessor_load(a); endmodule\nmodule coprocessor_store(a); endmodule\n")
    cells = {
        "from_load": gate({"D": 9, "Q": 1}, ("Q",), "FF", load),
        "first": gate({"A": 1, "Y": 2}), "second": gate({"A": 2, "Y": 3}), "fork": gate({"A": 1, "Y": 4}),
        "to_store": gate({"D": 3, "Q": 5}, ("Q",), "FF", store),
        "to_load": gate({"D": 4, "Q": 6}, ("Q",), "FF", load),
        "also_to_load": gate({"D": 4, "Q": 7}, ("Q",), "FF", load),
        "also_to_store": gate({"D": 4, "Q": 8}, ("Q",), "FF", store),
        "coprocessor.post.to_port": gate({"A": 5, "Y": 10}),
        "coprocessor.mac.buffer.loop": gate({"A": 12, "Y": 11}),
        "coprocessor.mac.buffer.back": gate({"A": 11, "Y": 12}),
    }
    blocks = area_blocks_of(cells, lines, lambda kind: kind == "NAND")
    assert {name: blocks[name] for name in ("first", "second", "fork")} == {
        "first": "store", "second": "store", "fork": "load"}
    assert blocks["coprocessor.post.to_port"] == "post: control"
    assert blocks["coprocessor.mac.buffer.loop"] == blocks["coprocessor.mac.buffer.back"] == "mac: activation buffer"
