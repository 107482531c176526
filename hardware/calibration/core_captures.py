"""Windows of programs on the RISC-V core alone: the stimuli on which its netlist is measured.

The programs are the baselines', C at -O3, scalar or with SIMD, with memory that answers in the next cycle: layers of
networks with their weights and inputs, large ones cut to a few rows and channels, and operators on floats by soft
float. All of a network's are one program, which is simulated once for all of its windows.
"""

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path

import numpy as np

from tilewright.compiler.network.layers import CoreLayer, Layer, Network, TensorInfo
from tilewright.compiler.network.parts.part_of_layer import part_of_layer, parts_side_by_side
from tilewright.compiler.network.reference import run_network
from tilewright.errors import SimulationError
from tilewright.hardware.calibration.captures import Captured, Workload
from tilewright.hardware.gates.core_waves import SCOPE, flattened
from tilewright.hardware.gates.waves import read_waves
from tilewright.isa.core_names import HOST_CORE, XPULP_CORE, CoreName
from tilewright.runtime.baseline.core_alone import BaselineProgram
from tilewright.runtime.compared_run import compile_network
from tilewright.runtime.model_source import choose_inputs, find_model
from tilewright.runtime.oracle.conversion import quantise_input
from tilewright.runtime.oracle.inputs import node_arg
from tilewright.sim.rtl_engine import Simulation, run_bare
from tilewright.tools.progress import Steps
from tilewright.tools.toolchain import cache_folder

__all__ = ["CORE_WORKLOADS", "capture_core"]

_CYCLES = 250
"""Cycles that are counted in each window."""

_WHOLE = 500_000
"""Multiply-accumulates up to which a layer is run as it is."""

_PART = 100_000
"""Multiply-accumulates of a part of a larger one, at least."""

_PART_CHANNELS = 16
"""Output channels of a part, at most, where a layer can have fewer."""

_FLOATS = "floats"
"""Operators that the core computes in float32: no network, but a program of its own."""

_SIZE = 96
"""Elements of their tensors."""

_SCALAR = (
    Workload("lenet5-c1", "lenet5", 0, "5x5 convolution of 1 channel", 0.4),
    Workload("lenet5-c1-pool", "lenet5", 0, "2x2 max pooling", 0.985),
    Workload("lenet5-c3", "lenet5", 1, "5x5 convolution of 6 channels", 0.5),
    Workload("lenet5-c5", "lenet5", 2, "5x5 convolution to 120 channels, one pixel", 0.5),
    Workload("lenet5-f6", "lenet5", 3, "dense, 120 to 84", 0.5),
    Workload("lenet5-out", "lenet5", 4, "dense, 84 to 10", 0.5),
    Workload("mobilenetv2-stem", "mobilenetv2-96", 0, "3x3 convolution, stride 2, of 3 channels", 0.6),
    Workload("mobilenetv2-requantise", "mobilenetv2-96", 3, "requantisation of a 1x1 convolution, exactly", 0.5),
    Workload("mobilenetv2-depthwise", "mobilenetv2-96", 4, "depthwise 3x3, half of it requantisation", 0.6),
    Workload("mobilenetv2-project", "mobilenetv2-96", 8, "1x1 convolution of 144 channels", 0.5),
    Workload("mobilenetv2-residual", "mobilenetv2-96", 8, "residual add by table", 0.995),
    Workload("mobilenetv2-pool", "mobilenetv2-96", 52, "global average pooling, most of it requantisation", 0.5),
    Workload("vgg16-padding", "vgg16-32", 1, "padding: bytes filled", 0.002),
    Workload("vgg16-64", "vgg16-32", 1, "3x3 convolution of 64 channels", 0.5),
    Workload("float-multiply", _FLOATS, 0, "float32 products by soft float"),
    Workload("float-add", _FLOATS, 1, "float32 sums by soft float"),
    Workload("float-softmax", _FLOATS, 2, "float32 Softmax by soft float"),
)

_SIMD = (
    Workload("lenet5-c1", "lenet5", 0, "5x5 convolution of 1 channel", 0.4),
    Workload("lenet5-c3", "lenet5", 1, "5x5 convolution of 6 channels", 0.5),
    Workload("lenet5-c5", "lenet5", 2, "5x5 convolution to 120 channels, one pixel", 0.5),
    Workload("lenet5-f6", "lenet5", 3, "dense, 120 to 84", 0.3),
    Workload("lenet5-out", "lenet5", 4, "dense, 84 to 10", 0.5),
    Workload("mobilenetv2-stem", "mobilenetv2-96", 0, "3x3 convolution, stride 2, of 3 channels", 0.45),
    Workload("mobilenetv2-expand", "mobilenetv2-96", 3, "1x1 convolution of 16 channels", 0.8),
    Workload("mobilenetv2-depthwise", "mobilenetv2-96", 4, "depthwise 3x3", 0.1),
    Workload("mobilenetv2-requantise", "mobilenetv2-96", 4, "requantisation of a depthwise convolution", 0.45),
    Workload("mobilenetv2-project", "mobilenetv2-96", 8, "1x1 convolution of 144 channels", 0.5),
    Workload("mobilenetv2-pool", "mobilenetv2-96", 52, "global average pooling, most of it requantisation", 0.5),
    Workload("vgg16-64", "vgg16-32", 1, "3x3 convolution of 64 channels", 0.5),
    Workload("vgg16-64-late", "vgg16-32", 1, "the same layer's end, with max pooling", 0.97),
    Workload("vgg16-128", "vgg16-32", 2, "3x3 convolution, 64 to 128 channels", 0.3),
    Workload("float-multiply", _FLOATS, 0, "float32 products by soft float"),
    Workload("float-add", _FLOATS, 1, "float32 sums by soft float"),
    Workload("float-softmax", _FLOATS, 2, "float32 Softmax by soft float"),
)

CORE_WORKLOADS: Mapping[CoreName, Sequence[Workload]] = {HOST_CORE: _SCALAR, XPULP_CORE: _SIMD}
"""Layers and parts of layers of different kinds; models as for the blocks (`captures.WORKLOADS`)."""


def capture_core(core: CoreName, workloads: Sequence[Workload], steps: Steps) -> list[Captured]:
    """Return the waveforms of ``workloads`` on ``core``, simulated now or by an earlier call; names as in the netlist.

    Raises
    ------
    SimulationError, InputError, CompileError
        If a network cannot be built, compiled or run.
    """
    found: dict[str, Captured] = {}
    for model in dict.fromkeys(each.model for each in workloads):
        for each in _of_model(core, model, [each for each in workloads if each.model == model], steps):
            found[each.workload.name] = each
    return [found[each.name] for each in workloads]


def _of_model(core: CoreName, model: str, workloads: Sequence[Workload], steps: Steps) -> list[Captured]:
    """Return the windows of one program."""
    with tempfile.TemporaryDirectory(prefix="tilewright-") as name:
        folder = Path(name)
        with steps.step(f"Compiling {model} for {core} alone"):
            indices = sorted({each.layer for each in workloads})
            network, inputs = _floats() if model == _FLOATS else _parts(model, indices, steps)
            program = BaselineProgram.make(network, inputs, core, folder)
        key = program.key()
        captured = [Captured(each, _place(key, each), _CYCLES) for each in workloads]
        if missing := [each for each in captured if not each.path.exists()]:
            _simulate(program, inputs, indices, missing, folder / "wave.vcd", steps)
    return captured


def _place(key: str, workload: Workload) -> Path:
    """Return where a waveform is kept: by the program and its simulator, and by the window."""
    digest = hashlib.sha256(f"{key} {workload.layer} {workload.where} {_CYCLES}".encode()).hexdigest()[:32]
    return cache_folder() / "gates" / "waves" / f"core-{workload.name}-{digest}.gz"


def _parts(model: str, indices: Sequence[int], steps: Steps) -> tuple[Network, dict[str, np.ndarray]]:
    """Return some layers of a network side by side, large ones cut, and their inputs."""
    source = find_model(model, steps)
    network = compile_network(source.path)
    arrays = choose_inputs(network.inputs, source, None).arrays
    values = run_network(network, {info.name: quantise_input(info, np.asarray(arrays[node_arg(info).name]))
                                   for info in network.inputs})
    parts = [_cut(layer) for layer in (network.layers[index] for index in indices) if isinstance(layer, Layer)]
    beside = parts_side_by_side(network, parts)
    return beside, {info.name: np.ascontiguousarray(
        values[info.name.rpartition(" ")[0]][:info.shape[0], :info.shape[1]]) for info in beside.inputs}


def _cut(layer: Layer) -> Layer:
    """Return a layer or a part of it."""
    if layer.macs <= _WHOLE:
        return layer
    channels, height, _ = layer.out_shape
    if layer.kind == "conv" and layer.groups == 1:
        channels = min(channels, _PART_CHANNELS)
    per_row = layer.macs * channels // (layer.out_shape[0] * height)
    return part_of_layer(layer, min(height, -(-_PART // per_row)), channels)


def _floats() -> tuple[Network, dict[str, np.ndarray]]:
    """Return products, sums and Softmax of normal values."""
    rng = np.random.default_rng(0)
    inputs = {name: rng.normal(size=(1, _SIZE)).astype(np.float32) for name in ("a", "b", "c")}
    tensors = {name: TensorInfo(name=name, shape=(_SIZE, 1, 1), scale=np.float32(1), zero_point=0, dtype="float32",
                                dims=(1, _SIZE)) for name in (*inputs, "product", "sum", "softmax")}
    layers = [("Mul", ("a", "b"), "product", {}), ("Add", ("product", "c"), "sum", {}),
              ("Softmax", ("sum",), "softmax", {"axis": -1})]
    return Network(
        name=_FLOATS, tensors=tensors, inputs=tuple(tensors[name] for name in inputs), outputs=(tensors["softmax"],),
        layers=tuple(CoreLayer(name=output, onnx_nodes=(output,), op=op, inputs=names, output=output, attrs=attributes,
                               reason="float32") for op, names, output, attributes in layers)), inputs


def _simulate(program: BaselineProgram, inputs: Mapping[str, np.ndarray], indices: Sequence[int],
              wanted: Sequence[Captured], wave: Path, steps: Steps) -> None:
    """Run a program, once for its result and once for the waveform, and keep the windows."""
    name = wanted[0].workload.model
    with steps.step(f"Simulating {name} on {program.core} alone"):
        result = program.run(run_network(program.network, inputs), None)
        if not result.matches:
            raise SimulationError(f"Program of {name} must give the reference's tensors, and does not; report it")
        ends = [0, *accumulate(layer.cycles for layer in result.layers)]
        windows = {}
        for each in wanted:
            begin, end = ends[indices.index(each.workload.layer):][:2]
            first = min(round(begin + each.workload.where * (end - begin)), result.cycles - _CYCLES - 2)
            windows[each.path] = range(first, first + _CYCLES + 1)
        simulation = Simulation(images=program.images, wave=wave, wave_cycles=tuple(windows.values()),
                                max_cycles=max(window.stop for window in windows.values()) + 1)
        run_bare(program.elf, simulation, core=program.core)
    with steps.count(f"Reading {len(windows)} windows of {name}", len(windows)) as done:
        for place, window in windows.items():
            flattened(read_waves(wave, window.start, len(window), f"{SCOPE}.")).write(place)
            done()
