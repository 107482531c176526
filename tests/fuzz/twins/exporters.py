"""Rewritings that exporters differ in: what is stated or left to a default, and operators that others stand for."""

from collections.abc import Callable, Mapping

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.fuzz.twins.draft import QUANTISATION, Draft, attribute
from tests.fuzz.twins.moves import Shape, shapes

__all__ = ["OF_EXPORTERS", "axis_of_one_scale", "constants_as_attributes", "constants_handed_on", "open_batch"]

_Shapes = Mapping[str, tuple[Shape, int]]
_Change = Callable[[Draft, onnx.NodeProto, _Shapes], bool]


def _ints(draft: Draft, *values: int) -> str:
    return draft.constant(np.asarray(values, np.int64), "sizes")


def _number(draft: Draft, value: float) -> str:
    return draft.constant(np.asarray(value, np.float32), "number")


def _state(node: onnx.NodeProto, **attributes: object) -> None:
    """Give a node attributes in place of those that it has of these names; None takes one away."""
    kept = [each for each in node.attribute if each.name not in attributes]
    del node.attribute[:]
    node.attribute.extend(kept)
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items() if value is not None)


def _become(node: onnx.NodeProto, op: str, *inputs: str, **attributes: object) -> bool:
    """Make a node another operator of the same result."""
    node.op_type, node.input[:] = op, inputs
    del node.attribute[:]
    _state(node, **attributes)
    return True


def _turn_unstated(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> bool:
    """Leave out the order of a Transpose that reverses the axes, or state it."""
    rank = len(known[node.input[0]][0])
    back = list(range(rank))[::-1]
    if attribute(node, "perm", back) != back:
        return False
    _state(node, perm=None if attribute(node, "perm") else back)
    return True


def _resized(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> bool:
    """Resize to the sizes that the factors give, leave out axes that keep their size, or name centres otherwise."""
    before, after = known[node.input[0]][0], known[node.output[0]][0]
    whole = all(new % old == 0 for old, new in zip(before, after, strict=True))
    way = draft.rng.randrange(3)
    nearest = attribute(node, "mode", b"nearest") == b"nearest"
    if way == 0 and nearest and whole and attribute(node, "axes") is None:
        corner = draft.rng.random() < 0.5
        _state(node, coordinate_transformation_mode="asymmetric" if corner else "half_pixel",
               nearest_mode="floor" if corner else "round_prefer_floor")
        return True
    if not whole or attribute(node, "axes") is not None or attribute(
            node, "keep_aspect_ratio_policy", b"stretch") != b"stretch":
        return False
    axes = [axis for axis in range(len(before)) if way == 1 or before[axis] != after[axis]]
    if draft.opset >= 18 and way == 2 and axes:
        _state(node, axes=axes)
    elif way == 2:
        return False
    node.input[:] = [node.input[0], "", "", _ints(draft, *(after[axis] for axis in axes))]
    return True


def _pixels_moved(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> bool:
    """Write DepthToSpace and SpaceToDepth as a Reshape, a Transpose and a Reshape."""
    (count, channels, height, width), block = known[node.input[0]][0], attribute(node, "blocksize")
    if node.op_type == "SpaceToDepth":
        parts, turn = (count, channels, height // block, block, width // block, block), [0, 3, 5, 1, 2, 4]
    elif attribute(node, "mode", b"DCR") == b"CRD":
        parts, turn = (count, channels // block**2, block, block, height, width), [0, 1, 4, 2, 5, 3]
    else:
        parts, turn = (count, block, block, channels // block**2, height, width), [0, 3, 4, 1, 5, 2]
    first = draft.add("Reshape", [node.input[0], _ints(draft, *parts)], node.output[0])
    second = draft.add("Transpose", [first], node.output[0], perm=turn)
    return _become(node, "Reshape", second, _ints(draft, *known[node.output[0]][0]))


def _gathered(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> bool:
    """Take what a Slice along one axis takes by a Gather, counted from either end."""
    constants = draft.constants()
    given = [constants.get(name) for name in node.input[1:]]
    if len(given) < 3 or any(each is None or each.size != 1 for each in given):
        return False
    start, end, axis, *step = (int(each.reshape(-1)[0]) for each in given)
    size = known[node.input[0]][0][axis]
    indices = np.arange(size)[slice(start, end, *step)]
    if not indices.size or (step and step[0] < 0):
        return False
    indices = indices - draft.rng.choice([0, size])
    return _become(node, "Gather", node.input[0], draft.constant(indices.astype(np.int64), "indices"), axis=axis)


def _split_unstated(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> bool:
    """Leave out the sizes of a Split into equal parts."""
    parts = [known.get(name, ((), 0))[0] for name in node.output]
    if len(set(parts)) > 1 or not parts[0]:
        return False
    node.input[:] = node.input[:1]
    if draft.opset >= 18:
        _state(node, num_outputs=len(parts))
    return True


def _product_as_gemm(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> bool:
    """Multiply matrices by Gemm."""
    ranks = [len(known.get(name, ((), 0))[0]) for name in node.input]
    return ranks == [2, 2] and _become(node, "Gemm", *node.input)


def _turned_gemm(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> bool:
    """Turn the rows of a Gemm, which turns them back."""
    if attribute(node, "transA", 0):
        return False
    node.input[0] = draft.add("Transpose", [node.input[0]], node.input[0],
                              **({"perm": [1, 0]} if draft.rng.random() < 0.5 else {}))
    _state(node, transA=1)
    return True


def _same_pads(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> bool:
    """Say SAME for pads that keep the size by strides, CEIL where nothing is left over, and what kernels are."""
    if attribute(node, "auto_pad", b"NOTSET") != b"NOTSET" or (node.op_type == "Conv" and node.input[1] not in known):
        return False
    size = known[node.input[0]][0][2:]
    kernel = attribute(node, "kernel_shape") or list(known[node.input[1]][0][2:])
    strides, dilations = (attribute(node, name, [1] * len(size)) for name in ("strides", "dilations"))
    pads, ceil = attribute(node, "pads", [0] * 2 * len(size)), attribute(node, "ceil_mode", 0)
    spans = [dilation * (extent - 1) + 1 for dilation, extent in zip(dilations, kernel, strict=True)]
    needed = [max(0, (-(-length // stride) - 1) * stride + span - length)
              for length, stride, span in zip(size, strides, spans, strict=True)]
    upper = [each // 2 for each in needed] + [each - each // 2 for each in needed]
    if list(pads) == upper and any(pads) and not ceil and node.op_type != "AveragePool":
        _state(node, pads=None, auto_pad="SAME_UPPER")
    elif node.op_type == "Conv":
        _state(node, kernel_shape=None if attribute(node, "kernel_shape") else kernel)
    elif not any((length + pads[axis] + pads[axis + len(size)] - spans[axis]) % strides[axis]
                 for axis, length in enumerate(size)):
        _state(node, ceil_mode=1 - ceil)
    else:
        return False
    return True


def _added_otherwise(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> bool:
    """Add what a constant is taken away from otherwise, multiply by what divides, of constants that allow it."""
    constants = draft.constants()
    value = constants.get(node.input[1])
    if value is None or value.dtype != np.float32 or node.input[0] in constants:
        return False
    if node.op_type in ("Add", "Sub"):
        other = draft.constant(-value, node.input[1])
        return _become(node, "Sub" if node.op_type == "Add" else "Add", node.input[0], other)
    fractions, powers = np.frexp(value)
    if (np.abs(fractions) != 0.5).any() or (np.abs(powers) > 60).any():
        return False
    other = draft.constant(np.float32(1) / value, node.input[1])
    return _become(node, "Div" if node.op_type == "Mul" else "Mul", node.input[0], other)


def _squared(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> bool:
    """Take the second power of what is multiplied by itself."""
    return node.input[0] == node.input[1] and _become(node, "Pow", node.input[0], _number(draft, 2))


def _ranked_otherwise(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> bool:
    """Give a constant beside a tensor of more dimensions ones before its own, or take them away."""
    constants = draft.constants()
    for index in range(2):
        value = constants.get(node.input[index])
        rank = len(known.get(node.input[1 - index], ((), 0))[0])
        if value is not None and rank and value.ndim <= rank:
            shape = list(value.shape)
            while shape and shape[0] == 1:
                del shape[0]
            shape = [1] * draft.rng.choice([each for each in range(rank - len(shape) + 1)
                                            if each != value.ndim - len(shape)] or [0]) + shape
            node.input[index] = draft.constant(value.reshape(shape), node.input[index])
            return True
    return False


def _squeezed(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> bool:
    """Take dimensions of one away that are flattened."""
    shape = known[node.input[0]][0]
    if len(shape) < 3 or attribute(node, "axis", 1) != 1 or any(each != 1 for each in shape[2:]):
        return False
    axes = [axis - draft.rng.choice([0, len(shape)]) for axis in range(2, len(shape))]
    return _become(node, "Squeeze", node.input[0], _ints(draft, *axes))


def _leaky(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> bool:
    """Take the larger of a tensor and of its part, or choose between the two."""
    x, slope = node.input[0], attribute(node, "alpha", 0.01)
    if not 0 < slope < 1:
        return False
    part = draft.add("Mul", [x, _number(draft, slope)], x)
    if draft.rng.random() < 0.5:
        return _become(node, "Max", x, part)
    sign = draft.add("GreaterOrEqual", [x, _number(draft, 0)], x)
    return _become(node, "Where", sign, x, part)


def _relu_by_min(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> bool:
    """Write what bounds from zero on as a Relu and a Min."""
    low = draft.constants().get(node.input[1]) if len(node.input) > 2 and node.input[1] and node.input[2] else None
    if low is None or low.any():
        return False
    return _become(node, "Min", draft.add("Relu", [node.input[0]], node.input[0]), node.input[2])


def _unneeded(draft: Draft, node: onnx.NodeProto, known: _Shapes) -> bool:
    """Leave a Relu out whose result is quantised to levels of which none is below zero."""
    constants, behind = draft.constants(), [reader for reader, _ in draft.readers().get(node.output[0], ())]
    if not behind or node.output[0] in draft.outputs:
        return False
    for each in behind:
        zero = constants.get(each.input[2]) if each.op_type == "QuantizeLinear" and len(each.input) > 2 else None
        if zero is None or zero.size != 1 or zero.item() != np.iinfo(zero.dtype).min:
            return False
    return _become(node, "Identity", node.input[0])


def _respelled(changes: Mapping[str, _Change], least: int = 13) -> Callable[[Draft], int]:
    def rewrite(draft: Draft) -> int:
        if draft.opset < least:
            return 0
        known = shapes(draft)
        found = [node for node in draft.graph.node if node.op_type in changes and not node.domain and all(
            name in known for name in (node.input[0], node.output[0]))]
        return sum(changes[node.op_type](draft, node, known) for node in draft.some(found))

    return rewrite


def inputs_left_empty(draft: Draft) -> int:
    """Name optional inputs that are not there by nothing."""
    most = {"Conv": 3, "Clip": 3, "Gemm": 3, "Slice": 5, "Dropout": 3, "Resize": 4, "DequantizeLinear": 3}
    found = [node for node in draft.graph.node if len(node.input) < most.get(node.op_type, 0) and not node.domain and
             draft.opset >= 13]
    chosen = draft.some(found)
    for node in chosen:
        node.input.extend([""] * (most[node.op_type] - len(node.input)))
    return len(chosen)


def axis_of_one_scale(draft: Draft) -> int:
    """State an axis for a scale of the whole tensor, which has none."""
    known = draft.constants()
    found = [node for node in draft.graph.node if node.op_type in QUANTISATION and not node.domain and
             node.input[1] in known and known[node.input[1]].ndim == 0 and attribute(node, "axis") is None]
    chosen = draft.some(found) if draft.opset >= 13 else []
    for node in chosen:
        _state(node, axis=draft.rng.choice([0, 1, -1]))
    return len(chosen)


def open_batch(draft: Draft) -> int:
    """Leave the number of images open."""
    found = [value for value in draft.graph.input if len(value.type.tensor_type.shape.dim) > 1 and
             value.type.tensor_type.shape.dim[0].dim_value == 1]
    if len(found) != len(draft.graph.input) or any(node.op_type in ("If", "Loop", "Scan") for node in draft.graph.node):
        return 0
    for value in (*found, *draft.graph.output):
        if value.type.tensor_type.shape.dim:
            value.type.tensor_type.shape.dim[0].dim_param = "batch"
    del draft.graph.value_info[:]
    return len(found)


def constants_handed_on(draft: Draft) -> int:
    """Hand constants on by an Identity, as PyTorch exports those that two modules share."""
    readers = draft.readers()
    chosen = draft.some(sorted(name for name in draft.constants() if name in readers and name not in draft.outputs))
    for name in chosen:
        handed = draft.add("Identity", [name], name)
        for node, index in readers[name]:
            if draft.rng.random() < 0.7:
                node.input[index] = handed
    return len(chosen)


def constants_as_attributes(draft: Draft) -> int:
    """Write numbers and lists of them as Constant nodes whose attributes hold numbers."""
    given = {value.name for value in draft.graph.input} | draft.outputs
    found = {name: array for name, array in draft.constants().items() if name not in given and array.ndim < 2 and
             array.size and array.dtype in (np.float32, np.int64)}
    chosen = draft.some(sorted(found))
    makers = draft.makers()
    draft.drop([makers[name] for name in chosen if name in makers])
    for name in chosen:
        array = found[name]
        kind = ("float" if array.dtype == np.float32 else "int") + "s" * array.ndim
        draft.graph.node.append(helper.make_node("Constant", [], [name], draft.fresh("Constant"), **{
            f"value_{kind}": array.tolist()}))
    made = {name for node in draft.graph.node if node.op_type == "Constant" for name in node.output}
    left = [onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(each), each.name)
            for each in draft.graph.initializer if each.name not in made]
    del draft.graph.initializer[:]
    draft.graph.initializer.extend(left)
    return len(chosen)


def windows_of_one(draft: Draft) -> int:
    """Take the largest of each single element."""
    known = shapes(draft)
    found = [node for node in draft.graph.node if node.op_type in ("Conv", "Relu", "MaxPool", "GlobalAveragePool") and
             not node.domain and len(known.get(node.input[0], ((), 0))[0]) > 2 and
             known[node.input[0]][1] == TensorProto.FLOAT]
    chosen = draft.some(found)
    for node in chosen:
        node.input[0] = draft.add("MaxPool", [node.input[0]], node.input[0],
                                  kernel_shape=[1] * (len(known[node.input[0]][0]) - 2))
    return len(chosen)


OF_EXPORTERS: dict[str, Callable[[Draft], int]] = {
    "turns unstated": _respelled({"Transpose": _turn_unstated}),
    "resized otherwise": _respelled({"Resize": _resized}),
    "pixels moved": _respelled(dict.fromkeys(("DepthToSpace", "SpaceToDepth"), _pixels_moved)),
    "slices gathered": _respelled({"Slice": _gathered}),
    "split unstated": _respelled({"Split": _split_unstated}),
    "products as Gemm": _respelled({"MatMul": _product_as_gemm}),
    "Gemm turned": _respelled({"Gemm": _turned_gemm}),
    "same pads": _respelled(dict.fromkeys(("Conv", "MaxPool", "AveragePool"), _same_pads)),
    "constants negated": _respelled(dict.fromkeys(("Add", "Sub", "Mul", "Div"), _added_otherwise)),
    "squares": _respelled({"Mul": _squared}),
    "ranks of constants": _respelled(dict.fromkeys(("Add", "Sub", "Mul", "Div"), _ranked_otherwise)),
    "squeezed": _respelled({"Flatten": _squeezed}),
    "leaky otherwise": _respelled({"LeakyRelu": _leaky}, 16),
    "Relu and Min": _respelled({"Clip": _relu_by_min}),
    "Relu left out": _respelled({"Relu": _unneeded}),
    "inputs left empty": inputs_left_empty, "windows of one": windows_of_one,
}
"""By name: what each writes as another exporter does."""
