"""A model ready to run, with ONNX Runtime's interface: ``InferenceSession``."""

import shutil
import tempfile
import warnings
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tilewright.compiler.channels.whole_tensors import in_model
from tilewright.compiler.compile import Compiled, compile_file, emit_artefact
from tilewright.compiler.emit.artefact import load_artefact
from tilewright.compiler.explain import Explanation, explain
from tilewright.compiler.network.layers import CoreLayer, TensorInfo
from tilewright.compiler.network.memory_map import words_of
from tilewright.compiler.network.options import BEST, Options
from tilewright.energy.pricing import DEFAULT
from tilewright.errors import FloatOnCoreWarning, InputError, SimulationError
from tilewright.isa.command_port import PORT_OF
from tilewright.isa.core_names import HOST_CORE
from tilewright.isa.extension import extension_of
from tilewright.isa.machine import MemoryTiming
from tilewright.runtime.batches import batch_size, images_of, require_batches, stacked
from tilewright.runtime.design.design import Design
from tilewright.runtime.execution.accounting import account
from tilewright.runtime.execution.engines import ENGINES, EngineName, execute
from tilewright.runtime.execution.job import Job, job_of_artefact, job_of_compiled
from tilewright.runtime.execution.later_calls import kept_sentences, later_call
from tilewright.runtime.execution.report import Report
from tilewright.runtime.given_model import (
    GivenMachine,
    GivenModel,
    ModelProto,
    design_given,
    file_content,
    machine_given,
    named_path,
)
from tilewright.runtime.given_samples import Samples, sample_file
from tilewright.runtime.model_source import find_model, require_tflite
from tilewright.runtime.oracle.conversion import dequantise_output, is_raw, quantise_input
from tilewright.runtime.oracle.expected_tensors import inexact_tensors
from tilewright.runtime.oracle.inputs import NodeArg, check_inputs, node_arg, node_args
from tilewright.runtime.run_options import DEFAULT_RUN, RunOptions
from tilewright.runtime.standard_file import standard_file
from tilewright.runtime.state_pairs import check_state, first_state
from tilewright.sim.timing.command_times import CommandTimes
from tilewright.sim.values.operand_samples import OperandToggles
from tilewright.sim.waves.wave import Wave
from tilewright.tools.progress import Silence
from tilewright.tools.templates import render

__all__ = ["InferenceSession", "SessionArg"]

_ONNX_RUNTIME = {"sess_options", "providers", "provider_options"}
"""Arguments of ONNX Runtime's session that mean nothing here."""

_PAGE = Path(__file__).with_name("session.html.j2")


@dataclass(frozen=True, slots=True)
class SessionArg:
    """An input or output of a model, in the form of ONNX Runtime's sessions.

    Attributes
    ----------
    name : str
    shape : list of int
        Including the batch.
    type : str
        Such as ``tensor(float)``.
    """

    name: str
    shape: list[int]
    type: str


class InferenceSession:
    """A model on a machine.

    Parameters
    ----------
    model : path, bytes or ModelProto
        An ONNX file (int8, QDQ or QOperator, or float), a .tflite file, or the content of either, the name of a
        built-in model, or a folder written by ``tilewright compile``.
    machine : str, Machine or Design, optional
        Parameters of the machine; or any value of ``--machine``: a preset, a design file, or either with changes, such
        as ``base,extension=prelu.py`` (docs/extensions.md; the file is executed). ``base`` if None. A compiled model
        has its own machine. A design includes memory, clock and prices: see `runtime.design.design_flags.design_of`.
    engine : {"fast", "rtl"}
        ``rtl`` is the hardware in Verilator, ``fast`` its model with the same values.
    memory : MemoryTiming, optional
        Timing of main memory; the default is that of ``run_options``, or of the design.
    keep_tensors : bool
        Keep the output of every layer during a run, for ``tensors``. A compiled model keeps only the tensors that it
        was compiled to keep.
    options : Options
        Options of the compiler. A compiled model has its own.
    run_options : RunOptions
        Technology of the report's energy, whether toggles are counted, where to show progress, and whose arithmetic a
        .tflite file is computed in.
    calibrate : path, ndarray or mapping of str to ndarray, optional
        Samples to quantise a float model, or the float part of a partly quantised one: a file as for ``--calibrate``,
        or float32 arrays whose first axis counts samples. Without samples the core computes such a model in float.
    sess_options, providers, provider_options : optional
        Arguments of ONNX Runtime's sessions, accepted without effect, so that a program can use either session.

    Warns
    -----
    FloatOnCoreWarning
        If the host core computes products in float and no progress is shown.

    Raises
    ------
    CompileError
        If the model is invalid or not supported; see `compiler.errors`.
    InputError
        If machine, engine or technology is unknown.
    TypeError
        If an argument is unknown.

    Examples
    --------
    >>> from tilewright.models import data
    >>> session = InferenceSession("lenet5", "base,lanes=4", providers=["CPUExecutionProvider"])
    >>> session.get_inputs()
    [SessionArg(name='image', shape=[1, 1, 32, 32], type='tensor(float)')]
    >>> (logits,) = session.run(None, {"image": data.samples().images[:3]})
    >>> logits.shape, [int(digit) for digit in logits.argmax(axis=1)] == data.samples().labels[:3].tolist()
    ((3, 10), True)
    >>> session.report.engine, session.report.cycles > 0
    ('fast', True)
    """

    def __init__(self, model: GivenModel, machine: GivenMachine = None,
                 engine: EngineName = "fast", *,
                 memory: MemoryTiming | None = None, keep_tensors: bool = False, options: Options = BEST,
                 run_options: RunOptions = DEFAULT_RUN, calibrate: Samples | None = None,
                 **onnx_runtime: object) -> None:
        if unknown := sorted(set(onnx_runtime) - _ONNX_RUNTIME):
            raise TypeError(f"InferenceSession has no argument {unknown[0]!r}")
        if engine not in ENGINES:
            raise InputError(f"Engine must be one of {', '.join(ENGINES)}, not {engine!r}")
        if run_options.count_toggles and engine != "rtl":
            raise InputError(f"Engine must be rtl to count toggles, not {engine!r}")
        if run_options.host not in (None, HOST_CORE) and engine != "rtl":
            raise InputError(f"Engine must be rtl for the host {run_options.host}, not {engine!r}")
        if run_options.wait != "poll" and engine != "rtl":
            raise InputError(f"Engine must be rtl for a core that sleeps (wait='wfi'), not {engine!r}")
        design = design_given(machine)
        if design is not None and run_options.pricing == DEFAULT:
            run_options = replace(run_options, pricing=design.pricing)
        run_options.pricing.load()  # refuses what it does not know before anything is run
        self._engine = engine
        self._run_options = run_options
        self._operands: tuple[OperandToggles, ...] = ()
        self._explanation: Explanation | None = None
        self._times: CommandTimes | None = None
        path = named_path(model, run_options.steps) if isinstance(model, str | Path) else self._written(model)
        self._job = self._load(_file(path, calibrate, run_options), design, keep_tensors, options)
        self._memory = memory or run_options.memory or (design and design.memory) \
            or MemoryTiming.default(self._job.machine)
        self._inputs = node_args(self._job.inputs, self._job.unread)
        self._outputs = node_args(self._job.outputs)
        self._pairs: dict[str, str] = {}
        self._state: dict[str, np.ndarray] = {}
        self._report: Report | None = None
        self._tensors: dict[str, np.ndarray] = {}
        self._opening_cycles = 0
        self.carry(self._job.state)

    def get_inputs(self) -> list[SessionArg]:
        """Return name, shape and type of the model's inputs."""
        return [SessionArg(each.name, list(each.shape), each.type) for each in self._inputs]

    def get_outputs(self) -> list[SessionArg]:
        """Return name, shape and type of the model's outputs."""
        return [SessionArg(each.name, list(each.shape), each.type) for each in self._outputs]

    @property
    def layers(self) -> list[tuple[str, str]]:
        """Name of each fused layer and of the tensor that it computes, in order."""
        return [(layer.name, words_of(layer.output, self.tensor_infos)) for layer in self._job.layers]

    @property
    def batch(self) -> int:
        """Number of images that a run computes at a time."""
        return self._job.batch

    @property
    def inexact(self) -> frozenset[str]:
        """Tensors that may differ from ONNX Runtime's, because it computes them in float."""
        layers = [(layer.inputs, layer.outputs, layer.exact) for layer in self._job.layers]
        return inexact_tensors(layers, self.tensor_infos)

    @property
    def quantised_inputs(self) -> tuple[TensorInfo, ...]:
        """The int8 tensors to which the inputs are converted."""
        return self._job.inputs

    @property
    def quantised_outputs(self) -> tuple[TensorInfo, ...]:
        """The tensors from which the outputs are made."""
        return self._job.outputs

    @property
    def tensor_infos(self) -> dict[str, TensorInfo]:
        """Shape, type and quantisation of each tensor as it is in the model, by name."""
        return in_model({name: info for name, (info, _) in self._job.tensors.items()})

    @property
    def zero_points(self) -> dict[str, int]:
        """The int8 value that stands for zero, by tensor."""
        return {name: info.zero_point for name, (info, _) in self._job.tensors.items()}

    @property
    def report(self) -> Report:
        """The cost of the last run.

        Raises
        ------
        SimulationError
            If there was no run.
        """
        if self._report is None:
            raise SimulationError("Session has a report only after a run")
        return self._report

    @property
    def explanation(self) -> Explanation:
        """The plan of the model, layer by layer.

        Raises
        ------
        SimulationError
            If the model was given compiled: then its manifest describes the plan in words.
        """
        if self._explanation is None:
            raise SimulationError("Session can explain the plan only if it has compiled the model itself")
        return self._explanation

    @property
    def operands(self) -> tuple[OperandToggles, ...]:
        """Toggle statistics of the array's operands in each layer of the last run; empty if toggles were counted."""
        return self._operands

    @property
    def job(self) -> Job:
        """The compiled model as the engines take it."""
        return self._job

    @property
    def times(self) -> CommandTimes | None:
        """Times of the last run's commands: measured on engine ``rtl``, else predicted; None if there was no run."""
        return self._times

    @property
    def tensors(self) -> dict[str, np.ndarray]:
        """Tensors of the last run, int8 of shape (channels, height, width): the outputs, and all that were kept."""
        return dict(self._tensors)

    @property
    def state(self) -> dict[str, np.ndarray]:
        """Values that the next call takes for the inputs that carry state, by input."""
        return dict(self._state)

    @property
    def pairs(self) -> dict[str, str]:
        """The output that each input which carries state is in the next call, by input."""
        return dict(self._pairs)

    @property
    def kept(self) -> tuple[str, ...]:
        """A sentence on the weights that stay on the chip between calls, behind a run; none without."""
        return kept_sentences(self._job, self._opening_cycles)

    def carry(self, state: Mapping[str, str]) -> None:
        """Keep state from call to call: by input, the output that it is in the next call, as in ``{"h": "hn"}``.

        Such inputs may be left out of a feed. They are zeros in the first call, and behind `reset`; quantised integers
        are their zero points. A model that was compiled with state carries it from the beginning.

        Raises
        ------
        InputError
            If a name is none of the model's, an output is there twice, or the two differ in shape or type.
        """
        check_state(state, self._inputs, self._outputs, batch=self.batch)
        self._pairs = dict(state)
        self.reset()

    def reset(self) -> None:
        """Let the state be zeros, as before the first call, which also loads weights that stay on the chip."""
        self._loaded = False
        self._state = first_state(self._pairs, self._inputs, self._job.inputs)

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, npt.ArrayLike],
            run_options: object = None, *, wave: Path | Wave | None = None) -> list[np.ndarray]:
        """Return the named outputs, or all, for inputs given by name.

        Inputs are quantised and outputs dequantised as ONNX Runtime does. Those that no layer reads may be left out. A
        model of one image accepts a batch: the images run one after the other, and the outputs are stacked. The report
        is then that of the last image. Where weights stay on the chip between calls, the first call, and the first
        behind `reset`, loads them.

        Parameters
        ----------
        output_names : sequence of str, optional
        input_feed : mapping of str to ndarray
            Arrays of the inputs' shapes, or (N, …) for shapes of (1, …); or lists of numbers, which get the dtype of
            the input.
        run_options : optional
            Accepted as in ONNX Runtime, without effect.
        wave : Path or Wave, optional
            File for the waveforms of engine ``rtl``, FST (``.fst``) or VCD (``.vcd``). A `Wave` also limits the cycles,
            layers and units that it shows.

        Raises
        ------
        InputError
            If inputs are missing or have another type or shape, an input to quantise holds NaN, a name is unknown, or
            the waveform would show no cycle or layer of the run.
        SimulationError
            If the program does not end correctly.
        """
        known = [output.name for output in self._outputs]
        del run_options
        names = known if output_names is None else list(output_names)
        if unknown := [name for name in names if name not in known]:
            raise InputError(f"Outputs must be of {', '.join(known)}, not {unknown[0]!r}")
        if wave is not None and self._engine != "rtl":
            raise InputError(f"Engine must be rtl to write waveforms, not {self._engine!r}")
        feed = self._read({name: _array(values, self._inputs, name) for name, values in input_feed.items()})
        check_inputs({name: feed[name] for name in self._pairs.keys() & feed.keys()},
                     [each for each in self._inputs if each.name in self._pairs and each.name in feed])
        self._state |= {name: feed.pop(name) for name in self._pairs if name in feed}
        images = batch_size(feed, self._inputs)
        if images > 1:
            require_batches(self._outputs, images)
        if images > 1 and wave is not None:
            raise InputError(f"Inputs must be of one image to write waveforms, not of {images}")
        shown = Wave(wave) if isinstance(wave, Path) else wave
        answers = [self._run(images_of(feed, index) if images > 1 else feed, shown) for index in range(images)]
        found = dict(zip(known, stacked(answers) if images > 1 else answers[0], strict=True))
        return [found[name] for name in names]

    def _read(self, feed: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the arrays that the layers read, once those for inputs that none reads are checked."""
        unread = {each.name: each.shape[:1] == (1,) for each in self._job.unread}
        ignored = {name: array[:1] if unread[name] and array.ndim else array for name, array in feed.items()
                   if name in unread}
        check_inputs(ignored, [each for each in self._inputs if each.name in ignored], ignored)
        return {name: array for name, array in feed.items() if name not in unread}

    def _run(self, feed: Mapping[str, np.ndarray], wave: Wave | None) -> list[np.ndarray]:
        """Run one image behind those before, keep what it has cost, and return all outputs."""
        job = self._job
        feed = {**self._state, **feed}
        quantised = {node_arg(info).name for info in job.inputs if not is_raw(info)}
        check_inputs(feed, self._inputs, {argument.name for argument in self._inputs} - quantised,
                     [each.name for each in job.unread], job.defaults)
        tensors = {info.name: quantise_input(info, feed[node_arg(info).name]) for info in job.inputs}
        execution = execute(job, self._engine, tensors, job.lasting, self._memory, wave=wave,
                            count_toggles=self._run_options.count_toggles, steps=self._run_options.steps)
        self._tensors = execution.tensors
        self._operands = execution.operands
        if execution.opening is not None:
            self._opening_cycles = execution.opening.counts["cycles"]
        if self._loaded:
            job, execution = later_call(job, execution)
        self._loaded = True
        self._times = execution.times
        self._report = account(job, self._engine, self._memory, execution, self._run_options.pricing)
        outputs = {node_arg(info).name: dequantise_output(info, execution.tensors[info.name]) for info in job.outputs}
        self._state = {name: outputs[output] for name, output in self._pairs.items()}
        return [outputs[each.name] for each in self._outputs]

    def _repr_html_(self) -> str:
        """Return the model, its inputs and outputs, and the cost of the last run, as a notebook shows them."""
        arguments = [(kind, each.name, each.type, " × ".join(map(str, each.shape)))
                     for kind, given in (("input", self._inputs), ("output", self._outputs)) for each in given]
        return render(_PAGE, machine=self._job.machine.name, model=self._job.name, engine=self._engine,
                      arguments=arguments, layers=len(self._job.layers),
                      report="" if self._report is None else self._report._repr_html_())

    def _load(self, model: Path, design: Design | None, keep_tensors: bool, options: Options) -> Job:
        """Return what to run: of a compiled model, or of an ONNX file compiled now."""
        if model.is_dir():
            own = self._run_options.extension or (extension_of(design.machine) if design is not None else None)
            job = job_of_artefact(load_artefact(model, own))
            if design is not None and not design.machine.same_as(job.machine):
                raise InputError(f"Machine of the compiled model {str(model)!r} must be its own, {job.machine.name}, "
                                 f"not another: compile the model again for that one")
            if (host := self._run_options.host or job.host) != job.host:
                raise InputError(f"Host of the compiled model {str(model)!r} must drive the port that it was compiled "
                                 f"for, as {job.host} does, and {host} drives {PORT_OF[host]}: compile the model again "
                                 f"with --port {PORT_OF[host]}")
            if options != BEST:
                raise InputError(f"Options of the compiled model {str(model)!r} must be its own, not {options}: "
                                 f"compile the model again with these")
            return job
        size = machine_given(design).machine
        compiled = compile_file(model, size, keep_tensors=keep_tensors, options=options)
        self._explanation = explain(compiled)
        if isinstance(self._run_options.steps, Silence):
            _warn(compiled)
        if self._engine == "fast":
            return job_of_compiled(compiled, model.stem)
        port = PORT_OF[self._run_options.host or HOST_CORE]
        return job_of_artefact(emit_artefact(compiled, model, self._folder() / model.stem, port=port,
                                             wait=self._run_options.wait))

    def _written(self, model: bytes | ModelProto) -> Path:
        """Return a file that holds a model of this process, as long as the session lives."""
        file = self._folder() / "model.onnx"
        file.write_bytes(file_content(model))
        return file

    def _folder(self) -> Path:
        """Return a new folder that goes with the session."""
        folder = Path(tempfile.mkdtemp(prefix="tilewright-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return folder


def _array(values: npt.ArrayLike, arguments: Sequence[NodeArg], name: str) -> np.ndarray:
    """Return what was given for an input: as it is if an array, else with the input's dtype."""
    if isinstance(values, np.ndarray):
        return values
    return np.asarray(values, next((each.dtype for each in arguments if each.name == name), None))


def _file(model: Path, calibrate: Samples | None, run_options: RunOptions) -> Path:
    """Return the file to compile: the model, or what it is quantised to, or read as."""
    reference = run_options.reference
    if calibrate is None and reference is None:
        return model
    if model.is_dir():
        needs = "Calibration samples need an ONNX" if reference is None else "A reference needs a .tflite"
        raise InputError(f"{needs} file, and {str(model)!r} is a compiled model")
    if calibrate is not None:
        with sample_file(calibrate) as file:
            return find_model(str(model), run_options.steps, calibrate=file, engine=reference).path
    assert reference is not None
    require_tflite(str(model), reference)
    return standard_file(model, {}, engine=reference)[0]


def _warn(compiled: Compiled) -> None:
    """Warn of products that the host core computes in float."""
    infos = compiled.network.tensors
    floats = [layer for layer in compiled.network.layers
              if isinstance(layer, CoreLayer) and layer.macs and infos[layer.output].dtype == "float32"]
    if floats:
        warnings.warn(f"The host core computes {len(floats)} of {len(compiled.network.layers)} layers of "
                      f"{compiled.network.name!r} in float, {floats[0].name!r} ({floats[0].op}) first, which is slow; "
                      "give samples with calibrate= to quantise them", FloatOnCoreWarning, stacklevel=4)
