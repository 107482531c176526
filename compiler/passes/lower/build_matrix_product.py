"""The layers of products of computed matrices, one for each pair of them; for build_layers."""

from dataclasses import replace

import numpy as np

from tilewright.compiler.errors import BadModelError
from tilewright.compiler.graph.integer_operators import QProduct
from tilewright.compiler.graph.node import Node
from tilewright.compiler.network.layers import Layer, MatrixFactor, Requantisation, TensorInfo
from tilewright.compiler.network.places import TensorPart
from tilewright.isa.numerics import pack_scale

__all__ = ["matrix_product_layers"]


def matrix_product_layers(node: Node, operator: QProduct, name: str, types: tuple[TensorInfo, ...],
                          ) -> tuple[list[Layer], dict[str, TensorInfo]]:
    """Return the layers of a QProduct, and the parts of tensors that they read and write.

    ``types`` are those of the first operand, the second, the operator's own result, and the output. The nine bits of
    a weight without its zero point are a byte and a constant one, but for a zero point of -128: then weights are
    negated, and a table turns each bit of the result, as -1 - q is what -q becomes around the zero point -1 - z.

    Raises
    ------
    BadModelError
        If the scales are beyond what the datapath multiplies by.
    """
    first, second, own, out = types
    scale = np.float32(np.float32(first.scale * second.scale) / own.scale) if operator.integers is None else \
        operator.integers.factors[0]
    try:
        pack_scale(float(scale))
    except ValueError as error:
        raise BadModelError(f"Scales of node {node.name!r} are too far apart: {error}") from error
    zero, low, high, table = own.zero_point, operator.low, operator.high, operator.table
    negated = second.zero_point == -128
    if negated:
        zero, low, high = -1 - zero, -1 - high, -1 - low
        table = (np.arange(-128, 128).astype(np.int8) if table is None else table)[::-1]
    outputs = out.shape[0]
    integers = operator.integers and operator.integers.of_channels(np.zeros(outputs, np.int64))
    parts: dict[str, TensorInfo] = {}

    def row(info: TensorInfo, number: int) -> TensorInfo:
        if info.shape[1] == 1:
            return info
        channels, _, width = info.shape
        part = replace(info, name=f"{info.name}[{number}] of {name}", shape=(channels, 1, width), dims=None,
                       place=TensorPart(info.name, (0, number, 0)).place(info.shape))
        parts[part.name] = part
        return part

    layers = []
    for number, (left, right) in enumerate(operator.pairs):
        x, matrix, y = row(first, left), row(second, right), row(out, number)
        factor = MatrixFactor(tensor=matrix.name, zero_point=matrix.zero_point, negated=negated)
        layers.append(Layer(
            name=f"{name}[{number}]" if len(operator.pairs) > 1 else name, kind="conv", onnx_nodes=node.onnx_nodes,
            input=x.name, output=y.name, in_shape=x.shape, conv_shape=y.shape, out_shape=y.shape, weights=None,
            bias=np.zeros(outputs, np.int32), kernel=(1, factor.halves), dilations=(1, 2 - factor.halves),
            pad_value=x.zero_point, table=table, factor=factor, exact=operator.exact,
            requantisation=Requantisation(scale=np.full(outputs, scale, np.float32), zero_point=zero, low=low,
                                          high=high, integers=integers)))
    return layers, parts
