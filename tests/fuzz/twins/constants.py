"""Rewritings of constants: turned and turned back, through Q, Clip and DQ, as nodes, as inputs, one for each reader."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.fuzz.twins.draft import Draft, attribute

__all__ = ["as_inputs", "as_nodes", "computed", "copied", "in_floats", "through_pair", "turned",
           "weights_in_floats"]


def _weights(draft: Draft) -> list[tuple[onnx.NodeProto, np.ndarray]]:
    """Return each DQ of constant levels of 8 bits, and these."""
    known, outputs = draft.constants(), draft.outputs
    return [(node, known[node.input[0]]) for node in draft.graph.node
            if node.op_type == "DequantizeLinear" and node.input[0] in known and node.output[0] not in outputs
            and known[node.input[0]].dtype in (np.int8, np.uint8)
            and all(name in known for name in node.input[1:] if name) and not attribute(node, "block_size")]


def turned(draft: Draft) -> int:
    """Transpose constant levels, and transpose back what their DQ makes of them."""
    chosen = draft.some([(node, levels) for node, levels in _weights(draft) if levels.ndim > 1])
    for node, levels in chosen:
        perm = list(range(levels.ndim))
        while perm == sorted(perm):
            draft.rng.shuffle(perm)
        node.input[0] = draft.constant(levels.transpose(perm), "turned")
        for each in node.attribute:
            if each.name == "axis":
                each.i = perm.index(each.i % levels.ndim)
        if attribute(node, "axis") is None and _scales(draft, node) > 1:
            node.attribute.append(helper.make_attribute("axis", perm.index(1)))
        result, node.output[0] = node.output[0], draft.fresh(node.output[0])
        draft.add("Transpose", [node.output[0]], result, output=result,
                  perm=[perm.index(axis) for axis in range(levels.ndim)])
    return len(chosen)


def _scales(draft: Draft, node: onnx.NodeProto) -> int:
    return draft.constants()[node.input[1]].size


def through_pair(draft: Draft) -> int:
    """Make constant levels of a float constant, by a Q, perhaps a Clip, and the DQ."""
    known = draft.constants()
    chosen = draft.some(_weights(draft))
    for node, levels in chosen:
        scale = known[node.input[1]]
        zero = known[node.input[2]] if len(node.input) > 2 and node.input[2] else np.zeros(scale.shape, levels.dtype)
        axis = attribute(node, "axis", 1)
        shape = [1] * levels.ndim
        if scale.size > 1:
            shape[axis] = -1
        numbers = (levels.astype(np.int32) - zero.astype(np.int32).reshape(shape)).astype(np.float32)
        floats = draft.constant(numbers * scale.reshape(shape), "floats")
        parameters = [node.input[1], draft.constant(zero, "zero")]
        made = draft.add("QuantizeLinear", [floats, *parameters], "levels", domain=node.domain)
        draft.graph.node[-1].attribute.extend(each for each in node.attribute if each.name == "axis")
        if draft.rng.random() < 0.5:
            bounds = [draft.constant(np.asarray(each, levels.dtype), "bound") for each in (levels.min(), levels.max())]
            made = draft.add("Clip", [made, *bounds], "clipped")
        node.input[0] = made
    return len(chosen)


def as_nodes(draft: Draft) -> int:
    """Write initializers as Constant nodes."""
    given = {value.name for value in draft.graph.input} | draft.outputs
    chosen = draft.some([each for each in draft.graph.initializer if each.name not in given])
    names = {each.name for each in chosen}
    for tensor in chosen:
        value = TensorProto()
        value.CopyFrom(tensor)
        value.name = ""
        draft.graph.node.insert(0, helper.make_node("Constant", [], [tensor.name], draft.fresh("Constant"),
                                                    value=value))
    left = [numpy_helper.from_array(numpy_helper.to_array(each), each.name) for each in draft.graph.initializer
            if each.name not in names]
    del draft.graph.initializer[:]
    draft.graph.initializer.extend(left)
    return len(chosen)


def as_inputs(draft: Draft) -> int:
    """List initializers among the inputs too, as files of old formats do."""
    given = {value.name for value in draft.graph.input}
    chosen = draft.some([each for each in draft.graph.initializer if each.name not in given])
    draft.graph.input.extend(helper.make_tensor_value_info(each.name, each.data_type, each.dims) for each in chosen)
    return len(chosen)


def in_floats(draft: Draft) -> int:
    """Write biases as the floats that their DQ makes of 32 bits."""
    known, readers = draft.constants(), draft.readers()
    found = [node for node in draft.graph.node if node.op_type == "DequantizeLinear" and node.input[0] in known and
             known[node.input[0]].dtype == np.int32 and not node.domain and node.output[0] not in draft.outputs and
             all(name in known and known[name].ndim < 2 for name in node.input if name) and
             node.output[0] in readers]
    chosen = draft.some(found)
    for node in chosen:
        floats = known[node.input[0]].astype(np.float32) * known[node.input[1]].astype(np.float32)
        name = draft.constant(floats, "floats")
        for reader, index in readers[node.output[0]]:
            reader.input[index] = name
    draft.drop(chosen)
    return len(chosen)


def weights_in_floats(draft: Draft) -> int:
    """Write weights as the floats that their DQ makes of 8 bits, where no coarser levels hold a channel's.

    Only where the sums are quantised at once: kernels of floats add in another order by constants than by others.
    """
    known, readers, found = draft.constants(), draft.readers(), []
    for node in draft.graph.node:
        uses = readers.get(node.output[0], [])
        if node.op_type == "DequantizeLinear" and not node.domain and uses and all(
                reader.op_type in _WEIGHED and index == 1 and {each.op_type for each, _ in readers.get(
                    reader.output[0], ())} == {"QuantizeLinear"} for reader, index in uses) and all(
                    name in known for name in node.input if name) and node.output[0] not in draft.outputs and (
                        floats := _floats(node, known, 1 if len(uses) > 1 else _channel(uses[0][0]))) is not None:
            found.append((node, uses, floats))
    chosen = draft.some(found)
    for _, uses, floats in chosen:
        name = draft.constant(floats, "floats")
        for reader, index in uses:
            reader.input[index] = name
    draft.drop([node for node, _, _ in chosen])
    return len(chosen)


_WEIGHED = ("Conv", "Gemm", "MatMul")


def _channel(node: onnx.NodeProto) -> int:
    """Return the axis of a product's weights that counts its output channels."""
    return 0 if node.op_type == "Conv" or attribute(node, "transB", 0) else -1


def _floats(dq: onnx.NodeProto, known: dict[str, np.ndarray], axis: int) -> np.ndarray | None:
    """Return the floats of constant levels of 8 bits; None of others, and where those of a channel share a factor."""
    levels, scale, *zeros = (known[name] for name in dq.input if name)
    if levels.dtype not in (np.int8, np.uint8) or levels.ndim < 2 or scale.dtype != np.float32 or attribute(
            dq, "block_size", 0):
        return None
    shape = [1] * levels.ndim
    if scale.ndim:
        shape[attribute(dq, "axis", 1)] = -1
    steps = levels.astype(np.int32) - (zeros[0].astype(np.int32).reshape(shape) if zeros else 0)
    lines = np.moveaxis(steps, axis, 0).reshape(steps.shape[axis], -1)
    if (np.gcd.reduce(lines, axis=1) != 1).any():
        return None
    return steps.astype(np.float32) * scale.reshape(shape)


def computed(draft: Draft) -> int:
    """Compute constants while the model runs: of one value, of parts, of doubles."""
    given = {value.name for value in draft.graph.input} | draft.outputs
    arrays = {each.name: numpy_helper.to_array(each) for each in draft.graph.initializer
              if each.name not in given and each.data_type in _COMPUTED}
    chosen = draft.some(sorted(arrays))
    gone = {name for name in chosen if _compute(draft, name, arrays[name])}
    left = [numpy_helper.from_array(numpy_helper.to_array(each), each.name) for each in draft.graph.initializer
            if each.name not in gone]
    del draft.graph.initializer[:]
    draft.graph.initializer.extend(left)
    return len(gone)


_COMPUTED = (TensorProto.FLOAT, TensorProto.INT8, TensorProto.UINT8, TensorProto.INT32, TensorProto.INT64)


def _compute(draft: Draft, name: str, array: np.ndarray) -> bool:
    """Compute ``array`` in a way that fits it; false if none does."""
    ways = []
    if array.size and np.all(array == array.flat[0]):
        ways += ["ConstantOfShape", "Expand"]
    if array.ndim and array.shape[0] > 1:
        ways.append("Concat")
    if array.dtype == np.float32:
        ways.append("Cast")
    if not ways:
        return False
    way = draft.rng.choice(ways)
    shape = draft.constant(np.asarray(array.shape, np.int64), "shape")
    if way == "ConstantOfShape":
        draft.add(way, [shape], name, output=name, value=numpy_helper.from_array(array.reshape(-1)[:1], "value"))
    elif way == "Expand":
        draft.add(way, [draft.constant(array.reshape(-1)[:1], name), shape], name, output=name)
        if not array.ndim:
            draft.graph.node[-1].op_type = "Reshape"
    elif way == "Concat":
        draft.add(way, [draft.constant(array[:1], name), draft.constant(array[1:], name)], name, output=name, axis=0)
    else:
        draft.add(way, [draft.constant(array.astype(np.float64), name)], name, output=name, to=TensorProto.FLOAT)
    return True


def copied(draft: Draft) -> int:
    """Give each reader of a constant one of its own."""
    known, readers = draft.constants(), draft.readers()
    chosen = draft.some([name for name in known if len(readers.get(name, ())) > 1])
    for name in chosen:
        for node, index in readers[name][1:]:
            node.input[index] = draft.constant(known[name], name)
    return len(chosen)
