"""A layer of the host core as a call of its kernel.

Inputs that a kernel wants as constants (``Kernel.parameters``) go into the call's attributes.
"""

from collections.abc import Mapping

import numpy as np

from tilewright.compiler.kernels.language.kernel import Kernel
from tilewright.compiler.kernels.registry import CORE_KERNELS
from tilewright.compiler.network.layers import CoreLayer, TensorInfo
from tilewright.compiler.network.operands import constant_operand, tensor_operand
from tilewright.isa.program import ABSENT, Call

__all__ = ["core_call"]


def core_call(layer: CoreLayer, tensors: Mapping[str, TensorInfo], constants: Mapping[str, np.ndarray],
              addresses: Mapping[str, int] | None = None) -> Call:
    """Return the call that ``layer`` is; operands that have none of the ``addresses`` are at 0."""
    kernel = CORE_KERNELS.get(layer.op)
    places = addresses or {}
    attrs = {name: _plain(value) for name, value in layer.attrs.items()}
    known = kernel.values if kernel is not None else {}
    for name in known.values():
        attrs.pop(name, None)
    inputs = []
    for index, name in enumerate(layer.inputs):
        parameter = _parameter(kernel, index)
        if parameter is not None and name in constants:
            attrs[parameter] = _plain(constants[name])
            inputs.append(ABSENT)
        elif name in constants and name not in tensors:
            if index in known:
                attrs[known[index]] = _plain(constants[name])
            inputs.append(constant_operand(constants[name], places.get(name, 0)))
        else:
            inputs.append(tensor_operand(tensors[name], places.get(name, 0)) if name else ABSENT)
    return Call(layer.op, tuple(inputs), tensor_operand(tensors[layer.output], places.get(layer.output, 0)), attrs)


def _plain(value: object) -> object:
    """Return an attribute as JSON has it: Python's numbers, strings, and lists of them."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def _parameter(kernel: Kernel | None, index: int) -> str | None:
    return None if kernel is None else kernel.parameters.get(index)
