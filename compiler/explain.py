"""A compiled network in figures: algorithm, tile, loop order, predicted cost and bound of each layer."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from tilewright.compiler.channels.fewer_channels import ChannelSavings
from tilewright.compiler.compile import Compiled
from tilewright.compiler.network.layers import Layer
from tilewright.compiler.network.memory_map import plan_memory
from tilewright.compiler.network.options import Options
from tilewright.compiler.plan.core_plan import CorePlan
from tilewright.compiler.plan.cost import mac_cycles, post_cycles
from tilewright.compiler.plan.footprint import slots_of
from tilewright.compiler.plan.planner import LayerPlan
from tilewright.compiler.plan.roofline import layer_roofline
from tilewright.compiler.schedule.chaining import computed_together, may_stay_on_chip
from tilewright.compiler.tensor_lives import TensorLife, tensor_lives
from tilewright.isa.machine import Machine
from tilewright.isa.rows.row_norm import RowNorm

__all__ = ["Explanation", "LayerExplanation", "explain", "explain_layers", "fused"]

_Bound = Literal["compute", "memory", "post-processing", "host core"]
_LoopOrder = Literal["blocks outer", "tiles outer"]
_PLAIN = (int, float, str, tuple, list)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerExplanation:
    """Explanation of one layer: how it is computed, and what decides its cycles.

    Attributes
    ----------
    name : str
    onnx_nodes, fused : tuple of str
        Nodes of the model it replaces; what the layer does beyond its sums.
    algorithm : str
        ``conv23``, ``conv``, ``pool`` or, for what the host core computes, ``core``.
    paired_rows : bool
        Two kernel rows are multiplied per cycle.
    tile_rows, tile_columns, tiles : int
        Output rows and columns of the largest tile, and the number of tiles: strips, if the columns are all.
    block_channels, blocks : int
        Output channels whose weights are loaded together, and the number of such blocks.
    kernel_parts : int
        Pieces of a kernel too large for the weight memory.
    loop_order : str
        ``blocks outer``: for each block all tiles, so weights cross the bus once. ``tiles outer``: the other way.
    predicted_cycles, predicted_bytes : int
        Of the planner's cost model.
    compute_cycles, memory_cycles, post_cycles : int
        Cycles in which array, bus and post-processing are busy; they overlap.
    roofline_cycles : int
        See `compiler.plan.roofline`.
    input_on_chip, output_on_chip : bool
        Input or output lie in the activation buffer: it is loaded from nowhere, it stays there for the next layer.
    attributes : dict of str to int, float, str or sequence of them
        What the layer computes: kernel, strides, pads, …; ONNX's attributes of what the host core computes.
    """

    name: str
    onnx_nodes: tuple[str, ...]
    fused: tuple[str, ...]
    algorithm: str
    paired_rows: bool
    tile_rows: int
    tile_columns: int
    tiles: int
    block_channels: int
    blocks: int
    kernel_parts: int
    loop_order: _LoopOrder
    predicted_cycles: int
    predicted_bytes: int
    compute_cycles: int
    memory_cycles: int
    post_cycles: int
    roofline_cycles: int
    input_on_chip: bool = False
    output_on_chip: bool = False
    attributes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def bound(self) -> _Bound:
        """The unit that is busy longest."""
        if self.algorithm == "core":
            return "host core"
        busy: dict[_Bound, int] = {"compute": self.compute_cycles, "memory": self.memory_cycles,
                                  "post-processing": self.post_cycles}
        return max(busy, key=lambda unit: busy[unit])

    @property
    def fuses_pool(self) -> bool:
        """Whether a max pooling has joined it."""
        return any(text.startswith("max pool") for text in self.fused)

    def to_json(self) -> dict[str, Any]:
        """Return dicts, lists and numbers; the keys are a contract."""
        return {
            "name": self.name, "onnx_nodes": list(self.onnx_nodes), "fused": list(self.fused),
            "algorithm": self.algorithm, "paired_rows": self.paired_rows,
            "tile": {"rows": self.tile_rows, "columns": self.tile_columns, "count": self.tiles},
            "block": {"channels": self.block_channels, "count": self.blocks, "kernel_parts": self.kernel_parts},
            "loop_order": self.loop_order, "predicted_cycles": self.predicted_cycles,
            "predicted_bytes": self.predicted_bytes, "bound": self.bound, "compute_cycles": self.compute_cycles,
            "memory_cycles": self.memory_cycles, "post_cycles": self.post_cycles,
            "roofline_cycles": self.roofline_cycles,
            "on_chip": {"input": self.input_on_chip, "output": self.output_on_chip},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Explanation of a network on a machine.

    Attributes
    ----------
    model : str
    machine : Machine
    options : Options
    layers : tuple of LayerExplanation
    memory_bytes : int
        Of main memory that the program needs, places of tensors being used again.
    lives : tuple of TensorLife
        Those places, from layer to layer.
    savings : ChannelSavings or None
        What is saved by channels that are not computed.
    """

    model: str
    machine: Machine
    options: Options
    layers: tuple[LayerExplanation, ...]
    memory_bytes: int
    lives: tuple[TensorLife, ...] = ()
    savings: ChannelSavings | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for a report."""
        return () if self.savings is None else (str(self.savings),)

    @property
    def predicted_cycles(self) -> int:
        """Cycles that the planner expects, layers one after the other."""
        return sum(layer.predicted_cycles for layer in self.layers)

    @property
    def predicted_bytes(self) -> int:
        """Bytes that the planner expects to cross the bus."""
        return sum(layer.predicted_bytes for layer in self.layers)

    @property
    def roofline_cycles(self) -> int:
        """See `compiler.plan.roofline`."""
        return sum(layer.roofline_cycles for layer in self.layers)

    def to_json(self) -> dict[str, Any]:
        """Return dicts, lists and numbers; the keys are a contract."""
        return {"model": self.model, "machine": self.machine.name, "options": asdict(self.options),
                "predicted_cycles": self.predicted_cycles, "predicted_bytes": self.predicted_bytes,
                "roofline_cycles": self.roofline_cycles, "memory_bytes": self.memory_bytes,
                "layers": [layer.to_json() for layer in self.layers]}


def explain(compiled: Compiled) -> Explanation:
    """Return how a network is computed."""
    constants = sum(len(content) for _, content in compiled.images)
    plan = plan_memory(compiled.network, constants, on_chip=may_stay_on_chip(compiled.plans, compiled.network),
                       together=computed_together(compiled.plans))
    return Explanation(
        model=compiled.network.name, machine=compiled.machine, options=compiled.options,
        layers=explain_layers(compiled.plans, compiled.machine),
        memory_bytes=plan.memory_bytes,
        lives=tensor_lives(compiled.network, (plan.weights, constants), plan.tensors), savings=compiled.savings)


def explain_layers(plans: Sequence[LayerPlan | CorePlan], machine: Machine) -> tuple[LayerExplanation, ...]:
    """Return the figures of ``plans`` on ``machine``, layer by layer."""
    return tuple(_explain(plan, machine) if isinstance(plan, LayerPlan) else _explain_core(plan) for plan in plans)


def _explain_core(plan: CorePlan) -> LayerExplanation:
    """Return the same of a layer of the host core: no tiles, nothing on the bus, and no bound below its estimate."""
    layer, cycles = plan.layer, plan.cost.cycles
    return LayerExplanation(
        name=layer.name, onnx_nodes=layer.onnx_nodes, fused=(f"{layer.op}: {layer.reason}",), algorithm="core",
        paired_rows=False, tile_rows=0, tile_columns=0, tiles=0, block_channels=0, blocks=0, kernel_parts=0,
        loop_order="tiles outer",
        predicted_cycles=cycles, predicted_bytes=0, compute_cycles=0, memory_cycles=0, post_cycles=0,
        roofline_cycles=cycles,
        attributes={name: value for name, value in layer.attrs.items() if isinstance(value, _PLAIN)})


def _explain(plan: LayerPlan, machine: Machine) -> LayerExplanation:
    layer, tile, block = plan.layer, plan.largest, plan.blocks[0]
    array = post = 0
    for each in plan.tiles:
        for part in plan.blocks:
            tiles, groups = slots_of(len(each.rows.conv), len(each.columns.conv), part.channels, plan.nest, machine)
            array += mac_cycles(tiles, groups, part.steps, machine)
            if not part.holds:
                post += post_cycles(tiles, part.channels, plan.work, plan.nest, machine)
    return LayerExplanation(
        name=layer.name, onnx_nodes=layer.onnx_nodes, fused=fused(layer),
        algorithm=plan.nest.algorithm.value,
        paired_rows=plan.nest.paired,
        tile_rows=len(tile.rows.out), tile_columns=len(tile.columns.out), tiles=len(plan.tiles),
        block_channels=block.channels, blocks=len({each.first_group for each in plan.blocks}),
        kernel_parts=sum(each.first_group == block.first_group for each in plan.blocks),
        loop_order="blocks outer" if plan.weights_outer else "tiles outer",
        predicted_cycles=plan.cost.cycles, predicted_bytes=plan.cost.bytes, compute_cycles=array,
        memory_cycles=plan.cost.bytes // machine.bus_bytes, post_cycles=post,
        roofline_cycles=layer_roofline(layer, machine).cycles,
        input_on_chip=plan.chip.input, output_on_chip=plan.chip.output, attributes=_attributes(layer))


def _attributes(layer: Layer) -> dict[str, Any]:
    """Return what a layer of the datapath sums, and over which windows; what is as usual is left out."""
    found: dict[str, Any] = {"input": layer.in_shape, "sums": layer.conv_shape, "result": layer.out_shape,
                             "kernel": layer.kernel}
    usual = {"strides": (1, 1), "dilations": (1, 1), "pads": (0, 0, 0, 0), "groups": 1}
    found |= {name: value for name, default in usual.items() if (value := getattr(layer, name)) != default}
    if layer.pool is not None:
        found |= {"pooling": layer.pool.kernel, "pooling strides": layer.pool.strides}
    return found


def fused(layer: Layer) -> tuple[str, ...]:
    """Return a layer's operations besides its sums and their requantisation."""
    bounds = layer.residual or layer.requantisation
    found = []
    if layer.residual:
        found.append(f"add {layer.residual.tensor}")
    if (bounds.low, bounds.high) != (-128, 127):
        found.append(f"clamp {bounds.low} … {bounds.high}")
    if layer.table is not None:
        found.append("table")
    if layer.rows is not None:
        found.append("normalisation" if isinstance(layer.rows, RowNorm) else "softmax")
    if layer.pool and layer.kind != "pass":
        kernel, strides = layer.pool.kernel, layer.pool.strides
        found.append(f"max pool {kernel[0]}x{kernel[1]} / {strides[0]}")
    return tuple(found)
