"""Models with other bits: nearer to the float model the more there are, equal in ONNX Runtime, and small in memory."""

import numpy as np
import onnx
import pytest

from tests.support.float_models import FloatBuilder
from tilewright.compiler.onnx.reader import read_model
from tilewright.errors import InputError
from tilewright.models import builtin
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.model_source import ModelSource, find_model
from tilewright.runtime.oracle.onnx_runtime import session
from tilewright.runtime.precision.layer_bits import bits_given
from tilewright.runtime.precision.quantised_file import bits_model
from tilewright.runtime.predicted_network import PredictedNetwork
from tilewright.runtime.session import InferenceSession
from tilewright.tools.progress import Silence

IMAGES = np.random.default_rng(1).normal(0, 1, (24, 3, 12, 12)).astype(np.float32)


def network():
    """Return a float model of three convolutions, one depthwise, a pooling between them, and a dense layer."""
    build = FloatBuilder(seed=2)
    x = build.node("Relu", build.conv(build.input([1, 3, 12, 12]), 3, 16))
    weights = build.constant(build.rng.normal(0, 0.4, (16, 1, 3, 3)).astype(np.float32))
    x = build.node("Relu", build.node("Conv", x, weights, group=16, pads=[1] * 4))
    x = build.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = build.node("Relu", build.conv(x, 16, 8, kernel=1))
    return build.finish(build.gemm(build.node("Flatten", x), 8 * 36, 10))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the float model and its samples, and a cache of its own."""
    with pytest.MonkeyPatch.context() as patch:
        made = tmp_path_factory.mktemp("bits")
        patch.setenv("TILEWRIGHT_CACHE", str(made / "cache"))
        onnx.save(network(), made / "net.onnx")
        np.save(made / "images.npy", IMAGES)
        yield made


@pytest.fixture(scope="module")
def quantised(folder):
    """Return the model whose layers can be given bits."""
    return bits_model(find_model(str(folder / "net.onnx"), Silence(), calibrate=folder / "images.npy"), None)


def scores(model):
    run = session(model.SerializeToString())
    return np.concatenate([run.run(None, {"image": image[np.newaxis]})[0] for image in IMAGES])


def error(quantised, weights, activations=()):
    """Return the mean error of a model with these bits beside the float one."""
    found = scores(quantised.with_bits(bits_given(list(weights), list(activations))))
    return float(np.abs(found - scores(network())).mean())


def test_results_are_nearer_to_the_float_model_with_more_bits(quantised):
    two, four, eight = error(quantised, ["int2"]), error(quantised, ["int4"]), error(quantised, [])
    words = error(quantised, [], ["int16"])
    assert words < 0.8 * eight < 0.8 * four < 0.4 * two


def test_the_file_holds_int4_and_the_same_numbers(quantised, tmp_path):
    chosen = bits_given(["int4", "int2:4", "int8:1"], None)
    written = quantised.written(chosen)
    onnx.checker.check_model(written, full_check=True)
    kinds = [tensor.data_type for tensor in written.graph.initializer if tensor.name.endswith(":levels")
             and len(tensor.dims) > 1]
    assert kinds == [onnx.TensorProto.INT4] * 3
    assert np.array_equal(scores(written), scores(quantised.with_bits(chosen)))
    assert len(written.SerializeToString()) < 0.8 * len(quantised.model.SerializeToString())


@pytest.mark.parametrize(("weights", "activations"), [
    (["int4"], []), (["int2:2,4", "int4:1"], []), (["int4:3"], ["int16:2,3"]), ([], ["int16"])])
def test_every_choice_runs_on_the_machine_as_in_onnx_runtime(quantised, tmp_path, weights, activations):
    path = tmp_path / "net.onnx"
    made = quantised.written(bits_given(weights, activations))
    onnx.save(made, path)
    machine = "base,coded_weights=true,wide_words=true"
    own = InferenceSession(path, machine=machine)
    found = np.concatenate([own.run(None, {"image": image[np.newaxis]})[0] for image in IMAGES[:3]])
    step = np.abs(scores(made)).max() / 127
    assert np.abs(found - scores(made)[:3]).max() <= (step if activations else 0)


def test_a_published_network_keeps_its_tensors_and_takes_fewer_bytes(tmp_path):
    source = ModelSource(builtin("mlperf-ad"))
    found = bits_model(source, None)
    made = found.written(bits_given(["int4"], None))
    onnx.save(made, tmp_path / "ad.onnx")
    design = design_of("base,coded_weights=true")
    before, after = (PredictedNetwork(each, outputs_only=True).predict(design)
                     for each in (source, ModelSource.of(tmp_path / "ad.onnx")))
    assert after.cycles < 0.8 * before.cycles
    assert {value.name for value in made.graph.output} == {value.name for value in found.model.graph.output}


def test_integer_operators_become_products_that_may_have_other_bits():
    found = bits_model(ModelSource(builtin("lenet5_qoperator")), None)
    assert len(found.rows(bits_given(None, None))) == 5
    assert found.model.graph.input[0].name == read_model(builtin("lenet5_qoperator")).graph.input[0].name


def test_what_is_not_quantised_from_floats_cannot_have_16_bits():
    found = bits_model(ModelSource(builtin("mlperf-ad")), None)
    with pytest.raises(InputError, match="16 bits"):
        found.with_bits(bits_given(None, ["int16:1"]))
