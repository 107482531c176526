"""TopK of one element is a maximum and its position, as ONNX Runtime has them."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.network.layers import CoreLayer
from tilewright.compiler.passes.pass_order import compile_network


def ending(count, axis, largest, outputs=("values", "places"), opset=17):
    """Return a network that ends with a TopK of an image; few levels, so that many elements are equal."""
    model = ModelBuilder("qdq", seed=6)
    x = model.conv(model.input((1, 3, 4, 5)), 8, kernel=1)
    few = model.value(x.shape, np.float32(x.scale * 40))
    model.quantised(model.dequantised(x), few)
    k = model.constant(np.array([count], np.int64))
    model.nodes.append(helper.make_node("TopK", [model.dequantised(few), k], ["values", "places"], "top", axis=axis,
                                        largest=largest))
    shape = [count if each == axis % 4 else n for each, n in enumerate(x.shape)]
    kinds = {"values": TensorProto.FLOAT, "places": TensorProto.INT64}
    model.outputs += [helper.make_tensor_value_info(name, kinds[name], shape) for name in outputs]
    proto = model.proto()
    proto.opset_import[0].version = opset
    if opset >= 18:
        proto.ir_version = 9
    return proto.SerializeToString()


@pytest.mark.parametrize("largest", [1, 0])
@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize(("outputs", "opset"), [
    (("values", "places"), 17), (("places",), 17), (("values",), 17), (("values", "places"), 18)])
def test_one_element_is_a_maximum_and_its_position(outputs, opset, axis, largest):
    network = assert_layers(ending(1, axis, largest, outputs, opset))
    operators = {layer.op for layer in network.layers if isinstance(layer, CoreLayer)}
    assert ("ArgMax" in operators or "ArgMin" in operators) == ("places" in outputs)


def test_more_elements_are_refused_by_name():
    with pytest.raises(UnsupportedNodeError, match="TopK"):
        compile_network(ending(2, 1, 1))
