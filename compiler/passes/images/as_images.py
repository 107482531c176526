"""Tensors of two and three dimensions between operators of the datapath become images of four.

Convolutions and pooling over one dimension are those over images of one row (``LINE``), and products of several rows
with a constant matrix are 1x1 convolutions over an image with a pixel per row (``ROWS``), as are those with a computed
one. What computes each element
by itself, and what joins, cuts and pads, is rewritten with them, up to the first and last operator that cannot be; only
there are views and transpositions, which later passes make a matter of addresses.
"""

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import (
    OnnxBinary,
    OnnxCast,
    OnnxConcat,
    OnnxDequantizeLinear,
    OnnxDropout,
    OnnxGather,
    OnnxIdentity,
    OnnxOperator,
    OnnxPad,
    OnnxQuantizeLinear,
    OnnxReduceMean,
    OnnxReduction,
    OnnxReshape,
    OnnxResize,
    OnnxSlice,
    OnnxSoftmax,
    OnnxTranspose,
    OnnxUnary,
    OnnxView,
)
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.network.image_forms import LINE, ROWS, Form
from tilewright.compiler.passes.images.constant_changes import Broadcast
from tilewright.compiler.passes.images.image_moves import moved
from tilewright.compiler.passes.images.line_windows import windowed
from tilewright.compiler.passes.images.matrix_products import matrix_product, multiplied
from tilewright.compiler.passes.images.row_products import convolved, product_of
from tilewright.compiler.passes.images.state import ImageState

__all__ = ["AsImages"]

_Quantisation = OnnxQuantizeLinear | OnnxDequantizeLinear
_Elementwise = OnnxUnary | OnnxBinary | OnnxCast | OnnxIdentity | OnnxDropout | _Quantisation
_Moves = OnnxConcat | OnnxSlice | OnnxPad | OnnxResize | OnnxReduceMean
_NUMBERS = ((), (1,))
"""Shapes of a single number, as it is for images too."""

_SOFTMAX_ALONG_ONE_AXIS = 13
"""The first opset with such; before, it was along all axes from one on."""
_CHANNEL_NORMS = ("InstanceNormalization", "GroupNormalization")
_MAX_STEPS = 12
"""Operators between a product and the integers that it is of."""


class AsImages(Pass):
    """Rewrite quantised operators over one dimension, and over rows, with everything between them."""

    def apply(self, graph: Graph) -> Graph:
        wanted = _wanted(graph)
        state = ImageState(graph)
        if not wanted and not any(matrix_product(state, node) for node in graph.nodes):
            return graph
        for node in graph.nodes:
            if node.output not in state.absorbed and not _rewritten(state, node, wanted):
                state.add_plain(node)
        return state.finished()


def _wanted(graph: Graph) -> dict[str, Form]:
    """Return the tensors that are to be images, because of what reads them."""
    state = ImageState(graph)
    wanted: dict[str, Form] = {}
    for node in reversed(graph.nodes):
        form = wanted.get(node.output)
        if (seed := _seed(state, node)) is not None:
            form = seed
        elif form is not None and isinstance(node.operator, OnnxTranspose) and node.operator.perm == (0, 2, 1):
            form = _other(form)
        elif form is None or isinstance(node.operator, OnnxReduceMean) or not (
                isinstance(node.operator, _Elementwise | _Moves) or _by_channel(node, form) or _looks_up(graph, node)):
            continue
        for name in _data(node):
            if name not in graph.constants and not state.fixed(name) and form.suits(state.shape(name)):
                wanted.setdefault(name, form)
    return wanted


def _seed(state: ImageState, node: Node) -> Form | None:
    """Return the form that a node wants its operand in; None if it does not care."""
    product = product_of(state, node)
    form = product.form if product is not None else LINE if windowed(state, node) is not None else None
    return form if form is not None and _is_quantised(state.graph, node) else None


def _is_quantised(graph: Graph, node: Node) -> bool:
    """Tell whether a node computes on integers, or on what has been such."""
    name = node.inputs[0]
    for _ in range(_MAX_STEPS):
        source = graph.producer(name)
        if graph.tensors[name].dtype in ("int8", "uint8"):
            return True
        if source is None:
            return False
        if isinstance(source.operator, OnnxDequantizeLinear):
            return True
        name = source.inputs[0]
    return False


def _data(node: Node) -> tuple[str, ...]:
    """Return the operands of a node, without parameters; of a Gather, the places that it looks up."""
    if isinstance(node.operator, OnnxGather):
        return node.inputs[1:2]
    return node.inputs if isinstance(node.operator, OnnxBinary | OnnxConcat) else node.inputs[:1]


def _rewritten(state: ImageState, node: Node, wanted: dict[str, Form]) -> bool:
    """Add what stands for a node on images, and tell whether there is such."""
    if _seed(state, node) is not None:
        product, window = product_of(state, node), windowed(state, node)
        if product is not None:
            convolved(state, node, product)
            return True
        if window is not None:
            window(state, node)
            return True
    if (matrices := matrix_product(state, node)) is not None:
        multiplied(state, node, matrices)
        return True
    operator, forms = node.operator, [form for name in _data(node) if (form := state.form(name)) is not None]
    if isinstance(operator, OnnxQuantizeLinear) and not forms and state.graph.producer(node.inputs[0]) is not None:
        return False    # What is not computed on images is moved once it is integers.
    if isinstance(operator, _Elementwise) or _looks_up(state.graph, node):
        form = forms[0] if forms else wanted.get(node.output)
        return form is not None and _elementwise(state, node, form)
    if isinstance(operator, OnnxView) and forms:
        shape = state.shape(node.output)
        before = state.shape(node.inputs[0])
        if shape is None or before is None:
            return False
        if forms[0] == ROWS and ROWS.suits(shape) and before[-1] == shape[-1]:
            # The same rows, counted otherwise.
            image = state.integers(node.output + ROWS.suffix, "shape", ROWS.shape(shape))
            state.add(node, OnnxReshape(), (state.image(node.inputs[0], ROWS), image), ROWS)
        else:
            state.reshaped(node, shape)
        return True
    if isinstance(operator, OnnxReduction) and forms and _of_everything(state, node, operator):
        state.nodes.append(node.with_(inputs=(state.image(node.inputs[0], forms[0]),)))
        return True
    behind = wanted.get(node.output)
    if isinstance(operator, OnnxView) and _is_image_of(state, node, behind or LINE):
        state.add(node, OnnxIdentity(), (state.plain(node.inputs[0]),), behind or LINE)
        return True
    if forms and _by_channel(node, forms[0]):
        assert isinstance(operator, OnnxOperator)
        state.add(node, operator, (state.image(node.inputs[0], forms[0]), *node.inputs[1:]), forms[0])
        return True
    if isinstance(operator, OnnxSoftmax):
        leaves = behind is None and not any(isinstance(each.operator, OnnxQuantizeLinear)
                                            for each in state.graph.readers(node.output))
        return bool(forms) and not leaves and _along_rows(state, node, operator, forms[0])
    if isinstance(operator, OnnxTranspose):
        form = forms[0] if forms else None if behind is None else _other(behind)
        return form is not None and _exchanged(state, node, form)
    form = forms[0] if forms else behind
    return isinstance(operator, _Moves) and form is not None and moved(state, node, _data(node), form)


def _looks_up(graph: Graph, node: Node) -> bool:
    """Tell whether a node looks each element up in a constant table, as .tflite files' functions of levels do."""
    return isinstance(node.operator, OnnxGather) and node.operator.axis == 0 and node.inputs[1] not in graph.constants \
        and node.inputs[0] in graph.constants and graph.constants[node.inputs[0]].ndim == 1


def _of_everything(state: ImageState, node: Node, operator: OnnxReduction) -> bool:
    """Tell whether a reduction makes one number of a tensor, whose order then does not matter: an extreme."""
    return node.op in ("ReduceMax", "ReduceMin") and len(node.inputs) == 1 and operator.axes is None \
        and state.shape(node.output) == ()


def _by_channel(node: Node, form: Form) -> bool:
    """Tell whether a node normalises channels, or groups of them, each over all that it has."""
    return form == LINE and node.op in _CHANNEL_NORMS


def _is_image_of(state: ImageState, node: Node, form: Form) -> bool:
    """Tell whether a view's operand is the image that is wanted of its result: a row that was one before."""
    shape = state.shape(node.output)
    return form == LINE and form.suits(shape) and shape is not None and state.shape(
        node.inputs[0]) == form.shape(shape)


def _other(form: Form) -> Form:
    """Return the form of what a transposition makes of an image in ``form``."""
    return ROWS if form == LINE else LINE


def _exchanged(state: ImageState, node: Node, form: Form) -> bool:
    """Stand for a transposition between (1, channels, length) and (1, length, channels) by the same image."""
    assert isinstance(node.operator, OnnxTranspose)
    shape, other = state.shape(node.inputs[0]), _other(form)
    if node.operator.perm != (0, 2, 1) or shape is None or shape[0] != 1 or not form.suits(shape) \
            or not other.suits(state.shape(node.output)):
        return False
    state.add(node, OnnxIdentity(), (state.image(node.inputs[0], form),), other)
    return True


def _along_rows(state: ImageState, node: Node, operator: OnnxSoftmax, form: Form) -> bool:
    """Add a softmax along the channels of an image."""
    shape = state.shape(node.inputs[0]) or ()
    if form != ROWS or int(operator.axis) % len(shape) != len(shape) - 1 \
            or 0 < state.graph.opset < _SOFTMAX_ALONG_ONE_AXIS:
        return False
    state.add(node, operator.with_attributes(axis=1), (state.image(node.inputs[0], form),), form)
    return True


def _elementwise(state: ImageState, node: Node, form: Form) -> bool:
    """Add a node that computes each element by itself, on images in ``form``."""
    data, shape = _data(node), state.shape(node.output)
    computed = [name for name in data if not _is_fixed(state, name) and state.shape(name) not in _NUMBERS]
    rank = len(shape) if shape is not None else max((len(state.shape(name) or ()) for name in computed), default=0)
    if not computed or (shape is not None and not form.suits(shape)):
        return False
    for name in computed:
        known = state.shape(name)
        if state.form(name) != form and (not form.suits(known) or len(known or ()) != rank):
            return False
    if isinstance(node.operator, _Quantisation) and any(
            state.graph.constants[name].size != 1 for name in node.inputs[1:] if name in state.graph.constants):
        return False
    if any(state.shape(name) is None for name in data if name not in computed):
        return False
    inputs = tuple(_operand(state, name, form, rank) if name in data else name for name in node.inputs)
    assert isinstance(node.operator, OnnxOperator)
    state.add(node, node.operator, inputs, form)
    return True


def _is_fixed(state: ImageState, name: str) -> bool:
    return name in state.graph.constants or state.fixed(name)


def _operand(state: ImageState, name: str, form: Form, rank: int) -> str:
    if not _is_fixed(state, name):
        return state.plain(name) if state.shape(name) in _NUMBERS else state.image(name, form)
    shape = state.shape(name) or ()
    if all(extent == 1 for extent in shape) and len(shape) <= 1:
        return name
    return state.changed(name, f"{form.suffix}{rank}", Broadcast(form, rank))
