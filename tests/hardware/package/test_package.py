"""The Verilog package: lint, testbench, mapping to FPGA blocks, and what its files say, by the tools its reader has.

Testbenches run on every pair of machine, bus and simulator; not every machine with both buses in both simulators.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tilewright.errors import InputError
from tilewright.hardware.package.package import write_verilog
from tilewright.hardware.package.testbench import MODEL, exercise
from tilewright.hardware.package.top import _WINDOW_FIELDS, TOP
from tilewright.isa.encoding import INSTRUCTIONS
from tilewright.isa.machine import UNITS, preset
from tilewright.rtl.port.window_check import MemoryWindow
from tilewright.tools.debian import debian_data, debian_tool
from tilewright.tools.toolchain import verilator_environment, yosys_command

NANO = preset("nano")


@dataclass(frozen=True)
class Package:
    """A package that was written, and how to call tools in it."""

    folder: Path

    @property
    def sources(self) -> list[str]:
        return (self.folder / "tilewright.f").read_text().split()

    @property
    def text(self) -> str:
        return "".join((self.folder / name).read_text() for name in self.sources)

    def call(self, *command: str, inside: str = "", status: int = 0) -> str:
        """Run a program in a folder of the package; return all that it says."""
        done = subprocess.run(command, cwd=self.folder / inside, env=verilator_environment(), capture_output=True,
                              text=True, check=False)
        said = done.stdout + done.stderr
        assert done.returncode == status, said
        return said


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    written = {}

    def get(machine: str, bus: str = "axi4", port: str = "cvxif") -> Package:
        if (machine, bus, port) not in written:
            folder = tmp_path_factory.mktemp(f"{machine}-{bus}-{port}")
            # Pins with one bus and registers with the other: each of the two with a port that can have both.
            windows = "pins" if bus == "wishbone" else None
            write_verilog(preset(machine), folder, bus=bus, port=port, windows=windows)
            written[machine, bus, port] = Package(folder)
        return written[machine, bus, port]

    return get


@pytest.fixture
def own(packages, tmp_path):
    """Return a function that copies a package, so that a test can change it."""
    def copy(machine: str, bus: str = "axi4", port: str = "cvxif") -> Package:
        shutil.copytree(packages(machine, bus, port).folder, tmp_path / "package")
        return Package(tmp_path / "package")

    return copy


@pytest.fixture(scope="module")
def said_in_icarus(packages):
    """Return a function that tells what the testbench of a package, as it was written, prints in Icarus Verilog."""
    return cache(lambda *which: icarus(packages(*which)))


def icarus(package: Package) -> str:
    """Return what the testbench prints in Icarus Verilog, which must not warn of anything."""
    sources = [f"../{name}" for name in package.sources]
    models = [path.name for path in (package.folder / "testbench").glob("*_*.v")]
    said = package.call(str(debian_tool("iverilog")), "-g2005", "-Wall", "-s", "testbench", "-o", "testbench.vvp",
                        "testbench.v", *models, *sources, inside="testbench")
    assert said == ""
    return package.call(str(debian_tool("vvp")), "-n", "testbench.vvp", inside="testbench")


def verilator(package: Package) -> str:
    """Return what the testbench prints in Verilator, which must not warn of anything.

    The model reads commands and memory when it runs; it is built once, with noise where nothing is initialised.
    """
    if not (package.folder / "testbench" / "verilated" / "testbench").exists():
        build(package)
    return package.call("./verilated/testbench", "+verilator+rand+reset+2", inside="testbench")


def build(package: Package, command: str = "verilator") -> None:
    sources = [f"../{name}" for name in package.sources]
    models = [path.name for path in (package.folder / "testbench").glob("*_*.v")]
    package.call(command, "--binary", "-j", "2", "-Wall", "--x-initial", "unique", "-CFLAGS", "-std=c++20 -O0",
                 "--top-module", "testbench", "-Mdir", "verilated", "-o", "testbench", "testbench.v", *models, *sources,
                 inside="testbench")


LINTED = [("nano", "axi4", "cvxif"), ("nano", "wishbone", "cvxif"), ("nano", "axi4", "axi4lite"),
          ("nano", "axi4", "cvxif-1.0"), ("nano", "wishbone", "axi4lite"), ("base", "axi4", "cvxif"),
          ("nano", "axi4-own-clock", "axi4lite"),
          *(pytest.param("large", bus, "cvxif", marks=pytest.mark.slow) for bus in ("axi4", "wishbone"))]


@pytest.mark.parametrize(("machine", "bus", "port"), LINTED)
def test_lint_is_clean(packages, machine, bus, port):
    package = packages(machine, bus, port)
    said = package.call("verilator", "--lint-only", "-Wall", "-f", "tilewright.f")
    assert "%" not in said
    assert package.call(str(debian_tool("iverilog")), "-g2005", "-Wall", "-tnull", *package.sources) == ""
    assert "\\" not in package.text  # no escaped identifier
    assert not re.search(r"\bport_\d+_\d+\b|\$\d", package.text)
    for line in package.text.splitlines():  # a warning that is off is on again behind the line that causes it
        assert re.findall(r"lint_off (\w+)", line) == re.findall(r"lint_on (\w+)", line)


@pytest.mark.parametrize("port", ["cvxif", "axi4lite"])
def test_lint_of_debians_verilator_is_clean(packages, port):
    package = packages("nano", port=port)
    assert "%" not in package.call(str(debian_tool("verilator_bin")), "--lint-only", "-Wall", "-f", "tilewright.f")


@pytest.mark.slow
@pytest.mark.parametrize("port", ["cvxif", "axi4lite"])
def test_testbench_passes_in_debians_verilator(own, port):
    package = own("nano", port=port)
    build(package, str(debian_tool("verilator_bin")))
    assert verilator(package).startswith("PASS: ")


def test_lint_sees_what_is_wrong(own):
    package = own("nano")
    path = package.folder / "rtl" / f"{TOP}.v"
    path.write_text(path.read_text().replace(".idle(idle)", ".idle(fault)"))
    said = package.call("verilator", "--lint-only", "-Wall", "-f", "tilewright.f", status=1)
    assert "%Warning" in said


@pytest.mark.parametrize(("machine", "bus", "port"), [
    ("nano", "axi4", "cvxif"), ("nano", "wishbone", "cvxif"), ("nano", "axi4", "axi4lite"),
    ("nano", "axi4", "cvxif-1.0"), ("base", "axi4", "cvxif"), ("nano", "axi4-own-clock", "axi4lite"),
    pytest.param("large", "wishbone", "cvxif", marks=pytest.mark.slow)])
def test_testbench_passes_in_icarus(said_in_icarus, machine, bus, port):
    assert re.match(r"PASS: \d+ commands in \d+ cycles", said_in_icarus(machine, bus, port))


def test_a_command_that_the_registers_refuse_fails_the_testbench(own):
    package = own("nano", port="axi4lite")
    path = package.folder / "testbench" / "commands.hex"
    first, *rest = path.read_text().splitlines()
    path.write_text("\n".join((f"{0x5b:08x}{first[8:]}", *rest)) + "\n")
    assert "FAIL: a command was not taken" in icarus(package)


def test_a_register_that_tells_of_another_machine_fails_the_testbench(own):
    package = own("nano", port="axi4lite")
    path = package.folder / "testbench" / "settings.hex"
    array = next(line for line in path.read_text().splitlines() if line.endswith("array"))
    path.write_text(path.read_text().replace(array, f"{array[:13]}{int(array[13], 16) ^ 1}{array[14:]}"))
    assert "FAIL: a command was not taken" in icarus(package)


def test_testbench_passes_in_verilator_in_the_same_cycles(packages, said_in_icarus):
    said = verilator(packages("nano"))
    assert said.startswith("PASS: ")
    assert said.splitlines()[0] == said_in_icarus("nano", "axi4", "cvxif").splitlines()[0]


@pytest.mark.slow
@pytest.mark.parametrize(("machine", "bus"), [("base", "wishbone"), ("large", "axi4")])
def test_testbench_passes_in_verilator(packages, machine, bus):
    assert verilator(packages(machine, bus)).startswith("PASS: ")


def test_another_expectation_fails_in_both(packages, own):
    verilator(packages("nano"))  # so that the copy has the model
    package = own("nano")
    path = package.folder / "testbench" / "expected.hex"
    words = path.read_text().split()
    words[-3] = f"{int(words[-3], 16) ^ 0x10:08x}"
    path.write_text("\n".join(words) + "\n")
    for said in (icarus(package), verilator(package)):
        assert "FAIL: words of memory are not as expected: 1\n" in said
        assert "PASS" not in said


@pytest.mark.parametrize(("bus", "change", "sentences"), [
    ("axi4", (r"(window\d_readable)\(1'b1\)", r"\1(1'b0)"), ("fault code 1 at", "FAIL: the coprocessor has stopped")),
    ("axi4", ("BASE +=.*;", "BASE = 32'h90000000;"), ("fault code 3 at address 8", "FAIL: the coprocessor")),
    ("wishbone", ("BASE +=.*;", "BASE = 32'h90000000;"), ("fault code 3 at address 8", "FAIL: the coprocessor")),
    ("axi4", (r"CYCLES_LIMIT = \d+", "CYCLES_LIMIT = 500"), ("FAIL: the commands take too long",)),
])
def test_what_goes_wrong_on_the_way_is_told(own, bus, change, sentences):
    """Nothing may be read; the memory is elsewhere, and answers with errors; time runs out."""
    package = own("nano", bus)
    path = package.folder / "testbench" / "testbench.v"
    changed = re.sub(*change, path.read_text())
    assert changed != path.read_text()
    path.write_text(changed)
    said = icarus(package)
    assert all(sentence in said for sentence in sentences)
    assert "PASS" not in said


@pytest.mark.parametrize("bus", ["axi4", "wishbone"])
def test_nothing_depends_on_what_memories_and_registers_hold_before_the_reset(own, bus):
    """All initial values are replaced by noise: those of an ASIC, and of block RAM that was used before."""
    package = own("nano", bus)
    memories = registers = 0
    for name in package.sources[1:]:
        text = (package.folder / name).read_text()
        text, found = re.subn(r"(\w+\[word\]) = (?:\d+'h0|{WIDTH{1'b0}});", r"\1 = {4{$random}};", text)
        memories += found
        text, found = re.subn(r"^(  initial \w+) = [^;]+;$", r"\1 = {64{$random}};", text, flags=re.MULTILINE)
        registers += found
        (package.folder / name).write_text(text)
    assert memories > 20
    assert registers > 500
    bench = package.folder / "testbench" / "testbench.v"
    assert "initial #42 rst" in bench.read_text()
    bench.write_text(bench.read_text().replace("initial #42 rst", "initial #8 rst"))  # a single edge of the clock
    assert icarus(package).startswith("PASS: ")


def test_the_readme_lists_every_memory(packages):
    package = packages("nano")
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (\d+) \| (\d+) \| \d+ \| \d+ \|$",
                      (package.folder / "README.md").read_text(), re.MULTILINE)
    assert "\n\n| words | bits |" in (package.folder / "README.md").read_text()
    bits = sum(int(depth) * int(width) * int(count) for depth, width, _, count in rows)
    buffers = NANO.activation_bytes + NANO.weight_bytes * 9 // 8 + NANO.result_bytes + 8 * NANO.parameter_channels
    assert 8 * buffers <= bits <= 1.05 * 8 * buffers
    assert not re.search(r"^  reg \[\d+:0\] \w+ \[0:\d{3,}\];", (package.folder / "rtl/coprocessor.v").read_text(),
                         re.MULTILINE)


@pytest.mark.slow
def test_the_commands_of_the_readme_for_yosys_end(packages):
    """That for a target without block RAM leaves the memories as they are, where plain ``synth`` takes hours."""
    package = packages("nano")
    ecp5, plain = re.findall(r'^    yosys -p "read_verilog [^;]+; (.+)"$', (package.folder / "README.md").read_text(),
                             re.MULTILINE)
    assert mapped(package, ecp5)["DP16KD"] > 20
    kept = re.search(r"^\s+(\d+) +\$mem_v2$", synthesised(package, plain), re.MULTILINE)
    assert int(kept[1]) >= package.text.count("\n  tilewright_memory #(") > 20


def test_memories_and_multipliers_become_blocks_of_ecp5(packages):
    cells = mapped(packages("nano"), "synth_ecp5 -top {} -run begin:map_gates")
    assert NANO.multipliers + 4 * NANO.post_lanes <= cells["MULT18X18D"] <= NANO.multipliers + 4 * NANO.post_lanes + 6
    kilobits = 8 * (NANO.activation_bytes + NANO.weight_bytes * 9 // 8 + NANO.result_bytes) / 1024
    assert kilobits / 18 <= cells["DP16KD"] <= 1.6 * kilobits / 18


@pytest.mark.slow
def test_memories_and_multipliers_become_blocks_of_7_series(packages):
    cells = mapped(packages("nano"), "synth_xilinx -family xc7 -top {} -run begin:map_ffram")
    assert NANO.multipliers + 4 * NANO.post_lanes <= cells["DSP48E1"] <= NANO.multipliers + 4 * NANO.post_lanes + 6
    kilobits = 8 * (NANO.activation_bytes + NANO.weight_bytes * 9 // 8 + NANO.result_bytes) / 1024
    assert kilobits / 18 <= 2 * cells.get("RAMB36E1", 0) + cells.get("RAMB18E1", 0) <= 2 * kilobits / 18


def mapped(package: Package, synthesis: str) -> dict[str, int]:
    """Return how many cells of each kind Yosys makes of the package."""
    report = synthesised(package, f"{synthesis.format(TOP)}; stat")
    return {kind: int(count) for count, kind in re.findall(r"^\s+(\d+)\s+([A-Z]\w+)$", report, re.MULTILINE)}


def synthesised(package: Package, commands: str) -> str:
    """Return the last statistics that Yosys prints of the package."""
    # Through standard input: Yosys as WebAssembly does not see files under /tmp.
    script = "\n".join((f"read_verilog <<text\n{package.text}\ntext", *commands.split("; "), ""))
    done = subprocess.run([*yosys_command(), "-"], input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout[done.stdout.rindex("=== "):]


def test_timing_constraints_are_read_by_opensta(packages, tmp_path):
    """On a netlist of two cells with some of the ports; the windows have no path, the reset has one."""
    shutil.copy(packages("nano").folder / "constraints" / "timing.sdc", tmp_path)
    (tmp_path / "net.v").write_text(f"""\
module {TOP}(input clk, input rst, input [1:0] window0_base, output idle);
  wire n;
  AND2X1 gate(.A(rst), .B(window0_base[0]), .Y(n));
  DFFPOSX1 register(.CLK(clk), .D(n), .Q(idle));
endmodule
""")
    (tmp_path / "run.tcl").write_text(f"""\
read_liberty {debian_data("osu018_stdcells.lib")}
read_verilog net.v
link_design {TOP}
read_sdc timing.sdc
report_checks -path_delay max -from [get_ports rst]
report_checks -path_delay max -from [get_ports window0_base]
report_checks -path_delay max -to [get_ports idle]
""")
    said = Package(tmp_path).call(str(debian_tool("sta")), "-exit", "run.tcl")
    assert "Error" not in said
    assert "Warning" not in said
    assert said.count("Path Type: max") == 2
    assert "No paths found" in said
    assert said.count("5.00 ") >= 2


@pytest.mark.parametrize(("bus", "port"), [("axi4", "cvxif"), ("wishbone", "cvxif"), ("axi4", "cvxif-1.0"),
                                           ("axi4", "axi4lite"), ("axi4-own-clock", "axi4lite")])
def test_readme_has_every_port_and_every_file(packages, bus, port):
    package = packages("nano", bus, port)
    said = (package.folder / "README.md").read_text()
    top = (package.folder / "rtl" / f"{TOP}.v").read_text()
    header = top[top.index(f"module {TOP} ("):top.index(");")]
    ports = re.findall(r"(input |output) wire +(?:\[(\d+):0\] )?(\w+),? +(?:/\*.+?\*/ )?// (.+)", header)
    assert len(ports) == header.count(" wire ") > 40
    for direction, high, name, meaning in ports:
        assert f"| `{name}` | {direction.strip().removesuffix('put')} | {int(high or 0) + 1} | {meaning} |" in said
    for path in package.folder.rglob("*"):
        # Beside what the command wrote, other tests of the same package have compiled its testbench.
        if path.is_file() and path.name != "README.md" and path.suffix != ".vvp" and "verilated" not in path.parts:
            assert f"`{path.relative_to(package.folder)}`" in said
    assert "{{" not in said
    assert any(name.startswith("m_axi_") for *_, name, _ in ports) == (bus != "wishbone")
    assert any(name == "bus_clk" for *_, name, _ in ports) == (bus == "axi4-own-clock")
    assert any(name.startswith("wb_") for *_, name, _ in ports) == (bus == "wishbone")
    assert any(name.startswith("xif_") for *_, name, _ in ports) == (port != "axi4lite")
    assert any(name.startswith("s_axi_") for *_, name, _ in ports) == (port == "axi4lite")
    assert any(name.startswith("window") for *_, name, _ in ports) == (port != "axi4lite")


def test_windows_are_packed_as_the_gateware_has_them():
    layout = MemoryWindow.as_shape()
    low = 0
    for name, width in _WINDOW_FIELDS:
        assert (layout[name].offset, layout[name].width) == (low, width)
        low += width
    assert low == layout.size


def test_testbench_uses_all_seven_instructions_and_really_writes(packages):
    work = exercise(NANO)
    used = {each.instruction.mnemonic for each in work.commands}
    assert used == {each.mnemonic for each in INSTRUCTIONS}
    assert np.count_nonzero(work.before != work.after) > 100
    assert MODEL in (packages("nano").folder / "testbench" / "testbench.v").read_text()


@pytest.mark.parametrize("unit", UNITS)
def test_testbench_needs_no_unit(unit):
    work = exercise(replace(NANO, **{unit: False}))
    assert np.count_nonzero(work.before != work.after) > 100


def test_testbench_of_a_machine_without_units_passes(tmp_path):
    write_verilog(replace(NANO, **dict.fromkeys(UNITS, False)), tmp_path)
    assert icarus(Package(tmp_path)).startswith("PASS: ")
    assert "%" not in Package(tmp_path).call("verilator", "--lint-only", "-Wall", "-f", "tilewright.f")


def test_core_comes_along_and_the_system_is_read_whole(tmp_path):
    write_verilog(NANO, tmp_path, with_core=True)
    package = Package(tmp_path)
    assert "SOLDERPAD HARDWARE LICENSE" in (tmp_path / "cv32e40x" / "LICENSE").read_text()
    package.call("verilator", "--lint-only", "-Wno-fatal", "-Wno-lint", "-Wno-style", "-GBUS_BYTES=4", "-f",
                 "tilewright_soc.f", "--top-module", "tilewright_soc")
    assert "tilewright_soc" in (tmp_path / "README.md").read_text()


def test_core_wants_axi4(tmp_path):
    with pytest.raises(InputError, match=r"--with-core .*axi4.*'wishbone'"):
        write_verilog(NANO, tmp_path, bus="wishbone", with_core=True)


def test_core_wants_its_own_port(tmp_path):
    with pytest.raises(InputError, match=r"--with-core .*cvxif.*'axi4lite'"):
        write_verilog(NANO, tmp_path, port="axi4lite", with_core=True)


def test_windows_as_registers_want_the_port_that_has_registers(tmp_path):
    with pytest.raises(InputError, match=r"--windows registers .*axi4lite.*'cvxif'"):
        write_verilog(NANO, tmp_path, windows="registers")


def test_folder_that_cannot_be_is_refused_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made: Not a directory"):
        write_verilog(NANO, tmp_path / "file" / "package")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_folder_without_permission_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="cannot be written to: permission denied"):
        write_verilog(NANO, tmp_path)
