"""Rewritings of products and averages as others with the same sums: as convolutions, as matrices, in parts."""

from collections.abc import Callable

import numpy as np
import onnx
from onnx import helper

from tests.fuzz.twins.draft import Draft, attribute
from tests.fuzz.twins.moves import shapes

__all__ = ["OF_PRODUCTS"]


def _ints(draft: Draft, *values: int) -> str:
    return draft.constant(np.asarray(values, np.int64), "sizes")


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
    """Compute dense layers of rows as convolutions of images of one pixel, where their sums are quantised at once.

    ONNX Runtime scales whole sums of a Gemm that stays float, and computes such a Conv in float.
    """
    known, readers, found = shapes(draft), draft.readers(), []
    for node in draft.graph.node:
        if node.op_type == "Gemm" and not attribute(node, "transA", 0) and node.input[0] in known and all(
                attribute(node, key, 1.0) == 1.0 for key in ("alpha", "beta")) and _is_quantised(
                    node, readers) and draft.opset >= 13 and (
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


def _is_quantised(node: onnx.NodeProto, readers: dict[str, list[tuple[onnx.NodeProto, int]]]) -> bool:
    """Tell whether a Q alone reads the result of a node, or of the Relu behind it."""
    behind = [reader for reader, _ in readers.get(node.output[0], ())]
    return bool(behind) and all(each.op_type == "QuantizeLinear" or (
        node.op_type != "Relu" and each.op_type == "Relu" and _is_quantised(each, readers)) for each in behind)


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


def pixels_as_rows(draft: Draft) -> int:
    """Compute convolutions of single pixels as products of matrices, with the channels last."""
    known, found = shapes(draft), []
    for node in draft.graph.node:
        if node.op_type == "Conv" and node.input[0] in known and draft.opset >= 13 and (
                constants := _constants_of(draft, node)) and _is_of_pixels(node, constants[0]) and all(
                    not dq.domain for dq, _ in constants):
            found.append((node, constants[0]))
    chosen = draft.some(found)
    for node, (dq, arrays) in chosen:
        rank = len(known[node.input[0]][0])
        there = (0, *range(2, rank), 1)
        rows = draft.add("Transpose", [node.input[0]], node.input[0], perm=there)
        weights = _with_levels(draft, dq, arrays[dq.input[0]].reshape(arrays[dq.input[0]].shape[:2]).T, 1)
        rows = draft.add("MatMul", [rows, weights], node.output[0])
        if len(node.input) > 2 and node.input[2]:
            rows = draft.add("Add", [rows, node.input[2]], node.output[0])
        draft.add("Transpose", [rows], node.output[0], output=node.output[0], perm=np.argsort(there).tolist())
    draft.drop([node for node, _ in chosen])
    return len(chosen)


def _is_of_pixels(node: onnx.NodeProto, weights: tuple[onnx.NodeProto, dict[str, np.ndarray]]) -> bool:
    """Tell whether a convolution has windows of one element, at every place, of all channels."""
    dq, arrays = weights
    return arrays[dq.input[0]].shape[2:] == (1,) * (arrays[dq.input[0]].ndim - 2) and attribute(node, "group", 1) == 1 \
        and not any(attribute(node, "pads", [])) and set(attribute(node, "strides", [1])) == {1} \
        and attribute(node, "auto_pad", b"NOTSET") == b"NOTSET"


def dense_otherwise(draft: Draft) -> int:
    """Write Gemm with its weights the other way round, with factors that scales make up for, or as MatMul and Add."""
    found = [(node, constants) for node in draft.graph.node
             if node.op_type == "Gemm" and not attribute(node, "transA", 0) and all(
                 attribute(node, key, 1.0) == 1.0 for key in ("alpha", "beta")) and draft.opset >= 13 and (
                     constants := _constants_of(draft, node)) and not any(dq.domain for dq, _ in constants)]
    chosen = draft.some(found)
    for node, constants in chosen:
        (dq, arrays), turned = constants[0], attribute(node, "transB", 0)
        way, levels = draft.rng.randrange(3), arrays[dq.input[0]]
        if way == 0:
            weights = _with_levels(draft, dq, levels.T, 1 if turned else 0)
            result = draft.add("Gemm", [node.input[0], weights, *node.input[2:]], node.output[0], transB=1 - turned)
        elif way == 1:
            factors = {"alpha": draft.rng.choice([0.5, 4.0]), "beta": draft.rng.choice([0.25, 2.0])}
            scaled = [_scaled(draft, *each, factor) for each, factor in
                      zip(constants, factors.values(), strict=False)]
            result = draft.add("Gemm", [node.input[0], *scaled], node.output[0], transB=turned, **factors)
        else:
            weights = _with_levels(draft, dq, levels.T, 1) if turned else node.input[1]
            result = draft.add("MatMul", [node.input[0], weights], node.output[0])
            if len(node.input) > 2 and node.input[2]:
                result = draft.add("Add", [result, node.input[2]], node.output[0])
        next(each for each in draft.graph.node if result in each.output).output[0] = node.output[0]
    draft.drop([node for node, _ in chosen])
    return len(chosen)


def _scaled(draft: Draft, dq: onnx.NodeProto, arrays: dict[str, np.ndarray], factor: float) -> str:
    """Dequantise the same levels with scales by ``factor``, a power of two, smaller."""
    scale = draft.constant((arrays[dq.input[1]] / np.float32(factor)).astype(np.float32), "scale")
    result = draft.add("DequantizeLinear", [dq.input[0], scale, *dq.input[2:]], dq.output[0])
    draft.graph.node[-1].attribute.extend(dq.attribute)
    return result


def groups_apart(draft: Draft) -> int:
    """Compute convolutions of a few groups one by one, of slices of their input, and join the results."""
    known, found = shapes(draft), []
    for node in draft.graph.node:
        if node.op_type == "Conv" and 1 < attribute(node, "group", 1) <= _MOST_GROUPS and node.input[0] in known and (
                draft.opset >= 13) and (constants := _constants_of(draft, node)) and not any(
                    dq.domain for dq, _ in constants):
            found.append((node, constants))
    chosen = draft.some(found)
    for node, constants in chosen:
        groups, channels = attribute(node, "group"), known[node.input[0]][0][1]
        of_input = channels // groups
        parts = []
        for group in range(groups):
            bounds = [_ints(draft, each) for each in (group * of_input, (group + 1) * of_input, 1)]
            inputs = [draft.add("Slice", [node.input[0], *bounds], node.input[0])]
            inputs += [_part_of(draft, dq, arrays, group, groups) for dq, arrays in constants]
            parts.append(draft.add("Conv", inputs, node.output[0]))
            draft.graph.node[-1].attribute.extend(each for each in node.attribute if each.name != "group")
        draft.add("Concat", parts, node.output[0], output=node.output[0], axis=1)
    draft.drop([node for node, _ in chosen])
    return len(chosen)


_MOST_GROUPS = 8


def _part_of(draft: Draft, dq: onnx.NodeProto, arrays: dict[str, np.ndarray], part: int, parts: int) -> str:
    """Dequantise one of equal parts of a constant along its first axis."""
    levels = arrays[dq.input[0]]
    size = levels.shape[0] // parts
    names = [draft.constant(arrays[name][part * size:(part + 1) * size], name)
             if index == 0 or arrays[name].size > 1 else name for index, name in enumerate(dq.input)]
    result = draft.add("DequantizeLinear", names, dq.output[0])
    draft.graph.node[-1].attribute.extend(dq.attribute)
    return result


def averages_otherwise(draft: Draft) -> int:
    """Average whole images by ReduceMean or by a window; in other rows, where those kernels may round otherwise."""
    known, found = shapes(draft), []
    for node in draft.graph.node:
        if node.op_type == "GlobalAveragePool" and node.input[0] in known and draft.opset >= 13:
            found.append((node, _without_ties(draft, node, int(np.prod(known[node.input[0]][0][2:])))))
    chosen = draft.some(found)
    for node, alike in chosen:
        shape, way = known[node.input[0]][0], draft.rng.randrange(3)
        if not alike:
            pixels = draft.rng.choice([[*[1] * (len(shape) - 3), -1], [-1, *[1] * (len(shape) - 3)], shape[:1:-1]])
            rows = draft.add("Reshape", [node.input[0], _ints(draft, *shape[:2], *pixels)], node.input[0])
            draft.add("GlobalAveragePool", [rows], node.output[0], output=node.output[0])
            continue
        axes = [axis - draft.rng.choice([0, len(shape)]) for axis in range(2, len(shape))]
        draft.rng.shuffle(axes)
        if way == 0:
            draft.add("AveragePool", [node.input[0]], node.output[0], output=node.output[0], kernel_shape=shape[2:])
            continue
        mean = _mean(draft, node.input[0], axes, keepdims=way == 1)
        if way == 1:
            next(each for each in draft.graph.node if mean in each.output).output[0] = node.output[0]
        else:
            draft.add("Unsqueeze", [mean, _ints(draft, *range(2, len(shape)))], node.output[0], output=node.output[0])
    draft.drop([node for node, _ in chosen])
    return len(chosen)


def _without_ties(draft: Draft, node: onnx.NodeProto, count: int) -> bool:
    """Tell whether no mean of ``count`` levels lies between two of its result's: there kernels round to either."""
    constants, dq = draft.constants(), draft.makers().get(node.input[0])
    behind = [reader for reader, _ in draft.readers().get(node.output[0], ())]
    if dq is None or dq.op_type != "DequantizeLinear" or {each.op_type for each in behind} != {"QuantizeLinear"}:
        return False
    scale, *others = (constants.get(each.input[1]) for each in (dq, *behind))
    if scale is None or scale.size != 1:
        return False
    for other in others:
        if other is None or other.size != 1:
            return False
        means = np.arange(_LEVELS * count) * (scale.item() / (count * other.item()))
        means = means[means < _LEVELS]
        if (np.abs(means % 1 - 0.5) <= means * _NEAR).any():
            return False
    return True


_LEVELS, _NEAR = 256, 5e-7


def _mean(draft: Draft, name: str, axes: list[int], *, keepdims: bool) -> str:
    if draft.opset < 18:
        return draft.add("ReduceMean", [name], name, axes=axes, keepdims=int(keepdims))
    return draft.add("ReduceMean", [name, _ints(draft, *axes)], name, keepdims=int(keepdims))


def offsets_apart(draft: Draft) -> int:
    """Add what convolutions add to each channel, as floats behind them, where their sums are quantised at once."""
    known, readers, found = shapes(draft), draft.readers(), []
    for node in draft.graph.node:
        constants = _constants_of(draft, node) if node.op_type == "Conv" and len(node.input) == 3 else None
        behind = {reader.op_type for reader, _ in readers.get(node.output[0], ())}
        if constants is not None and len(constants) == 2 and node.input[0] in known and all(
                array.ndim < 2 for array in constants[1][1].values()) and behind == {"QuantizeLinear"}:
            found.append((node, constants[1]))
    chosen = draft.some(found)
    for node, (dq, arrays) in chosen:
        floats = arrays[dq.input[0]].astype(np.float32) * arrays[dq.input[1]].astype(np.float32)
        name = draft.constant(floats.reshape(1, -1, *[1] * (len(known[node.input[0]][0]) - 2)), "offset")
        result, node.output[0] = node.output[0], draft.fresh(node.output[0])
        node.input[:] = node.input[:2]
        draft.add("Add", [node.output[0], name], result, output=result)
    return len(chosen)


def windows_otherwise(draft: Draft) -> int:
    """Leave out or state what windows are without it, and say SAME or VALID for their pads."""
    known = shapes(draft)
    found = [node for node in draft.graph.node if node.op_type in ("Conv", "MaxPool", "AveragePool") and
             node.input[0] in known and attribute(node, "auto_pad", b"NOTSET") == b"NOTSET"]
    chosen = draft.some(found)
    for node in chosen:
        dimensions = len(known[node.input[0]][0]) - 2
        given = {each.name: helper.get_attribute_value(each) for each in node.attribute}
        pads = given.get("pads", [0] * 2 * dimensions)
        for name, value in (("strides", [1] * dimensions), ("dilations", [1] * dimensions),
                            ("pads", [0] * 2 * dimensions)):
            if name == "dilations" and node.op_type == "AveragePool":
                continue
            if name not in given:
                given[name] = value
            elif given[name] == value:
                del given[name]
        if not any(pads) and not given.get("ceil_mode") and draft.rng.random() < 0.7:
            given.pop("pads", None)
            given["auto_pad"] = "VALID"
        del node.attribute[:]
        node.attribute.extend(helper.make_attribute(name, value) for name, value in given.items())
    return len(chosen)


OF_PRODUCTS: dict[str, Callable[[Draft], int]] = {
    "dense as convolution": dense_as_convolution, "dense otherwise": dense_otherwise,
    "lines as images": lines_as_images, "pixels as rows": pixels_as_rows, "groups apart": groups_apart,
    "averages otherwise": averages_otherwise, "offsets apart": offsets_apart,
     "windows otherwise": windows_otherwise, "padding apart": padding_apart}
"""By name: what each writes so that other kernels may sum it up."""
