"""Products that share a bias get one each, under names that nothing has, before a model is quantised.

A bias is quantised by the scales of its product, so ONNX Runtime's quantiser copies one that several products read. It
names the copy by a number behind the bias's name without looking whether a tensor is called so, and then reads the
constant where that tensor was meant (findings/onnxruntime-shared-bias.sh).
"""

from itertools import count

from onnx import GraphProto, TensorProto

__all__ = ["own_biases"]

_PRODUCTS = ("Conv", "ConvTranspose", "Gemm")
_BIAS = 2


def own_biases(graph: GraphProto) -> None:
    """Give each product of ``graph`` a constant bias of its own, in place."""
    constants = {tensor.name: tensor for tensor in graph.initializer}
    taken = {name for node in graph.node for name in (*node.input, *node.output)} | constants.keys()
    seen: set[str] = set()
    for node in graph.node:
        name = node.input[_BIAS] if node.op_type in _PRODUCTS and len(node.input) > _BIAS else ""
        if name not in constants:
            continue
        if name in seen:
            copy = next(each for each in (f"{name}:{number}" for number in count(2)) if each not in taken)
            own = TensorProto.FromString(constants[name].SerializeToString())
            own.name = node.input[_BIAS] = copy
            graph.initializer.append(own)
            taken.add(copy)
        seen.add(name)
