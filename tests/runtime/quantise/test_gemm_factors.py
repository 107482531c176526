"""The factors of a Gemm, alpha and beta, are in its constants before ONNX Runtime's quantiser sees it."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.runtime.oracle.onnx_runtime import session
from tilewright.runtime.quantise.float_graph import prepare

RNG = np.random.default_rng(0)
CONSTANTS = {"w": (6, 5), "turned": (5, 6), "c": (5,), "v": (5, 6)}


def model(*nodes):
    """Return a model from x, of one row of six, to y, of five or six."""
    columns = 6 if len(nodes) > 1 and "v" in nodes[-1].input else 5
    graph = helper.make_graph(
        nodes, "products", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 6))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, columns))],
        [numpy_helper.from_array(RNG.normal(size=shape).astype(np.float32), name)
         for name, shape in CONSTANTS.items() if any(name in node.input for node in nodes)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def gemm(inputs, y="y", **attributes):
    return helper.make_node("Gemm", inputs.split(), [y], name=y, **attributes)


@pytest.mark.parametrize("nodes", [
    [gemm("x w c", alpha=0.5, beta=0.25)],
    [gemm("x turned c", transB=1, beta=4.0)],
    [gemm("x w c", beta=0.0)],
    [gemm("x w c", "a", beta=0.25), gemm("x w a", alpha=2.0, beta=-0.5)],
    [gemm("x w c", "a", alpha=0.5), gemm("a v", alpha=3.0)],
], ids=["both", "turned", "no bias", "a computed bias", "two layers"])
def test_a_prepared_gemm_has_no_factor_and_computes_the_same(nodes):
    before = model(*nodes)
    feed = {"x": RNG.normal(size=(1, 6)).astype(np.float32)}
    wanted = session(before.SerializeToString()).run(None, feed)[0]
    after = prepare(before).proto
    onnx.checker.check_model(after)
    assert not [each.name for node in after.graph.node if node.op_type == "Gemm" for each in node.attribute
                if each.name in ("alpha", "beta") and each.f != 1]
    assert np.allclose(session(after.SerializeToString()).run(None, feed)[0], wanted, atol=1e-5)
