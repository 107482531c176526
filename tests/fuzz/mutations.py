"""Damage to files: bytes flipped, cut, doubled, spliced; ONNX and JSON changed where it hurts."""

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import Message
from onnx import AttributeProto, TensorProto, helper, numpy_helper

NUMBERS = (0, -1, 1, 2, 3, 7, 255, 256, 65535, 2**20, 2**24, 2**31 - 1, 2**31, -2**31, 2**32, 2**62, 2**63 - 1, -2**63)
_FLOATS = (0.0, -1.0, 1e-45, 1e38, float("nan"), float("inf"), -float("inf"), 1e-7)
_OPERATORS = ("Conv", "Gemm", "MatMul", "Add", "Concat", "Split", "Slice", "Pad", "Resize", "Reshape", "Transpose",
              "Flatten", "MaxPool", "AveragePool", "GlobalAveragePool", "Softmax", "Relu", "Clip", "QuantizeLinear",
              "DequantizeLinear", "QLinearConv", "QLinearMatMul", "Cast", "Shape", "Expand", "Tile", "Range", "Gather",
              "ConstantOfShape", "If", "Loop", "Scan", "NonZero", "Where", "ReduceMean", "ArgMax", "BatchNormalization",
              "InstanceNormalization", "LRN", "ConvTranspose", "TopK", "OneHot", "Einsum", "NoSuchOperator", "Squeeze",
              "Unsqueeze", "Upsample", "DepthToSpace", "SpaceToDepth", "Dropout", "Identity", "CumSum", "LSTM",
              "EyeLike")

Rng = np.random.Generator


# ---- bytes


def damaged_bytes(data: bytes, other: bytes, rng: Rng) -> bytes:
    """Return ``data`` with one to four places damaged; ``other`` is spliced in perhaps."""
    new = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        at, end = sorted(int(rng.integers(len(new) + 1)) for _ in range(2))
        kind = int(rng.integers(7))
        if not new or kind == 0:
            place = int(rng.integers(len(new))) if new else 0
            new[place:place + 1] = bytes([int(rng.integers(256))])
        elif kind == 1:
            new[min(at, len(new) - 1)] ^= 1 << int(rng.integers(8))
        elif kind == 2:
            del new[at:min(end, at + 64)]
        elif kind == 3:
            del new[max(at, len(new) // 4):]
        elif kind == 4:
            new[at:at] = new[at:min(end, at + 256)]
        elif kind == 5:
            start = int(rng.integers(len(other) + 1))
            new[at:min(end, at + 128)] = other[start:start + 128]
        else:
            new[at:at + 4] = bytes([int(rng.choice((0, 255, 127, 128)))]) * int(rng.integers(1, 12))
    return bytes(new)


# ---- ONNX


def damaged_model(model: onnx.ModelProto, rng: Rng) -> bytes:
    """Return a serialised model that protobuf can read, with one to three things wrong or merely unusual."""
    new = onnx.ModelProto()
    new.CopyFrom(model)
    for _ in range(int(rng.choice((1, 1, 1, 2, 3)))):
        try:
            _MODEL_DAMAGE[int(rng.integers(len(_MODEL_DAMAGE)))](new, rng)
        except Exception:  # noqa: BLE001, S112 - a mutator's own stumbling is no finding; test_mutations asks for damage
            continue    # there is nothing of that kind left to damage, or it is too broken to be read
    return new.SerializeToString()


def _one(items: Any, rng: Rng) -> Any:
    return items[int(rng.integers(len(items)))]


def _number(rng: Rng) -> int:
    return int(NUMBERS[int(rng.integers(len(NUMBERS)))])


def _names(model: onnx.ModelProto) -> list[str]:
    graph = model.graph
    return [name for node in graph.node for name in (*node.input, *node.output) if name]


def _extent(model: onnx.ModelProto, rng: Rng) -> None:
    value = _one([*model.graph.input, *model.graph.output], rng)
    dims = value.type.tensor_type.shape.dim
    if rng.random() < 0.2:
        dims.add().dim_value = _number(rng)
    elif rng.random() < 0.2:
        del dims[int(rng.integers(len(dims)))]
    elif rng.random() < 0.2:
        _one(dims, rng).dim_param = "n"
    else:
        _one(dims, rng).dim_value = _number(rng)


def _untyped(model: onnx.ModelProto, rng: Rng) -> None:
    value = _one([*model.graph.input, *model.graph.output], rng)
    kind = int(rng.integers(4))
    if kind == 0:
        value.type.Clear()
    elif kind == 1:
        value.type.tensor_type.ClearField("shape")
    elif kind == 2:
        value.type.sequence_type.elem_type.tensor_type.elem_type = TensorProto.FLOAT
    else:
        value.type.tensor_type.elem_type = int(rng.integers(-1, 26))


def _constant_dims(model: onnx.ModelProto, rng: Rng) -> None:
    tensor = _one(model.graph.initializer, rng)
    if not tensor.dims or rng.random() < 0.3:
        tensor.dims.append(_number(rng))
    elif rng.random() < 0.3:
        tensor.dims.pop()
    else:
        tensor.dims[int(rng.integers(len(tensor.dims)))] = _number(rng)


def _constant_type(model: onnx.ModelProto, rng: Rng) -> None:
    _one(model.graph.initializer, rng).data_type = int(rng.integers(-1, 26))


def _constant_retyped(model: onnx.ModelProto, rng: Rng) -> None:
    """Give a constant another type with data of it, so that only the operator can object."""
    tensor = _one(model.graph.initializer, rng)
    dtype = _one((np.uint8, np.int8, np.int16, np.uint16, np.int32, np.int64, np.float16, np.float32, np.float64, bool),
                 rng)
    with np.errstate(all="ignore"):
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(dtype), tensor.name))


def _constant_reshaped(model: onnx.ModelProto, rng: Rng) -> None:
    """Give a constant another shape with data of it."""
    tensor = _one(model.graph.initializer, rng)
    array = numpy_helper.to_array(tensor)
    shape = _one(((), (1,), (0,), (array.size,), (1, array.size), (array.size, 1), (2,), (1, 1, 1, 1, 1)), rng)
    tensor.CopyFrom(numpy_helper.from_array(np.resize(array, shape).astype(array.dtype), tensor.name))


def _constant_data(model: onnx.ModelProto, rng: Rng) -> None:
    tensor = _one(model.graph.initializer, rng)
    if rng.random() < 0.4:
        tensor.raw_data = tensor.raw_data[:int(rng.integers(len(tensor.raw_data) + 1))]
        return
    array = numpy_helper.to_array(tensor).copy()
    value = _one(_FLOATS if array.dtype.kind == "f" else NUMBERS, rng)
    with np.errstate(all="ignore"):
        where = slice(None) if rng.random() < 0.3 else int(rng.integers(max(1, array.size)))
        array.reshape(-1)[where] = np.array(value).astype(array.dtype)
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _float_constant(model: onnx.ModelProto, rng: Rng) -> None:
    """Set scales to what no scale may be."""
    tensor = _one([each for each in model.graph.initializer if each.data_type == TensorProto.FLOAT], rng)
    array = numpy_helper.to_array(tensor).copy()
    array.reshape(-1)[int(rng.integers(array.size))] = _one(_FLOATS, rng)
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _external(model: onnx.ModelProto, rng: Rng) -> None:
    tensor = _one(model.graph.initializer, rng)
    tensor.data_location = TensorProto.EXTERNAL
    location = _one(("/etc/passwd", "../../x", "", "weights.bin", "\0", "a" * 5000), rng)
    for key, value in (("location", location), ("offset", str(_number(rng))), ("length", str(_number(rng)))):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value


def _missing_constant(model: onnx.ModelProto, rng: Rng) -> None:
    del model.graph.initializer[int(rng.integers(len(model.graph.initializer)))]


def _doubled(model: onnx.ModelProto, rng: Rng) -> None:
    items = _one((model.graph.initializer, model.graph.node, model.graph.input, model.graph.output), rng)
    items.add().CopyFrom(_one(items, rng))


def _renamed(model: onnx.ModelProto, rng: Rng) -> None:
    node = _one(model.graph.node, rng)
    names = node.input if rng.random() < 0.6 else node.output
    names[int(rng.integers(len(names)))] = _one((*_names(model), "", "nobody", "\ud7ff", "a" * 3000, "x'y\nz"), rng)


def _cycle(model: onnx.ModelProto, rng: Rng) -> None:
    node = _one(model.graph.node, rng)
    node.input[0] = _one(model.graph.node, rng).output[0]


def _reordered(model: onnx.ModelProto, rng: Rng) -> None:
    nodes = list(model.graph.node)
    rng.shuffle(nodes)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _missing_node(model: onnx.ModelProto, rng: Rng) -> None:
    del model.graph.node[int(rng.integers(len(model.graph.node)))]


def _operator(model: onnx.ModelProto, rng: Rng) -> None:
    node = _one(model.graph.node, rng)
    node.op_type = _one((*_OPERATORS, *(each.op_type for each in model.graph.node)), rng)
    if rng.random() < 0.2:
        node.domain = _one(("", "ai.onnx", "com.microsoft", "ai.onnx.ml", "nowhere"), rng)


def _operands(model: onnx.ModelProto, rng: Rng) -> None:
    node = _one(model.graph.node, rng)
    kind = int(rng.integers(4))
    if kind == 0:
        del node.input[int(rng.integers(len(node.input)))]
    elif kind == 1:
        node.input.append(_one(_names(model), rng))
    elif kind == 2:
        node.output.append(_one(("second", ""), rng))
    else:
        inputs = list(node.input)
        rng.shuffle(inputs)
        node.input[:] = inputs


def _attribute(model: onnx.ModelProto, rng: Rng) -> None:
    node = _one([node for node in model.graph.node if node.attribute], rng)
    attribute = _one(node.attribute, rng)
    kind = int(rng.integers(5))
    if kind == 0:
        node.attribute.remove(attribute)
    elif kind == 1:
        attribute.type = int(rng.integers(1, 15))
    elif kind == 2 and attribute.ints:
        attribute.ints[int(rng.integers(len(attribute.ints)))] = _number(rng)
    elif kind == 3 and attribute.ints:
        attribute.ints.append(_number(rng)) if rng.random() < 0.5 else attribute.ints.pop()
    elif attribute.type == AttributeProto.FLOAT:
        attribute.f = _one(_FLOATS, rng)
    elif attribute.type == AttributeProto.STRING:
        attribute.s = _one((b"", b"SAME_UPPER", b"VALID", b"nonsense", b"\xff\xfe", b"linear", b"reflect"), rng)
    else:
        attribute.i = _number(rng)


def _new_attribute(model: onnx.ModelProto, rng: Rng) -> None:
    name = _one(("axis", "pads", "strides", "dilations", "group", "kernel_shape", "auto_pad", "ceil_mode", "perm",
                 "axes", "keepdims", "block_size", "mode", "to", "output_shape", "output_padding", "alpha", "split",
                 "blocksize", "storage_order", "training_mode", "saturate", "opset", "nothing"), rng)
    value = _one((_number(rng), [_number(rng)] * int(rng.integers(1, 6)), "SAME_LOWER", 1.5, [0.5, 2.0]), rng)
    _one(model.graph.node, rng).attribute.append(helper.make_attribute(name, value))


def _versions(model: onnx.ModelProto, rng: Rng) -> None:
    kind = int(rng.integers(4))
    if kind == 0:
        model.ir_version = _number(rng)
    elif kind == 1:
        _one(model.opset_import, rng).version = int(rng.choice((0, 1, 5, 9, 10, 11, 12, 13, 18, 21, 99, -1, 2**40)))
    elif kind == 2:
        del model.opset_import[:]
    else:
        model.opset_import.append(helper.make_opsetid(_one(("", "ai.onnx", "nowhere"), rng), int(rng.integers(30))))


def _nested(model: onnx.ModelProto, rng: Rng) -> None:
    """Put a node into branches of Ifs, many deep."""
    node = _one(model.graph.node, rng)
    inner = onnx.NodeProto()
    inner.CopyFrom(node)
    condition = model.graph.input[0].name
    for _ in range(int(rng.choice((1, 2, 12, 24)))):
        outputs = [helper.make_empty_tensor_value_info(name) for name in inner.output]
        branch = helper.make_graph([inner], "branch", [], outputs)
        inner = helper.make_node("If", [condition], list(node.output), then_branch=branch, else_branch=branch) \
            if rng.random() < 0.02 else helper.make_node("If", [condition], list(node.output), then_branch=branch)
    node.CopyFrom(inner)


def _function(model: onnx.ModelProto, rng: Rng) -> None:
    """Define an operator by others, perhaps by itself."""
    node = _one(model.graph.node, rng)
    body = onnx.NodeProto()
    body.CopyFrom(node)
    domain = node.domain if rng.random() < 0.5 else "here"
    if rng.random() < 0.3:
        body.domain = domain
    function = helper.make_function(domain, node.op_type, list(dict.fromkeys(filter(None, node.input))),
                                    list(node.output), [body], list(model.opset_import))
    model.functions.append(function)
    node.domain = domain


def _growth(model: onnx.ModelProto, rng: Rng) -> None:
    """Compute a constant, or a tensor, of a size that nobody wants."""
    sizes = numpy_helper.from_array(np.array([_number(rng) for _ in range(int(rng.integers(1, 5)))], np.int64), "sizes")
    model.graph.initializer.append(sizes)
    op = _one(("ConstantOfShape", "Expand", "Tile", "Range", "Reshape", "Resize", "Pad", "EyeLike", "Upsample"), rng)
    name = _one(model.graph.node, rng).output[0]
    inputs = {"ConstantOfShape": ["sizes"], "Range": ["sizes"] * 3, "Resize": [name, "", "", "sizes"],
              "EyeLike": ["sizes"]}.get(op, [name, "sizes"])
    model.graph.node.append(helper.make_node(op, inputs, ["grown"]))
    model.graph.output.append(helper.make_empty_tensor_value_info("grown"))


def _any_field(model: onnx.ModelProto, rng: Rng) -> None:
    """Set any number or string anywhere in the message."""
    message: Message = model
    while True:
        fields = message.ListFields()
        field, value = fields[int(rng.integers(len(fields)))]
        inner = list(value) if not isinstance(value, (Message, str, bytes, int, float)) else [value]
        each = inner[int(rng.integers(len(inner)))] if inner else None
        if isinstance(each, Message):
            message = each
            continue
        new = {str: "other", bytes: b"\x80\x80", float: math.nan, int: _number(rng), bool: True}[type(each)]
        if len(inner) == 1 and inner[0] is value:
            setattr(message, field.name, new)
        else:
            value[int(rng.integers(len(inner)))] = new
        return


_MODEL_DAMAGE: tuple[Callable[[onnx.ModelProto, Rng], None], ...] = (
    _extent, _extent, _untyped, _constant_dims, _constant_type, _constant_retyped, _constant_reshaped,
    _constant_data, _constant_data, _float_constant, _float_constant, _external, _missing_constant, _doubled, _renamed,
    _renamed, _cycle, _reordered, _missing_node, _operator, _operator, _operator, _operands, _operands, _attribute,
    _attribute, _attribute, _new_attribute, _new_attribute, _versions, _nested, _function, _growth, _any_field)


# ---- JSON


def damaged_json(text: bytes, rng: Rng) -> bytes:
    """Return JSON with one to three values replaced, removed or doubled."""
    data = json.loads(text)
    for _ in range(int(rng.choice((1, 1, 2, 3)))):
        _damage(data, rng)
    return json.dumps(data).encode()


def _damage(data: Any, rng: Rng) -> None:
    holder = data
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        if not keys:
            return
        key = keys[int(rng.integers(len(keys)))]
        inner = holder[key]
        if isinstance(inner, (dict, list)) and inner and rng.random() < 0.85:
            holder = inner
            continue
        break
    kind = int(rng.integers(8))
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(inner, int):
        holder[key] = inner + int(rng.choice((-1, 1, 4, 64)))
    elif kind == 2 and isinstance(holder, list):
        holder.append(inner)
    elif kind == 3 and isinstance(holder, dict):
        holder["unknown"] = inner
    else:
        holder[key] = _one((_number(rng), _number(rng), None, True, "", "a" * 3000, "float32", "../x", [], {}, [[]],
                            1e308, math.nan, [_number(rng)] * 4, {"a": 1}, "\ud800"), rng)
