"""Small integer networks as Deeploy and MATCH write them, and loops over their nodes in whole numbers."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper, numpy_helper

__all__ = ["PulpNetwork", "computed_in_whole_numbers"]


class PulpNetwork:
    """Nodes and constants of a network, in order; each method adds one and returns its output."""

    def __init__(self, shape: Sequence[int], kind: int = TensorProto.FLOAT) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[TensorProto] = []
        self.input = helper.make_tensor_value_info("x", kind, shape)

    def add(self, kind: str, *inputs: str | np.ndarray | float, **attributes: object) -> str:
        """Add a node; arrays and numbers among its inputs are constants."""
        name = f"{kind}_{len(self.nodes)}"
        names = []
        for index, each in enumerate(inputs):
            if not isinstance(each, str):
                self.constants.append(numpy_helper.from_array(np.asarray(each, getattr(each, "dtype", np.float32)),
                                                              f"{name}.{index}"))
            names.append(each if isinstance(each, str) else f"{name}.{index}")
        self.nodes.append(helper.make_node(kind, names, [f"t{len(self.nodes)}"], name, **attributes))
        return f"t{len(self.nodes) - 1}"

    def shifted(self, x: str, multipliers: np.ndarray, addends: np.ndarray, shift: int, *, signed: bool = False,
                levels: int = 256) -> str:
        """Add a RequantShift of Deeploy."""
        numbers = {name: numpy_helper.from_array(np.array([value], np.float32), name) for name, value in
                   (("div", 2**shift), ("n_levels_out", levels), ("signed", signed))}
        return self.add("RequantShift", x, multipliers.astype(np.float32), addends.astype(np.float32), **numbers)

    def model(self, output: str, shape: Sequence[int]) -> onnx.ModelProto:
        """Return the network."""
        result = helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, "pulp", [self.input], [result], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 10)], ir_version=6)


def computed_in_whole_numbers(model: onnx.ModelProto, x: np.ndarray) -> dict[str, np.ndarray]:
    """Return every tensor of a network for one input, int64, by the definitions of its tools.

    RequantShift is Deeploy's: clamp((x · mul + add + 2^(s - 1)) >> s). Div and Floor are a floor, in NEMO and MATCH.
    """
    values = {each.name: _whole(numpy_helper.to_array(each)) for each in model.graph.initializer}
    values["x"] = x.astype(np.int64)
    for node in model.graph.node:
        given = [values[name] for name in node.input]
        values[node.output[0]] = _computed(node.op_type, given, {each.name: helper.get_attribute_value(each)
                                                                 for each in node.attribute})
    return values


def _whole(array: np.ndarray) -> np.ndarray:
    return (array.view(np.int8) if array.dtype == np.uint8 else array).astype(np.int64)


def _computed(kind: str, given: list[np.ndarray], attributes: dict) -> np.ndarray:
    if kind == "RequantShift":
        div, levels, signed = (int(numpy_helper.to_array(attributes[name]).item())
                               for name in ("div", "n_levels_out", "signed"))
        low = -(levels // 2) if signed else 0
        return np.clip((given[0] * given[1] + given[2] + div // 2) // div, low, low + levels - 1)
    if kind == "Conv":
        return _convolved(*given, attributes)
    if kind == "MaxPool":
        size = attributes["kernel_shape"]
        return sliding_window_view(given[0], size, axis=(2, 3))[:, :, ::size[0], ::size[1]].max(axis=(4, 5))
    if kind == "AveragePool":
        axes = tuple(range(2, given[0].ndim))
        windows = sliding_window_view(given[0], attributes["kernel_shape"], axis=axes)[:, :, *(
            slice(None, None, step) for step in attributes["strides"])]
        sums = windows.sum(axis=tuple(axis + len(axes) for axis in axes))
        return sums * Fraction(1, int(np.prod(attributes["kernel_shape"])))
    if kind == "Pad":
        return np.pad(given[0], np.array(attributes["pads"]).reshape(2, -1).T)
    return {"Gemm": lambda: given[0] @ given[1].T + given[2], "MatMul": lambda: given[0] @ given[1],
            "Add": lambda: given[0] + given[1], "Mul": lambda: given[0] * given[1],
            "Div": lambda: (given[0] // given[1]).astype(np.int64), "Floor": lambda: given[0], "Cast": lambda: given[0],
            "Flatten": lambda: given[0].reshape(1, -1),
            "Clip": lambda: np.clip(given[0], int(attributes["min"]), int(attributes["max"]))}[kind]()


def _convolved(x: np.ndarray, weights: np.ndarray, attributes: dict) -> np.ndarray:
    axes = weights.ndim - 2
    pads = np.array(attributes.get("pads", (0, 0) * axes)).reshape(2, axes).T
    groups, each = attributes.get("group", 1), weights.shape[1]
    windows = sliding_window_view(np.pad(x, ((0, 0), (0, 0), *pads)), weights.shape[2:],
                                  axis=tuple(range(2, 2 + axes)))[0]
    windows = windows[:, *(slice(None, None, step) for step in attributes.get("strides", (1,) * axes))]
    windows = windows.reshape(*windows.shape[:1 + axes], -1)
    outputs = [np.einsum("c...k,ck->...", windows[first:first + each], kernel) for first, kernel in
               ((index // (len(weights) // groups) * each, kernel.reshape(each, -1))
                for index, kernel in enumerate(weights))]
    return np.stack(outputs)[None]
