"""Operators that the stage of an extension computes: ``Q(PRelu(DQ(x), slopes))`` becomes ``QStage(x)``.

What ONNX Runtime makes of each of 256 values in each channel is a table of (channels, 256). The extension finds
parameters for it; it is believed only where what it computes from them is that table, value for value.
"""

import numpy as np

from tilewright.compiler.errors import CompileError
from tilewright.compiler.graph import scales
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_operators import QStage
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxDequantizeLinear, OnnxQuantizeLinear
from tilewright.compiler.graph.rewrite import Pass
from tilewright.compiler.graph.value_tables import TableError, tables_of
from tilewright.compiler.network.layer_uses import StageUse
from tilewright.isa.extension import ExtensionError, PostStage
from tilewright.isa.machine import TABLE_BYTES

__all__ = ["RecogniseStage"]


class RecogniseStage(Pass):
    """Replace one of the stage's operators between DequantizeLinear and QuantizeLinear by a QStage.

    The tensor is one image of at most as many channels as the stage holds parameters of.
    """

    def __init__(self, stage: PostStage) -> None:
        self.stage = stage

    def apply(self, graph: Graph) -> Graph:
        for quantise in graph.nodes:
            nodes = self._found(graph, quantise)
            if nodes is None:
                continue
            try:
                graph = self._replaced(graph, nodes)
            except (TableError, CompileError):
                continue
        return graph.without_unread()

    def _found(self, graph: Graph, quantise: Node) -> tuple[Node, Node, Node] | None:
        """Return DequantizeLinear, operator and QuantizeLinear, if ``quantise`` is the last of such three."""
        if not isinstance(quantise.operator, OnnxQuantizeLinear):
            return None
        computes = graph.producer(quantise.inputs[0])
        if computes is None or computes.op not in self.stage.operators \
                or graph.only_reader(computes.output) is not quantise:
            return None
        dequantise = graph.producer(computes.inputs[0])
        constant = all(not name or name in graph.constants for name in computes.inputs[1:])
        if dequantise is None or not isinstance(dequantise.operator, OnnxDequantizeLinear) or not constant:
            return None
        return dequantise, computes, quantise

    def _replaced(self, graph: Graph, nodes: tuple[Node, Node, Node]) -> Graph:
        dequantise, computes, quantise = nodes
        name = dequantise.inputs[0]
        shape = graph.tensors[name].shape if name in graph.tensors else None
        if shape is None or len(shape) != 4 or shape[0] != 1 or shape[1] > self.stage.channels \
                or graph.tensors[quantise.output].shape != shape:
            return graph
        x, y = (_kind(graph, node, tensor) for node, tensor in ((dequantise, name), (quantise, quantise.output)))
        values = tables_of(nodes, x.name, x.dtype, shape[1], y.name, y.dtype, graph.constants, graph.opset)
        tables = (values.astype(np.int16) - (128 if y.dtype == "uint8" else 0)).astype(np.int8)
        shift = 128 if x.dtype == "uint8" else 0, 128 if y.dtype == "uint8" else 0
        use = self.fitted(tables, (x.zero_point or 0) - shift[0], (y.zero_point or 0) - shift[1])
        if use is None:
            return graph
        graph = scales.with_types(graph, x, y)
        node = Node(QStage(*use), (x.name,), y.name, computes.onnx_nodes)
        return graph.replaced((quantise,), node)

    def fitted(self, tables: np.ndarray, zero_in: int, zero_out: int) -> tuple[StageUse, np.ndarray] | None:
        """Return how the stage computes ``tables``, int8 of (channels, 256), and its parameters; None if it cannot.

        Raises
        ------
        ExtensionError
            If the extension's functions return what they must not.
        """
        stage, count = self.stage, len(tables)
        found = stage.called("fit", tables, zero_in, zero_out)
        if found is None:
            return None
        if not isinstance(found, tuple) or len(found) != 2:
            raise ExtensionError(f"Extension {stage.path}: fit must return field values and parameters, or None, "
                                 f"not {found!r:.200}")
        settings, parameters = stage.values(found[0]), np.asarray(found[1])
        if parameters.dtype != np.uint8 or parameters.shape != (count, stage.parameter_bytes):
            raise ExtensionError(f"Extension {stage.path}: fit must return uint8 of {(count, stage.parameter_bytes)}, "
                                 f"not {parameters.dtype} of {parameters.shape}")
        values = np.repeat(np.arange(-128, 128).astype(np.int8)[:, None], count, axis=1)
        if not np.array_equal(stage.compute(values, parameters, settings), tables.T):
            return None
        slot = np.zeros(TABLE_BYTES, np.uint8)
        slot[:parameters.size] = parameters.ravel()
        return StageUse(stage, tuple(settings.items())), slot.view(np.int8)


def _kind(graph: Graph, node: Node, tensor: str) -> Tensor:
    return scales.activation(graph, node, tensor, node.inputs[1], (*node.inputs, "")[2])
