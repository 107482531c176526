"""Products of computed matrices become products of images: a pixel per row of the first, one per column of the second.

Of (…, M, K) by (…, K, N) both operands then have their K elements side by side, which the sums run along. Batches,
which may be broadcast, are numbered.
"""

import math
from dataclasses import dataclass

import numpy as np

from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxCast,
    OnnxClip,
    OnnxDequantizeLinear,
    OnnxImageProduct,
    OnnxMatMul,
    OnnxOperator,
    OnnxQuantizeLinear,
    OnnxRelu,
    OnnxTranspose,
)
from tilewright.compiler.graph.qlinear_operators import OnnxQLinearMatMul
from tilewright.compiler.network.image_forms import ROWS
from tilewright.compiler.passes.images.long_chain import long_chain
from tilewright.compiler.passes.images.state import ImageState

__all__ = ["MatrixProduct", "matrix_product", "multiplied"]

_MOST_PRODUCTS = 256
"""Of one node: each is some ten layers."""

_ONE_TYPE = ({"int8"}, {"uint8"})
_TO_ROWS, _TO_COLUMNS, _FROM_ROWS = (0, 3, 1, 2), (0, 2, 1, 3), (0, 2, 3, 1)
_Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Operand:
    """A tensor of levels, the float that it stands for (``""`` in the integer form), and names of its parameters."""

    levels: str
    floats: str
    parameters: tuple[str, ...]
    shape: _Shape

    @property
    def matrices(self) -> int:
        """How many there are."""
        return math.prod(self.shape[:-2])


@dataclass(frozen=True, slots=True)
class MatrixProduct:
    """The operands of a product, and for each of its matrices the number of those that it is of."""

    first: _Operand
    second: _Operand
    pairs: tuple[tuple[int, int], ...]


def matrix_product(state: ImageState, node: Node) -> MatrixProduct | None:
    """Return the operands of a node that multiplies computed levels and is quantised right behind; None for others."""
    operator = node.operator
    if isinstance(operator, OnnxMatMul):
        behind = _quantised_behind(state, node)
        if behind is None or not _are_numbers(state, behind.inputs[1:]):
            return None
        operands = [_dequantised(state, name) for name in node.inputs]
        result = behind.output
    elif isinstance(operator, OnnxQLinearMatMul):
        i, result = node.inputs, node.output
        operands = [_operand(state, i[0], "", i[1:3]), _operand(state, i[3], "", i[4:6])]
        if not _are_numbers(state, i[6:8]):
            return None
    else:
        return None
    first, second = operands
    if first is None or second is None or first.shape[-1] != second.shape[-2] \
            or {_dtype(state, name) for name in (first.levels, second.levels, result)} not in _ONE_TYPE:
        return None
    try:
        batch = np.broadcast_shapes(first.shape[:-2], second.shape[:-2])
    except ValueError:
        return None
    numbers = [np.broadcast_to(np.arange(each.matrices).reshape(each.shape[:-2]), batch).ravel().tolist()
               for each in (first, second)]
    pairs = tuple(zip(*numbers, strict=True))
    return MatrixProduct(first, second, pairs) if 0 < len(pairs) <= _MOST_PRODUCTS else None


def _quantised_behind(state: ImageState, node: Node) -> Node | None:
    """Return the QuantizeLinear right behind a product, or behind a bound or long scale of its image; None if none."""
    behind = state.graph.only_reader(node.output)
    if behind is not None and ROWS.suits(state.shape(node.output)):
        if isinstance(behind.operator, OnnxRelu | OnnxClip):
            behind = state.graph.only_reader(behind.output)
        elif isinstance(behind.operator, OnnxCast) and (chain := long_chain(state.graph, node)) is not None:
            return chain.nodes[-1]
    return behind if behind is not None and isinstance(behind.operator, OnnxQuantizeLinear) else None


def multiplied(state: ImageState, node: Node, product: MatrixProduct) -> None:
    """Add what stands for ``node``: it writes the image of its result, or the levels where there is no such image."""
    inputs = tuple(_image(state, node, each, columns=columns)
                   for each, columns in ((product.first, False), (product.second, True)))
    operator = OnnxImageProduct({"pairs": product.pairs}, "MatMul of images")
    behind = state.graph.only_reader(node.output)
    output, parameters = node.output, node.inputs[6:8]
    if isinstance(node.operator, OnnxMatMul):
        if ROWS.suits(state.shape(node.output)):
            state.add(node, operator, inputs, ROWS)
            return
        assert behind is not None
        state.absorbed.add(behind.output)
        output, parameters = behind.output, behind.inputs[1:]
    else:
        inputs = tuple(_added(state, node, OnnxDequantizeLinear(), (name, *each.parameters), f"{name}:floats", name,
                              "float32") for name, each in zip(inputs, (product.first, product.second), strict=True))
    image = (1, product.second.shape[-1], len(product.pairs), product.first.shape[-2])
    floats = _added(state, node, operator, inputs, f"{output}:product", output, "float32", image)
    if ROWS.suits(state.shape(output)):
        state.add(node, OnnxQuantizeLinear(), (floats, *parameters), ROWS, output)
        return
    levels = _added(state, node, OnnxQuantizeLinear(), (floats, *parameters), f"{output}:image", output, "", image)
    shape = state.shape(output)
    assert shape is not None
    rows = tuple(image[axis] for axis in _FROM_ROWS)
    turned = _added(state, node, OnnxTranspose({"perm": _FROM_ROWS}), (levels,), f"{output}:in rows", output, "", rows)
    state.reshape(turned, shape, output)


def _dequantised(state: ImageState, name: str) -> _Operand | None:
    """Return the operand of floats that stand for computed levels."""
    source = state.graph.producer(name)
    if source is None or not isinstance(source.operator, OnnxDequantizeLinear) or source.operator.block_size:
        return None
    return _operand(state, source.inputs[0], name, source.inputs[1:])


def _operand(state: ImageState, levels: str, floats: str, parameters: tuple[str, ...]) -> _Operand | None:
    shape = None if state.fixed(levels) else state.shape(levels)
    if shape is None or len(shape) < 2 or min(shape) < 1 or not _are_numbers(state, parameters):
        return None
    return _Operand(levels, floats, parameters, shape)


def _are_numbers(state: ImageState, names: tuple[str, ...]) -> bool:
    """Tell whether all of these are constants of one element."""
    return all(name in state.graph.constants and state.graph.constants[name].size == 1 for name in names if name)


def _dtype(state: ImageState, name: str) -> str:
    """Return the type of levels."""
    return state.graph.tensors[name].dtype


def _image(state: ImageState, node: Node, operand: _Operand, *, columns: bool) -> str:
    """Return the image (1, K, matrices, pixels) of an operand, of floats in a product of such, else of levels."""
    named = operand.floats or operand.levels
    if not columns and state.form(named) == ROWS:
        return state.image(named, ROWS)
    levels = state.plain(operand.levels)
    form = "columns" if columns else "rows"
    shape = (1, operand.matrices, *operand.shape[-2:])
    if operand.shape != shape:
        levels = state.reshape(levels, shape, f"{levels}:as {form}")
    perm = _TO_COLUMNS if columns else _TO_ROWS
    image = f"{operand.levels}:{form} of {node.output}"
    turned = _added(state, node, OnnxTranspose({"perm": perm}), (levels,), image, levels, "",
                    tuple(shape[axis] for axis in perm))
    if not operand.floats:
        return turned
    return _added(state, node, OnnxDequantizeLinear(), (turned, *operand.parameters), f"{image}:floats", turned,
                  "float32")


def _added(state: ImageState, node: Node, operator: OnnxOperator, inputs: tuple[str, ...], output: str, like: str,
           dtype: str, shape: _Shape | None = None) -> str:
    """Add a node that makes ``output`` of the shape and type of ``like`` but for what is given, and return its name."""
    known = state.tensors[like]
    return state.make(Node(operator, inputs, output, node.onnx_nodes), shape or known.shape or (), dtype or known.dtype)
