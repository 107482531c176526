"""Models quantised in part: what is float is quantised, and what is quantised keeps its levels, scales and names."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.cli.test_app import invoke
from tests.support.float_models import FloatBuilder
from tilewright.compiler.onnx.reader import read_model
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.errors import InputError
from tilewright.runtime.model_source import find_model
from tilewright.runtime.quantise.float_regions import Precision, float_regions, precision_of
from tilewright.runtime.quantise.second_quantisation import SecondQuantisation, fold_weights, name_nodes
from tilewright.tools.progress import Silence

LAYERS = 4


class Mixed(FloatBuilder):
    """Adds convolutions whose weights, and layers whose activations, are quantised."""

    def quantised(self, x: str, scale: float) -> str:
        parameters = self.constant(np.array(scale, np.float32)), self.constant(np.array(0, np.int8))
        return self.node("DequantizeLinear", self.node("QuantizeLinear", x, *parameters), *parameters)

    def weights(self, inputs: int, outputs: int) -> str:
        levels = self.rng.integers(-127, 128, (outputs, inputs, 3, 3)).astype(np.int8)
        scales = self.rng.uniform(0.001, 0.003, outputs).astype(np.float32)
        return self.node("DequantizeLinear", self.constant(levels), self.constant(scales),
                         self.constant(np.zeros(outputs, np.int8)), axis=0)

    def layer(self, x: str, *, inputs: int = 4) -> str:
        return self.node("Relu", self.node("Conv", x, self.weights(inputs, 4), pads=[1] * 4))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Keep what is quantised apart."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))


def weights_alone() -> onnx.ModelProto:
    builder = Mixed()
    x = builder.layer(builder.input((1, 3, 8, 8)), inputs=3)
    return builder.finish(builder.layer(builder.layer(x)))


def layers(quantised: set[int], seed: int = 0) -> onnx.ModelProto:
    """Return a chain of four layers, with quantisation before and behind those in ``quantised``."""
    builder = Mixed(seed)
    x, inputs, known = builder.input((1, 3, 8, 8)), 3, False
    for index in range(LAYERS):
        if index in quantised and not known:
            x = builder.quantised(x, 0.02)
        x, inputs, known = builder.layer(x, inputs=inputs), 4, index in quantised
        if known:
            x = builder.quantised(x, 0.02)
    return builder.finish(x)


def saved(model: onnx.ModelProto, folder: Path) -> Path:
    onnx.save(model, folder / "mixed.onnx")
    samples = np.random.default_rng(1).normal(size=(8, 3, 8, 8)).astype(np.float32)
    np.save(folder / "samples.npy", samples)
    return folder / "mixed.onnx"


def reasons(path: Path) -> list[str]:
    return [layer.op for layer in compile_network(path).layers if hasattr(layer, "reason")]


def test_of_weights_alone_the_floats_are_restored_exactly():
    model = weights_alone()
    found = {numpy_helper.to_array(tensor).tobytes() for tensor in model.graph.initializer}
    assert fold_weights(model.graph)
    assert {node.op_type for node in model.graph.node} == {"Conv", "Relu"}
    floats = [numpy_helper.to_array(tensor) for tensor in model.graph.initializer
              if tensor.name.endswith(":float")]
    assert len(floats) == 3
    assert all(each.dtype == np.float32 and each.tobytes() not in found for each in floats)


def test_weights_alone_are_quantised_like_a_float_model(tmp_path):
    model = saved(weights_alone(), tmp_path)
    assert precision_of(read_model(model)) is Precision.FLOAT
    for options in ([], ["--calibrate", tmp_path / "samples.npy"]):
        done = invoke("run", model, *options)
        assert done.exit_code == 0, done.output
        assert done.stdout.startswith("Core: 0 %")


@pytest.mark.parametrize("quantised", [{0}, {3}, {1, 2}, {0, 2}])
def test_float_layers_between_quantised_ones_are_quantised(tmp_path, quantised):
    model = saved(layers(quantised), tmp_path)
    assert precision_of(read_model(model)) is Precision.MIXED
    assert reasons(find_model(str(model), Silence()).path)
    done = invoke("run", model, "--calibrate", tmp_path / "samples.npy")
    assert done.exit_code == 0, done.output
    source = find_model(str(model), Silence(), calibrate=tmp_path / "samples.npy")
    assert set(reasons(source.path)) <= {"DequantizeLinear"}


@pytest.mark.parametrize("moves", [("Flatten",), ("MaxPool", "Flatten"), ("Transpose", "Flatten")])
def test_what_moves_quantised_values_to_float_layers_is_left(tmp_path, moves):
    """ONNX Runtime's quantiser would wait for their parameters for ever."""
    builder = Mixed()
    x = builder.quantised(builder.layer(builder.quantised(builder.input((1, 3, 8, 8)), 0.02), inputs=3), 0.02)
    attrs = {"MaxPool": {"kernel_shape": [2, 2], "strides": [2, 2]}, "Transpose": {"perm": [0, 2, 3, 1]}}
    for move in moves:
        x = builder.node(move, x, **attrs.get(move, {}))
    size = 4 * 8 * 8 // (4 if "MaxPool" in moves else 1)
    for inputs, outputs in ((size, 9), (9, 5)):
        x = builder.node("MatMul", x, builder.constant(builder.rng.normal(size=(inputs, outputs)).astype(np.float32)))
    model = saved(builder.finish(x), tmp_path)
    assert precision_of(read_model(model)) is Precision.MIXED
    done = invoke("run", model, "--calibrate", tmp_path / "samples.npy")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("Core: 0 %"), done.output


def test_quantised_layers_keep_their_weights_and_scales(tmp_path):
    model = saved(layers({1, 2}), tmp_path)
    before = {tensor.SerializeToString() for tensor in onnx.load(model).graph.initializer}
    after = onnx.load(find_model(str(model), Silence(), calibrate=tmp_path / "samples.npy").path).graph
    values = [numpy_helper.to_array(tensor).tobytes() for tensor in after.initializer]
    kept = [onnx.TensorProto.FromString(each) for each in before]
    given = [numpy_helper.to_array(each).tobytes() for each in kept if list(each.dims) in ([4, 4, 3, 3], [4])]
    assert all(each in values for each in given)
    pairs = [(node, {n.output[0]: n for n in after.node}.get(node.input[0])) for node in after.node
             if node.op_type == "QuantizeLinear"]
    assert not any(before is not None and before.op_type == "DequantizeLinear" for _, before in pairs)


def test_a_model_whose_every_layer_is_quantised_is_refused(tmp_path):
    model = saved(layers(set(range(LAYERS))), tmp_path)
    assert precision_of(read_model(model)) is Precision.QUANTISED
    with pytest.raises(InputError, match="already quantised"):
        find_model(str(model), Silence(), calibrate=tmp_path / "samples.npy")


def test_regions_end_where_something_is_quantised():
    proto = layers({1})
    assert [region.products for region in float_regions(proto.graph)] == [1, 2]
    name_nodes(proto.graph)
    assert len([name for name in SecondQuantisation.of(proto, {}).kept if name.startswith("conv")]) == 1
    assert SecondQuantisation.of(weights_alone(), {}).kept == []


def test_nodes_without_a_name_of_their_own_get_one():
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"], "same"), helper.make_node("Relu", ["y"], ["z"], "same"),
         helper.make_node("Relu", ["z"], ["q"])], "names", [], [])
    name_nodes(graph)
    assert len({node.name for node in graph.node} - {""}) == 3


@pytest.mark.parametrize(("shape", "transposed"), [((1, 5), 0), ((1, 5), 1), ((1, 1), 0), ((), 1)])
def test_a_gemm_with_a_bias_of_any_row_is_quantised(tmp_path, shape, transposed):
    builder = FloatBuilder()
    weights = builder.rng.normal(size=(5, 48) if transposed else (48, 5)).astype(np.float32)
    bias = builder.rng.normal(size=shape).astype(np.float32)
    x = builder.node("Flatten", builder.conv(builder.input((1, 3, 4, 4)), 3, 3))
    model = builder.finish(builder.node("Gemm", x, builder.constant(weights), builder.constant(bias),
                                        transB=transposed))
    onnx.save(model, tmp_path / "bias.onnx")
    done = invoke("run", tmp_path / "bias.onnx")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("Core: 0 %")
