"""The commands ``compile``, ``check``, ``compare`` and ``explore`` as functions, with what they find as their values.

A model may be a file, the name of a built-in model, the bytes of an ONNX or .tflite file, or an ``onnx.ModelProto``. A float model is
quantised as on the command line: with the samples of ``calibrate``, or without them with noise, for a quick look. What
takes long is shown on standard error if that is a terminal.
"""

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tilewright.bench.exploration.exploration import explore as search
from tilewright.bench.exploration.exploration_results import DESIGNS, RunningTable, design_of_trial, point_name
from tilewright.bench.exploration.exploration_study import ExplorationStudy, FinishedTrial
from tilewright.bench.exploration.explored_front import require_front, write_front
from tilewright.bench.exploration.local_workers import LocalWorkers
from tilewright.bench.exploration.request import ExplorationRequest, evaluator_of, setup_of
from tilewright.compiler.compile import compile_file, emit_artefact
from tilewright.compiler.explain import Explanation
from tilewright.compiler.explain import explain as explanation_of
from tilewright.compiler.network.options import BEST, Options
from tilewright.compiler.tflite.mark import EngineName as TfliteName
from tilewright.runtime.check.model_check import Check, check_model
from tilewright.runtime.compare.layer_report import LayerComparison, compare_layers
from tilewright.runtime.design.design import Design
from tilewright.runtime.execution.engines import EngineName
from tilewright.runtime.given_model import GivenMachine, GivenModel, machine_given, model_source
from tilewright.runtime.given_samples import Samples, sample_file
from tilewright.tools.progress import Silence, Steps

__all__ = ["CompiledModel", "ExploredDesign", "ExploredFront", "check", "compare", "compile", "explore"]


@dataclass(frozen=True, slots=True)
class CompiledModel:
    """A compiled model: its folder, which can be given to a session, and its plan.

    Attributes
    ----------
    folder : Path
        Manifest, C, ELF, weights.
    plan : Explanation
        How each layer is computed, and its predicted cost.
    """

    folder: Path
    plan: Explanation


@dataclass(frozen=True, slots=True)
class ExploredDesign:
    """A design of a front.

    Attributes
    ----------
    design : Design
        The design, which can be given to a session as its machine.
    file : Path
        The same design as a design file.
    measures : dict of str to float
        Predicted measures by name: cycles, energy in µJ, area, and more.
    """

    design: Design
    file: Path
    measures: dict[str, float]


@dataclass(frozen=True, slots=True)
class ExploredFront:
    """The Pareto front of an exploration.

    Attributes
    ----------
    folder : Path
        ``trials.csv``, ``front.json``, ``explore.html``, ``designs``.
    trials : int
        Number of designs that were tried.
    designs : tuple of ExploredDesign
        Sorted by the first objective, the smallest first.
    """

    folder: Path
    trials: int
    designs: tuple[ExploredDesign, ...]


def _steps() -> Steps:
    """Return where progress is shown: on standard error, if it is a terminal."""
    return Steps() if sys.stderr.isatty() else Silence()


def compile(model: GivenModel, output: str | Path, machine: GivenMachine = None, *, calibrate: Samples | None = None,
            options: Options = BEST, reference: TfliteName | None = None) -> CompiledModel:
    """Compile a model to a folder with manifest, C, ELF, weights and memory map.

    Parameters
    ----------
    model : path, str, bytes or ModelProto
    output : path
        The folder; an earlier compiled model in it is replaced.
    machine : str, Machine or Design, optional
        Any value of ``--machine``; ``base`` if None.
    calibrate : path, ndarray or mapping of str to ndarray, optional
        Samples to quantise a float model.
    options : Options
        Options of the compiler.
    reference : {"litert", "litert-reference", "tflm"}, optional
        Whose arithmetic a .tflite file is computed in; that of LiteRT's default session if None.

    Warns
    -----
    UserWarning
        If the model was quantised with noise.

    Raises
    ------
    CompileError
        If the model is invalid or not supported.
    InputError
        If the model or machine is unknown, or the folder cannot be written.

    Examples
    --------
    >>> import tempfile, tilewright
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     compiled = tilewright.compile("lenet5", f"{folder}/lenet5", "nano")
    ...     session = tilewright.InferenceSession(compiled.folder)
    >>> [layer.algorithm for layer in compiled.plan.layers]
    ['conv', 'conv', 'conv', 'conv', 'conv']
    >>> [each.name for each in session.get_outputs()]
    ['logits']
    """
    steps = _steps()
    with model_source(model, calibrate, steps, reference) as source:
        if source.quantised is not None and calibrate is None:
            for note in source.notes:
                warnings.warn(note, UserWarning, stacklevel=2)
        with steps.step(f"Compiling {source.path.name}"):
            compiled = compile_file(source.path, machine_given(machine).machine, options=options)
            emit_artefact(compiled, source.path, Path(output))
    return CompiledModel(Path(output), explanation_of(compiled))


def check(model: GivenModel, machine: GivenMachine = None, *, calibrate: Samples | None = None,
          capacity: float | None = None, options: Options = BEST, outputs_only: bool = False,
          reference: TfliteName | None = None) -> Check:
    """Return where each node would run and why, its cost, memory and risks, before anything is built.

    Parameters
    ----------
    model : path, str, bytes or ModelProto
    machine : str, Machine or Design, optional
        Any value of ``--machine``; ``base`` if None.
    calibrate : path, ndarray or mapping of str to ndarray, optional
        Samples to quantise a float model.
    capacity : float, optional
        Size of main memory in MiB; 2 GiB if None.
    options : Options
        Options of the compiler.
    outputs_only : bool
        Predict the cycles of a program that stores only what the network needs, as a compiled model does; otherwise
        those of ``tilewright run``, which stores every tensor to compare it.
    reference : {"litert", "litert-reference", "tflm"}, optional
        Whose arithmetic a .tflite file is computed in; that of LiteRT's default session if None.

    Raises
    ------
    CompileError
        If the model is invalid. Nodes that cannot be compiled raise no error: see ``refusals`` of the result.
    InputError
        If the model or machine is unknown.

    Examples
    --------
    >>> import tilewright
    >>> found = tilewright.check("lenet5", "nano", capacity=1)
    >>> found.compiles, found.memory.fits, len(found.layers)
    (True, True, 5)
    """
    design = machine_given(machine)
    steps = _steps()
    limit = None if capacity is None else int(capacity * (1 << 20))
    with model_source(model, calibrate, steps, reference) as source, steps.step(f"Checking {source.path.name}"):
        return check_model(source, design, limit, options=options, outputs_only=outputs_only)


def compare(model: GivenModel, machine: GivenMachine = None, engine: EngineName = "fast", *,
            inputs: str | Path | Mapping[str, np.ndarray] | None = None,
            calibrate: Samples | None = None, reference: TfliteName | None = None) -> LayerComparison:
    """Compare ONNX Runtime, the integer reference and an engine layer by layer, up to the first difference.

    Parameters
    ----------
    model : path, str, bytes or ModelProto
    machine : str, Machine or Design, optional
        Any value of ``--machine``; ``base`` if None.
    engine : {"fast", "rtl"}
    inputs : path or mapping of str to ndarray, optional
        Input tensors; if None, a suitable input for a built-in model, and seeded random values for others.
    calibrate : path, ndarray or mapping of str to ndarray, optional
        Samples to quantise a float model.
    reference : {"litert", "litert-reference", "tflm"}, optional
        Whose arithmetic a .tflite file is computed in; that of LiteRT's default session if None.

    Raises
    ------
    CompileError
        If the model is invalid or not supported.
    InputError
        If the model or machine is unknown, or the inputs do not fit the model.
    SimulationError
        If the program does not end correctly.

    Examples
    --------
    >>> import tilewright
    >>> found = tilewright.compare("lenet5")
    >>> found.matches, [row.onnx_runtime for row in found.found.rows[:2]]
    (True, ['equal', 'equal'])
    """
    design = machine_given(machine)
    given = nullcontext(None) if inputs is None else sample_file(inputs)
    steps = _steps()
    with model_source(model, calibrate, steps, reference) as source, given as file:
        return compare_layers(source, design.machine, engine, file, memory=design.memory, steps=steps)


def explore(models: str | Path | Sequence[str | Path], output: str | Path, trials: int = 300, *,
            objectives: Sequence[str] = (), limits: Sequence[str] = (), space: str | Path | None = None, seed: int = 0,
            jobs: int | None = 1) -> ExploredFront:
    """Search a space of designs for the Pareto front; the front is predicted, not measured.

    Parameters
    ----------
    models : path, str or sequence of them
        Networks, each as ``MODEL`` or ``MODEL=WEIGHT``.
    output : path
        The folder of the exploration. An interrupted exploration continues; one with enough trials is only read.
    trials : int
        Total number of designs.
    objectives : sequence of str
        Some of cycles, time, energy, area and energy-delay; if empty, those of the space, or cycles and area.
    limits : sequence of str
        Such as ``mult18<=156``.
    space : path, optional
        A space file; if None, machines that an ECP5-85k may hold.
    seed : int
        Seed of the sampler.
    jobs : int or None
        Number of processes; None for one per processor. More than one needs a main module that can be imported.

    Raises
    ------
    InputError
        If a model is unknown, an option cannot be used, or no design is within the limits.

    Examples
    --------
    >>> import tempfile, tilewright
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     front = tilewright.explore("lenet5", folder, trials=4, limits=["mult18<=156"])
    >>> front.trials, sorted(front.designs[0].measures)[:2]
    (4, ['area', 'bram'])
    """
    named = (models,) if isinstance(models, str | Path) else tuple(models)
    setup, weights = setup_of(ExplorationRequest(
        models=tuple(map(str, named)), space=None if space is None else Path(space), objectives=objectives,
        limits=limits, seed=seed))
    steps = _steps()
    evaluator = evaluator_of(setup, weights, steps)
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    study = ExplorationStudy(folder, setup)
    try:
        missing = trials - len(study.finished())
        if missing > 0:
            workers = LocalWorkers(evaluator, min(missing, jobs or os.cpu_count() or 1))
            _try_designs(study, workers, trials, RunningTable(folder, study), steps)
        write_front(study, evaluator, folder, "tilewright.explore")
        require_front(study)
        return _front(study, folder)
    finally:
        study.close()


def _try_designs(study: ExplorationStudy, workers: LocalWorkers, trials: int, table: RunningTable, steps: Steps) -> None:
    """Let workers evaluate designs until there are as many as wanted; the table is written meanwhile."""
    try:
        with steps.count("Exploring", trials - len(study.finished())) as finished:
            def show(_: FinishedTrial) -> None:
                finished()
                table.finished()

            search(study, workers, trials, show)
    finally:
        workers.close()


def _front(study: ExplorationStudy, folder: Path) -> ExploredFront:
    """Return the front of what is in the folder."""
    setup = study.setup
    designs = (ExploredDesign(design_of_trial(setup, each),
                              folder / DESIGNS / f"{point_name(setup, each.number)}.toml", each.outcome.measures)
               for each in study.front())
    return ExploredFront(folder, len(study.finished()), tuple(designs))
