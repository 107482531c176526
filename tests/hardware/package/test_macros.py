"""Memories of a process's macros in place of the package's memory, with models of the macros that give X where nobody
may look: what is read while it is written, and, of OpenRAM's, a word from the second cycle on. Words that nobody has
written are noise and not X: the array multiplies some by weights of 0, which makes nothing of X.
"""

import re
import subprocess
from pathlib import Path

import pytest

from tilewright.hardware.package import package
from tilewright.hardware.package.macros import LIBRARIES, MacroLibrary, MemoryMacro, macro_files
from tilewright.hardware.package.package import write_verilog
from tilewright.isa.machine import preset
from tilewright.sim.verilog.modular.memories import MEMORY, MemoryShape
from tilewright.tools.debian import debian_tool
from tilewright.tools.templates import render

SHAPES = tuple(MemoryShape(*each) for each in (
    (2048, 8, 8), (1024, 64, 32), (512, 64, 32), (128, 128, 32), (29, 20, 20), (700, 36, 36), (40, 5, 5)))

OPENRAM = """
module {name} (
  input wire clk0, csb0, web0, input wire [{bits}/8-1:0] wmask0, input wire [{places}-1:0] addr0,
  input wire [{bits}-1:0] din0, output reg [{bits}-1:0] dout0,
  input wire clk1, csb1, input wire [{places}-1:0] addr1, output reg [{bits}-1:0] dout1
);
  reg [{bits}-1:0] words [0:{words}-1];
  integer k;
  initial for (k = 0; k < {words}; k = k + 1) words[k] = $random;
  always @(posedge clk0) for (k = 0; k < {bits}/8; k = k + 1)
    if (!csb0 && !web0 && wmask0[k]) words[addr0][8 * k +: 8] <= din0[8 * k +: 8];
  always @(posedge clk1) dout1 <= csb1 || (!csb0 && addr0 == addr1) ? {bits}'hx : words[addr1];
endmodule
"""
IHP = """
module {name} (
  input wire A_CLK, A_MEN, A_WEN, A_REN, A_DLY, input wire [{places}-1:0] A_ADDR,
  input wire [{bits}-1:0] A_DIN, A_BM, output wire [{bits}-1:0] A_DOUT,
  input wire A_BIST_CLK, A_BIST_EN, A_BIST_MEN, A_BIST_WEN, A_BIST_REN, input wire [{places}-1:0] A_BIST_ADDR,
  input wire [{bits}-1:0] A_BIST_DIN, A_BIST_BM,
  input wire B_CLK, B_MEN, B_WEN, B_REN, B_DLY, input wire [{places}-1:0] B_ADDR,
  input wire [{bits}-1:0] B_DIN, B_BM, output reg [{bits}-1:0] B_DOUT,
  input wire B_BIST_CLK, B_BIST_EN, B_BIST_MEN, B_BIST_WEN, B_BIST_REN, input wire [{places}-1:0] B_BIST_ADDR,
  input wire [{bits}-1:0] B_BIST_DIN, B_BIST_BM
);
  reg [{bits}-1:0] words [0:{words}-1];
  integer k;
  initial for (k = 0; k < {words}; k = k + 1) words[k] = $random;
  wire tied = A_DLY === 1'b1 && B_DLY === 1'b1 && A_BIST_EN === 1'b0 && B_BIST_EN === 1'b0;
  assign A_DOUT = {bits}'hx;
  always @(posedge A_CLK)
    if (A_MEN && A_WEN) words[A_ADDR] <= tied ? (words[A_ADDR] & ~A_BM) | (A_DIN & A_BM) : {bits}'hx;
  always @(posedge B_CLK)
    if (B_MEN && B_REN) B_DOUT <= B_WEN || (A_MEN && A_WEN && A_ADDR == B_ADDR) ? {bits}'hx : words[B_ADDR];
endmodule
"""
"""Pins of IHP-Open-PDK's RM_IHPSG13_2P_*_c2_bm_bist; with DLY low, or in a self-test, its words are lost."""

MODELS = {"sky130": OPENRAM, "sg13g2": IHP}

COMPARED = """
module compared #(parameter DEPTH = 1, WIDTH = 8, GRANULE = 8, ADDRESS = 1);
  reg clk = 0, read = 0, has_read = 0;
  reg [WIDTH / GRANULE-1:0] write = 0;
  reg [ADDRESS-1:0] write_address = 0, read_address = 0;
  reg [WIDTH-1:0] write_data = 0;
  wire [WIDTH-1:0] expected, found;
  integer cycle, wrong = 0;
  reference #(.DEPTH(DEPTH), .WIDTH(WIDTH), .GRANULE(GRANULE), .ADDRESS(ADDRESS)) one (
    .clk(clk), .write(write), .write_address(write_address), .write_data(write_data),
    .read(read), .read_address(read_address), .read_data(expected));
  tilewright_memory #(.DEPTH(DEPTH), .WIDTH(WIDTH), .GRANULE(GRANULE), .ADDRESS(ADDRESS)) other (
    .clk(clk), .write(write), .write_address(write_address), .write_data(write_data),
    .read(read), .read_address(read_address), .read_data(found));
  initial begin
    for (cycle = 0; cycle < 2 * DEPTH + 2000; cycle = cycle + 1) begin
      write = cycle < DEPTH ? ~0 : {8{$random}};
      write_address = cycle < DEPTH ? cycle : $unsigned($random) % DEPTH;
      write_data = {8{$random}};
      read_address = $unsigned($random) % DEPTH;
      read = cycle >= DEPTH && $random % 3 != 0 && !(|write && write_address == read_address);
      #1 clk = 1;
      has_read = has_read | read;
      #1 if (has_read && found !== expected) wrong = wrong + 1;
      clk = 0;
    end
    $display("%0d words of %0d differ: %0d", DEPTH, WIDTH, wrong);
  end
endmodule
"""


def models(library: MacroLibrary) -> str:
    """Return Verilog of a library's macros."""
    def model(macro: MemoryMacro) -> str:
        return MODELS[library.process].format(name=macro.name, bits=macro.bits, words=macro.words, places=macro.places)

    return "".join((model(library.narrow), model(library.wide)))


def said(folder, text: str, *options: str) -> str:
    """Return what Icarus Verilog prints when it runs a text."""
    (folder / "text.v").write_text(text)
    for command in ((str(debian_tool("iverilog")), "-g2005", *options, "-o", "text.vvp", "text.v"),
                    (str(debian_tool("vvp")), "-n", "text.vvp")):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.process)
def test_a_memory_of_macros_reads_what_the_memory_of_the_package_reads(tmp_path, library):
    templates = Path(package.__file__).parent / "templates"
    reference = render(templates / "memory.v").replace(f"module {MEMORY}", "module reference")
    compared = "".join(
        f"  compared #(.DEPTH({each.depth}), .WIDTH({each.width}), .GRANULE({each.granule}), "
        f".ADDRESS({(each.depth - 1).bit_length()})) of_{each.depth}_{each.width} ();\n" for each in SHAPES)
    text = "".join((reference, macro_files()[library.file], models(library), COMPARED,
                    f"module top;\n{compared}endmodule\n"))
    found = dict(re.findall(r"(\d+ words of \d+) differ: (\d+)", said(tmp_path, text, "-s", "top")))
    assert found == {f"{each.depth} words of {each.width}": "0" for each in SHAPES}


def test_macros_are_counted_by_rows_and_columns():
    counts = {library.process: [library.count(shape) for shape in SHAPES] for library in LIBRARIES}
    assert counts == {"sky130": [2, 4, 2, 4, 1, 4, 1], "sg13g2": [4, 4, 2, 4, 1, 4, 1]}


@pytest.mark.slow
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.process)
def test_macros_take_the_place_of_the_memories(tmp_path, library):
    write_verilog(preset("nano"), tmp_path)
    body = (tmp_path / library.file).read_text()
    (tmp_path / "rtl" / f"{MEMORY}.v").write_text(body + models(library))
    sources = [*(tmp_path / "rtl").glob("*.v"), *(tmp_path / "testbench").glob("*.v")]
    text = "".join(path.read_text() for path in sources)
    for name in ("commands", "memory", "expected"):
        (tmp_path / f"{name}.hex").write_text((tmp_path / "testbench" / f"{name}.hex").read_text())
    assert said(tmp_path, text, "-s", "testbench").startswith("PASS: ")
