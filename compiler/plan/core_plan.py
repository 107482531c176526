"""A core layer as a call of its kernel, what that costs on the host core, and the constants it needs in memory.

Inputs that a kernel wants as constants (``Kernel.parameters``) go into the call's attributes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.kernels.language.kernel import Kernel
from tilewright.compiler.kernels.registry import KERNELS
from tilewright.compiler.kernels.staging import call_cycles, can_be_staged, staged_if_quicker
from tilewright.compiler.network.layers import CoreLayer, Network, TensorInfo
from tilewright.compiler.network.operands import constant_operand, tensor_operand
from tilewright.compiler.plan.cost import Cost
from tilewright.isa.machine import Machine, MemoryTiming
from tilewright.isa.program import ABSENT, DTYPES, MAX_RANK, Call

ALIGNMENT = 16
"""Start of every constant in the image."""

WAY_OUT = "compute that part of the model outside, or replace the node by one that is supported"


@dataclass(frozen=True, slots=True)
class CorePlan:
    """How a core layer is computed: the call that it is, all addresses still 0, and what that costs on the core."""

    layer: CoreLayer
    call: Call
    cost: Cost

    def summary(self) -> str:
        """Return the plan in a line."""
        where = "on copies in its own memory" if self.call.staged else "in main memory"
        return f"on the host core, in C, {where}: {self.layer.reason}"


def plan_core(layer: CoreLayer, network: Network, machine: Machine) -> CorePlan:
    """Return how the host core computes ``layer``, with the default timing of main memory.

    Raises
    ------
    UnsupportedNodeError
        If it cannot.
    """
    call = call_of(layer, network.tensors, network.constants)
    if (reason := refusal_of(call)) is not None:
        raise UnsupportedNodeError(layer.onnx_nodes[0] if layer.onnx_nodes else layer.name, layer.op, reason, WAY_OUT)
    timing = MemoryTiming.default(machine)
    call = staged_if_quicker(call, timing)
    return CorePlan(layer, call, Cost(call_cycles(call, timing), 0, 1))


def refusal_of(call: Call) -> str | None:
    """Return why the host core cannot run ``call``, or None if it can."""
    kernel = KERNELS.get(call.kernel)
    if kernel is None:
        return "the host core has no kernel for this operator"
    for operand in call.operands:
        if operand.dtype not in DTYPES:
            return f"the host core has no numbers of type {operand.dtype}"
        if len(operand.dims) > MAX_RANK:
            return f"the host core takes tensors of up to {MAX_RANK} dimensions, not {len(operand.dims)}"
    for index, name in kernel.parameters.items():
        if index < len(call.inputs) and call.inputs[index].present:
            return f"its input {name} must be a constant"
    return kernel.refusal(call)


def call_of(layer: CoreLayer, tensors: Mapping[str, TensorInfo], constants: Mapping[str, np.ndarray],
            addresses: Mapping[str, int] | None = None) -> Call:
    """Return the call that ``layer`` is; operands that have none of the ``addresses`` are at 0."""
    kernel = KERNELS.get(layer.op)
    places = addresses or {}
    attrs = {name: plain(value) for name, value in layer.attrs.items()}
    inputs = []
    for index, name in enumerate(layer.inputs):
        parameter = _parameter(kernel, index)
        if parameter is not None and name in constants:
            attrs[parameter] = plain(constants[name])
            inputs.append(ABSENT)
        elif name in constants:
            inputs.append(constant_operand(constants[name], places.get(name, 0)))
        else:
            inputs.append(tensor_operand(tensors[name], places.get(name, 0)) if name else ABSENT)
    return Call(layer.op, tuple(inputs), tensor_operand(tensors[layer.output], places.get(layer.output, 0)), attrs)


def placed(plan: CorePlan, network: Network, addresses: Mapping[str, int]) -> Call:
    """Return the plan's call with its operands at ``addresses``, those of constants among them."""
    call = call_of(plan.layer, network.tensors, network.constants, addresses)
    # Parts of other tensors may lie at any address, and are then not copied.
    return replace(call, staged=plan.call.staged and can_be_staged(call))


def stored_constants(plan: CorePlan) -> tuple[str, ...]:
    """Return the names of what must be in the weight image, if they are constants: not those among the attributes."""
    return tuple(dict.fromkeys(name for name, operand in zip(plan.layer.inputs, plan.call.inputs, strict=True)
                               if operand.present))


def plain(value: object) -> object:
    """Return an attribute as JSON has it: Python's numbers, strings, and lists of them."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def _parameter(kernel: Kernel | None, index: int) -> str | None:
    return None if kernel is None else kernel.parameters.get(index)


# ---- constants in the image


def pack_constants(image: bytes, plans: Mapping[int, CorePlan],
                   constants: Mapping[str, np.ndarray]) -> tuple[bytes, dict[str, int]]:
    """Return the weight image with the constants of core layers behind it, and where each of them starts."""
    parts, size, offsets = [image], len(image), {}
    for name in dict.fromkeys(name for plan in plans.values() for name in stored_constants(plan) if name in constants):
        padding = -size % ALIGNMENT
        content = np.ascontiguousarray(constants[name]).tobytes()
        parts += [bytes(padding), content]
        offsets[name] = size + padding
        size += padding + len(content)
    return b"".join(parts), offsets
