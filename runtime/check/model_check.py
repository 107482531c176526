"""``tilewright check``: before anything is built, where each node of a model would run, what it costs, what fails."""

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console, JustifyMethod
from rich.table import Table

from tilewright.compiler.compile import fit_network
from tilewright.compiler.errors import CompileError, UnsupportedModelError, UnsupportedNodeError
from tilewright.compiler.explain import LayerExplanation, explain_layers
from tilewright.compiler.network.layers import AnyLayer, CoreLayer, Network
from tilewright.compiler.network.layout import LayerLayouts
from tilewright.compiler.network.memory_map import plan_memory
from tilewright.compiler.network.options import BEST
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.compiler.plan.core_plan import CorePlan, pack_constants, plan_core
from tilewright.compiler.plan.planner import LayerPlan, plan_layer
from tilewright.compiler.schedule.chaining import chain, on_chip_only
from tilewright.compiler.schedule.weight_image import pack_network
from tilewright.isa.machine import Machine
from tilewright.isa.memory import MAIN_BASE
from tilewright.runtime.check.warnings import model_warnings, share_warnings
from tilewright.runtime.execution.report_tables import plain
from tilewright.runtime.quantise.quantised_model import calibration_note

ADDRESSABLE = (1 << 32) - MAIN_BASE
"""Bytes of main memory that 32-bit addresses reach."""

_LARGER = "take a larger machine"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedLayer:
    """One layer: the nodes of the model it replaces, what computes it and why, what is fused, and what it costs.

    ``runs_on`` is ``conv23``, ``conv``, ``pool``, ``act`` (clamps, tables, additions and poolings alone) or ``core``;
    ``reason`` tells why it is the core. ``cycles`` are predicted, ``share`` is of all.
    """

    name: str
    onnx_nodes: tuple[str, ...]
    runs_on: str
    reason: str
    fused: tuple[str, ...]
    macs: int
    cycles: int
    share: float
    exact: bool


@dataclass(frozen=True, slots=True)
class Refusal:
    """A node that is not compiled, why, and what to do about it."""

    node: str
    op: str
    reason: str
    way_out: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
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
    """What was found. With refusals there may be no layers, and no memory."""

    model: str
    machine: str
    layers: tuple[CheckedLayer, ...]
    refusals: tuple[Refusal, ...]
    warnings: tuple[str, ...]
    memory: Memory | None

    @property
    def compiles(self) -> bool:
        """Whether the model can be compiled and has room."""
        return not self.refusals and (self.memory is None or self.memory.fits)

    @property
    def cycles(self) -> int:
        """Predicted for the layers one after the other."""
        return sum(layer.cycles for layer in self.layers)

    def to_json(self) -> dict[str, Any]:
        """Return dicts, lists and numbers; the keys are a contract."""
        return {"model": self.model, "machine": self.machine, "compiles": self.compiles,
                "predicted_cycles": self.cycles, "layers": [asdict(layer) for layer in self.layers],
                "refusals": [asdict(refusal) for refusal in self.refusals], "warnings": list(self.warnings),
                "memory": asdict(self.memory) | {"fits": self.memory.fits} if self.memory else None}


def check_model(model: Path, machine: Machine, memory_limit: int | None = None) -> Check:
    """Read and plan an ONNX file for ``machine``, and tell all that can be told so far.

    Parameters
    ----------
    memory_limit
        Bytes of main memory that there are; all that can be addressed, if None.

    Raises
    ------
    CompileError
        If the file is no valid model, or not one that is compiled at all.
    """
    try:
        network = compile_network(model)
    except UnsupportedNodeError as error:
        return _refused(model, machine, list(map(_refusal, (error, *error.others))))
    if not network.layers:
        raise UnsupportedModelError(f"Model {model.name!r} must have a layer to compile, and has none")
    try:
        network, plans = fit_network(network, machine)
        plans = chain(plans, network, machine, BEST)
    except CompileError:
        refusals = _unplanned(network, machine)
        if not refusals:
            raise
        return _refused(model, machine, refusals)
    explained = explain_layers(plans, machine)
    total = sum(each.predicted_cycles for each in explained)
    layers = tuple(_checked(layer, each, total) for layer, each in zip(network.layers, explained, strict=True))
    note = calibration_note(model)
    warnings = (*((note,) if note is not None and "QUICK LOOK" in note else ()),
                *share_warnings(network.layers, [each.predicted_cycles for each in explained]),
                *model_warnings(network))
    return Check(model=model.stem, machine=machine.name, layers=layers, refusals=(), warnings=warnings,
                 memory=_memory(network, plans, machine, memory_limit))


def _refused(model: Path, machine: Machine, refusals: list[Refusal]) -> Check:
    return Check(model=model.stem, machine=machine.name, layers=(), warnings=(), memory=None,
                 refusals=tuple(dict.fromkeys(refusals)))


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
                                 f"{_LARGER}, or compute that layer outside"))
    return found


def _plan(layer: AnyLayer, network: Network, machine: Machine) -> LayerPlan | CorePlan:
    if isinstance(layer, CoreLayer):
        return plan_core(layer, network, machine)
    return plan_layer(layer, machine, layouts=LayerLayouts.of(layer, network.tensors))


def _checked(layer: AnyLayer, explained: LayerExplanation, total: int) -> CheckedLayer:
    core = isinstance(layer, CoreLayer)
    return CheckedLayer(
        name=layer.name, onnx_nodes=layer.onnx_nodes, runs_on=_runs_on(layer, explained.algorithm),
        reason=layer.reason if isinstance(layer, CoreLayer) else "", fused=() if core else explained.fused,
        macs=layer.macs, cycles=explained.predicted_cycles, share=explained.predicted_cycles / max(total, 1),
        exact=layer.exact)


def _runs_on(layer: AnyLayer, algorithm: str) -> str:
    return "act" if not isinstance(layer, CoreLayer) and layer.kind == "pass" else algorithm


def _memory(network: Network, plans: tuple[LayerPlan | CorePlan, ...], machine: Machine,
            limit: int | None) -> Memory:
    datapath = {index: plan for index, plan in enumerate(plans) if isinstance(plan, LayerPlan)}
    core = {index: plan for index, plan in enumerate(plans) if isinstance(plan, CorePlan)}
    image, _ = pack_constants(pack_network(datapath, machine)[0], core, network.constants)
    memory = plan_memory(network, len(image), on_chip=on_chip_only(plans))
    return Memory(weights=len(image), activations=memory.peak_bytes, total=memory.memory_bytes,
                  limit=ADDRESSABLE if limit is None else limit)


# ---- for a person


_COLUMNS: tuple[tuple[str, JustifyMethod], ...] = (
    ("layer", "left"), ("with it", "left"), ("runs on", "left"), ("cycles,\npredicted", "right"),
    ("share", "right"), ("fused, or why the core", "left"))


def print_check(check: Check, out: Console) -> None:
    """Print the table of the layers or of the refusals, then what holds for the model."""
    if check.refusals:
        out.print(refusal_table(check))
    else:
        out.print(check_table(check))
    for line in summary(check):
        out.print(plain(line), highlight=False, soft_wrap=True)


def check_table(check: Check) -> Table:
    """Return the table of the layers, and their sum."""
    table = Table(title=plain(f"{check.model} for {check.machine}"))
    for head, justify in _COLUMNS:
        table.add_column(head, justify=justify, overflow="fold", no_wrap=justify == "right" or head == "runs on")
    for layer in check.layers:
        detail = layer.reason or ", ".join(layer.fused)
        others = ", ".join(node for node in layer.onnx_nodes if node != layer.name)
        table.add_row(plain(layer.name), plain(others), layer.runs_on, f"{layer.cycles:,}",
                      f"{100 * layer.share:.1f} %", plain(detail))
    table.add_section()
    table.add_row("in all", "", "", f"{check.cycles:,}", "", "")
    return table


def refusal_table(check: Check) -> Table:
    """Return the table of all that is not compiled."""
    table = Table(title=plain(f"{check.model} for {check.machine}: not compiled"))
    for head in ("node", "operator", "why", "what to do"):
        table.add_column(head, overflow="fold")
    for each in check.refusals:
        table.add_row(plain(each.node or "–"), plain(each.op or "–"), plain(each.reason), plain(each.way_out))
    return table


def summary(check: Check) -> list[str]:
    """Return what holds for the model, one line each."""
    lines = []
    if check.layers:
        counts = Counter(layer.runs_on for layer in check.layers)
        share = sum(layer.share for layer in check.layers if layer.runs_on == "core")
        lines.append(f"{len(check.layers)} layers: " + ", ".join(f"{count} on {what}" for what, count in counts.items())
                     + f"; {100 * (1 - share):.1f} % of the predicted cycles are the coprocessor's")
    if check.memory is not None:
        memory = check.memory
        lines.append(f"main memory: {memory.total:,} bytes, of which {memory.weights:,} are weights and constants and "
                     f"{memory.activations:,} tensors between layers; {memory.limit:,} there are: "
                     f"{'it fits' if memory.fits else 'it does NOT fit'}")
    lines += [f"warning: {text}" for text in check.warnings]
    if check.refusals:
        lines.append(f"{len(check.refusals)} refusal{'s' if len(check.refusals) > 1 else ''}: it cannot be compiled")
    else:
        lines.append("it can be compiled" if check.compiles else "it can be compiled, but has no room in memory")
    return lines
