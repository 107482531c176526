"""A network that multiplies a matrix, which is its input, by another one."""

from dataclasses import replace

import numpy as np

from tilewright.compiler.network.layers import Layer, MatrixFactor, Network, Place, Requantisation, TensorInfo

SCALE = np.float32(1 / 3000)
ZERO = 3


def matrix_network(inputs: int, rows: int, outputs: int, x_zero: int, w_zero: int) -> Network:
    """Return x · w, of ``rows`` of x by ``outputs`` of w, both of ``inputs`` elements."""
    x = TensorInfo(name="x", shape=(inputs, 1, rows), scale=np.float32(1), zero_point=x_zero)
    w = TensorInfo(name="w", shape=(inputs, 1, outputs), scale=np.float32(1), zero_point=w_zero)
    y = TensorInfo(name="y", shape=(outputs, 1, rows), scale=np.float32(1), zero_point=ZERO)
    factor = MatrixFactor(tensor="w", zero_point=w_zero, negated=w_zero == -128)
    layer = Layer(name="product", kind="conv", onnx_nodes=("matmul",), input="x", output="y", in_shape=x.shape,
                  conv_shape=y.shape, out_shape=y.shape, weights=None, bias=np.zeros(outputs, np.int32),
                  kernel=(1, factor.halves), dilations=(1, 2 - factor.halves), pad_value=x_zero, factor=factor,
                  requantisation=Requantisation(scale=np.full(outputs, SCALE, np.float32), zero_point=ZERO))
    return Network(name="n", layers=(layer,), inputs=(x, w), outputs=(y,),
                   tensors={each.name: each for each in (x, w, y)})


def turned_network(inputs: int, rows: int, outputs: int, x_zero: int, w_zero: int, heads: int = 1) -> Network:
    """Return the same of each of ``heads``, whose w is the columns of so many parts of a row of ``v``."""
    width = outputs * heads
    each = matrix_network(inputs, rows, outputs, x_zero, w_zero)
    v = replace(each.tensors["w"], name="v", shape=(width, 1, inputs))
    read = replace(v, name="columns read", shape=(1, width, inputs), place=Place(
        parent="v", offset=0, row_step=1, pixel_step=width))
    columns = replace(v, name="columns", shape=(1, width, inputs))
    y = replace(each.tensors["y"], shape=(width, 1, rows))
    copy = Layer(name="copy", kind="pass", onnx_nodes=("transpose",), input=read.name, output=columns.name,
                 in_shape=read.shape, conv_shape=read.shape, out_shape=read.shape, weights=None,
                 bias=np.zeros(1, np.int32),
                 requantisation=Requantisation(scale=np.ones(1, np.float32), zero_point=0))
    tensors = {info.name: info for info in (each.tensors["x"], v, read, columns, y)}
    products = []
    for head in range(heads):
        matrix = replace(v, name=f"w{head}", shape=(inputs, 1, outputs), place=Place(
            parent="columns", offset=head * outputs * inputs, row_step=inputs * outputs, pixel_step=inputs))
        part = replace(y, name=f"y{head}", shape=(outputs, 1, rows), place=Place(
            parent="y", offset=head * outputs, row_step=width * rows, pixel_step=width))
        tensors |= {matrix.name: matrix, part.name: part}
        (product,) = each.layers
        products.append(replace(product, name=f"product {head}", output=part.name,
                                factor=replace(product.factor, tensor=matrix.name)))
    return Network(name="n", layers=(copy, *products), inputs=(each.tensors["x"], v), outputs=(y,), tensors=tensors)


def product_of(x: np.ndarray, w: np.ndarray, x_zero: int, w_zero: int) -> np.ndarray:
    """Return int8 (outputs, 1, rows) from the definition, of int8 (inputs, 1, rows) and (inputs, 1, outputs)."""
    sums = (w[:, 0].T.astype(np.int64) - w_zero) @ (x[:, 0].astype(np.int64) - x_zero)
    scaled = np.rint((sums * (-1 if w_zero == -128 else 1)).astype(np.float32) * SCALE)
    return np.clip(scaled + ZERO, -128, 127).astype(np.int8)[:, None]
