"""Rewritings of operators as others that compute the same: functions taken apart, shapes and axes stated otherwise."""

from collections.abc import Callable, Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.fuzz.twins.draft import Draft, attribute
from tests.fuzz.twins.moves import Shape, shapes

__all__ = ["SPELLINGS"]

_Shapes = Mapping[str, tuple[Shape, int]]
_Change = Callable[[Draft, onnx.NodeProto, _Shapes], str]


def _ints(draft: Draft, *values: int) -> str:
    return draft.constant(np.asarray(values, np.int64), "sizes")


def _zero(draft: Draft, kind: int) -> str:
    return draft.constant(np.zeros((), helper.tensor_dtype_to_np_dtype(kind)), "number")


def _flatten(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> str:
    """Flatten by a Reshape."""
    shape, axis = known[node.input[0]][0], attribute(node, "axis", 1)
    rows = int(np.prod(shape[:axis]))
    return draft.add("Reshape", [node.input[0], _ints(draft, rows, -1)], node.output[0])


def _reshape(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> str:
    """Reshape to two dimensions by Flatten, where the first stays."""
    shape, target = known[node.input[0]][0], known[node.output[0]][0]
    if len(target) == 2 and len(shape) > 1 and shape[0] == target[0]:
        return draft.add("Flatten", [node.input[0]], node.output[0])
    return ""


def _relu(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> str:
    """Bound from below by zero, in one of six ways."""
    x, way = node.input[0], draft.rng.randrange(6)
    kind = known[x][1]
    if way == 0:
        return draft.add("Clip", [x, _zero(draft, kind)], node.output[0])
    if way == 1:
        return draft.add("Max", [x, _zero(draft, kind)], node.output[0])
    if way == 2 and kind == TensorProto.FLOAT:
        return draft.add("LeakyRelu", [x], node.output[0], alpha=0.0)
    if way == 3:
        sign = draft.add("Greater", [x, _zero(draft, kind)], x)
        return draft.add("Where", [sign, x, _zero(draft, kind)], node.output[0])
    if way == 4 and kind == TensorProto.FLOAT:
        slope = draft.constant(np.zeros([1] * len(known[x][0]), np.float32), "slope")
        return draft.add("PRelu", [x, slope], node.output[0])
    return draft.add("Relu", [draft.add("Relu", [x], node.output[0])], node.output[0])


def _split(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> str:
    """Cut by a Slice for each part, some with bounds that count from the end."""
    shape = known[node.input[0]][0]
    axis, start = attribute(node, "axis", 0) % len(shape), 0
    if any(name not in known for name in node.output):
        return ""
    for name in node.output:
        end = start + known[name][0][axis]
        bounds = [start - draft.rng.choice([0, shape[axis]]), end if draft.rng.random() < 0.5 or end == shape[axis]
                  else end - shape[axis], axis - draft.rng.choice([0, len(shape)])]
        draft.add("Slice", [node.input[0], *(_ints(draft, each) for each in bounds)], name, output=name)
        start = end
    return node.output[0]


def _computed_shape(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> str:
    """Reshape to a shape of which a part is computed by Shape, and others are 0 or -1."""
    shape, target = known[node.input[0]][0], known[node.output[0]][0]
    if not target or shape[0] != target[0] or not all(shape):
        return ""
    way = draft.rng.randrange(3)
    if way == 0:
        sizes = _ints(draft, 0, *target[1:-1], *([-1] if len(target) > 1 else []))
    else:
        of = draft.add("Shape", [node.input[0]], node.input[0])
        batch = draft.add("Slice", [of, *(_ints(draft, each) for each in (0, 1, 0))], of) if way == 1 else draft.add(
            "Unsqueeze", [draft.add("Gather", [of, draft.constant(np.asarray(0, np.int64), "index")], of, axis=0),
                          _ints(draft, 0)], of)
        rest = [_ints(draft, *target[1:-1], -1)] if len(target) > 1 else []
        sizes = draft.add("Concat", [batch, *rest], "sizes", axis=0)
    return draft.add("Reshape", [node.input[0], sizes], node.output[0])


def _from_the_end(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> str:
    """Count an axis from the end, or from the beginning."""
    rank = len(known[node.input[0]][0])
    axis = attribute(node, "axis", {"Flatten": 1, "Softmax": -1}.get(node.op_type, 0))
    if node.op_type == "Flatten" and axis in (rank, 0):
        return ""
    result = draft.add(node.op_type, node.input, node.output[0], domain=node.domain)
    draft.graph.node[-1].attribute.extend(each for each in node.attribute if each.name != "axis")
    draft.graph.node[-1].attribute.append(helper.make_attribute("axis", axis - rank if axis >= 0 else axis + rank))
    return result


def _clip(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> str:
    """Bound from below by Max and from above by Min."""
    result = node.input[0]
    for name, op in zip(node.input[1:], ("Max", "Min"), strict=False):
        result = draft.add(op, [result, name], node.output[0]) if name else result
    return result if result != node.input[0] else ""


def _hard_swish(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> str:
    """Multiply by HardSigmoid, as the function of ONNX does."""
    gate = draft.add("HardSigmoid", [node.input[0]], node.output[0], alpha=1 / 6, beta=0.5)
    return draft.add("Mul", [node.input[0], gate], node.output[0])


def _maximum(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> str:
    """Take the maximum of an image by a window, or along its dimensions."""
    shape = known[node.input[0]][0]
    if draft.rng.random() < 0.5 or draft.opset < 18:
        return draft.add("MaxPool", [node.input[0]], node.output[0], kernel_shape=shape[2:])
    return draft.add("ReduceMax", [node.input[0], _ints(draft, *range(2, len(shape)))], node.output[0], keepdims=1)


def _concat(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> str:
    """Join the first two, and that with the others."""
    if len(node.input) < 3:
        return ""
    axis = attribute(node, "axis")
    first = draft.add("Concat", node.input[:2], node.output[0], axis=axis)
    return draft.add("Concat", [first, *node.input[2:]], node.output[0], axis=axis)


def _swapped(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> str:
    return draft.add(node.op_type, list(node.input)[::-1], node.output[0])


def _sum(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> str:
    """Sum up by Sum, take away what is negated, or double what is halved."""
    way = draft.rng.randrange(3)
    if node.op_type == "Sub":
        return draft.add("Add", [node.input[0], draft.add("Neg", [node.input[1]], node.input[1])], node.output[0])
    if way == 0:
        return draft.add("Sum", node.input, node.output[0])
    if way == 1:
        return draft.add("Sub", [node.input[0], draft.add("Neg", [node.input[1]], node.input[1])], node.output[0])
    two = draft.constant(np.asarray(2, np.float32), "two")
    return draft.add("Mul", [draft.add("Mean", node.input, node.output[0]), two], node.output[0])


def _padded(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> str:
    """Pad by the least number what takes the largest of windows."""
    pads, shape = attribute(node, "pads", []), known[node.input[0]][0]
    if not any(pads) or attribute(node, "ceil_mode", 0) or known[node.input[0]][1] != TensorProto.FLOAT or len(
            node.output) > 1:
        return ""
    half = len(pads) // 2
    least = draft.constant(np.asarray(np.finfo(np.float32).min, np.float32), "least")
    x = draft.add("Pad", [node.input[0], _ints(draft, 0, 0, *pads[:half], 0, 0, *pads[half:]), least], node.input[0])
    result = draft.add("MaxPool", [x], node.output[0])
    draft.graph.node[-1].attribute.extend(each for each in node.attribute if each.name != "pads")
    return result if len(shape) == half + 2 else ""


def _channels_last(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> str:
    """Compute a function or a sum of equal shapes with the channels last."""
    of_two = node.op_type in ("Add", "Mul")
    kinds = {known[name][0] if name in known else () for name in node.input[:1 + of_two]}
    if len(kinds) > 1 or len(shape := kinds.pop()) < 3:
        return ""
    there = (0, *range(2, len(shape)), 1)
    inputs = [draft.add("Transpose", [name], name, perm=there) if index <= of_two else name
              for index, name in enumerate(node.input)]
    turned = draft.add(node.op_type, inputs, node.output[0])
    draft.graph.node[-1].attribute.extend(node.attribute)
    return draft.add("Transpose", [turned], node.output[0], perm=np.argsort(there).tolist())


def _respelled(changes: Mapping[str, _Change], least: int = 13) -> Callable[[Draft], int]:
    def rewrite(draft: Draft) -> int:
        if draft.opset < least:
            return 0
        known = shapes(draft)
        found = [node for node in draft.graph.node if node.op_type in changes and not node.domain and all(
            name in known for name in (node.input[0], node.output[0]))]
        done = []
        for node in draft.some(found):
            if (result := changes[node.op_type](draft, node, known)) and result not in node.output:
                next(each for each in draft.graph.node if result in each.output).output[0] = node.output[0]
            if result:
                done.append(node)
        draft.drop(done)
        return len(done)

    return rewrite


SPELLINGS: dict[str, Callable[[Draft], int]] = {
    "flat otherwise": _respelled({"Flatten": _flatten, "Reshape": _reshape}),
    "bounds otherwise": _respelled({"Relu": _relu, "Clip": _clip, "HardSwish": _hard_swish, "GlobalMaxPool": _maximum}),
    "shapes otherwise": _respelled({"Flatten": _computed_shape, "Reshape": _computed_shape}),
    "axes otherwise": _respelled(dict.fromkeys(("Concat", "Flatten", "Gather", "Softmax"), _from_the_end)),
    "split by slices": _respelled({"Split": _split}),
    "joined by twos": _respelled({"Concat": _concat}),
    "sums otherwise": _respelled({"Add": _sum, "Sub": _sum}),
    "padded maxima": _respelled({"MaxPool": _padded}),
    "operands swapped": _respelled(dict.fromkeys(("Add", "Mul"), _swapped)),
    "channels last": _respelled(dict.fromkeys(
        ("Relu", "Add", "Mul", "Sigmoid", "HardSwish", "LeakyRelu", "Clip", "Tanh"), _channels_last)),
}
"""By name: what each writes otherwise."""
