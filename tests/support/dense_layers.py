"""Quantised matrix products in every form that exporters write, for small models."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tests.support.onnx_models import ModelBuilder, Value

__all__ = ["Dense", "add_dense"]

_SPREAD = 74.0


@dataclass(frozen=True, kw_only=True)
class Dense:
    """A matrix product with constant weights.

    ``bias`` is ``int32``, ``float32`` or ``none``, of ``bias_shape`` (one element per output where that is None);
    behind a MatMul an Add adds it. ``clip`` names the operator before the quantisation.
    """

    outputs: int
    op: str = "MatMul"
    bias: str = "int32"
    bias_shape: tuple[int, ...] | None = None
    clip: str = ""
    alpha: float = 1.0
    beta: float = 1.0
    trans_a: bool = False
    trans_b: bool = False
    per_channel: bool = False


def add_dense(model: ModelBuilder, x: Value, dense: Dense) -> Value:
    """Add ``dense`` of x, (…, rows, inputs) or transposed, to a model in the QDQ form and return (…, rows, outputs)."""
    rows, inputs = (x.shape[1], x.shape[0]) if dense.trans_a else (x.shape[-2], x.shape[-1])
    weights = model.rng.integers(-127, 128, (inputs, dense.outputs)).astype(np.int8)
    scale = model.rng.uniform(0.004, 0.01, dense.outputs if dense.per_channel else ()).astype(np.float32)
    out = model.value((*x.shape[:-2], rows, dense.outputs),
                      np.float32(x.scale * scale.mean() * np.sqrt(inputs) * _SPREAD**2 / 60))
    parameters = [model.constant(each) for each in (weights.T.copy() if dense.trans_b else weights, scale,
                                                    np.zeros_like(scale, np.int8))]
    axis = 0 if dense.trans_b else 1
    operands = [model.dequantised(x), model.node("DequantizeLinear", parameters, f"w{len(model.nodes)}", axis=axis)]
    bias = _bias(model, x, dense, scale)
    if dense.op == "Gemm":
        result = model.node("Gemm", [*operands, *bias], f"product{len(model.nodes)}", alpha=dense.alpha,
                            beta=dense.beta, transA=int(dense.trans_a), transB=int(dense.trans_b))
    else:
        result = model.node("MatMul", operands, f"product{len(model.nodes)}")
        for each in bias:
            result = model.node("Add", [each, result] if dense.outputs % 2 else [result, each],
                                f"sum{len(model.nodes)}")
    if dense.clip:
        result = model.node(dense.clip, [result], f"clip{len(model.nodes)}")
    model.quantised(result, out)
    return out


def _bias(model: ModelBuilder, x: Value, dense: Dense, w_scale: np.ndarray) -> Sequence[str]:
    if dense.bias == "none":
        return ()
    shape = (dense.outputs,) if dense.bias_shape is None else dense.bias_shape
    levels = model.rng.integers(-20000, 20000, shape).astype(np.int32)
    scale = (x.scale * w_scale).astype(np.float32)
    if levels.size == 1 or len(shape) > 1:
        scale = np.array(scale.mean(), np.float32)
    if dense.bias == "float32":
        return (model.constant((levels * scale * np.float32(1.0003)).astype(np.float32)),)
    parameters = [model.constant(each) for each in (levels, scale, np.zeros_like(scale, np.int32))]
    return (model.node("DequantizeLinear", parameters, f"b{len(model.nodes)}", axis=0),)
