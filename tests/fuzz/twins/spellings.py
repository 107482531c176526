"""Rewritings of operators as others that compute the same: products as convolutions, functions taken apart."""

from collections.abc import Callable, Mapping

import numpy as np
import onnx

from tests.fuzz.twins.draft import Draft, attribute
from tests.fuzz.twins.moves import Shape, shapes

__all__ = ["OF_PRODUCTS", "SPELLINGS"]

_Shapes = Mapping[str, tuple[Shape, int]]
_Change = Callable[[Draft, onnx.NodeProto, _Shapes], str]


def _ints(draft: Draft, *values: int) -> str:
    return draft.constant(np.asarray(values, np.int64), "sizes")


def _floats(draft: Draft, value: float) -> str:
    return draft.constant(np.asarray(value, np.float32), "number")


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
    """Bound from below by zero, in one of four ways."""
    x, way = node.input[0], draft.rng.randrange(4)
    if way == 0:
        return draft.add("Clip", [x, _floats(draft, 0)], node.output[0])
    if way == 1:
        return draft.add("Max", [x, _floats(draft, 0)], node.output[0])
    if way == 2:
        return draft.add("LeakyRelu", [x], node.output[0], alpha=0.0)
    return draft.add("Relu", [draft.add("Relu", [x], node.output[0])], node.output[0])


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
            if result := changes[node.op_type](draft, node, known):
                next(each for each in draft.graph.node if result in each.output).output[0] = node.output[0]
                done.append(node)
        draft.drop(done)
        return len(done)

    return rewrite


# ---- products


def _constants_of(draft: Draft, node: onnx.NodeProto) -> list[tuple[onnx.NodeProto, dict[str, np.ndarray]]] | None:
    """Return the DQs of a product's weights and bias with their constants, or None if there is another form."""
    known, makers = draft.constants(), draft.makers()
    found = [makers.get(name) for name in node.input[1:] if name]
    if any(each is None or each.op_type != "DequantizeLinear" or any(name not in known for name in each.input if name)
           for each in found):
        return None
    return [(each, {name: known[name] for name in each.input if name}) for each in found]


def _with_levels(draft: Draft, dq: onnx.NodeProto, levels: np.ndarray, axis: int) -> str:
    """Dequantise other levels as ``dq`` does its own, with the channels along ``axis``."""
    return draft.add("DequantizeLinear", [draft.constant(levels, dq.input[0]), *dq.input[1:]], dq.output[0],
                     domain=dq.domain, **({"axis": axis} if not dq.domain else {}))


def dense_as_convolution(draft: Draft) -> int:
    """Compute dense layers of rows as convolutions of images of one pixel."""
    known, found = shapes(draft), []
    for node in draft.graph.node:
        if node.op_type == "Gemm" and not attribute(node, "transA", 0) and node.input[0] in known and all(
                attribute(node, key, 1.0) == 1.0 for key in ("alpha", "beta")) and draft.opset >= 13 and (
                    constants := _constants_of(draft, node)) and all(
                        not dq.domain and array.ndim < 2 for dq, arrays in constants[1:] for array in arrays.values()):
            found.append((node, constants))
    chosen = draft.some(found)
    for node, constants in chosen:
        (dq, arrays), rows = constants[0], known[node.input[0]][0]
        levels = arrays[dq.input[0]] if attribute(node, "transB", 0) else arrays[dq.input[0]].T
        image = draft.add("Reshape", [node.input[0], _ints(draft, *rows, 1, 1)], node.input[0])
        weights = _with_levels(draft, dq, levels[:, :, None, None], 0)
        pixels = draft.add("Conv", [image, weights, *node.input[2:]], node.output[0])
        draft.add("Flatten", [pixels], node.output[0], output=node.output[0])
    draft.drop([node for node, _ in chosen])
    return len(chosen)


def lines_as_images(draft: Draft) -> int:
    """Compute convolutions and poolings of lines as those of images of one row."""
    known, found = shapes(draft), []
    for node in draft.graph.node:
        constants = _constants_of(draft, node) if node.op_type == "Conv" else []
        if node.op_type in ("Conv", "MaxPool", "AveragePool") and len(known.get(node.input[0], ((), 0))[0]) == 3 and \
                draft.opset >= 13 and constants is not None and attribute(node, "auto_pad", b"NOTSET") == b"NOTSET":
            found.append((node, constants))
    chosen = draft.some(found)
    for node, constants in chosen:
        axis = _ints(draft, 2)
        inputs = [draft.add("Unsqueeze", [node.input[0], axis], node.input[0])]
        if constants:
            dq, arrays = constants[0]
            inputs.append(_with_levels(draft, dq, arrays[dq.input[0]][:, :, None], attribute(dq, "axis", 1)))
        image = draft.add(node.op_type, [*inputs, *node.input[2:]], node.output[0])
        wider = draft.graph.node[-1]
        wider.attribute.extend(node.attribute)
        for each in wider.attribute:
            if each.name in ("kernel_shape", "strides", "dilations"):
                each.ints.insert(0, 1)
            if each.name == "pads":
                each.ints[:] = [0, each.ints[0], 0, each.ints[1]]
        draft.add("Squeeze", [image, axis], node.output[0], output=node.output[0])
    draft.drop([node for node, _ in chosen])
    return len(chosen)


def padding_apart(draft: Draft) -> int:
    """Pad by a Pad what convolutions pad."""
    known = shapes(draft)
    found = [node for node in draft.graph.node if node.op_type == "Conv" and draft.opset >= 13 and any(
        attribute(node, "pads", [])) and node.input[0] in known]
    chosen = draft.some(found)
    for node in chosen:
        pads = attribute(node, "pads")
        half = len(pads) // 2
        amounts = _ints(draft, 0, 0, *pads[:half], 0, 0, *pads[half:])
        node.input[0] = draft.add("Pad", [node.input[0], amounts], node.input[0])
        next(each for each in node.attribute if each.name == "pads").ints[:] = [0] * len(pads)
    return len(chosen)


SPELLINGS: dict[str, Callable[[Draft], int]] = {
    "flat otherwise": _respelled({"Flatten": _flatten, "Reshape": _reshape}),
    "bounds otherwise": _respelled({"Relu": _relu, "Clip": _clip, "HardSwish": _hard_swish, "GlobalMaxPool": _maximum}),
    "joined by twos": _respelled({"Concat": _concat}),
    "operands swapped": _respelled(dict.fromkeys(("Add", "Mul"), _swapped)),
    "channels last": _respelled(dict.fromkeys(
        ("Relu", "Add", "Mul", "Sigmoid", "HardSwish", "LeakyRelu", "Clip", "Tanh"), _channels_last)),
}
"""By name: what each writes otherwise."""

OF_PRODUCTS: dict[str, Callable[[Draft], int]] = {
    "dense as convolution": dense_as_convolution, "lines as images": lines_as_images, "padding apart": padding_apart}
"""The same of products, which other kernels sum up then."""
