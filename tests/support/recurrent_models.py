"""Models of one RNN, GRU or LSTM with random weights, in every form that ONNX has of it."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["recurrent_model"]

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
STEPS, BATCH, INPUTS, UNITS = 5, 2, 3, 4


def recurrent_model(op: str, *, sizes: Sequence[int] = (STEPS, BATCH, INPUTS, UNITS), states: str = "inputs",
                    bias: bool = True, lengths: Sequence[int] | None = None, peepholes: bool = False,
                    opset: int = 18, outputs: Sequence[str] = ("y", "hn", "cn"),
                    attributes: Mapping[str, object] | None = None) -> onnx.ModelProto:
    """Return a model with the input ``x`` and the outputs ``y``, ``hn`` and, of an LSTM, ``cn``.

    ``states`` says what the initial states h and c are: "inputs", "constants" or "none".
    """
    steps, batch, inputs, units = sizes
    attributes = dict(attributes or {})
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    first = bool(attributes.get("layout"))
    rng, constants, gates = np.random.default_rng(len(op) + units), {}, _GATES[op]

    def constant(name: str, *shape: int) -> str:
        constants[name] = (0.6 * rng.normal(size=shape)).astype(np.float32)
        return name

    read = ["x", constant("W", directions, gates * units, inputs), constant("R", directions, gates * units, units),
            constant("B", directions, 2 * gates * units) if bias else ""]
    known = [helper.make_tensor_value_info(
        "x", TensorProto.FLOAT, [batch, steps, inputs] if first else [steps, batch, inputs])]
    read.append("lengths" if lengths else "")
    if lengths:
        constants["lengths"] = np.array(lengths, np.int32)
    shape = [batch, directions, units] if first else [directions, batch, units]
    for name in ("h", "c")[:2 if op == "LSTM" else 1]:
        if states == "inputs":
            known.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        read.append("" if states == "none" else name if states == "inputs" else constant(name, *shape))
    if peepholes:
        read.append(constant("P", directions, 3 * units))
    while not read[-1]:
        del read[-1]
    made = [name if name in outputs else "" for name in ("y", "hn", "cn")[:3 if op == "LSTM" else 2]]
    node = helper.make_node(op, read, made, "recurrent", hidden_size=units, **attributes)
    graph = helper.make_graph([node], "net", known, [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
                                                     for name in made if name],
                              [numpy_helper.from_array(values, name) for name, values in constants.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
