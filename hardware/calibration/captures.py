"""Windows of real layers in RTL: the stimuli on which netlists are measured.

Each is some cycles out of the middle of a layer of a network, run on the machine's RTL with its real weights and
inputs. A network is simulated once for all of its windows.
"""

import hashlib
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import numpy as np

from tilewright.compiler.compile import compile_file, emit_artefact
from tilewright.compiler.network.operands import to_memory
from tilewright.compiler.network.options import Options
from tilewright.hardware.gates.waves import Waves, read_waves
from tilewright.isa.machine import Machine, MemoryTiming
from tilewright.runtime.execution.engines import execute
from tilewright.runtime.execution.job import Job, job_of_artefact
from tilewright.runtime.execution.records import differences
from tilewright.runtime.model_source import ModelSource, choose_inputs, find_model
from tilewright.runtime.oracle.conversion import quantise_input
from tilewright.runtime.oracle.inputs import node_arg
from tilewright.runtime.run_options import RunOptions
from tilewright.runtime.session import InferenceSession
from tilewright.sim.rtl_engine import Progress, Simulation, run_rtl
from tilewright.sim.verilator.build import build_simulator
from tilewright.tools.progress import Steps
from tilewright.tools.toolchain import cache_folder

__all__ = ["CYCLES", "WORKLOADS", "Captured", "Workload", "capture", "mac_rates"]

CYCLES = 200
"""Cycles that are counted in each window."""

_LAYERS = Options(bands=False)
"""A window is one of a single layer, so none is computed in turn with others."""

_INSIDE = "TOP.simulated_soc.soc."


@dataclass(frozen=True, slots=True)
class Workload:
    """A window of a layer: ``where`` 0 is the layer's begin, 1 its end."""

    name: str
    model: str
    layer: int
    what: str
    where: float = 0.5


WORKLOADS = (
    Workload("lenet5-c1", "lenet5", 0, "5x5 convolution of 1 channel, paired rows, trained weights"),
    Workload("lenet5-c3", "lenet5", 1, "5x5 convolution of 6 channels, trained weights"),
    Workload("lenet5-c5", "lenet5", 2, "5x5 convolution to 120 channels, one pixel, trained weights"),
    Workload("lenet5-f6", "lenet5", 3, "dense, trained weights"),
    Workload("mobilenetv2-stem", "mobilenetv2-96", 0, "3x3 convolution, stride 2, of 3 channels"),
    Workload("mobilenetv2-depthwise", "mobilenetv2-96", 4, "depthwise 3x3 by Winograd, 96 channels"),
    Workload("mobilenetv2-expand", "mobilenetv2-96", 3, "1x1 convolution, 16 to 96 channels"),
    Workload("mobilenetv2-project", "mobilenetv2-96", 8, "1x1 convolution, 144 to 24 channels, residual add"),
    Workload("mobilenetv2-deep", "mobilenetv2-96", 33, "1x1 convolution, 96 to 576 channels, 6x6 pixels"),
    Workload("mobilenetv2-pool", "mobilenetv2-96", 52, "global average pooling"),
    Workload("vgg16-stem", "vgg16-32", 0, "3x3 Winograd of 3 channels"),
    Workload("vgg16-64", "vgg16-32", 1, "3x3 Winograd, 64 channels, max pooling"),
    Workload("vgg16-128", "vgg16-32", 2, "3x3 Winograd, 64 to 128 channels"),
    Workload("resnet18-residual", "resnet18-32", 2, "3x3 Winograd, 64 channels, residual add"),
    Workload("resnet18-shortcut", "resnet18-32", 5, "1x1 convolution, stride 2, 64 to 128 channels"),
    Workload("resnet18-stride2", "resnet18-32", 6, "3x3 convolution, stride 2, 64 to 128 channels"),
    Workload("resnet18-stem", "resnet18-224", 0, "7x7 convolution, stride 2, of 3 channels, max pooling", 0.2),
)
"""Layers of different kinds and sizes; weights of all but lenet5 are seeded, their activations are of pictures."""


@dataclass(frozen=True, slots=True)
class Captured:
    """The waveform of a workload: of the cycle before and of the ``cycles`` that are counted."""

    workload: Workload
    path: Path
    cycles: int = CYCLES

    def read(self) -> Waves:
        """Return it."""
        return read_waves(self.path, 0, self.cycles + 1)


def capture(machine: Machine, workloads: Sequence[Workload], steps: Steps) -> list[Captured]:
    """Return the waveforms of ``workloads``, simulated now or by an earlier call.

    Raises
    ------
    SimulationError, InputError, CompileError
        If a network cannot be built, compiled or run.
    """
    with steps.step(f"Building the simulator of {machine.name} that writes waveforms"):
        simulator = build_simulator(machine, tracing="vcd")
    places = {each.name: _place(simulator, each) for each in workloads}
    for model in dict.fromkeys(each.model for each in workloads):
        missing = [each for each in workloads if each.model == model and not places[each.name].exists()]
        if missing:
            _simulate(machine, model, missing, places, steps)
    return [Captured(each, places[each.name]) for each in workloads]


def mac_rates(machine: Machine, workloads: Sequence[Workload], steps: Steps) -> dict[str, float]:
    """Return by workload the multiply-accumulates per cycle of its whole layer, as the cycle model predicts them."""
    rates: dict[str, float] = {}
    for model in dict.fromkeys(each.model for each in workloads):
        source = find_model(model, steps)
        session = InferenceSession(source.path, machine, "fast", options=_LAYERS, run_options=RunOptions(steps=steps))
        session.run(None, choose_inputs(session.quantised_inputs, source, None).arrays)
        layers = session.report.layers
        rates |= {each.name: layers[each.layer].macs / layers[each.layer].cycles
                  for each in workloads if each.model == model}
    return {each.name: rates[each.name] for each in workloads}


def _place(simulator: Path, workload: Workload) -> Path:
    """Return where a waveform is kept: by the simulator, which has its RTL in its name, and by the workload."""
    recipe = f"{simulator.parent.name} {workload.model} {workload.layer} {workload.where} {CYCLES}"
    key = hashlib.sha256(recipe.encode()).hexdigest()[:32]
    return cache_folder() / "gates" / "waves" / f"{workload.name}-{key}.gz"


def _simulate(machine: Machine, model: str, workloads: Iterable[Workload], places: dict[str, Path],
              steps: Steps) -> None:
    """Run a network up to the last window, and keep the windows."""
    source = find_model(model, steps)
    with tempfile.TemporaryDirectory(prefix="tilewright-") as name:
        folder = Path(name)
        with steps.step(f"Compiling {model}"):
            compiled = compile_file(source.path, machine, options=_LAYERS)
            job = job_of_artefact(emit_artefact(compiled, source.path, folder / "compiled"))
        tensors = _inputs(job, source)
        starts = _starts(job, tensors, steps)
        windows = {}
        for each in sorted(workloads, key=lambda each: each.layer + each.where):
            begin, end = starts[each.layer:each.layer + 2]
            first = round(begin + each.where * (end - begin))
            windows[each.name] = range(first, first + CYCLES + 1)
        wave = folder / "wave.vcd"
        last = max(window.stop for window in windows.values()) + 1
        with steps.simulation(f"Simulating {model} in RTL", [(model, last)]) as progress:
            _run(job, tensors, windows.values(), last, wave, progress)
        with steps.count(f"Reading {len(windows)} windows of {model}", len(windows)) as done:
            for place, window in windows.items():
                read_waves(wave, window.start, len(window), _INSIDE).write(places[place])
                done()


def _inputs(job: Job, source: ModelSource) -> dict[str, np.ndarray]:
    arrays = choose_inputs(job.inputs, source, None).arrays
    return {info.name: quantise_input(info, np.asarray(arrays[node_arg(info).name])) for info in job.inputs}


def _starts(job: Job, tensors: dict[str, np.ndarray], steps: Steps) -> list[int]:
    """Return the cycle in which each layer begins by the fast engine, and the end."""
    timing = MemoryTiming.default(job.machine)
    execution = execute(job, "fast", tensors, [], timing, steps=steps)
    return [0, *accumulate(layer["cycles"] for layer in differences(execution.records))]


def _run(job: Job, tensors: dict[str, np.ndarray], windows: Iterable[range], last: int, wave: Path,
         progress: Progress) -> None:
    images = [*job.images, *((job.tensors[name][1], to_memory(values, job.tensors[name][0]))
                             for name, values in tensors.items())]
    assert job.elf is not None
    simulation = Simulation(images=images, wave=wave, wave_cycles=tuple(windows), max_cycles=last, progress=progress)
    run_rtl(job.machine, job.elf, simulation, windows=job.windows)
