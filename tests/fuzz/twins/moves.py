"""Rewritings that insert movements and choices which leave every element where it is."""

from collections.abc import Callable, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.fuzz.twins.draft import Draft, attribute
from tests.fuzz.twins.idle import float_places, level_places

__all__ = ["MOVES", "Shape", "branched", "shapes"]

_CEILING = 22   # see findings/onnxruntime-ceil-shapes.sh

_LIMIT = 4
"""Places at most of one rewriting."""

Shape = tuple[int, ...]
_Insert = Callable[[Draft, str, Shape, int], str]


def _ints(draft: Draft, values: Sequence[int], stem: str) -> str:
    return draft.constant(np.asarray(values, np.int64), stem)


def _line(draft: Draft, name: str, shape: Shape, kind: int) -> str:
    """Reshape to one line and back."""
    line = draft.add("Reshape", [name, _ints(draft, [-1], "line")], name)
    return draft.add("Reshape", [line, _ints(draft, shape, "shape")], name)


def _wider(draft: Draft, name: str, shape: Shape, kind: int) -> str:
    """Give it a dimension of one, and take that away."""
    axis = _ints(draft, [draft.rng.randint(0, len(shape))], "axis")
    return draft.add("Squeeze", [draft.add("Unsqueeze", [name, axis], name), axis], name)


def _whole(draft: Draft, name: str, shape: Shape, kind: int) -> str:
    """Slice from the first element to the last."""
    axis = draft.rng.randrange(len(shape))
    bounds = [_ints(draft, [each], "bound") for each in (0, draft.rng.choice([shape[axis], 2**31 - 1]), axis)]
    return draft.add("Slice", [name, *bounds], name)


def _chosen(draft: Draft, name: str, shape: Shape, kind: int) -> str:
    """Gather every element along an axis."""
    axis = draft.rng.randrange(len(shape))
    return draft.add("Gather", [name, _ints(draft, range(shape[axis]), "indices")], name, axis=axis)


def _cut(draft: Draft, name: str, shape: Shape, kind: int) -> str:
    """Split along an axis, and join the parts."""
    axes = [axis for axis, size in enumerate(shape) if size > 1]
    if not axes:
        return name
    axis = draft.rng.choice(axes)
    first = draft.rng.randrange(1, shape[axis])
    parts = [draft.fresh(name), draft.fresh(name)]
    sizes = _ints(draft, [first, shape[axis] - first], "sizes")
    draft.graph.node.append(helper.make_node("Split", [name, sizes], parts, draft.fresh("Split"), axis=axis))
    return draft.add("Concat", parts, name, axis=axis)


def _enlarged(draft: Draft, name: str, shape: Shape, kind: int) -> str:
    """Pad by nothing, and expand to the shape that it has."""
    if draft.rng.random() < 0.5:
        return draft.add("Pad", [name, _ints(draft, [0] * 2 * len(shape), "pads")], name)
    if draft.rng.random() < 0.5:
        return draft.add("Tile", [name, _ints(draft, [1] * len(shape), "repeats")], name)
    return draft.add("Expand", [name, _ints(draft, shape, "shape")], name)


def _masked(draft: Draft, name: str, shape: Shape, kind: int) -> str:
    """Take it where a constant is true, which is everywhere."""
    element = helper.tensor_dtype_to_np_dtype(kind)
    mask = draft.constant(np.ones([1] * len(shape), np.bool_), "mask")
    return draft.add("Where", [mask, name, draft.constant(np.zeros([1] * len(shape), element), "other")], name)


def _negated(draft: Draft, name: str, shape: Shape, kind: int) -> str:
    """Negate it twice."""
    return draft.add("Neg", [draft.add("Neg", [name], name)], name)


def _branched(draft: Draft, name: str, shape: Shape, kind: int) -> str:
    """Take it in one branch of an If whose condition is a constant."""
    result = draft.fresh(name)
    value = helper.make_tensor_value_info(result, kind, shape)
    branches = {key: helper.make_graph([helper.make_node(op, [name], [result], draft.fresh(op))], key, [], [value])
                for key, op in (("then_branch", "Identity"), ("else_branch", "Neg"))}
    condition = draft.constant(np.asarray(True), "condition")
    return draft.add("If", [condition], name, **branches)


def _by_bytes(draft: Draft, name: str, shape: Shape, kind: int) -> str:
    """Cast levels to integers and back, or floats to doubles and back."""
    wide = TensorProto.DOUBLE if kind == TensorProto.FLOAT else TensorProto.INT32
    return draft.add("Cast", [draft.add("Cast", [name], name, to=wide)], name, to=kind)


def _normalised(draft: Draft, name: str, shape: Shape, kind: int) -> str:
    """Normalise by a mean of 0 and a variance of 1 of each channel."""
    if len(shape) < 2:
        return name
    one, none = (draft.constant(np.full(shape[1], each, np.float32), "parameter") for each in (1, 0))
    return draft.add("BatchNormalization", [name, one, none, none, one], name, epsilon=0.0)


def _and_nothing(draft: Draft, name: str, shape: Shape, kind: int) -> str:
    """Join it with a constant that has no element."""
    axis = draft.rng.randrange(len(shape))
    nothing = np.zeros([0 if each == axis else size for each, size in enumerate(shape)], np.float32)
    parts = [name, draft.constant(nothing, "nothing")]
    draft.rng.shuffle(parts)
    return draft.add("Concat", parts, name, axis=axis)


def _inserted(insert: _Insert, *, floats: bool = True, levels: bool = True) -> Callable[[Draft], int]:
    def rewrite(draft: Draft) -> int:
        known = shapes(draft)
        places = [*(float_places(draft) if floats else ()), *(level_places(draft) if levels else ())]
        found = [(node, index) for node, index in places if known.get(node.input[index], ((), 0))[0]]
        chosen = draft.rng.sample(found, min(len(found), draft.rng.randint(1, _LIMIT)))
        for node, index in chosen:
            node.input[index] = insert(draft, node.input[index], *known[node.input[index]])
        return len(chosen)

    return rewrite


def shapes(draft: Draft) -> dict[str, tuple[Shape, int]]:
    """Return shape and type of each tensor whose sizes ONNX's own inference tells.

    None with ``ceil_mode`` below opset 22, where inference counts a window that kernels leave out.
    """
    if draft.opset < _CEILING and any(attribute(node, "ceil_mode", 0) for node in draft.graph.node):
        return {}
    inferred = onnx.shape_inference.infer_shapes(draft.model, data_prop=True).graph
    found = {}
    for value in (*inferred.value_info, *inferred.input, *inferred.output):
        tensor = value.type.tensor_type
        sizes = tuple(each.dim_value for each in tensor.shape.dim)
        if tensor.HasField("shape") and all(sizes):
            found[value.name] = (sizes, tensor.elem_type)
    return found


MOVES: dict[str, Callable[[Draft], int]] = {
    "one line": _inserted(_line),
    "a dimension more": _inserted(_wider),
    "whole slice": _inserted(_whole),
    "gather of all": _inserted(_chosen),
    "cut and joined": _inserted(_cut),
    "enlarged by nothing": _inserted(_enlarged),
    "where true": _inserted(_masked),
    "normalised by nothing": _inserted(_normalised, levels=False),
    "joined with nothing": _inserted(_and_nothing, levels=False),
    "negated twice": _inserted(_negated, levels=False),
    "cast there and back": _inserted(_by_bytes),
}
"""By name: what each inserts in front of some readers."""

branched = _inserted(_branched, levels=False)
"""Insert an If, whose branches read what others do: no rewriting that renames comes behind it."""
