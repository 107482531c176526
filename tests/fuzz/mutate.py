"""Damaged files, many of them: ``python -m tests.fuzz.mutate --mutants 20000 --jobs 1 --seed 0``.

Each mutant of a valid ONNX file is compiled, each of a compiled model's folder loaded and, if it is short, run: in a
process with a limit of time and of memory. What may come of it is success or one of the project's own errors with a
sentence; a traceback, a hang or the end of the process is a finding, saved in tests/fuzz/corpus/damaged.
Exit status 1 if there was one.
"""

import argparse
import importlib
import itertools
import json
import multiprocessing
import multiprocessing.connection
import os
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import onnx

import tilewright.models
from tests.fuzz.mutations import damaged_bytes, damaged_json, damaged_model
from tests.fuzz.run import graph_of
from tilewright.compiler.compile import compile_layers, emit_artefact
from tilewright.compiler.emit.artefact import FILES, load_artefact
from tilewright.compiler.emit.manifest import ArtefactError, sha256
from tilewright.compiler.errors import CompileError, UnsupportedNodeError
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.errors import InputError, SimulationError
from tilewright.isa.encoding import EncodingError
from tilewright.isa.machine import preset
from tilewright.isa.program import Program
from tilewright.runtime.check.model_check import check_model
from tilewright.runtime.design.design import Design
from tilewright.runtime.execution.job import job_of_artefact
from tilewright.runtime.model_source import ModelSource
from tilewright.runtime.oracle.inputs import random_inputs
from tilewright.runtime.session import InferenceSession

DAMAGED = Path(__file__).parent / "corpus" / "damaged"

LENET = Path(tilewright.models.__file__).parent / "lenet5.onnx"

WORKER = "tests.fuzz.mutate"
"""Module whose ``run_mutant`` is run in the processes with limits."""

SECONDS = 10
"""Of a processor: what takes longer is a hang, however busy the machine is."""

STUCK_SECONDS = 90
"""By the clock: what waits takes no processor."""

MEMORY_BYTES = 2 << 30
SENTENCE = 4000
"""Longest message of an error, in characters: names in it are the model's."""

_ERRORS = (CompileError, ArtefactError, InputError, SimulationError)
_SEEDS = 24
_SHORT = 3000
_KINDS = ("model", "model", "model", "bytes", "artefact", "artefact")


@dataclass
class Findings:
    """Outcomes by kind of mutant, and what must not be."""

    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)


def kind_of(number: int) -> str:
    """Return what mutant ``number`` is a mutant of."""
    return _KINDS[number % len(_KINDS)]


@cache
def _model(index: int) -> onnx.ModelProto:
    forms = ("qdq", "qoperator", "static", "float")
    if index == 0:
        return onnx.load(LENET)
    return graph_of(90_000 + index, forms[index % len(forms)]).model


def model_mutant(seed: int, number: int) -> bytes:
    """Return mutant ``number`` of a valid model."""
    rng = np.random.default_rng((seed, number))
    index = int(rng.integers(_SEEDS))
    if kind_of(number) == "model":
        return damaged_model(_model(index), rng)
    other = _model(int(rng.integers(_SEEDS)))
    return damaged_bytes(_model(index).SerializeToString(), other.SerializeToString(), rng)


# ---- what is done with a mutant


def try_model(data: bytes, folder: Path, number: int) -> str:
    """Compile a model, some by way of ``check``; return the outcome, or raise what must not be raised."""
    try:
        if number % 10 == 0:
            path = folder / "mutant.onnx"
            path.write_bytes(data)
            found = check_model(ModelSource(path), Design(machine=preset("base")))
            return "checked" if found.compiles else "refused by check"
        compile_layers(compile_network(data), preset("base"))
    except _ERRORS as error:
        return _refused(error)
    return "compiled"


def try_artefact(folder: Path) -> str:
    """Load a compiled model and run it, if it is short."""
    try:
        artefact = load_artefact(folder)
        job = job_of_artefact(artefact)
        if not _is_short(artefact.program):
            return "loaded"
        InferenceSession(folder).run(None, random_inputs(job.inputs).arrays)
    except _ERRORS as error:
        return _refused(error)
    return "loaded and run"


def _is_short(program: Program) -> bool:
    try:
        return sum(1 for _ in itertools.islice(program.commands(), _SHORT)) < _SHORT
    except EncodingError:
        return True     # it ends there


def _refused(error: Exception) -> str:
    text = str(error)
    if not text or "Traceback" in text or len(text) > SENTENCE or text.count("\n") > 1:
        raise AssertionError(f"{type(error).__name__} must say one sentence, not {text!r:.300}")
    # Worth nothing to the reader if the sentence is only the exception's.
    return "UnsupportedNodeError" if isinstance(error, UnsupportedNodeError) else type(error).__name__


def artefact_mutant(seed: int, number: int, whole: Path, target: Path) -> None:
    """Write a damaged copy of the compiled model in ``whole`` to ``target``.

    Mostly the manifest's hash of a damaged file is made right again: what hashes find is soon found.
    """
    rng = np.random.default_rng((seed, number))
    target.mkdir()
    for path in whole.iterdir():
        (target / path.name).write_bytes(path.read_bytes())
    name = str(rng.choice(["manifest.json", "manifest.json", "program.json", "program.json", *FILES]))
    path = target / name
    if path.suffix == ".json" and rng.random() < 0.8:
        path.write_bytes(damaged_json(path.read_bytes(), rng))
    else:
        path.write_bytes(damaged_bytes(path.read_bytes(), (whole / "program.json").read_bytes(), rng))
    if name != "manifest.json" and rng.random() < 0.8:
        manifest = json.loads((target / "manifest.json").read_text())
        manifest["files"][name] = sha256(path)
        (target / "manifest.json").write_text(json.dumps(manifest))


@cache
def _artefacts(folder: Path) -> tuple[Path, ...]:
    """Compile a few models to ``folder``: of either form, with layers of the host core among them."""
    paths = []
    for index, form in enumerate(("qdq", "qoperator", "qdq", "static")):
        source = folder / f"source{index}.onnx"
        source.write_bytes(graph_of(70_000 + index, form).model.SerializeToString())
        compiled = compile_layers(compile_network(source), preset("base"))
        paths.append(emit_artefact(compiled, source, folder / f"artefact{index}").folder)
    return tuple(paths)


def run_mutant(seed: int, number: int, folder: Path) -> str:
    """Make mutant ``number`` and try it."""
    kind = kind_of(number)
    if kind != "artefact":
        return f"{kind}: {try_model(model_mutant(seed, number), folder, number)}"
    wholes = _artefacts(folder)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        artefact_mutant(seed, number, wholes[number % len(wholes)], Path(scratch, "mutant"))
        return f"{kind}: {try_artefact(Path(scratch, 'mutant'))}"


# ---- processes with limits


def _worker(pipe: multiprocessing.connection.Connection, seed: int, module: str) -> None:
    run = importlib.import_module(module).run_mutant
    with tempfile.TemporaryDirectory(prefix="tilewright-fuzz-") as scratch:
        folder = Path(scratch)
        _artefacts(folder)
        # What numbers overflow must be refused or computed, not printed.
        warnings.simplefilter("error", RuntimeWarning)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, resource.RLIM_INFINITY))
        pipe.send(("ready", ""))
        while (number := pipe.recv()) is not None:
            try:
                pipe.send((run(seed, number, folder), ""))
            except BaseException as error:  # noqa: BLE001
                where = traceback.extract_tb(error.__traceback__)[-1]
                own = [each for each in traceback.extract_tb(error.__traceback__) if "/site-packages/" not in
                       each.filename][-1]
                pipe.send(("finding", (f"{type(error).__name__} at {Path(own.filename).name}:{own.lineno} "
                                       f"({Path(where.filename).name}:{where.lineno}): {str(error)[:300]}")))


class _Process:
    """One worker, replaced when it hangs or dies."""

    def __init__(self, seed: int, module: str) -> None:
        self.seed, self.module = seed, module
        self.number: int | None = None
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("forkserver")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_worker, args=(theirs, self.seed, self.module), daemon=True)
        self.process.start()
        theirs.close()
        self.pipe.recv()

    def give(self, number: int) -> None:
        """Let it try mutant ``number``."""
        self.number, self.deadline = number, time.monotonic() + STUCK_SECONDS
        self.allowed = self._processor_seconds() + SECONDS
        self.pipe.send(number)

    def _processor_seconds(self) -> float:
        """Return what the worker has taken of a processor so far; 0 if it has ended."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")  # utime and stime, proc(5)

    def take(self) -> tuple[str, str] | None:
        """Return outcome and finding, or None if it is still at it."""
        try:
            if self.pipe.poll():
                return self.pipe.recv()
        except (EOFError, ConnectionResetError):
            self.process.join()
            code = self.process.exitcode
            self._start()
            return "finding", f"The process died with exit code {code}"
        if time.monotonic() < self.deadline and self._processor_seconds() < self.allowed:
            return None
        what = f"{STUCK_SECONDS} s" if time.monotonic() >= self.deadline else f"{SECONDS} s of a processor"
        self.process.kill()
        self.process.join()
        self._start()
        return "finding", f"No end after {what}"

    def stop(self) -> None:
        """Let it go."""
        self.pipe.send(None)
        self.process.join(SECONDS)


def mutants(seed: int, numbers: Sequence[int], jobs: int, module: str = "") -> Iterator[tuple[int, str, str]]:
    """Try mutants in limited processes, of ``WORKER`` or another module; yield number, outcome, and what is wrong."""
    waiting = iter(numbers)
    processes = [_Process(seed, module or WORKER) for _ in range(jobs)]
    busy: list[_Process] = []
    for process in processes:
        if (number := next(waiting, None)) is not None:
            process.give(number)
            busy.append(process)
    while busy:
        multiprocessing.connection.wait([process.pipe for process in busy], timeout=0.2)
        for process in list(busy):
            result = process.take()
            if result is None:
                continue
            assert process.number is not None
            yield process.number, *result
            if (number := next(waiting, None)) is None:
                busy.remove(process)
            else:
                process.give(number)
    for process in processes:
        process.stop()


def save(seed: int, number: int) -> Path | None:
    """Save the mutant of a model for the tests."""
    if kind_of(number) == "artefact":
        return None
    DAMAGED.mkdir(parents=True, exist_ok=True)
    path = DAMAGED / f"{seed}-{number}.onnx"
    path.write_bytes(model_mutant(seed, number))
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.mutate", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mutants", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    found, start = Findings(), time.monotonic()
    for number, outcome, wrong in mutants(given.seed, range(given.first, given.first + given.mutants), given.jobs):
        found.outcomes[outcome] += 1
        if wrong:
            path = save(given.seed, number)
            found.findings.append(f"mutant {number} ({kind_of(number)}): {wrong}; {path or 'not saved'}")
            print(f"\r{found.findings[-1]}", file=sys.stderr, flush=True)
        if sys.stderr.isatty():
            print(f"\r{sum(found.outcomes.values())} mutants", end="", file=sys.stderr)
    seconds = time.monotonic() - start
    total = sum(found.outcomes.values())
    print(f"{total:,} mutants in {seconds:,.0f} s ({total / seconds:.1f} a second)")
    for outcome, count in sorted(found.outcomes.items()):
        print(f"  {count:7,} {outcome}")
    print(f"{len(found.findings)} findings")
    return 1 if found.findings else 0


if __name__ == "__main__":
    sys.exit(main())
