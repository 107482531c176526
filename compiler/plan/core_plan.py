"""The plan of a layer on the host core: its call, the cycles of the call, and the constants that it needs in memory."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.kernels.refusal import refusal_of
from tilewright.compiler.kernels.staging import call_cycles, can_be_staged, staged_if_quicker
from tilewright.compiler.kernels.ways_out import way_out_of_refusal
from tilewright.compiler.network.core_call import core_call
from tilewright.compiler.network.layers import CoreLayer, Network, TensorInfo
from tilewright.compiler.network.memory_map import ALIGNMENT
from tilewright.compiler.plan.cost import Cost
from tilewright.isa.machine import Machine, MemoryTiming
from tilewright.isa.program import Call

__all__ = ["CorePlan", "pack_constants", "placed", "plan_core"]

_ALIGNMENT = 16
"""Start of every constant in the image."""


@dataclass(frozen=True, slots=True)
class CorePlan:
    """The plan of a core layer: its call, with all addresses still 0, and its cost on the core."""

    layer: CoreLayer
    call: Call
    cost: Cost

    def summary(self) -> str:
        """Return the plan in a line."""
        where = "on copies in the core's own memory" if self.call.staged else "in main memory"
        return f"on the host core, in C, {where}: {self.layer.reason}"


def plan_core(layer: CoreLayer, network: Network, machine: Machine) -> CorePlan:
    """Return how the host core computes ``layer``, with the default timing of main memory.

    Raises
    ------
    UnsupportedNodeError
        If it cannot.
    """
    call = core_call(layer, _of_image(layer, network), network.constants)
    if (reason := refusal_of(call)) is not None:
        raise UnsupportedNodeError(layer.onnx_nodes[0] if layer.onnx_nodes else layer.name, layer.op, reason,
                                   way_out_of_refusal(layer.reason, reason))
    timing = MemoryTiming.default(machine)
    call = staged_if_quicker(call, timing)
    images = network.tensors[layer.output].images
    return CorePlan(layer, call, Cost(images * call_cycles(call, timing), 0, images))


def placed(plan: CorePlan, network: Network, addresses: Mapping[str, int]) -> tuple[Call, ...]:
    """Return the plan's call for each image, its operands at ``addresses``, those of constants among them."""
    tensors = _of_image(plan.layer, network)
    calls = []
    for index in range(network.tensors[plan.layer.output].images):
        there = {name: address + index * network.tensors[name].image_step if name in tensors else address
                 for name, address in addresses.items()}
        call = core_call(plan.layer, tensors, network.constants, there)
        # Parts of other tensors may lie at any address, and are then not copied.
        calls.append(replace(call, staged=plan.call.staged and can_be_staged(call)))
    return tuple(calls)


def _of_image(layer: CoreLayer, network: Network) -> dict[str, TensorInfo]:
    """Return the tensors that ``layer`` reads and writes, as they are of one image."""
    return {name: network.tensors[name].of_image for name in (*layer.reads, *layer.writes) if name in network.tensors}


def _stored_constants(plan: CorePlan) -> tuple[str, ...]:
    """Return the names of what must be in the weight image, if they are constants: not those among the attributes."""
    return tuple(dict.fromkeys(name for name, operand in zip(plan.layer.inputs, plan.call.inputs, strict=True)
                               if operand.present))


# ---- constants in the image


def pack_constants(image: bytes, plans: Mapping[int, CorePlan], network: Network) -> tuple[bytes, dict[str, int]]:
    """Return the weight image with the constants behind it that layers read, and where each of them starts."""
    parts, size, offsets, constants = [image], len(image), {}, network.constants
    added = sorted(constants.keys() & network.tensors.keys())
    for name in dict.fromkeys([*added, *(name for plan in plans.values() for name in _stored_constants(plan)
                                         if name in constants)]):
        padding = -size % (ALIGNMENT if name in network.tensors else _ALIGNMENT)
        content = np.ascontiguousarray(constants[name]).tobytes()
        parts += [bytes(padding), content]
        offsets[name] = size + padding
        size += padding + len(content)
    return b"".join(parts), offsets
