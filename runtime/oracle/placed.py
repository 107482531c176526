"""What ONNX Runtime shows only as part of a larger tensor, and a network has as a tensor of its own."""

from collections.abc import Mapping

import numpy as np

from tilewright.compiler.network.layers import TensorInfo
from tilewright.compiler.network.operands import from_memory, to_memory
from tilewright.runtime.oracle.conversion import as_int8


def with_parts(reference: Mapping[str, np.ndarray], tensors: Mapping[str, TensorInfo]) -> dict[str, np.ndarray]:
    """Return ``reference`` and, cut from its tensors, those of ``tensors`` that lie in one of them.

    Parameters
    ----------
    reference : mapping of str to ndarray
        As `runtime.oracle.onnx_runtime` returns them.
    tensors : mapping of str to TensorInfo
        Of the network; those inside others are int8 and become so.
    """
    found = dict(reference)
    for name, info in tensors.items():
        if info.place is not None and name not in reference and info.place.parent in reference:
            whole = tensors[info.place.parent]
            content = to_memory(as_int8(reference[whole.name]).reshape(whole.array_shape), whole)
            found[name] = from_memory(content[info.place.offset:], info)
    return found
