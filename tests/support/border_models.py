"""A small quantised convolution, to whose inputs and outputs something is added: a model of a border of its own."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

__all__ = ["BorderModel"]

X, Y = (1, 3, 5, 5), (1, 4, 3, 3)


class BorderModel:
    """x -> Q -> ``xq`` -> DQ -> Conv -> ``conv`` -> Q -> ``q`` -> DQ -> ``y``, int8; nodes are added behind it.

    ``outputs`` are (name, element type, shape or None where none is stated), and ``inputs`` likewise.
    """

    def __init__(self, opset: int = 17) -> None:
        rng = np.random.default_rng(5)
        self.opset, self.constants = opset, {}
        self.inputs, self.outputs = [("x", TensorProto.FLOAT, X)], [("y", TensorProto.FLOAT, Y)]
        self.nodes: list[onnx.NodeProto] = []
        pair = [self.constant(np.float32(0.03)), self.constant(np.int8(0))]
        weight = [self.constant(np.float32(0.02)), self.constant(np.int8(0))]
        self.result = [self.constant(np.float32(0.1)), self.constant(np.int8(3))]
        self.node("QuantizeLinear", ["x", *pair], "xq")
        self.node("DequantizeLinear", ["xq", *pair], "xd")
        self.constants["w"] = rng.integers(-60, 61, (4, 3, 3, 3)).astype(np.int8)
        self.node("DequantizeLinear", ["w", *weight], "wd")
        self.node("Conv", ["xd", "wd"], "conv")
        self.node("QuantizeLinear", ["conv", *self.result], "q")
        self.node("DequantizeLinear", ["q", *self.result], "y")

    def constant(self, value: np.generic | np.ndarray) -> str:
        """Add a constant and return its name."""
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def node(self, op: str, inputs: list[str], output: str, **attributes: object) -> str:
        """Add a node and return its output."""
        self.nodes.append(helper.make_node(op, inputs, [output], name=f"{op}_{output}", **attributes))
        return output

    def alias(self, kind: str, source: str, name: str) -> str:
        """Add a node that computes nothing, of one of the ``ALIASES``."""
        make = {
            "identity": lambda: ("Identity", [source], {}),
            "dropout": lambda: ("Dropout", [source], {}),
            "cast": lambda: ("Cast", [source], {"to": TensorProto.FLOAT}),
            "plus zero": lambda: ("Add", [source, self.constant(np.float32(0))], {}),
            "times one": lambda: ("Mul", [source, self.constant(np.float32(1))], {}),
            "concat": lambda: ("Concat", [source], {"axis": 1}),
            "slice": lambda: ("Slice", [source, *(self.constant(np.array([n])) for n in (0, 9999, 1))], {}),
        }
        op, inputs, attributes = make[kind]()
        return self.node(op, inputs, name, **attributes)

    def finish(self) -> bytes:
        """Return the contents of the ONNX file."""
        values = [[helper.make_tensor_value_info(*each) for each in border] for border in (self.inputs, self.outputs)]
        graph = helper.make_graph(self.nodes, "border", *values, [
            numpy_helper.from_array(value, name) for name, value in self.constants.items()])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=9)
        return model.SerializeToString()


ALIASES = ("identity", "dropout", "cast", "plus zero", "times one", "concat", "slice")
