"""The layer of a product with a computed vector, and the scale that gives ONNX Runtime's integers; for build_layers.

ONNX Runtime rounds a product once, behind its zero point: rne(fl32(fl32(p · ratio) + zero)), where the datapath rounds
before it. All products of two bytes are tried: almost always the ratio, or a neighbour of it, gives the same integers.
Source: ``qlmul.cpp`` of MLAS, and comparison (compiler/kernels/operators/products.py).
"""

import numpy as np

from tilewright.compiler.errors import BadModelError
from tilewright.compiler.graph.integer_operators import QScale
from tilewright.compiler.graph.node import Node
from tilewright.compiler.network.layers import NEGATED_ZERO, ChannelFactor, Layer, Requantisation, TensorInfo
from tilewright.isa.numerics import pack_scale

__all__ = ["product_layer", "product_scale"]

_NEIGHBOURS = 8
"""Float32 values on either side of the ratio that are tried."""


def product_layer(node: Node, operator: QScale, name: str, types: tuple[TensorInfo, ...]) -> Layer:
    """Return the layer of a QScale; ``types`` are those of x, the vector, the operator's own result, and the output.

    The nine bits of a factor are two int8 halves, but for 255. So factors of 0 .. 255 are negated, and a table turns
    each bit of the result: -1 - q is what -q becomes around the zero point -1 - z. The table of what is added to comes
    before the addition.

    Raises
    ------
    BadModelError
        If the scales are beyond what the datapath multiplies by.
    """
    x, vector, own, out = types
    scale, exact = product_scale(x, vector, own) if operator.integers is None else (operator.integers.factors[0], True)
    try:
        pack_scale(float(scale))
    except ValueError as error:
        raise BadModelError(f"Scales of node {node.name!r} are too far apart: {error}") from error
    factor = ChannelFactor(tensor=vector.name, zero_point=vector.zero_point, negated=vector.zero_point == NEGATED_ZERO)
    zero, low, high, table = own.zero_point, operator.low, operator.high, operator.table
    assert not (factor.negated and operator.residual is not None and not operator.table_first)
    if factor.negated:
        zero, low, high = -1 - zero, -1 - high, -1 - low
        table = (np.arange(-128, 128).astype(np.int8) if table is None else table)[::-1]
    channels = x.shape[0]
    integers = operator.integers and operator.integers.of_channels(np.zeros(channels, np.int64))
    return Layer(name=name, kind="conv", onnx_nodes=node.onnx_nodes, input=x.name, output=node.output,
                 in_shape=x.shape, conv_shape=x.shape, out_shape=out.shape, weights=None,
                 bias=np.zeros(channels, np.int32), kernel=(1, factor.halves),
                 dilations=(1, 1 if factor.halves == 1 else 0), pad_value=x.zero_point, groups=channels,
                 requantisation=Requantisation(scale=np.full(channels, scale, np.float32), zero_point=zero, low=low,
                                               high=high, integers=integers),
                 factor=factor, pool=operator.pool, table=table, residual=operator.residual,
                 table_first=operator.table_first, exact=operator.exact and exact)


def product_scale(x: TensorInfo, factor: TensorInfo, y: TensorInfo) -> tuple[np.float32, bool]:
    """Return the float32 scale of the products of integers, and whether it gives ONNX Runtime's results, always."""
    ratio = np.float32(np.float32(x.scale * factor.scale) / y.scale)
    levels = np.arange(-128, 128)
    products = np.unique((levels - x.zero_point)[:, None] * (levels - factor.zero_point)).astype(np.float32)
    zero = y.zero_point + 128 * y.unsigned
    theirs = np.clip(np.rint(products * ratio + np.float32(zero)) - 128 * y.unsigned, -128, 127)
    above = below = ratio
    for _ in range(_NEIGHBOURS + 1):
        for scale in (above, below):
            if np.array_equal(theirs, np.clip(np.rint(products * scale) + y.zero_point, -128, 127)):
                return scale, True
        above, below = np.nextafter(above, np.float32(np.inf)), np.nextafter(below, np.float32(0))
    return ratio, False
