"""Matrix products become convolutions: ``QDense(QReshape(x))`` becomes ``QConv(x)`` with a kernel as large as x.

Flattened, x (C, H, W) meets the weights (O, C·H·W); unflattened, the weights are a kernel (O, C, H, W) of which
one fits. No data has to be moved for it.
"""

import math

from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.graph import Graph, Node
from tilewright.compiler.passes.base import Pass, PassError
from tilewright.compiler.passes.quantisation import with_constants
from tilewright.compiler.passes.remove_identity import rename


class FlattenToKernel(Pass):
    """Replace every QDense by a QConv, and remove all reshapes: before it, where they move nothing, at the border."""

    def apply(self, graph: Graph) -> Graph:
        for node in [n for n in graph.nodes if n.op == "QDense"]:
            graph = self._convolve(graph, node)
        while (reshape := next((node for node in graph.nodes if node.op == "QReshape"), None)) is not None:
            graph = self._remove(graph, reshape)
        return graph

    def ensures(self, graph: Graph) -> None:
        if left := [node.name for node in graph.nodes if node.op in ("QDense", "QReshape")]:
            raise PassError(f"Matrix products and reshapes must all be replaced, not left as {', '.join(left)}")

    @staticmethod
    def _convolve(graph: Graph, node: Node) -> Graph:
        x, weights, *rest = node.inputs
        while (source := graph.producer(x)) is not None and source.op == "QReshape":
            x = source.inputs[0]
        shape = graph.tensors[x].shape or ()
        if len(shape) not in (2, 4):
            raise UnsupportedNodeError(node.name, "Gemm", f"its input is flattened from the shape {list(shape)}",
                                       "use tensors of two or four dimensions")
        channels, *kernel = (*shape[1:], 1, 1)[:3]
        values = graph.constants[weights]
        graph = with_constants(graph, {weights: values.reshape(values.shape[0], channels, *kernel)})
        attrs = {**node.attrs, "kernel": tuple(kernel), "strides": (1, 1), "dilations": (1, 1), "pads": (0, 0, 0, 0),
                 "groups": 1}
        new = node.with_(op="QConv", inputs=(x, weights, *rest), attrs=attrs)
        return graph.replaced((node,), new)

    @staticmethod
    def _remove(graph: Graph, node: Node) -> Graph:
        source, target = graph.tensors[node.inputs[0]], graph.tensors[node.output]
        if not graph.readers(node.output) and node.output not in graph.outputs:
            return graph.with_(nodes=tuple(n for n in graph.nodes if n is not node))
        readers = graph.readers(node.output)
        at_output = all(reader.op == "Dequantize" for reader in readers)
        producer = graph.producer(source.name)
        is_output = node.output in graph.outputs
        same_pixels = _same_pixels(source.shape, target.shape)
        if not is_output and (at_output or same_pixels):
            return rename(graph, {target.name: source.name}, without=node)
        if is_output and same_pixels and producer is not None and graph.only_reader(source.name) is node:
            return rename(graph, {source.name: target.name}, without=node)
        if producer is not None and producer.op == "Quantize" and graph.only_reader(source.name) is node:
            return rename(graph, {source.name: target.name}, without=node)
        raise UnsupportedNodeError(node.name, str(node.attrs["onnx_op"]),
                                   f"it makes {list(target.shape or ())} of {list(source.shape or ())} "
                                   "and no Gemm follows",
                                   "reshape before the first or behind the last quantised operator")


def _same_pixels(a: tuple[int, ...] | None, b: tuple[int, ...] | None) -> bool:
    """Tell whether two shapes have the same channels, and one pixel or the same ones."""
    first, second = ((*(shape or ())[1:], 1, 1)[:3] for shape in (a, b))
    return first == second and math.prod((a or ())[4:]) == math.prod((b or ())[4:]) == 1
