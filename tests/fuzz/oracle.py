"""The question to every graph: is each tensor that either engine computes what ONNX Runtime computes?

Engine and integer reference must agree in every bit, and so must the outputs of a program that stores nothing else, on
a machine of small buffers. The reference must equal ONNX Runtime's integer tensors in every bit, but behind layers that
say ``exact=False``, and float tensors within the tolerance of `runtime.oracle.comparison`; the counts of the two are
kept apart. Outputs are also compared with a session of the untouched model.
"""

import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest import mock

import numpy as np
import onnx

from tests.fuzz.lost_digits import loses_digits
from tests.support.exactness import inexact_tensors, random_inputs
from tilewright.compiler.channels.whole_tensors import in_model, whole_values
from tilewright.compiler.compile import Compiled, compile_layers, emit_elf
from tilewright.compiler.errors import CompileError
from tilewright.compiler.network.layers import CoreLayer, Network
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.compiler.schedule import bands
from tilewright.compiler.schedule.chaining import computed_together
from tilewright.isa.machine import Machine, MemoryTiming, preset
from tilewright.runtime.compare.layer_report import side_by_side
from tilewright.runtime.compare.three_ways import Divergence
from tilewright.runtime.compared_run import ONNX_RUNTIME_ERRORS
from tilewright.runtime.execution.engines import execute
from tilewright.runtime.execution.job import job_of_compiled
from tilewright.runtime.oracle.conversion import dequantise_output, quantise_input
from tilewright.runtime.oracle.onnx_runtime import Reference, session
from tilewright.tools.progress import Silence

_SMALL = 2048
"""Bytes of activations on the machine for which nothing but outputs is stored."""


@dataclass
class Verdict:
    """Findings about one graph, or many.

    ``exact``, ``loose`` and ``floats`` count elements compared with ONNX Runtime: to the bit; integers that may be a
    level off; floats. ``off`` are the loose integers that are one. ``engine`` counts elements compared between engine
    and integer reference, to the bit. ``mismatches`` are sentences.
    """

    graphs: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)
    layers: Counter[str] = field(default_factory=Counter)
    engine: int = 0
    exact: int = 0
    loose: int = 0
    off: int = 0
    floats: int = 0
    hidden: int = 0
    seconds: float = 0.0
    mismatches: list[str] = field(default_factory=list)

    def add(self, other: "Verdict") -> None:
        """Add another graph's counts."""
        for name in ("graphs", "engine", "exact", "loose", "off", "floats", "hidden", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("refused", "rejected", "operators", "layers"):
            getattr(self, name).update(getattr(other, name))
        self.mismatches += other.mismatches


class _EveryTensor(Reference):
    """The reference, with its float tensors visible too."""

    def __init__(self, model: bytes) -> None:
        super().__init__(model)
        self._names = [output.name for output in self._session.get_outputs()]


@dataclass(frozen=True, slots=True)
class _Theirs:
    """A model, ONNX Runtime's tensors of it by name, and its outputs."""

    model: bytes
    tensors: Mapping[str, np.ndarray]
    outputs: list[np.ndarray]


def judge(model: bytes, *, seed: int = 0, engine: str = "fast", machine: Machine | None = None,
          inputs: Mapping[str, np.ndarray] | None = None) -> tuple[Verdict, dict[str, np.ndarray]]:
    """Compile ``model``, run it once and compare; also return the inputs, which are drawn if not given.

    Any exception but a refusal of the compiler is a mismatch too.
    """
    verdict, given = Verdict(graphs=1), dict(inputs or {})
    try:
        network = compile_network(model)
    except CompileError as error:
        verdict.refused[str(error)] += 1
        return verdict, given
    except Exception as error:  # noqa: BLE001
        verdict.mismatches.append(f"The front end fails with {type(error).__name__}: {error}")
        return verdict, given
    given = given or random_inputs(network, np.random.default_rng(seed))
    try:
        reference = _EveryTensor(model)
        if reference.untrusted:
            verdict.rejected[reference.untrusted] += 1
            return verdict, given
        theirs = reference.run(given)
        outputs = session(model).run([info.onnx_name for info in network.outputs], given)
    except ONNX_RUNTIME_ERRORS as error:
        verdict.rejected[str(error)[:200]] += 1
        return verdict, given
    try:
        _compare(verdict, network, _Theirs(model, theirs, outputs), given, engine, machine or preset("base"))
    except CompileError as error:
        verdict.refused[str(error)] += 1
    except Exception as error:  # noqa: BLE001
        verdict.mismatches.append(f"Compiler or engine fails with {type(error).__name__}: {error}")
    return verdict, given


def _compare(verdict: Verdict, network: Network, theirs: _Theirs, given: Mapping[str, np.ndarray],
             engine: str, machine: Machine) -> None:
    """Compile, run, and compare with ``theirs``."""
    compiled = compile_layers(network, machine, keep_tensors=True)
    tensors = {info.name: quantise_input(info, given[info.onnx_name]) for info in network.inputs}
    job, found = _execute(compiled, tensors, engine)
    _compare_outputs_only(verdict, network, tensors, machine)
    network = compiled.network
    reference = whole_values(run_network(network, tensors), network.tensors)
    network = replace(network, tensors=in_model(network.tensors))
    for name in found:
        verdict.engine += found[name].size
        if not _same(found[name], reference[name]):
            verdict.mismatches.append(f"Engine {engine} differs from the integer reference in tensor {name}")
    compared = side_by_side(network, job, theirs.tensors, reference, found)
    if compared.divergence is not None:
        if reason := _doubt(network, compared.divergence, theirs, reference):
            verdict.rejected[reason] += 1
            return
        verdict.mismatches.append(str(compared.divergence))
    for row, layer in zip(compared.rows, network.layers, strict=False):
        _count(verdict, row, reference[row.tensor])
        verdict.layers[f"core {layer.op}" if isinstance(layer, CoreLayer) else row.kind] += 1
    loose = inexact_tensors(network)
    for info, expected in zip(network.outputs, theirs.outputs, strict=True):
        ours = dequantise_output(info, reference[info.name])
        if (ours.dtype, ours.shape) != (expected.dtype, expected.shape):
            verdict.mismatches.append(f"Output {info.onnx_name} is {ours.dtype} {ours.shape}, and in ONNX Runtime "
                                      f"{expected.dtype} {expected.shape}")
        elif info.name not in loose and not _same(ours, expected):
            verdict.mismatches.append(f"Output {info.onnx_name} differs from ONNX Runtime's of the untouched model")


def _doubt(network: Network, divergence: Divergence, theirs: _Theirs, reference: Mapping[str, np.ndarray]) -> str:
    """Tell why ONNX Runtime is wrong where it differs from the reference, or nothing if it is not known to be."""
    layer = network.layers[divergence.layer]
    if divergence.between[1] != "ONNX Runtime" or not isinstance(layer, CoreLayer):
        return ""
    return loses_digits(onnx.load_from_string(theirs.model), layer.onnx_nodes, theirs.tensors,
                        reference[divergence.tensor])


def _compare_outputs_only(verdict: Verdict, network: Network, tensors: Mapping[str, np.ndarray],
                          machine: Machine) -> None:
    """Compile without keeping tensors, for smaller buffers, and compare the outputs with those of all channels."""
    reference = run_network(network, tensors)
    try:
        with mock.patch.object(bands, "_LEAST", 0):  # groups of small layers too
            compiled = compile_layers(network, replace(machine, name="small buffers", activation_bytes=_SMALL))
    except CompileError:
        return
    grouped = sum(map(len, computed_together(compiled.plans)))
    verdict.layers["banded"] += grouped
    wanted = [info.name for info in network.outputs]
    found = execute(job_of_compiled(compiled, "fuzz"), "fast", tensors, wanted,
                    MemoryTiming.default(machine), steps=Silence()).tensors
    for name in wanted:
        verdict.engine += found[name].size
        if not _same(found[name], reference[name]):
            verdict.mismatches.append(f"Output {name} of the program without other tensors, {grouped} of its layers "
                                      f"taking turns, differs from the integer reference")


def _count(verdict: Verdict, row, tensor: np.ndarray) -> None:
    if row.onnx_runtime == "hidden":
        verdict.hidden += tensor.size
    elif tensor.dtype.kind == "f":
        verdict.floats += tensor.size
    elif row.exact:
        verdict.exact += tensor.size
    else:
        verdict.loose += tensor.size
        verdict.off += row.off


def _same(ours: np.ndarray, theirs: np.ndarray) -> bool:
    return bool(np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f"))


def _execute(compiled: Compiled, tensors: Mapping[str, np.ndarray], engine: str):
    job = job_of_compiled(compiled, "fuzz")
    with tempfile.TemporaryDirectory() as folder:
        if engine == "rtl":
            job = replace(job, elf=emit_elf(compiled, "fuzz.onnx", Path(folder)))
        wanted = [name for name in job.lasting if name in job.tensors]
        timing = MemoryTiming.default(job.machine)
        return job, _complete(compiled, execute(job, engine, tensors, wanted, timing, steps=Silence()).tensors)


def _complete(compiled: Compiled, found: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
    missing = compiled.network.tensors.keys() - found.keys()
    if missing:
        raise AssertionError(f"With every tensor kept, the engine must show all, and lacks {sorted(missing)}")
    return found

