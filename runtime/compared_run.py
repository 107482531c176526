"""Run a model once and compare the result with ONNX Runtime, for the command line."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tilewright.compiler.explain import Explanation
from tilewright.compiler.network.layers import TensorInfo
from tilewright.compiler.network.memory_map import root_of
from tilewright.compiler.network.options import BEST, Options
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.errors import InputError
from tilewright.isa.core_names import HOST_CORE, CoreName
from tilewright.isa.machine import Machine
from tilewright.runtime.baseline.core_alone import BaselineResult, run_baseline
from tilewright.runtime.batches import feeds
from tilewright.runtime.changes_by_session import changes_said
from tilewright.runtime.execution.engines import EngineName, show_rate
from tilewright.runtime.execution.job import Job
from tilewright.runtime.execution.report import Report
from tilewright.runtime.float_remarks import float_remarks, slower_remarks
from tilewright.runtime.model_source import ModelSource, choose_inputs
from tilewright.runtime.oracle.comparison import (
    NOT_STORED,
    Comparison,
    Difference,
    Output,
    compare,
    compare_outputs,
)
from tilewright.runtime.oracle.conversion import quantise_input
from tilewright.runtime.oracle.expected_tensors import of_batch
from tilewright.runtime.oracle.inputs import Inputs, node_arg
from tilewright.runtime.oracle.onnx_runtime import ONNX_RUNTIME_ERRORS, Reference
from tilewright.runtime.oracle.own_floats import far_sentence, own_differences
from tilewright.runtime.oracle.unfused import unfused_sentence
from tilewright.runtime.oracle.value_ranges import TensorStatistics, tensor_statistics
from tilewright.runtime.run_options import DEFAULT_RUN, RunOptions
from tilewright.runtime.session import InferenceSession
from tilewright.runtime.state_pairs import state_sentences
from tilewright.sim.timing.command_times import CommandTimes
from tilewright.sim.verilator.build import build_simulator
from tilewright.sim.waves.wave import Wave
from tilewright.tools.files import reason
from tilewright.tools.progress import Steps

__all__ = [
    "ComparedRun", "Expected", "model_outputs", "public_outputs", "require_folder", "run_artefact", "run_model",
    "run_model_alone", "run_reference", "run_references", "run_session",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    """A run's report, its comparison with the reference, its outputs by name, the values of its tensors, and a plan.

    The plan is there if the model was compiled now. ``job`` is what was run, if it was run as a whole, and ``times``
    are those of its commands then: measured on engine ``rtl``, else predicted.
    """

    report: Report
    comparison: Comparison
    outputs: dict[str, np.ndarray]
    statistics: tuple[TensorStatistics, ...]
    explanation: Explanation | None = None
    job: Job | None = None
    times: CommandTimes | None = None


def run_session(session: InferenceSession, source: ModelSource, input_file: Path | None, steps: Steps,
                wave: Wave | None = None) -> ComparedRun:
    """Run ``session`` once and compare every tensor it kept with ONNX Runtime's of the same model.

    Raises
    ------
    InputError
        If the input file does not hold the model's inputs.
    SimulationError
        If the program does not end correctly.
    """
    inputs = choose_inputs(session.quantised_inputs, source, input_file, session.job.unread, session.job.defaults,
                           session.pairs)
    inputs, differs = _behind_a_call(session, source.path, inputs, given=input_file is not None)
    outputs = session.run(None, inputs.arrays, wave=wave)
    with steps.step("Comparing with ONNX Runtime"):
        given = feeds(inputs.arrays, session.batch)
        expected = run_references(source.path, given)
        far = far_sentence(own_differences(source.path, given[0], expected[0].tensors))
        computed = dict(zip([output.name for output in session.get_outputs()], outputs, strict=True))
        comparison = _compared(session, computed, expected)
        comparison = replace(comparison, difference=differs or comparison.difference)
        changes = changes_said(source, feeds(inputs.arrays, session.batch)[0],
                               model_outputs(session.quantised_outputs, computed, ()),
                               public_outputs(computed, expected[:1]))
    report = replace(session.report, matches_reference=comparison.matches, judged=comparison.of_layers,
                     judged_outputs=comparison.of_outputs,
                     notes=(*source.notes, *float_remarks(source, session.report.layers), *changes,
                            *state_sentences(session.pairs, session.quantised_inputs), *session.kept,
                            f"input: {inputs.origin}",
                            *expected[0].notes, *far, str(comparison)))
    return ComparedRun(report=report, comparison=comparison, outputs=computed,
                       statistics=tensor_statistics(session.layers, session.tensors, session.zero_points),
                       job=session.job, times=session.times)


def _behind_a_call(session: InferenceSession, model: Path, inputs: Inputs, *,
                   given: bool) -> tuple[Inputs, Difference | None]:
    """Return the inputs of a call behind one from the start of the state, and where that one differs; run it.

    A state that is ``given`` in a file is the start.
    """
    if not session.pairs:
        if session.job.opening is not None:
            session.run(None, inputs.arrays)
            inputs = replace(inputs, origin=f"{inputs.origin}, in the second of two calls")
        return inputs, None
    session.reset()
    start = session.state | inputs.arrays if given else inputs.arrays | session.state
    outputs = dict(zip([each.name for each in session.get_outputs()], session.run(None, start), strict=True))
    expected = run_references(model, [start])
    nothing = Comparison.of_nothing(session.layers, NOT_STORED)
    found = compare_outputs(model_outputs(session.quantised_outputs, outputs, session.inexact),
                            public_outputs(outputs, expected), nothing)
    origin = f"{inputs.origin}, in the second of two calls, with the state that the first has left"
    return Inputs(inputs.arrays | session.state, origin), found.difference


def _compared(session: InferenceSession, outputs: Mapping[str, np.ndarray],
              expected: Sequence["Expected"]) -> Comparison:
    """Compare every tensor kept, and every output of the model, by its own name."""
    reference = of_batch([each.tensors for each in expected], session.tensor_infos)
    found = compare(session.layers, session.tensors, reference, session.inexact, expected[0].untrusted)
    return compare_outputs(model_outputs(session.quantised_outputs, outputs, session.inexact),
                           public_outputs(outputs, expected), found)


def model_outputs(infos: Sequence[TensorInfo], outputs: Mapping[str, np.ndarray],
                  inexact: Collection[str]) -> list[Output]:
    """Return the model's ``outputs`` as they are compared; ``infos`` are the tensors that they are made of."""
    found = {}
    for info in infos:
        name = node_arg(info).name
        if name in outputs:
            levels = info.dtype == "int8" and info.onnx_dtype == "float32"
            found[name] = Output(name, root_of(info), _widened(outputs[name]), float(info.scale) if levels else None,
                                 bool({info.name, root_of(info)} & set(inexact)))
    return [found.get(name) or Output(name, name, _widened(value), loose=bool(inexact))
            for name, value in outputs.items()]


def public_outputs(outputs: Mapping[str, np.ndarray], expected: Sequence["Expected"]) -> dict[str, np.ndarray]:
    """Return ONNX Runtime's values of our ``outputs``, of their types; those of a batch, image by image, joined."""
    found = {name: expected[0].tensors[name] if len(expected) == 1 else
             np.concatenate([np.atleast_1d(each.tensors[name]) for each in expected])
             for name in outputs if all(name in each.tensors for each in expected)}
    return {name: _widened(value.astype(outputs[name].dtype)) for name, value in found.items()}


def _widened(array: np.ndarray) -> np.ndarray:
    """Return half floats as float32, and others as they are."""
    return array.astype(np.float32) if array.dtype == np.float16 else array


@dataclass(frozen=True, slots=True)
class Expected:
    """ONNX Runtime's tensors by name; none, and ``untrusted`` says why, where it cannot be compared with.

    ``notes`` say what is special about how they were computed.
    """

    tensors: dict[str, np.ndarray]
    untrusted: str = ""
    notes: tuple[str, ...] = ()


def run_reference(model: Path, inputs: Mapping[str, np.ndarray], floats: Collection[str] = ()) -> Expected:
    """Return the tensors that `runtime.oracle.onnx_runtime` computes: integers, outputs, and its ``floats``.

    Raises
    ------
    InputError
        If ONNX Runtime refuses the model, as when its opset is newer than the one installed.
    """
    (found,) = run_references(model, [inputs], floats)
    return found


def run_references(model: Path, feeds: Sequence[Mapping[str, np.ndarray]],
                   floats: Collection[str] = ()) -> list[Expected]:
    """Return the result of :func:`run_reference` for each of ``feeds``; the model is read once.

    Raises
    ------
    InputError
        If ONNX Runtime refuses the model, as when its opset is newer than the one installed.
    """
    try:
        reference = Reference(model, floats)
        notes = (unfused_sentence(reference.unfused),) if reference.unfused else ()
        return [Expected({}, reference.untrusted, notes) if reference.untrusted else
                Expected(reference.run(each), notes=notes) for each in feeds]
    except ONNX_RUNTIME_ERRORS as error:
        raise InputError(f"Model {model.name!r} cannot be compared, because ONNX Runtime rejects it: "
                         f"{reason(error)}") from error


def run_model(source: ModelSource, machine: Machine, engine: EngineName, input_file: Path | None,
              *, options: Options = BEST, wave: Wave | None = None, run: RunOptions = DEFAULT_RUN) -> ComparedRun:
    """Compile a model with every tensor kept, unless ``run`` says otherwise, and run it; see :func:`run_session`."""
    with run.steps.step(f"Compiling {source.path.name}"):
        session = InferenceSession(source.path, machine, engine, keep_tensors=not run.outputs_only, options=options,
                                   run_options=run)
        session.carry(source.state)
    compared = run_session(session, source, input_file, run.steps, wave)
    slower = slower_remarks(source, compared.report.cycles, machine, run.memory, options, outputs_only=run.outputs_only)
    notes = *compared.report.notes, *slower, *session.explanation.notes
    if run.outputs_only:
        notes = *notes, "tensors between layers were not stored, so only outputs were compared"
    return replace(compared, report=replace(compared.report, notes=notes), explanation=session.explanation)


def run_artefact(folder: Path, engine: EngineName, input_file: Path | None, *, wave: Wave | None = None,
                 run: RunOptions = DEFAULT_RUN) -> ComparedRun:
    """Run a compiled model and hold it to the ONNX file it was compiled from; see :func:`run_session`."""
    session = InferenceSession(require_folder(folder), engine=engine, run_options=run)
    return run_session(session, ModelSource.of(folder / "model.onnx"), input_file, run.steps, wave)


def require_folder(folder: Path) -> Path:
    """Return ``folder`` if it is one.

    Raises
    ------
    InputError
        If it is not.
    """
    if not folder.is_dir():
        raise InputError(f"Compiled model must be a folder written by `tilewright compile`, not {str(folder)!r}")
    return folder


def run_model_alone(source: ModelSource, input_file: Path | None, *, core: CoreName = HOST_CORE,
                    steps: Steps) -> BaselineResult:
    """Run a model as C on a core alone, with the inputs that :func:`run_model` would take.

    See :func:`runtime.baseline.core_alone.run_baseline`, which runs large networks in parts.

    Raises
    ------
    CompileError
        If the model is invalid or not supported.
    InputError
        If the input file does not hold the model's inputs.
    SimulationError
        If the program does not end correctly.
    """
    network = compile_network(source.path)
    arrays = choose_inputs(network.inputs, source, input_file, network.unread, network.defaults).arrays
    tensors = {info.name: quantise_input(info, arrays[node_arg(info).name]) for info in network.inputs}
    with steps.step(f"Building the simulator of {core} alone"):
        build_simulator(None, core=core)
    with steps.step(f"Simulating {source.path.stem} in C on {core}") as show:
        return run_baseline(network, tensors, core=core, progress=show_rate(show))
