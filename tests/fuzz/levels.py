"""Random functions of quantised tensors that the host core computes, with a QuantizeLinear behind or without one."""

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.fuzz.choices import Choices
from tests.support.onnx_models import ModelBuilder, Value

__all__ = ["random_levels", "random_tail"]

_CHAINS = (("Sigmoid",), ("Tanh",), ("Neg", "Exp"), ("Sigmoid", "Mul"), ("Relu", "Relu"), ("Abs", "Sqrt", "Mul"),
           ("HardSwish",))


def random_levels(choices: Choices, model: ModelBuilder, x: Value) -> Value:
    """Add Softmax or LRN of ``x`` between quantisations, and return the result."""
    if len(x.shape) == 4 and choices.chance(50):
        out = model.value(x.shape, np.float32(x.scale * choices.pick((1, 0.7, 1.6))))
        attrs = {"size": choices.pick((1, 3, 5)), "alpha": choices.pick((1e-4, 0.01, 0.3)),
                 "beta": choices.pick((0.75, 0.5)), "bias": choices.pick((1.0, 2.0))}
        model.quantised(model.node("LRN", [model.dequantised(x)], f"float{len(model.nodes)}", **attrs), out)
        return out
    out = model.value(x.shape, np.float32(choices.pick((1 / 256, 1 / 128, 1 / 1000))))
    axis = choices.between(1, len(x.shape) - 1)
    model.quantised(model.node("Softmax", [model.dequantised(x)], f"float{len(model.nodes)}", axis=axis), out)
    return out


def random_tail(choices: Choices, model: ModelBuilder, source: str, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
    """End the float tensor ``source``: by a softmax, a position, a power or a chain of functions; return the output."""
    name, kind = f"tail{len(model.nodes)}", TensorProto.FLOAT
    op = choices.pick(("Softmax", "ArgMax", "LogSoftmax", "Exp", "Pow", "Relu", "LRN", "chain", "chain"))
    if op == "LRN" and len(shape) < 4:
        op = "chain"
    if op == "ArgMax":
        model.node(op, [source], name, axis=1, keepdims=1)
        kind, shape = TensorProto.INT64, (1, 1, *shape[2:])
    elif op == "Pow":
        model.node(op, [source, model.constant(np.float32(2))], name)
    elif op in ("Softmax", "LogSoftmax"):
        model.node(op, [source], name, axis=1)
    elif op == "LRN":
        model.node(op, [source], name, size=3)
    elif op == "chain":
        for place, step in enumerate(choices.pick(_CHAINS)):
            other = [choices.pick((source, model.constant(np.float32(0.5))))] if step == "Mul" else []
            source = model.node(step, [source, *other], f"{name}:{place}")
        model.node("Identity", [source], name)
    else:
        model.node(op, [source], name)
    return helper.make_tensor_value_info(name, kind, shape)
