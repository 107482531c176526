"""Steps are run once, wholly or not at all, and say what went wrong."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tilewright.hardware.synthesis.area_blocks import area_block_of_name
from tilewright.hardware.synthesis.cached_steps import HopelessError, SynthesisError, Tool, ToolStep, finish, finished
from tilewright.hardware.synthesis.place import critical_path, timing_of
from tilewright.hardware.synthesis.static_timing import timing_of as timing_of_cells


@contextmanager
def quiet(title):
    yield lambda detail: None


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def step(code, inputs=None, outputs=("out",)):
    return ToolStep("Counting", Tool("Python", (sys.executable,), "3"), ("-c", code), inputs or {}, outputs)


COUNT = "import pathlib; open('out', 'w').write(open('in').read()); pathlib.Path(r'{runs}').open('a').write('x')"


def test_a_step_is_run_once_for_the_same_inputs(tmp_path):
    runs = tmp_path / "runs"
    code = COUNT.format(runs=runs)
    first, again, other = (finish(step(code, {"in": text}), quiet) for text in ("a", "a", "b"))
    assert [each.kept for each in (first, again, other)] == [False, True, False]
    assert first.folder == again.folder != other.folder
    assert (other.folder / "out").read_text() == "b"
    assert not (other.folder / "in").exists()
    assert runs.read_text() == "xx"


def test_a_file_counts_by_its_contents(tmp_path):
    (tmp_path / "x").write_text("a")
    (tmp_path / "y").write_text("a")
    code = COUNT.format(runs=tmp_path / "runs")
    assert finish(step(code, {"in": tmp_path / "x"}), quiet).folder == finish(step(code, {"in": tmp_path / "y"}),
                                                                           quiet).folder
    assert (tmp_path / "x").exists()


TERMINATED = """
import os, sys
from contextlib import contextmanager
from tilewright.cli.app import end_in_order_when_terminated
from tilewright.hardware.synthesis.cached_steps import Tool, ToolStep, finish

@contextmanager
def quiet(title):
    yield lambda detail: None

end_in_order_when_terminated()
code = "import os, sys, time; print(os.getpid(), file=open(sys.argv[1], 'w')); time.sleep(600)"
finish(ToolStep("Waiting", Tool("Python", (sys.executable,), "3"), ("-c", code, sys.argv[1]), {}, ("out",)), quiet)
"""


def test_a_tool_ends_with_a_command_that_is_terminated(tmp_path):
    told = tmp_path / "process"
    command = subprocess.Popen([sys.executable, "-c", TERMINATED, str(told)])
    deadline = time.monotonic() + 60
    while not (told.exists() and told.read_text().strip()) and time.monotonic() < deadline:
        time.sleep(0.05)
    tool = int(told.read_text())
    os.kill(tool, 0)  # raises if it were not running
    command.terminate()
    assert command.wait(30) == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(tool, 0)


def test_a_failure_names_the_last_error_and_the_log():
    with pytest.raises(SynthesisError, match=r"'Counting': no BELs .*log$"):
        finish(step("print('ERROR: first.'); print('ERROR: no BELs remaining.'); raise SystemExit(3)"), quiet)


def test_a_tool_whose_log_leaves_no_hope_is_stopped():
    endless = replace(step("import time; print('lost', flush=True); time.sleep(60); open('out', 'w')"),
                      hopeless=lambda log: "it is lost" if "lost" in log else "")
    start = time.monotonic()
    with pytest.raises(HopelessError, match="lost"):
        finish(endless, quiet)
    assert time.monotonic() - start < 30
    assert not finished(endless)


def test_an_output_that_is_missing_is_a_failure():
    with pytest.raises(SynthesisError, match="it did not write out"):
        finish(step("pass"), quiet)


def test_a_tool_that_was_killed_is_told_from_one_that_failed():
    with pytest.raises(SynthesisError, match=r"signal 9 \(Killed\)"):
        finish(step("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"), quiet)


def test_an_interruption_ends_the_tool_and_the_next_call_starts_anew(tmp_path):
    marker = tmp_path / "alive"
    slow = ("import time, pathlib\nprint('7. Executing ABC pass', flush=True)\n"
            f"while not pathlib.Path(r'{marker}.go').exists(): pathlib.Path(r'{marker}').touch(); time.sleep(0.02)\n"
            "open('out', 'w').write('done')")

    @contextmanager
    def impatient(title):
        def interrupt(detail):
            assert detail == "abc"
            raise KeyboardInterrupt
        yield interrupt

    with pytest.raises(KeyboardInterrupt):
        finish(step(slow), impatient)
    marker.unlink()
    time.sleep(0.1)
    assert not marker.exists(), "the tool still runs"
    (tmp_path / "alive.go").touch()
    found = finish(step(slow), quiet)
    assert not found.kept
    assert (found.folder / "out").read_text() == "done"


def test_two_processes_run_a_step_once(tmp_path, cache):
    runs = tmp_path / "runs"
    program = f"""
from contextlib import contextmanager
from tilewright.hardware.synthesis.cached_steps import Tool, ToolStep, finish
import sys
@contextmanager
def quiet(title):
    yield lambda detail: None
code = "import time; time.sleep(0.5); open('out', 'w').write('a'); open(r'{runs}', 'a').write('x')"
finish(ToolStep("Counting", Tool("Python", (sys.executable,), "3"), ("-c", code), {{}}, ("out",)), quiet)
"""
    both = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(2)]
    assert [each.wait(60) for each in both] == [0, 0]
    assert runs.read_text() == "x"


HOPS = [
    {"delay": 0.5, "type": "clk-to-q", "from": {"cell": "coprocessor.load.a_TRELLIS_FF_Q"}, "to": {"cell": "x"}},
    {"delay": 2.0, "type": "routing", "from": {"cell": "x"}, "to": {"cell": "y"}},
    {"delay": 0.25, "type": "logic", "from": {"cell": "y"}, "to": {"cell": "y"}},
    {"delay": 1.0, "type": "routing", "from": {"cell": "y"}, "to": {"cell": "z"}},
    {"delay": 0.25, "type": "setup", "from": {"cell": "z"}, "to": {"cell": "coprocessor.store.b_TRELLIS_FF_Q"}},
]


def test_a_path_of_nextpnr_is_logic_and_wire():
    path = critical_path(HOPS, area_block_of_name)
    assert (path.start_block, path.end_block) == ("load", "store")
    assert (path.logic_ns, path.wire_ns, path.cells) == (1.0, 3.0, 1)


def test_of_several_paths_the_longest_between_registers_counts(tmp_path):
    ends = {"posedge clk": HOPS, "<async>": [*HOPS, *HOPS]}
    short = [dict(hop, delay=0.1) for hop in HOPS]
    report = tmp_path / "report.json"
    report.write_text(json.dumps({
        "critical_paths": [{"from": end, "to": end, "path": path} for end, path in ends.items()]
        + [{"from": "posedge clk", "to": "posedge clk", "path": short}],
        "fmax": {"clk": {"achieved": 250.0, "constraint": 80.0}}}))
    timing = timing_of(report, 80.0, area_block_of_name)
    assert timing.fmax_mhz == 250.0
    assert timing.path.wire_ns == 3.0
    report.write_text(json.dumps({"critical_paths": [], "fmax": {}}))
    with pytest.raises(SynthesisError, match="from register to register"):
        timing_of(report, 80.0, area_block_of_name)


STA = """\
Startpoint: coprocessor.load.a_3_DFFPOSX1_Q (rising edge-triggered flip-flop clocked by clk)
Endpoint: coprocessor.store.b_1_DFFPOSX1_Q
          (rising edge-triggered flip-flop clocked by clk)
  0.0000    0.0000   clock clk (rise edge)
  0.5000    0.5000 ^ coprocessor.load.a_3_DFFPOSX1_Q/Q (DFFPOSX1)
  0.2500    0.7500 v u1/Y (INVX1)
            0.7500   data arrival time
 -0.2500  999.7500   library setup time
"""


def test_a_path_of_opensta_counts_its_set_up():
    timing = timing_of_cells(STA, area_block_of_name)
    assert timing.fmax_mhz == pytest.approx(1000.0)
    assert (timing.path.start_block, timing.path.end_block, timing.path.cells) == ("load", "store", 1)
    with pytest.raises(SynthesisError, match=r"reported 'No paths found\.'"):
        timing_of_cells("No paths found.\n", area_block_of_name)
