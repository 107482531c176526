"""Runs of the benchmarks: each is done once and its figures are saved, so that an interrupted bench continues."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from tilewright.bench.cases import BenchCase
from tilewright.bench.counted_work import LayerWork, energy_of, work_of
from tilewright.bench.figure_store import FigureStore
from tilewright.compiler.compile import fit_network
from tilewright.compiler.network.layers import Layer, Network
from tilewright.compiler.network.options import Options
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.energy.energies import EnergyEstimate
from tilewright.isa.machine import Machine
from tilewright.runtime.compared_run import ComparedRun, run_model
from tilewright.runtime.execution.report import LayerReport, Report
from tilewright.runtime.model_source import find_model
from tilewright.runtime.run_options import RunOptions
from tilewright.tools.progress import Steps

__all__ = ["Depthwise", "Figures", "depthwise_of", "matters", "run_case"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Depthwise:
    """The depthwise convolutions of a network with one stride: their number, their work and their cycles."""

    stride: int
    layers: int
    macs: int
    cycles: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Figures of one case.

    Attributes
    ----------
    cycles, macs, multipliers, roofline_cycles : int
    memory_bytes : int
        Of main memory that the program needs.
    bytes_moved, buffer_bytes_read : int
        Over the bus, both ways; from the activation buffer.
    work : tuple of LayerWork
        Work of each layer and of the tail, for pricing in any technology.
    energy : EnergyEstimate
        At default prices. It is not stored: prices change more often than what they are prices of.
    seconds, cycles_per_second : float
        Of the simulation.
    matches : bool
        Every tensor compared with ONNX Runtime's equals it.
    compared, nearly, loose : int
        Of how many layers; how many of these are floats, which may differ in their last bits; and how many come from
        what ONNX Runtime rounds in float, and are not held to it.
    tile_cycles : float or None
        Cycles per F(2x2,3x3) tile and pair of input and output channel in the ``conv23`` layer with most MACs.
    winograd_layers, fused_pools : int
    layer_cycles : tuple of int
        Of each layer.
    core_cycles : int
        Of the layers that the host core computes, the coprocessor lacking their operators.
    depthwise : tuple of Depthwise
    """

    cycles: int
    macs: int
    multipliers: int
    roofline_cycles: int
    memory_bytes: int
    bytes_moved: int
    buffer_bytes_read: int
    work: tuple[LayerWork, ...]
    energy: EnergyEstimate
    seconds: float
    cycles_per_second: float
    matches: bool
    compared: int
    nearly: int
    loose: int
    tile_cycles: float | None
    winograd_layers: int
    fused_pools: int
    layer_cycles: tuple[int, ...]
    core_cycles: int
    depthwise: tuple[Depthwise, ...]

    @classmethod
    def from_json(cls, data: Mapping[str, Any], machine: Machine) -> "Figures":
        """Return the figures that `to_json` and JSON have turned into ``data``, priced as prices are now."""
        work = tuple(LayerWork.from_json(each) for each in data["work"])
        return cls(**{**data, "layer_cycles": tuple(data["layer_cycles"]), "work": work,
                      "energy": energy_of(work, machine),
                      "depthwise": tuple(Depthwise(**each) for each in data["depthwise"])})

    def to_json(self) -> dict[str, Any]:
        """Return the stored figures: all but the energy."""
        return asdict(replace(self, energy=EnergyEstimate({}))) | {"energy": None}

    @property
    def layers(self) -> int:
        """Number of layers."""
        return len(self.layer_cycles)

    @property
    def verdict(self) -> str:
        """The layers found equal to ONNX Runtime's, by number, or that one was not."""
        if not self.matches:
            return "**no**"
        said = f"{self.compared - self.loose} of {self.layers}"
        said += f", {self.nearly} of floats nearly" if self.nearly else ""
        return said + (f", {self.loose} rounded in float there" if self.loose else "")

    @property
    def macs_per_multiplier_cycle(self) -> float:
        """Useful work of each multiplier and cycle."""
        return self.macs / (self.multipliers * self.cycles)

    @property
    def roofline_share(self) -> float:
        """The roofline over the cycles; weights fetched ahead of their layer can bring it above 1."""
        return self.roofline_cycles / self.cycles


def matters(options: Options, full: Figures) -> bool:
    """Tell whether ``options`` can change a program whose figures with every optimisation are ``full``."""
    return (full.winograd_layers > 0 and (options.winograd == "never" or not options.reuse)) or (
        full.fused_pools > 0 and not options.fuse_pool)


_MACS_PER_TILE = 36
"""Of the ONNX operator, in 2x2 outputs of a 3x3 kernel and one pair of channels."""


def _figures_of(compared: ComparedRun, network: Network) -> Figures:
    """Return the figures of a run that compiled its model itself; ``network`` is what ran, as it fits the machine."""
    report, plan = compared.report, compared.explanation
    if plan is None:
        raise ValueError("Run must be of a model compiled for it, as a plan gives its roofline")
    winograd = [layer for layer in report.layers if layer.algorithm == "conv23"]
    largest = max(winograd, key=lambda layer: layer.macs, default=None)
    return Figures(
        cycles=report.cycles, macs=report.macs, multipliers=report.multipliers, roofline_cycles=plan.roofline_cycles,
        memory_bytes=plan.memory_bytes,
        bytes_moved=sum(layer.bytes_read + layer.bytes_written for layer in report.layers),
        buffer_bytes_read=sum(layer.activation_bytes_read for layer in report.layers),
        work=work_of(report), energy=report.energy, seconds=report.wall_seconds,
        cycles_per_second=report.simulated_cycles_per_second, matches=report.matches_reference is True,
        compared=compared.comparison.compared, nearly=compared.comparison.floats,
        loose=compared.comparison.loose,
        tile_cycles=_MACS_PER_TILE * largest.cycles / largest.macs if largest else None,
        winograd_layers=len(winograd), fused_pools=sum(layer.fuses_pool for layer in plan.layers),
        layer_cycles=tuple(layer.cycles for layer in report.layers),
        core_cycles=sum(layer.cycles for layer in report.layers if layer.algorithm == "core"),
        depthwise=depthwise_of(network, report))


def depthwise_of(network: Network, report: Report) -> tuple[Depthwise, ...]:
    """Return what the depthwise convolutions took, by stride."""
    found: dict[int, list[LayerReport]] = {}
    for layer, cost in zip(network.layers, report.layers, strict=True):
        if isinstance(layer, Layer) and layer.kind == "conv" and layer.groups == layer.in_shape[0] > 1:
            found.setdefault(max(layer.strides), []).append(cost)
    return tuple(Depthwise(stride=stride, layers=len(costs), macs=sum(cost.macs for cost in costs),
                           cycles=sum(cost.cycles for cost in costs)) for stride, costs in sorted(found.items()))


def run_case(case: BenchCase, store: FigureStore, steps: Steps) -> Figures:
    """Return the figures of ``case``: stored ones, or those of a run now, every layer compared with ONNX Runtime.

    Raises
    ------
    CompileError, InputError, SimulationError
        As `runtime.compared_run.run_model` does.
    """
    source = find_model(case.network, steps)

    def make() -> dict[str, Any]:
        compared = run_model(source, case.machine, case.engine, None, options=case.options,
                             run=RunOptions(steps=steps, memory=case.memory))
        network, _ = fit_network(compile_network(source.path, case.options), case.machine, case.options)
        return _figures_of(compared, network).to_json()

    key = f"{case!r} {case.timing!r}"
    return Figures.from_json(store.get(key, source.path, make), case.machine)
