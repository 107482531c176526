"""Matrix products become convolutions: ``QDense(QReshape(x))`` becomes ``QConv(x)`` with a kernel as large as x.

Flattened, x (C, H, W) meets the weights (O, C·H·W); unflattened, the weights are a kernel (O, C, H, W) of which
one fits. No data has to be moved for it. A reshape that does move data is the host core's.
"""

import math

import numpy as np

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.integer_operators import (
    Dequantize,
    ExactWindow,
    IntegerOperator,
    QConv,
    QDense,
    Quantize,
)
from tilewright.compiler.graph.move_operators import QReshape
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxReshape, OnnxTranspose
from tilewright.compiler.graph.rewrite import Pass, PassError

__all__ = ["FlattenToKernel"]


class FlattenToKernel(Pass):
    """Replace every QDense by a QConv, and remove reshapes: before it, where they move nothing, at the border.

    A QConv of one pixel, which a reshape makes, is as good as a QDense. Reshapes that are left become ONNX's Reshape.
    """

    def apply(self, graph: Graph) -> Graph:
        for node in graph.nodes:
            if isinstance(node.operator, QDense) or (
                    isinstance(node.operator, QConv) and _is_dense(graph, node, node.operator)):
                graph = self._convolve(graph, node, node.operator)
        for node in graph.nodes:
            if isinstance(node.operator, QReshape) and (reshape := graph.producer(node.output)) is not None:
                graph = self._remove(graph, reshape)
        return graph

    def ensures(self, graph: Graph) -> None:
        if left := [node.name for node in graph.nodes if isinstance(node.operator, QDense | QReshape)]:
            raise PassError(f"Matrix products and reshapes must all be replaced, not left as {', '.join(left)}")

    @staticmethod
    def _convolve(graph: Graph, node: Node, dense: QDense | QConv) -> Graph:
        x, weights, *rest = node.inputs
        shape = graph.tensors[x].shape or ()
        while (source := graph.producer(x)) is not None and isinstance(source.operator, QReshape):
            before = graph.tensors[source.inputs[0]].shape or ()
            if len(before) not in (2, 4) or before[0] != 1:
                break
            x, shape = source.inputs[0], before
        values = graph.constants[weights]
        source = graph.producer(x)
        if source is not None and isinstance(source.operator, OnnxTranspose) and source.operator.perm == (0, 2, 3, 1):
            # Flattened in NHWC, as TensorFlow does.
            values = values.reshape(values.shape[0], *shape[1:]).transpose(0, 3, 1, 2)
            x = source.inputs[0]
            shape = graph.tensors[x].shape or ()
        channels, height, width = (*shape[1:], 1, 1)[:3]
        name = f"{node.output}:kernel"
        kernel = np.ascontiguousarray(values.reshape(values.shape[0], channels, height, width))
        conv = QConv(low=dense.low, high=dense.high, exact=dense.exact, alpha=dense.alpha, whole=dense.whole,
                     integers=dense.integers, window=ExactWindow(kernel=(height, width)))
        return graph.with_constants({name: kernel}).replaced(
            (node,), node.with_(operator=conv, inputs=(x, name, *rest)))

    @staticmethod
    def _remove(graph: Graph, node: Node) -> Graph:
        source, target = graph.tensors[node.inputs[0]], graph.tensors[node.output]
        if not graph.is_read(node.output):
            return graph.removed(node)
        readers = graph.readers(node.output)
        at_output = all(isinstance(reader.operator, Dequantize) for reader in readers)
        producer = graph.producer(source.name)
        is_output = node.output in graph.outputs
        # The host core's operators want the very shape that the model has.
        core = [each for each in (producer, *graph.readers(source.name), *readers)
                if each is not None and not isinstance(each.operator, IntegerOperator)]
        same_pixels = not core and _same_pixels(source.shape, target.shape)
        if not is_output and (at_output or same_pixels):
            return graph.removed(node).replace_all_uses(target.name, source.name)
        if is_output and same_pixels and producer is not None and graph.only_reader(source.name) is node:
            return graph.removed(node).renamed(source.name, target.name)
        if producer is not None and isinstance(producer.operator, Quantize) and graph.only_reader(source.name) is node:
            return graph.removed(node).renamed(source.name, target.name)
        if not is_output and source.name in graph.inputs and graph.only_reader(source.name) is node:
            # The host lays an input's integers in memory in either shape.
            return graph.replaced((node,), node.with_(operator=Quantize(), inputs=(source.name,)))
        shape = f"{node.output}:shape"
        kept = Node(OnnxReshape(), (source.name, shape), target.name, node.onnx_nodes,
                    f"it makes {list(target.shape or ())} of {list(source.shape or ())} and no Gemm follows")
        graph = graph.with_constants({shape: np.array(target.shape, np.int64)})
        return graph.replaced((node,), kept)


def _is_dense(graph: Graph, node: Node, conv: QConv) -> bool:
    """Tell whether a convolution is a matrix product: of one pixel, all channels of which each output sees."""
    shape, source = graph.tensors[node.inputs[0]].shape or (), graph.producer(node.inputs[0])
    weights = graph.constants.get(node.inputs[1])
    return source is not None and isinstance(source.operator, QReshape) and shape[0] == 1 and shape[2:] == (1, 1) \
        and weights is not None and weights.shape[1:] == shape[1:] and not any(conv.exact_window.pads)


def _same_pixels(a: tuple[int, ...] | None, b: tuple[int, ...] | None) -> bool:
    """Tell whether two shapes of a batch of one have the same channels, and one pixel or the same ones."""
    if len(a or ()) not in (2, 4) or len(b or ()) not in (2, 4):
        return False
    first, second = ((*(shape or ())[1:], 1, 1)[:3] for shape in (a, b))
    return first == second and math.prod((a or ())[4:]) == math.prod((b or ())[4:]) == 1
