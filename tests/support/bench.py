"""Run a cocotb test module on the Verilator model of an Amaranth component, from a pytest test."""

import fcntl
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from xml.etree import ElementTree

import pytest
from amaranth.lib.wiring import Component
from cocotb_tools.config import libs_dir
from cocotb_tools.runner import get_runner

from tilewright.sim.verilator.runtime_library import library_compiled_meanwhile
from tilewright.sim.verilog.elaborate import verilog
from tilewright.tools.files import write_if_changed
from tilewright.tools.toolchain import cache_folder, verilator_environment

ROOT = Path(__file__).parents[2]
LOG_LINES = 60  # of the simulation's log, shown when it dies

# The runner makes every signal public, which costs a factor of four in speed; only the ports are touched.
LIBRARY = ("verilated", "verilated_dpi", "verilated_vpi", "verilated_threads")
"""Verilator's own objects in a model with VPI and without waveforms: the same for every model, and most of its time."""

BUILD_ARGUMENTS = ("--no-public-flat-rw", "-Wno-fatal", "-O3", "--x-assign", "fast", "--noassert")


class BenchFailedError(AssertionError):
    """Tests in a cocotb module failed, or the simulation died; the message names them."""


def run_bench(
    component: Component | str,
    *,
    module: str,
    toplevel: str,
    sources: Sequence[Path] = (),
    environment: Mapping[str, object] | None = None,
    seed: int = 0,
) -> None:
    """Run every cocotb test of ``module`` on ``component``, or on Verilog with the module ``toplevel``.

    The testbench sees the ports (``clk``, ``rst`` and the signature's members joined by ``__``) and nothing
    else. Models are kept in the cache by a hash of their Verilog, so that a second run only simulates. With
    ``TILEWRIGHT_WAVES`` naming a folder, each run leaves its log and ``dump.vcd`` in a new folder there.

    Parameters
    ----------
    module
        Import path of the cocotb tests, such as ``tests.cocotb.bench_axi``.
    toplevel
        Name for the top Verilog module.
    sources
        Verilog files with the modules that the component instantiates and does not contain.
    environment
        Variables for the tests (read with ``os.environ``); values are turned to text.
    seed
        Value of ``cocotb.RANDOM_SEED``, with which cocotb seeds ``random`` before each test.

    Raises
    ------
    BenchFailedError
        If a cocotb test fails, there is none, or the simulation ends without results.
    """
    __tracebackhide__ = True
    waves = os.environ.get("TILEWRIGHT_WAVES")
    with _tool_environment():
        made = component if isinstance(component, str) else verilog(component, toplevel)
        text = "\n".join([made, *(path.read_text() for path in sources)])
        folder = _build(text, toplevel, waves=bool(waves))
        if waves:
            Path(waves).mkdir(parents=True, exist_ok=True)
        run_folder = Path(tempfile.mkdtemp(prefix=f"{toplevel}-", dir=waves))
        try:
            runner = get_runner("verilator")
            results, log = run_folder / "results.xml", run_folder / "simulation.log"
            try:
                runner.test(
                    test_module=module,
                    hdl_toplevel=toplevel,
                    hdl_toplevel_lang="verilog",
                    build_dir=folder,
                    test_dir=run_folder,
                    results_xml=str(results),
                    log_file=log,
                    waves=bool(waves),
                    seed=seed,
                    extra_env={name: str(value) for name, value in (environment or {}).items()},
                )
            except RuntimeError as error:  # the runner's answer to a simulator that ends with an error
                if not results.exists():
                    raise BenchFailedError(f"{module}: the simulation died.\n{_tail(log)}") from error
            if failures := _failures(results):
                raise BenchFailedError(f"{module}: {'; '.join(failures)}\n{_tail(log)}")
        finally:
            if not waves:
                shutil.rmtree(run_folder)


@contextmanager
def _tool_environment() -> Iterator[None]:
    """Let the runner, which reads ``os.environ`` and ``sys.path``, find Verilator and this repository."""
    with pytest.MonkeyPatch.context() as patch:
        # Under pytest the runner would end the process on a failed test instead of returning its results.
        # WAVES and GUI would change the build behind the hash's back.
        for name in ("PYTEST_CURRENT_TEST", "WAVES", "GUI"):
            patch.delenv(name, raising=False)
        for name, value in verilator_environment().items():
            patch.setenv(name, value)
        # A model of the cache may have been linked with the cocotb of an environment that is gone.
        patch.setenv("LD_LIBRARY_PATH", str(libs_dir), prepend=os.pathsep)
        patch.syspath_prepend(str(ROOT))
        yield


def _build(text: str, toplevel: str, *, waves: bool) -> Path:
    """Return the folder with the model of ``text``, built now or by an earlier run."""
    control = _public_ports(text, toplevel)
    tools = f"{version('verilator')} {version('cocotb')}"
    key = hashlib.sha256("\0".join((text, control, tools, str(waves), *BUILD_ARGUMENTS)).encode()).hexdigest()
    home = cache_folder() / "bench"
    built, draft = home / key, home / f"{key}.draft"
    home.mkdir(exist_ok=True)
    with open(home / f"{key}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one process builds, the others wait for it
        if not built.exists():
            shutil.rmtree(draft, ignore_errors=True)  # left by a build that was stopped
            write_if_changed(draft / f"{toplevel}.v", text)
            write_if_changed(draft / "ports.vlt", control)
            _compile(draft, toplevel, waves=waves)
            draft.rename(built)
    return built


def _compile(folder: Path, toplevel: str, *, waves: bool) -> None:
    log = folder / "build.log"
    with pytest.MonkeyPatch.context() as patch:
        if not waves and (library := _library(folder)):
            # The runner calls make without arguments of ours. The model's makefile then compiles no object of the
            # library, and links these.
            patch.setenv("MAKEFLAGS", f"{os.environ['MAKEFLAGS']} VM_GLOBAL_FAST=")
            patch.setenv("LOADLIBES", " ".join(map(str, library)))
        try:
            get_runner("verilator").build(
                sources=[folder / "ports.vlt", folder / f"{toplevel}.v"],
                hdl_toplevel=toplevel,
                build_dir=folder,
                build_args=list(BUILD_ARGUMENTS),
                timescale=("1ns", "1ps"),
                waves=waves,
                log_file=log,
            )
        except RuntimeError as error:
            raise BenchFailedError(f"Verilator could not build {toplevel}.\n{_tail(log)}") from error
    shutil.rmtree(folder / "library", ignore_errors=True)


def _library(folder: Path) -> list[Path]:
    """Return Verilator's own objects, compiled once for all models; none if they do not compile."""
    made = folder / "library"
    with library_compiled_meanwhile(made, "", LIBRARY):
        pass
    found = [made / f"{name}.o" for name in LIBRARY]
    return found if all(path.exists() for path in found) else []


def _public_ports(text: str, toplevel: str) -> str:
    """Return a Verilator control file that makes the ports of ``toplevel`` public, and nothing else."""
    found = re.search(rf"^module {toplevel} ?\((.*?)\);(.*?)^endmodule", re.sub("//.*", "", text),
                      re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError(f"Verilog text must have a module {toplevel!r} with a list of ports")
    ports = [each.split() for each in found[1].split(",")]  # declared there or below
    inputs = {port[-1] for port in ports if port[0] == "input"} | set(
        re.findall(r"^\s*input\s+(?:signed\s+)?(?:\[[^]]*\]\s*)?(\w+)\s*;", found[2], re.MULTILINE))
    lines = ["`verilator_config"]
    for *_, port in ports:
        access = "public_flat_rw" if port in inputs else "public_flat_rd"
        lines.append(f'{access} -module "{toplevel}" -var "{port}"')
    return "\n".join(lines) + "\n"


def _failures(results: Path) -> list[str]:
    """Return one phrase for each failed test in a JUnit file; a file without tests is a failure too."""
    cases = list(ElementTree.parse(results).getroot().iter("testcase"))
    if not cases:
        return ["no cocotb tests were found"]
    failures = []
    for case in cases:
        for problem in [*case.findall("failure"), *case.findall("error")]:
            reason = (problem.get("message") or problem.get("error_msg") or "").strip()
            failures.append(f"{case.get('name')} failed: {reason}")
    return failures


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n".join(lines[-LOG_LINES:])
