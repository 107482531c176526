"""Products and sums of tensors that are broadcast run on the datapath, with ONNX Runtime's integers."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilewright.isa.machine import PRESETS
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.model_source import ModelSource

SHAPES = (((1, 1, 6, 7), (1, 16, 6, 7)), ((1, 12, 6, 1), (1, 12, 6, 7)), ((1, 12, 6, 7), (1, 12, 1, 7)),
          ((1, 1, 6, 1), (1, 12, 6, 7)), ((1, 12, 6, 7), (12, 1, 1)), ((1, 12, 6, 7), (1,)),
          ((1, 1, 1, 1), (1, 12, 6, 7)),
          ((1, 12, 1, 1), (1, 1, 6, 7)), ((1, 12, 1, 1), (1, 1, 1, 1)), ((1, 20, 1), (1, 20, 12)), ((20,), (5, 20)),
          ((1, 8, 12), (4, 1, 12)), ((1, 12, 6, 7), (12, 6, 1)), ((3, 1, 5, 1, 2), (3, 2, 5, 5, 2)))


def model_of(name, shapes, dtype, form, scales=(0.05, 0.031, 0.07)):
    """Return Q of two inputs, of ``shapes`` that are broadcast, and an operator on them in either form."""
    zeros = [dtype(3), dtype(9), dtype(5)]
    values = {f"{what}{index}": np.asarray(value) for what, row in (("s", map(np.float32, scales)), ("z", zeros))
              for index, value in enumerate(row)}
    nodes = [helper.make_node("QuantizeLinear", [f"x{i}", f"s{i}", f"z{i}"], [f"q{i}"]) for i in (0, 1)]
    if form == "qdq":
        nodes += [helper.make_node("DequantizeLinear", [f"q{i}", f"s{i}", f"z{i}"], [f"d{i}"]) for i in (0, 1)]
        nodes += [helper.make_node(name, ["d0", "d1"], ["r"]),
                  helper.make_node("QuantizeLinear", ["r", "s2", "z2"], ["q2"])]
    else:
        nodes.append(helper.make_node(f"QLinear{name}", ["q0", "s0", "z0", "q1", "s1", "z1", "s2", "z2"], ["q2"],
                                      domain="com.microsoft"))
    nodes.append(helper.make_node("DequantizeLinear", ["q2", "s2", "z2"], ["y"]))
    inputs = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, shape) for i, shape in enumerate(shapes)]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, np.broadcast_shapes(*shapes))
    graph = helper.make_graph(nodes, "broadcast", inputs, [output],
                              [numpy_helper.from_array(value, key) for key, value in values.items()])
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def done(tmp_path, model, machine="base", engine="fast"):
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    return run_model(ModelSource.of(path), PRESETS[machine], engine, None)


@pytest.mark.parametrize("name", ["Mul", "Add", "Sub"])
@pytest.mark.parametrize("number", range(len(SHAPES)))
def test_broadcasting_stays_on_the_datapath(tmp_path, number, name):
    swapped = (number + len(name)) % 2
    shapes, dtype = SHAPES[number][::-1 if swapped else 1], np.uint8 if number % 3 else np.int8
    form = "qoperator" if number % 2 and name != "Sub" else "qdq"
    run = done(tmp_path, model_of(name, shapes, dtype, form))
    assert run.report.core_cycles == 0
    assert run.comparison.matches is True


@pytest.mark.parametrize("scales", [(0.017, 0.0311, 0.0371), (0.033, 0.0131, 0.0271), (0.05, 0.031, 0.07)], ids=str)
@pytest.mark.parametrize("shapes", [((1, 16, 20, 1), (1, 16, 20, 20)), ((16, 1, 1), (1, 16, 20, 20)),
                                    ((1, 64, 1, 1), (1, 1, 8, 8))], ids=str)
def test_one_value_is_the_second_operand_of_a_sum(tmp_path, shapes, scales):
    for each in (shapes, shapes[::-1]):
        assert done(tmp_path, model_of("Add", each, np.uint8, "qdq", scales)).comparison.matches is True


def test_a_large_product_is_cut_into_parts(tmp_path):
    run = done(tmp_path, model_of("Mul", ((1, 1, 40, 24), (1, 18, 40, 24)), np.uint8, "qdq"))
    assert run.report.core_cycles == 0
    assert run.comparison.matches is True
    assert run.report.cycles < 30 * 18 * 40 * 24


@pytest.mark.parametrize("name", ["Mul", "Add"])
def test_addresses_that_stand_still_are_hardware(tmp_path, name):
    run = done(tmp_path, model_of(name, ((1, 1, 4, 1), (1, 5, 4, 3)), np.uint8, "qdq"), "nano", "rtl")
    assert run.comparison.matches is True
