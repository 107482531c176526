"""What quantisers leave in float is quantised with samples, and runs as fast as the same network quantised whole."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnxruntime.quantization import QuantFormat

from tests.support.partly_quantised import MODELS, before_products, by_static_quantisation, normalised, samples
from tilewright.compiler.network.options import BEST
from tilewright.isa.machine import PRESETS
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.model_source import ModelSource, find_model
from tilewright.runtime.oracle.onnx_runtime import session
from tilewright.runtime.predicted_run import predict_model
from tilewright.runtime.quantise.float_regions import Precision, precision_of
from tilewright.tools.progress import Silence

FORMS = {
    "convolutions": {"op_types_to_quantize": ["Conv"]},
    "operators": {"op_types_to_quantize": ["Conv"], "form": QuantFormat.QOperator},
    "products": {"op_types_to_quantize": ["Conv", "Gemm", "MatMul"]},
    "results": {"unquantised": ("Conv", "Gemm", "Relu")},
}


CASES = [(name, form) for name in MODELS for form in (*FORMS, "before products")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the samples, and keep what is quantised apart."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEWRIGHT_CACHE", str(tmp_path_factory.mktemp("cache")))
        folder = tmp_path_factory.mktemp("models")
        np.save(folder / "samples.npy", samples())
        yield folder


def written(name: str, form: str, folder: Path) -> Path:
    target = folder / f"{name}-{form.replace(' ', '-')}.onnx"
    if target.exists():
        return target
    model = MODELS[name]()
    if form == "whole":
        onnx.save(model, target)
    elif form == "before products":
        before_products(model, target)
    else:
        by_static_quantisation(model, target, **FORMS[form])
    return target


def quantised(model: Path) -> ModelSource:
    return find_model(str(model), Silence(), calibrate=model.with_name("samples.npy"))


def cycles(source: ModelSource, machine: str = "base") -> int:
    return predict_model(source, design_of(machine), BEST, Silence()).report.cycles


@pytest.mark.parametrize(("name", "form"), CASES)
def test_a_part_in_float_costs_no_more_than_in_a_model_quantised_whole(folder, name, form):
    whole, source = quantised(written(name, "whole", folder)), quantised(written(name, form, folder))
    assert cycles(source) <= 1.3 * cycles(whole)


@pytest.mark.parametrize(("name", "form"), CASES)
def test_it_computes_nearly_what_the_float_model_does(folder, name, form):
    exact, rounded = (np.concatenate([session(path).run(None, {"image": image})[0]
                                      for image in samples()[:, np.newaxis]])
                      for path in (written(name, "whole", folder), quantised(written(name, form, folder)).path))
    assert np.abs(exact - rounded).max() < 0.1 * np.abs(exact).max()


@pytest.mark.parametrize("name", MODELS)
def test_every_layer_is_equal_to_onnx_runtime(folder, name):
    done = run_model(quantised(written(name, "before products", folder)), PRESETS["base"], "fast", None)
    assert done.comparison.matches, done.comparison


@pytest.mark.parametrize(("name", "form"), [case for case in CASES if case[1] != "operators"])
def test_a_bias_has_the_scale_of_what_its_product_multiplies(folder, name, form):
    """ONNX Runtime's integer kernels take it for granted, whatever the model says, and whatever the samples are."""
    np.save(folder / "darker.npy", samples() / 2)
    model = written(name, form, folder)
    graph = onnx.load(find_model(str(model), Silence(), calibrate=folder / "darker.npy").path).graph
    values = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    makers = {node.output[0]: node for node in graph.node if node.op_type == "DequantizeLinear"}
    biased = [node for node in graph.node if node.op_type in ("Conv", "ConvTranspose", "Gemm")
              and len(node.input) > 2 and node.input[2] in makers]
    assert biased
    for node in biased:
        x, weights, bias = (values[makers[each].input[1]].astype(np.float64) for each in node.input)
        np.testing.assert_allclose(bias, np.broadcast_to(x * weights, bias.shape), rtol=1e-5)


@pytest.mark.parametrize("form", [*FORMS, "before products"])
def test_given_quantisation_and_names_stay(folder, form):
    """The names that the quantiser makes are often there, from the first time."""
    path = written("decoder", form, folder)
    before, after = onnx.load(path).graph, onnx.load(quantised(path).path).graph
    given = {tensor.name: tensor for tensor in before.initializer if tensor.data_type == onnx.TensorProto.INT8}
    kept = [numpy_helper.to_array(tensor).tobytes() for tensor in after.initializer]
    assert all(numpy_helper.to_array(tensor).tobytes() in kept for tensor in given.values())
    levels = {name for node in before.node if node.op_type == "QuantizeLinear" for name in node.output}
    assert levels <= {name for node in after.node for name in node.output}
    names = [node.name for node in after.node]
    assert len(names) == len(set(names))
    assert not any(":given" in name for node in after.node for name in (node.name, *node.input, *node.output))


def test_scales_per_channel_of_activations_are_given_up_and_that_is_said(folder):
    """NNCF gives some to tensors that depthwise convolutions read; ONNX Runtime's kernels have none for them either."""
    model = onnx.load(written("average", "before products", folder))
    graph = model.graph
    pair = [node for node in graph.node if node.name in ("leakyrelu1_out/quantise", "leakyrelu1_out/dequantise")]
    scale = numpy_helper.to_array(next(each for each in graph.initializer if each.name == "leakyrelu1_out/scale"))
    scales = (scale * np.random.default_rng(0).uniform(0.5, 1.5, 8)).astype(np.float32)
    graph.initializer.extend([numpy_helper.from_array(scales, "scales"),
                              numpy_helper.from_array(np.zeros(8, np.int8), "zeros")])
    for node in pair:
        node.input[1:] = ["scales", "zeros"]
        node.attribute.append(onnx.helper.make_attribute("axis", 1))
    onnx.save(model, folder / "channels.onnx")
    assert precision_of(model) is Precision.MIXED
    source = quantised(folder / "channels.onnx")
    assert any("scales per channel of 1 tensor (leakyrelu1_out)" in note for note in source.notes)
    assert cycles(source) <= 1.3 * cycles(quantised(written("average", "whole", folder)))
    done = run_model(source, PRESETS["base"], "fast", None)
    assert done.comparison.matches, done.comparison


def test_a_variance_that_is_quantised_alone_is_given_up_and_that_is_said(folder):
    by_static_quantisation(normalised(), folder / "apart.onnx")
    source, alone = quantised(folder / "apart.onnx"), find_model(str(folder / "apart.onnx"), Silence())
    assert any("reducemean" in note and "variances" in note for note in source.notes)
    assert cycles(source, "base,row_unit=true") < cycles(alone, "base,row_unit=true") / 2
    done = run_model(source, PRESETS["base"], "fast", None)
    assert done.comparison.matches, done.comparison


def test_samples_that_make_a_file_slower_are_said_to_with_both_figures(folder):
    """A host core without a row unit computes a normalisation of a quantised variance faster."""
    by_static_quantisation(normalised(), folder / "slower.onnx")
    source, alone = quantised(folder / "slower.onnx"), find_model(str(folder / "slower.onnx"), Silence())
    for found, expected in ((source, True), (alone, False)):
        notes = predict_model(found, design_of("base"), BEST, Silence()).report.notes
        assert any(f"{cycles(source):,} cycles, and {cycles(alone):,} without" in note for note in notes) == expected
    mended = predict_model(source, design_of("base,row_unit=true"), BEST, Silence()).report.notes
    assert not any("slower" in note for note in mended)
