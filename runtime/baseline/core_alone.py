"""Cost of a network on a core alone, in RTL with zero-wait memory: C at -O3, scalar or with XPULP's SIMD.

The tensors are compared with the integer reference, so that the cycles are those of a correct program. Networks whose
run would take long are run in parts, from which ``runtime/baseline/scaling.py`` derives the whole.
"""

import hashlib
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from tilewright.compiler.emit.baseline import (
    KERNELS,
    RECORD_WORDS,
    XPULP_KERNELS,
    Baseline,
    emit_baseline,
)
from tilewright.compiler.emit.elf import compile_elf
from tilewright.compiler.network.layers import CoreLayer, Layer, Network
from tilewright.compiler.network.memory_map import tensor_bytes
from tilewright.compiler.network.operands import from_memory, to_memory
from tilewright.compiler.network.parts.part_of_layer import core_network, datapath_layers, parts_side_by_side
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.plan.split_units import without_whole_sums
from tilewright.isa.core_names import HOST_CORE, XPULP_CORE, CoreName
from tilewright.isa.memory import MAIN_BASE
from tilewright.runtime.baseline.scaling import Sampling, extrapolate, parts, sampling, shape_key
from tilewright.sim.rtl_engine import Progress, Simulation, run_bare
from tilewright.sim.verilator.build import build_simulator
from tilewright.tools.toolchain import cache_folder

__all__ = ["MOST_MACS", "BaselineLayer", "BaselineProgram", "BaselineResult", "run_baseline"]

MOST_MACS: Mapping[CoreName, int] = {HOST_CORE: 150_000_000, XPULP_CORE: 1_000_000_000}
"""Of a network that is run whole by default: about ten minutes of simulation."""

_Origin = Literal["whole", "slices", "same shape"]
"""Where a layer's figures come from: it was run, parts of it were, or a layer of the same shape or parts of that."""


@dataclass(frozen=True, slots=True)
class BaselineLayer:
    """One layer: its multiply-accumulates, what the core took for it, and how that is known."""

    name: str
    macs: int
    cycles: int
    instructions: int
    origin: _Origin = "whole"

    @property
    def cycles_per_mac(self) -> float | None:
        """None for a layer without weights."""
        return self.cycles / self.macs if self.macs else None


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineResult:
    """A network on a core alone.

    Attributes
    ----------
    core : str
    cycles, instructions : int
        Of the whole program, from the release of reset; of a network run in parts, the sum of its layers.
    layers : tuple of BaselineLayer
        In execution order.
    tensors : dict of str to ndarray
        int8 (C, H, W): every tensor of the network; none if it was run in parts.
    matches : bool
        All of them, or of the parts, equal the integer reference.
    """

    core: CoreName
    cycles: int
    instructions: int
    layers: tuple[BaselineLayer, ...]
    tensors: dict[str, np.ndarray]
    matches: bool


def run_baseline(network: Network, inputs: Mapping[str, np.ndarray], *, core: CoreName = HOST_CORE,
                 slices: bool | None = None, progress: Progress | None = None) -> BaselineResult:
    """Run ``network`` on a simulated core alone.

    Parameters
    ----------
    network : Network
    inputs : mapping of str to ndarray
        As for ``compiler.network.reference.run_network``: int8 (C, H, W) by name.
    core : str
        ``cv32e40x`` for plain C, ``cv32e40p`` for XPULP's SIMD instructions.
    slices : bool, optional
        Whether to run parts of the layers and scale; left out, whether there are more than ``MOST_MACS``. What that
        found is kept in the cache.
    progress : callable, optional
        See ``sim.rtl_engine.Progress``.

    Raises
    ------
    SimulationError
        If the program does not end as it must, or the simulator cannot be built.
    ToolchainError
        If the C compiler fails.
    ValueError
        If an input is missing or of another type or shape.
    """
    network = without_whole_sums(network)   # its library has their operators already
    expected = run_network(network, inputs)
    if slices if slices is not None else network.macs > MOST_MACS[core]:
        return _run_in_parts(network, expected, core, progress)
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        program = BaselineProgram.make(network, inputs, core, Path(folder))
        return program.run(expected, progress)


@dataclass(frozen=True, slots=True)
class BaselineProgram:
    """A network compiled for a core, and the initial contents of its memory."""

    network: Network
    core: CoreName
    baseline: Baseline
    elf: Path
    images: list[tuple[int, bytes]]

    @classmethod
    def make(cls, network: Network, inputs: Mapping[str, np.ndarray], core: CoreName, folder: Path,
             ) -> "BaselineProgram":
        baseline = emit_baseline(network, xpulp=core == XPULP_CORE)
        images = [(MAIN_BASE, baseline.image)]
        images += [(MAIN_BASE + baseline.tensors[info.name], to_memory(inputs[info.name], info))
                   for info in network.inputs]
        library = any(isinstance(layer, CoreLayer) for layer in network.layers)
        return cls(network, core, baseline, _compile_baseline(baseline, folder, library=library), images)

    def key(self) -> str:
        """Return a hash of all that decides the result, simulator included.

        Raises
        ------
        SimulationError
            If the simulator cannot be built.
        """
        simulator = build_simulator(None, core=self.core)
        digest = hashlib.sha256(f"{self.core} {simulator.parent.name}\n".encode() + self.elf.read_bytes())
        for address, content in self.images:
            digest.update(f"{address} {len(content)}\n".encode() + content)
        return digest.hexdigest()

    def run(self, expected: Mapping[str, np.ndarray], progress: Progress | None) -> BaselineResult:
        baseline, network = self.baseline, self.network
        simulation = Simulation(images=self.images, dumps=[(MAIN_BASE, baseline.memory_bytes)], progress=progress)
        result = run_bare(self.elf, simulation, core=self.core).require_exit()
        memory = result.dumps[0]
        tensors = {name: from_memory(memory[offset:offset + tensor_bytes(info)], info)
                   for (name, offset), info in zip(baseline.tensors.items(), network.tensors.values(), strict=True)}
        records = np.frombuffer(memory, "<u4", RECORD_WORDS * len(network.layers), baseline.records)
        records = records.reshape(-1, RECORD_WORDS)
        return BaselineResult(
            core=self.core, cycles=result.cycles, instructions=result.instructions,
            layers=tuple(BaselineLayer(layer.name, layer.macs, int(cycles), int(instructions))
                         for layer, (cycles, instructions) in zip(network.layers, records, strict=True)),
            tensors=tensors,
            matches=all(np.array_equal(tensors[name], values) for name, values in expected.items()))


def _run_in_parts(network: Network, values: Mapping[str, np.ndarray], core: CoreName,
                  progress: Progress | None) -> BaselineResult:
    """Run every distinct layer shape once, large ones in parts, all in one program; ``values`` are all tensors.

    Layers of the host core are run as they are, in a second program.
    """
    representatives: dict[tuple[object, ...], Layer] = {}
    for layer in datapath_layers(network):
        representatives.setdefault(shape_key(layer, network.tensors), layer)
    where = {key: sampling(layer, xpulp=core == XPULP_CORE) for key, layer in representatives.items()}
    pieces = [part for key, layer in representatives.items() for part in parts(layer, where[key])]
    side_by_side = parts_side_by_side(network, pieces)
    inputs = {info.name: np.ascontiguousarray(_cut(values[info.name.rpartition(" ")[0]], info.shape))
              for info in side_by_side.inputs}
    figures, matches = _figures(side_by_side, inputs, core, progress)
    found: dict[tuple[object, ...], tuple[int, int]] = {}
    for key, layer in representatives.items():
        count = len(where[key].rows) + len(where[key].channels) - 1
        mine, figures = figures[:count], figures[count:]
        found[key] = (extrapolate(layer, where[key], [cycles for cycles, _ in mine]),
                      extrapolate(layer, where[key], [instructions for _, instructions in mine]))
    layers = {layer.name: BaselineLayer(layer.name, layer.macs, *found[key],
                                        _origin(layer, representatives[key], where[key]))
              for layer in datapath_layers(network) for key in [shape_key(layer, network.tensors)]}
    if rest := core_network(network):
        figures, alike = _figures(rest, {info.name: values[info.name] for info in rest.inputs}, core, progress)
        matches = matches and alike
        layers |= {layer.name: BaselineLayer(layer.name, layer.macs, *figure)
                   for layer, figure in zip(rest.layers, figures, strict=True)}
    return BaselineResult(
        core=core, cycles=sum(layer.cycles for layer in layers.values()),
        instructions=sum(layer.instructions for layer in layers.values()),
        layers=tuple(layers[layer.name] for layer in network.layers), tensors={}, matches=matches)


def _origin(layer: Layer, representative: Layer, where: Sampling) -> _Origin:
    if layer is not representative:
        return "same shape"
    return "whole" if where.whole else "slices"


def _figures(network: Network, inputs: Mapping[str, np.ndarray], core: CoreName,
             progress: Progress | None) -> tuple[list[tuple[int, int]], bool]:
    """Return cycles and instructions of each layer, and whether all are correct: from the cache, or run now."""
    with tempfile.TemporaryDirectory(prefix="tilewright-") as folder:
        program = BaselineProgram.make(network, inputs, core, Path(folder))
        kept = cache_folder() / "baseline" / f"{program.key()}.json"
        if kept.is_file():
            stored = json.loads(kept.read_text(encoding="utf-8"))
            return [(cycles, instructions) for cycles, instructions in stored["layers"]], stored["matches"]
        result = program.run(run_network(network, inputs), progress)
    figures = [(layer.cycles, layer.instructions) for layer in result.layers]
    kept.parent.mkdir(exist_ok=True)
    draft = kept.with_suffix(f".{id(result)}.draft")
    draft.write_text(json.dumps({"core": core, "layers": figures, "matches": result.matches}), encoding="utf-8")
    draft.replace(kept)
    return figures, result.matches


def _cut(values: np.ndarray, shape: tuple[int, int, int]) -> np.ndarray:
    """Return the first channels and rows of a tensor."""
    return values[:shape[0], :shape[1]]


def _compile_baseline(baseline: Baseline, folder: Path, *, library: bool = False) -> Path:
    """Write the C text and its header to ``folder``, compile them there and return the ELF.

    Raises
    ------
    ToolchainError
        If the C compiler fails.
    """
    source, elf = folder / "baseline.c", folder / "baseline.elf"
    source.write_text(baseline.source, encoding="utf-8")
    for header in (KERNELS, XPULP_KERNELS):
        (folder / header.name).write_bytes(header.read_bytes())
    compile_elf(source, elf, flags=["-O3"], library=library)
    return elf
