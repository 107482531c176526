"""``tilewright check``: where each node of a model would run, its cost and its faults, before anything is built."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tilewright.compiler.compile import Compiled, compile_layers, fit_network, network_in_batch, without_idle_channels
from tilewright.compiler.errors import CompileError, UnsupportedModelError, UnsupportedNodeError
from tilewright.compiler.explain import LayerExplanation, explain_layers
from tilewright.compiler.network.layers import AnyLayer, CoreLayer, Network
from tilewright.compiler.network.layout import LayerLayouts
from tilewright.compiler.network.memory_map import plan_memory
from tilewright.compiler.network.options import BEST, Options
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.compiler.plan.core_plan import CorePlan, pack_constants, plan_core
from tilewright.compiler.plan.planner import LayerPlan, plan_layer
from tilewright.compiler.schedule.bands import in_bands
from tilewright.compiler.schedule.chaining import computed_together, on_chip_only
from tilewright.compiler.schedule.weight_image import pack_network
from tilewright.isa.extension import extension_of
from tilewright.isa.machine import Machine
from tilewright.isa.memory import MAIN_BASE
from tilewright.runtime.check.single_patches import lacking_units, single_patches
from tilewright.runtime.check.warnings import model_warnings
from tilewright.runtime.design.design import Design
from tilewright.runtime.execution.core_share import CorePart, CoreShare, core_share
from tilewright.runtime.execution.job import job_of_compiled
from tilewright.runtime.execution.later_calls import kept_sentences
from tilewright.runtime.execution.prediction import predict_layer_cycles, predict_opening
from tilewright.runtime.float_remarks import float_remarks, slower_remarks
from tilewright.runtime.model_source import ModelSource
from tilewright.runtime.oracle.inputs import node_args
from tilewright.runtime.quantise.quantised_model import RangesKind
from tilewright.runtime.state_pairs import check_state, state_remarks, state_sentences

__all__ = ["Check", "CheckedLayer", "MemoryNeeded", "Refusal", "check_model", "refused"]

_ADDRESSABLE = (1 << 32) - MAIN_BASE
"""Bytes of main memory that 32-bit addresses reach."""

_LARGER = "take a larger machine"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedLayer:
    """One layer: the nodes of the model it replaces, what computes it and why, what is fused, and what it costs.

    ``runs_on`` is ``conv23``, ``conv``, ``pool``, ``act`` (clamps, tables, additions and poolings alone) or ``core``;
    ``operator`` is then ONNX's, and ``reason`` tells why it is the core. ``cycles`` are predicted, ``share`` is of all.
    """

    name: str
    onnx_nodes: tuple[str, ...]
    runs_on: str
    reason: str
    operator: str
    fused: tuple[str, ...]
    macs: int
    cycles: int
    share: float
    exact: bool


@dataclass(frozen=True, slots=True)
class Refusal:
    """A node that is not compiled, with the reason and a way out."""

    node: str
    op: str
    reason: str
    way_out: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryNeeded:
    """Bytes of main memory needed: weights and constants, tensors between layers, in all; and how many there are."""

    weights: int
    activations: int
    total: int
    limit: int

    @property
    def fits(self) -> bool:
        """Whether there is enough."""
        return self.total <= self.limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Findings of a check. If nodes were rejected, there may be no layers and no memory.

    ``tail_cycles`` come after the last layer: its last results are still on their way to memory. ``notes`` tell where
    the ranges are from, and what was changed when the file was read. ``options`` are those with which a refused model
    is compiled, if any are known.
    """

    model: str
    machine: str
    layers: tuple[CheckedLayer, ...]
    tail_cycles: int = 0
    refusals: tuple[Refusal, ...]
    warnings: tuple[str, ...]
    memory: MemoryNeeded | None
    notes: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    @property
    def compiles(self) -> bool:
        """Whether the model can be compiled and fits the memory."""
        return not self.refusals and (self.memory is None or self.memory.fits)

    @property
    def cycles(self) -> int:
        """Predicted cycles of a run: those of ``run`` with the same options."""
        return sum(layer.cycles for layer in self.layers) + self.tail_cycles

    @property
    def core_share(self) -> CoreShare:
        """The host core's share of the predicted cycles, and its causes."""
        return core_share((CorePart(layer.name, layer.operator, layer.reason, layer.cycles)
                           for layer in self.layers if layer.runs_on == "core"), self.cycles)

    def to_json(self) -> dict[str, Any]:
        """Return dicts, lists and numbers; the keys are a contract."""
        return {"model": self.model, "machine": self.machine, "compiles": self.compiles,
                "predicted_cycles": self.cycles, "tail_cycles": self.tail_cycles,
                "core_share": self.core_share.to_json(),
                "layers": [asdict(layer) for layer in self.layers],
                "refusals": [asdict(refusal) for refusal in self.refusals], "warnings": list(self.warnings),
                "notes": list(self.notes),
                "memory": asdict(self.memory) | {"fits": self.memory.fits} if self.memory else None}


def check_model(source: ModelSource, design: Design, memory_limit: int | None = None, *, options: Options = BEST,
                outputs_only: bool = False) -> Check:
    """Read, plan and schedule a model for a design, and tell all that can be told so far.

    Parameters
    ----------
    memory_limit
        Bytes of main memory that there are; all that can be addressed, if None. Memory is counted as of a compiled
        model, which stores no tensor only to compare it.
    options
        Options of the compiler.
    outputs_only
        Predict the cycles of a program that stores only what the network needs, as `runtime.predicted_run` does.

    Raises
    ------
    CompileError
        If the file is no valid model, or not one that is compiled at all.
    ExecutionError
        If the program waits for what nobody signals.
    InputError
        If the state that the source states is none.
    """
    model, machine = source.path, design.machine
    try:
        network = compile_network(model, options, extension_of(machine))
    except UnsupportedNodeError as error:
        return refused(model, machine, error)
    if not network.layers:
        raise UnsupportedModelError(f"Model {model.name!r} must have a layer to compile, and has none")
    about_model = model_warnings(network)
    try:
        memory = _memory(network, machine, options, memory_limit)
        compiled = compile_layers(network, machine, keep_tensors=not outputs_only, options=options, loops=False)
    except CompileError as error:
        refusals = _unplanned(network, machine)
        if not refusals and isinstance(error, UnsupportedNodeError):
            return refused(model, machine, error)
        if not refusals:
            raise
        return _refused(model, machine, refusals)
    job = job_of_compiled(compiled, network.name)
    cycles, tail = predict_layer_cycles(job, design.timing)
    ranges = source.ranges
    noisy = ranges is not None and ranges.kind is RangesKind.NOISE
    layers = _layers(compiled, cycles, tail)
    slower = slower_remarks(source, sum(cycles) + tail, machine, design.timing, options, outputs_only=outputs_only)
    warnings = (*(source.notes if noisy else () if ranges is None else ranges.remarks),
                 *float_remarks(source, layers), *slower, *about_model)
    ends = node_args(job.inputs, job.unread), node_args(job.outputs)
    check_state(source.state, *ends, batch=options.batch)
    states = state_sentences(source.state, job.inputs) or state_remarks(*ends)
    return Check(model=model.stem, machine=machine.name, layers=layers, tail_cycles=tail, refusals=(),
                 warnings=warnings, memory=memory,
                 notes=(*(() if noisy else source.notes), *(str(saved) for saved in (compiled.savings,) if saved),
                        *map(str, single_patches(compiled.plans, machine)),
                        *filter(None, (lacking_units(compiled.plans, {each.name: each.cycles for each in layers},
                                                     machine),)), *states,
                        *kept_sentences(job, predict_opening(job, design.timing))))


def refused(model: Path | str, machine: Machine, error: UnsupportedNodeError) -> Check:
    """Return the check of a model with nodes that are not compiled, as the ``error`` names them."""
    return _refused(Path(model), machine, list(map(_refusal, (error, *error.others))), error.options)


def _refused(model: Path, machine: Machine, refusals: list[Refusal], options: tuple[str, ...] = ()) -> Check:
    return Check(model=model.stem, machine=machine.name, layers=(), warnings=(), memory=None,
                 refusals=tuple(dict.fromkeys(refusals)), options=options)


def _refusal(error: UnsupportedNodeError) -> Refusal:
    return Refusal(error.node, error.op, error.reason, error.way_out)


def _unplanned(network: Network, machine: Machine) -> list[Refusal]:
    """Return what is wrong with each layer that cannot be planned."""
    found = []
    for layer in network.layers:
        try:
            _plan(layer, network, machine)
        except UnsupportedNodeError as error:
            found.append(_refusal(error))
        except CompileError as error:
            found.append(Refusal(layer.name, "", str(error).removesuffix(f": {_LARGER}"),
                                 f"{_LARGER}, or compute that layer outside of the model"))
    return found


def _plan(layer: AnyLayer, network: Network, machine: Machine) -> LayerPlan | CorePlan:
    if isinstance(layer, CoreLayer):
        return plan_core(layer, network, machine)
    return plan_layer(layer, machine, layouts=LayerLayouts.of(layer, network.tensors))


def _layers(compiled: Compiled, cycles: Sequence[int], tail: int) -> tuple[CheckedLayer, ...]:
    """Return the layers with their predicted ``cycles``."""
    explained = explain_layers(compiled.plans, compiled.machine)
    return tuple(_checked(layer, each, taken, sum(cycles) + tail)
                 for layer, each, taken in zip(compiled.network.layers, explained, cycles, strict=True))


def _checked(layer: AnyLayer, explained: LayerExplanation, cycles: int, total: int) -> CheckedLayer:
    core = isinstance(layer, CoreLayer)
    return CheckedLayer(
        name=layer.name, onnx_nodes=layer.onnx_nodes, runs_on=_runs_on(layer, explained.algorithm),
        reason=layer.reason if isinstance(layer, CoreLayer) else "",
        operator=layer.op if isinstance(layer, CoreLayer) else "", fused=() if core else explained.fused,
        macs=layer.macs, cycles=cycles, share=cycles / max(total, 1),
        exact=layer.exact)


def _runs_on(layer: AnyLayer, algorithm: str) -> str:
    return "act" if not isinstance(layer, CoreLayer) and layer.kind == "pass" else algorithm


def _memory(network: Network, machine: Machine, options: Options, limit: int | None) -> MemoryNeeded:
    """Return what a compiled model needs."""
    network, _ = without_idle_channels(network, machine, options)
    network, plans = fit_network(network_in_batch(network, machine, options), machine, options)
    plans = in_bands(plans, network, machine, options)
    datapath = {index: plan for index, plan in enumerate(plans) if isinstance(plan, LayerPlan)}
    core = {index: plan for index, plan in enumerate(plans) if isinstance(plan, CorePlan)}
    image, _ = pack_constants(pack_network(datapath, machine)[0], core, network)
    memory = plan_memory(network, len(image), on_chip=on_chip_only(plans, network), together=computed_together(plans))
    return MemoryNeeded(weights=len(image), activations=memory.peak_bytes, total=memory.memory_bytes,
                        limit=_ADDRESSABLE if limit is None else limit)
