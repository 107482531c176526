"""Products of rows with a constant matrix become 1x1 convolutions over an image with one pixel per row."""

from dataclasses import dataclass, replace

from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxAdd, OnnxGemm, OnnxMatMul, OnnxRowProduct
from tilewright.compiler.network.image_forms import COLUMNS, LINE, ROWS, Form
from tilewright.compiler.passes.images.constant_changes import Flattened, MatrixWeights
from tilewright.compiler.passes.images.state import ImageState

__all__ = ["RowProduct", "convolved", "product_of"]

_POINT = {"kernel_shape": (1, 1)}


@dataclass(frozen=True, slots=True)
class RowProduct:
    """A product of several rows with the matrix ``weights``; ``form`` is that of its first operand."""

    form: Form
    weights: str
    transposed: bool
    outputs: int


def product_of(state: ImageState, node: Node) -> RowProduct | None:
    """Return the operands of a node that multiplies rows by a constant matrix and can become a convolution."""
    operator = node.operator
    if not isinstance(operator, OnnxMatMul | OnnxGemm):
        return None
    weights, shape = node.inputs[1], state.shape(node.inputs[0])
    matrix = state.shape(weights)
    if not state.fixed(weights) or matrix is None or len(matrix) != 2 or shape is None:
        return None
    gemm = operator if isinstance(operator, OnnxGemm) else None
    turned = gemm is not None and bool(gemm.transA)
    transposed = gemm is not None and bool(gemm.transB)
    if gemm is not None and (gemm.alpha != 1.0 or gemm.beta != 1.0
                             or not all(_is_row(state, name) for name in node.inputs[2:3] if name)):
        return None
    form = COLUMNS if turned else ROWS
    if not form.suits(shape) or (len(shape) == 2 and shape[0] == 1 and not turned):
        return None
    return RowProduct(form, weights, transposed, matrix[0 if transposed else 1])


def _is_row(state: ImageState, name: str) -> bool:
    shape = state.shape(name)
    return state.fixed(name) and shape is not None and all(extent == 1 for extent in shape[:-1])


def convolved(state: ImageState, node: Node, product: RowProduct) -> None:
    """Add the convolution that stands for ``node``, and for the Add of a constant row behind a MatMul."""
    x = state.image(node.inputs[0], product.form)
    weights = state.changed(product.weights, f"{ROWS.suffix}{int(product.transposed)}",
                            MatrixWeights(product.transposed))
    if isinstance(node.operator, OnnxGemm):
        bias = tuple(_bias(state, name, product.outputs) for name in node.inputs[2:3] if name)
        conv = OnnxRowProduct(_POINT, "Conv", rounded=_rounded(state, node.inputs[2:3]))
        state.add(node, conv, (x, weights, *bias), ROWS)
    else:
        _with_addition(state, node, x, weights, product.outputs)


def _with_addition(state: ImageState, node: Node, x: str, weights: str, outputs: int) -> None:
    behind = state.graph.only_reader(node.output)
    addend = "" if behind is None or not isinstance(behind.operator, OnnxAdd) else \
        behind.inputs[1 if behind.inputs[0] == node.output else 0]
    if behind is None or not addend or not _is_row(state, addend):
        state.add(node, OnnxRowProduct(_POINT, "Conv"), (x, weights), ROWS)
        return
    state.absorbed.add(behind.output)
    shape, rank = state.shape(addend), len(state.shape(node.inputs[0]) or ())
    # Only such sums ONNX Runtime fuses with the product.
    fused = shape == (outputs,) or (shape == (1, outputs) and rank == 2)
    conv = OnnxRowProduct(_POINT, "Conv", rounded=not fused)
    state.add(replace(node, onnx_nodes=node.onnx_nodes + behind.onnx_nodes), conv,
              (x, weights, _bias(state, addend, outputs)), ROWS, behind.output)


def _rounded(state: ImageState, bias: tuple[str, ...]) -> bool:
    """Tell whether ONNX Runtime adds the bias of a Gemm in float: a matrix of floats."""
    return any(name in state.constants and state.constants[name].ndim != 1 for name in bias if name)


def _bias(state: ImageState, name: str, count: int) -> str:
    return state.changed(name, f"{LINE.suffix}{count}", Flattened(count))

