"""A network that multiplies a matrix, which is its input, by another one."""

import numpy as np

from tilewright.compiler.network.layers import Layer, MatrixFactor, Network, Requantisation, TensorInfo

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


def product_of(x: np.ndarray, w: np.ndarray, x_zero: int, w_zero: int) -> np.ndarray:
    """Return int8 (outputs, 1, rows) from the definition, of int8 (inputs, 1, rows) and (inputs, 1, outputs)."""
    sums = (w[:, 0].T.astype(np.int64) - w_zero) @ (x[:, 0].astype(np.int64) - x_zero)
    scaled = np.rint((sums * (-1 if w_zero == -128 else 1)).astype(np.float32) * SCALE)
    return np.clip(scaled + ZERO, -128, 127).astype(np.int8)[:, None]
