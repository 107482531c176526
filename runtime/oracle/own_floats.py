"""How far ONNX Runtime's integer kernels are from its own float kernels, each by itself, on the same inputs.

A kernel that works on levels rounds once where float kernels round too, so a level is nothing. Some are far off: they
have another rule, or take less of the model into account.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

from tilewright.runtime.oracle.onnx_runtime import ONNX_RUNTIME_ERRORS, run_unfused

__all__ = ["OwnDifference", "far_sentence", "own_differences"]

_OWN = ":own"
_MOST_NEAR = 1
"""Levels between an integer kernel and a float one that are the rounding of either."""

_LISTED = 3


@dataclass(frozen=True, slots=True)
class OwnDifference:
    """A tensor of levels, the operator that it is the quantised result of, and how many levels apart the two are."""

    tensor: str
    op: str
    levels: int


def own_differences(model: Path, inputs: Mapping[str, np.ndarray],
                    tensors: Mapping[str, np.ndarray]) -> tuple[OwnDifference, ...]:
    """Return where integer and float kernels are more than a level apart, the farthest first.

    Parameters
    ----------
    model : Path
        In Q/DQ form; models in another have integer kernels of their own, and no float ones.
    inputs : mapping of str to ndarray
        Of one run.
    tensors : mapping of str to ndarray
        Levels of that run, by the names that QuantizeLinear writes. Each is taken for what the model computes there,
        so that a difference is that of one kernel.
    """
    proto = onnx.load(model)
    makers = {name: node for node in proto.graph.node for name in node.output}
    cut = [node for node in proto.graph.node if node.op_type == "QuantizeLinear" and node.input[0] in makers
           and node.output[0] in tensors]
    if not cut:
        return ()
    del proto.graph.output[:]
    for node in cut:
        name, levels = node.output[0], tensors[node.output[0]]
        node.output[0] = f"{name}{_OWN}"
        kind = helper.np_dtype_to_tensor_dtype(levels.dtype)
        proto.graph.input.append(helper.make_tensor_value_info(name, kind, levels.shape))
        proto.graph.output.append(helper.make_tensor_value_info(node.output[0], kind, levels.shape))
    del proto.graph.value_info[:]
    fed = {node.output[0].removesuffix(_OWN) for node in cut}
    try:
        own = run_unfused(proto, {**inputs, **{name: tensors[name] for name in fed}})
    except ONNX_RUNTIME_ERRORS:
        return ()       # no float kernel for it
    found = []
    for node in cut:
        name = node.output[0].removesuffix(_OWN)
        apart = np.abs(own[node.output[0]].astype(np.int32) - tensors[name]).max(initial=0)
        if apart > _MOST_NEAR:
            found.append(OwnDifference(name, makers[node.input[0]].op_type, int(apart)))
    return tuple(sorted(found, key=lambda each: -each.levels))


def far_sentence(differences: Sequence[OwnDifference]) -> tuple[str, ...]:
    """Return the sentence about such tensors; nothing of none."""
    if not differences:
        return ()
    listed = ", ".join(f"{each.tensor} ({each.op}) {each.levels}" for each in differences[:_LISTED])
    more = f" and {len(differences) - _LISTED} more" if len(differences) > _LISTED else ""
    said = (f"WARNING: ONNX Runtime's integer kernels are far from its own float kernels here, in levels: {listed}"
            f"{more}; the reference is the integer kernels")
    return (said,)
