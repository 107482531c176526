"""Float models are quantised with samples or noise and say with which; samples that do not fit are refused."""

import re
from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from tests.cli.test_app import invoke, refused
from tests.compile_times import relus
from tests.support.float_models import FloatBuilder, classifier
from tilewright.compiler.errors import ModelTooLargeError, UnsupportedModelError
from tilewright.compiler.onnx.reader import read_model
from tilewright.errors import InputError
from tilewright.isa.machine import PRESETS
from tilewright.models import static_quantiser
from tilewright.runtime.compared_run import run_model
from tilewright.runtime.model_source import ModelSource, find_model
from tilewright.runtime.oracle import inputs
from tilewright.runtime.oracle.onnx_runtime import Reference, session
from tilewright.runtime.quantise import quantiser
from tilewright.runtime.quantise import samples as calibration
from tilewright.runtime.quantise.float_graph import prepare
from tilewright.runtime.quantise.float_regions import Precision, precision_of
from tilewright.runtime.quantise.quantised_model import quantised_here
from tilewright.tools.progress import Silence

SHAPE = (3, 12, 10)


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path_factory):
    """Quantise in a cache of the test's own."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def model(tmp_path):
    onnx.save(classifier(), tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


def quantise(model, calibrate, steps):
    return quantiser.quantise(read_model(model), model, calibrate, steps)


def samples(count=4, seed=1):
    return np.random.default_rng(seed).normal(0, 2, (count, *SHAPE)).astype(np.float32)


def run(content, feed):
    return session(content).run(None, feed)


def operators(model):
    return Counter(node.op_type for node in onnx.load(model).graph.node)


# ---- what works


def test_a_float_model_runs_as_a_quick_look_that_says_so(model):
    done = invoke("run", model)
    assert done.exit_code == 0, done.output
    assert "QUICK LOOK: ranges come from noise (16 samples of smooth noise, seed 0), not from data" in done.stdout
    assert "give --calibrate FILE for real ranges" in done.stdout
    assert "every element is equal" in done.stdout
    assert "net on base" in done.stdout


def test_a_compiled_model_still_says_what_its_ranges_are_from(model, tmp_path):
    np.save(tmp_path / "samples.npy", samples())
    done = invoke("compile", model, "-o", tmp_path / "out", "--calibrate", tmp_path / "samples.npy")
    assert (done.exit_code, done.stdout) == (0, f"{tmp_path / 'out'}\n"), done.output
    assert "quantised here, ranges from 4 samples of samples.npy" in done.stderr
    done = invoke("simulate", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "quantised here, ranges from 4 samples of samples.npy" in done.stdout
    assert "QUICK LOOK" not in done.stdout


@pytest.mark.parametrize("form", ["npy", "named", "unnamed", "batched"])
def test_ranges_are_those_of_the_samples(model, tmp_path, form):
    data = samples()
    file = tmp_path / ("samples.npy" if form == "npy" else "samples.npz")
    if form == "npy":
        np.save(file, data)
    else:
        np.savez(file, **{"other" if form == "unnamed" else "image": data[:, None] if form == "batched" else data})
    quantised = quantise(model, file, Silence())
    proto = onnx.load(quantised.model)
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    first = next(node for node in proto.graph.node if node.op_type == "QuantizeLinear" and node.input[0] == "image")
    assert constants[first.input[1]] == pytest.approx(np.abs(data).max() / 127, rel=1e-2)
    assert constants[first.input[2]] == 0
    assert constants[first.input[2]].dtype == np.int8
    assert not Reference(quantised.model).rounded_in_float
    np.testing.assert_array_equal(quantised.feeds()[0]["image"], data[:1])
    assert quantised_here(quantised.model) == quantised
    assert ModelSource.of(quantised.model).notes == (f"quantised here, ranges from 4 samples of {file.name}",)


def test_weights_are_symmetric_and_per_channel(model):
    proto = onnx.load(quantise(model, None, Silence()).model)
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    weights = {name for name, array in constants.items() if array.dtype == np.int8 and array.ndim > 1}
    dequantised = [node.input for node in proto.graph.node
                   if node.op_type == "DequantizeLinear" and node.input[0] in weights]
    assert len(dequantised) == 3
    for weight, scale, zero_point in dequantised:
        assert constants[scale].shape == constants[weight].shape[:1]
        assert not constants[zero_point].any()


def test_the_answer_stays_near_that_in_float(model, tmp_path):
    data = samples(16)
    np.save(tmp_path / "samples.npy", data)
    quantised = quantise(model, tmp_path / "samples.npy", Silence()).model
    for image in data[:, np.newaxis]:
        (exact,), (rounded,) = run(model, {"image": image}), run(quantised, {"image": image})
        assert np.abs(exact - rounded).max() < 0.05 * np.abs(exact).max()
        assert np.any(exact != rounded)


def test_an_old_opset_with_a_free_batch_and_constants_among_its_inputs(tmp_path):
    proto = classifier(batch="n", opset=9, ir_version=3)
    onnx.save(proto, tmp_path / "old.onnx")
    quantised = quantise(tmp_path / "old.onnx", None, Silence())
    assert operators(quantised.model)["Conv"] == 2
    assert "BatchNormalization" not in operators(quantised.model)
    feed = {"image": samples(1)}
    np.testing.assert_allclose(run(quantised.float_model, feed)[0], run(proto.SerializeToString(), feed)[0], rtol=1e-4)


def test_an_upsample_of_opset_9(tmp_path):
    builder = FloatBuilder(opset=9)
    x = builder.conv(builder.input((1, *SHAPE)), 3, 4)
    x = builder.node("Upsample", x, builder.constant(np.array([1, 1, 2, 2], np.float32)), mode="nearest")
    proto = builder.finish(builder.conv(x, 4, 4))
    onnx.save(proto, tmp_path / "up.onnx")
    quantised = quantise(tmp_path / "up.onnx", None, Silence())
    assert operators(quantised.float_model) == {"Conv": 2, "Resize": 1}
    feed = {"image": samples(1)}
    np.testing.assert_allclose(run(quantised.float_model, feed)[0], run(proto.SerializeToString(), feed)[0],
                               rtol=1e-4, atol=1e-5)


def mixed():
    """Return a model of everything that is rewritten, none of it behind a convolution that would swallow it."""
    builder = FloatBuilder(seed=3)
    x = builder.input((1, *SHAPE))
    normal = builder.node("Relu", builder.normalise(x, 3))
    channels = builder.constant(np.array([0.5, 2, -1], np.float32).reshape(3, 1, 1))
    scaled = builder.node("Add", builder.node("Relu", builder.node("Mul", channels, normal)), channels)
    total = builder.node("Sum", x, scaled, normal)
    kept = builder.node("ReduceMean", total, axes=[2, 3], keepdims=1)
    dropped = builder.node("ReduceMean", builder.node("Relu", total), axes=[-1, -2], keepdims=0)
    other = builder.node("ReduceMean", total, axes=[1], keepdims=1)
    return builder.finish(kept, dropped, other)


def test_rewritten_operators_compute_the_same(tmp_path):
    onnx.save(mixed(), tmp_path / "mixed.onnx")
    prepared = prepare(read_model(tmp_path / "mixed.onnx")).proto
    counts = Counter(node.op_type for node in prepared.graph.node)
    assert counts == {"Conv": 3, "Relu": 3, "Add": 2, "GlobalAveragePool": 2, "Flatten": 1, "ReduceMean": 1}
    feed = {"image": samples(1)}
    for before, after in zip(run(mixed().SerializeToString(), feed), run(prepared.SerializeToString(), feed),
                             strict=True):
        assert before.shape == after.shape
        np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)


def test_a_sum_of_channels_is_quantised_with_what_is_before_it(tmp_path):
    builder = FloatBuilder()
    x = builder.conv(builder.input((1, *SHAPE)), 3, 6)
    onnx.save(builder.finish(builder.node("ReduceSum", x, builder.constant(np.array([1])))), tmp_path / "net.onnx")
    run = run_model(find_model(str(tmp_path / "net.onnx"), Silence()), PRESETS["base"], "fast", None)
    assert (run.comparison.matches, run.report.core_cycles) == (True, 0)


def test_softmax_and_what_moves_its_result_stay_in_float(tmp_path):
    builder = FloatBuilder()
    x = builder.node("GlobalAveragePool", builder.conv(builder.input((1, *SHAPE)), 3, 8))
    x = builder.node("Reshape", builder.node("Softmax", x, axis=1), builder.constant(np.array([1, 8], np.int64)))
    onnx.save(builder.finish(x), tmp_path / "soft.onnx")
    proto = onnx.load(quantise(tmp_path / "soft.onnx", None, Silence()).model)
    *_, softmax, reshape = proto.graph.node
    assert (softmax.op_type, reshape.op_type, proto.graph.output[0].name) == ("Softmax", "Reshape", reshape.output[0])


def test_the_same_model_and_samples_are_quantised_once(model, monkeypatch, tmp_path):
    first = quantise(model, None, Silence())
    monkeypatch.setattr(static_quantiser, "quantize_static", lambda *_, **__: pytest.fail("quantised again"))
    with monkeypatch.context() as context:
        context.setattr(quantiser.float_graph, "prepare", lambda _: pytest.fail("prepared again"))
        assert quantise(model, None, Silence()) == first
    np.save(tmp_path / "samples.npy", samples())
    with pytest.raises(pytest.fail.Exception):
        quantise(model, tmp_path / "samples.npy", Silence())


def test_several_inputs_take_their_samples_by_name(tmp_path):
    builder = FloatBuilder()
    total = builder.node("Add", builder.conv(builder.input((1, *SHAPE), "left"), 3, 4),
                         builder.conv(builder.input((1, *SHAPE), "right"), 3, 4))
    onnx.save(builder.finish(total), tmp_path / "two.onnx")
    np.savez(tmp_path / "samples.npz", left=samples(3), right=10 * samples(3))
    quantised = quantise(tmp_path / "two.onnx", tmp_path / "samples.npz", Silence())
    assert sorted(quantised.feeds()[0]) == ["left", "right"]
    np.savez(tmp_path / "uneven.npz", left=samples(3), right=samples(2))
    with pytest.raises(InputError, match=r"'left' has 3, 'right' has 2"):
        quantise(tmp_path / "two.onnx", tmp_path / "uneven.npz", Silence())


@pytest.mark.parametrize("kind", [TensorProto.UINT8, TensorProto.INT8])
@pytest.mark.parametrize("calibrated", [False, True])
def test_images_of_bytes_are_quantised_like_floats(tmp_path, kind, calibrated):
    builder = FloatBuilder(3)
    image = builder.input((1, 3, 8, 8))
    x = builder.node("Mul", builder.node("Cast", image, to=TensorProto.FLOAT), builder.constant(np.float32(1 / 127.5)))
    x = builder.node("Sub", x, builder.constant(np.float32(1)))
    weights = builder.constant(builder.rng.normal(size=(4, 3, 3, 3)).astype(np.float32))
    made = builder.finish(builder.node("Relu", builder.node("Conv", x, weights)))
    made.graph.input[0].type.tensor_type.elem_type = kind
    onnx.save(made, tmp_path / "bytes.onnx")
    dtype = np.uint8 if kind == TensorProto.UINT8 else np.int8
    np.save(tmp_path / "images.npy", np.random.default_rng(1).integers(0, 127, (3, 3, 8, 8)).astype(dtype))
    assert precision_of(read_model(tmp_path / "bytes.onnx")) is Precision.FLOAT
    options = ["--calibrate", tmp_path / "images.npy"] if calibrated else []
    done = invoke("run", tmp_path / "bytes.onnx", *options)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("Core: 0 %"), done.output
    assert "every element is equal" in done.stdout


def test_float_keeps_a_model_as_it_is(model):
    assert find_model(str(model), Silence(), keep_float=True) == ModelSource(model, original=model)


@pytest.mark.parametrize(("proto", "expected"), [
    (classifier(), Precision.FLOAT),
    (onnx.helper.make_model(onnx.helper.make_graph(
        [onnx.helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2])], "integers",
        [onnx.helper.make_tensor_value_info("x", TensorProto.INT8, [1, 1, 4, 4])],
        [onnx.helper.make_tensor_value_info("y", TensorProto.INT8, [1, 1, 3, 3])]), ir_version=8,
        opset_imports=[onnx.helper.make_opsetid("", 17)]), Precision.QUANTISED),
])
def test_a_float_model_is_one_of_floats(tmp_path, proto, expected):
    onnx.save(proto, tmp_path / "net.onnx")
    assert precision_of(read_model(tmp_path / "net.onnx")) is expected


# ---- what is refused


@pytest.mark.parametrize(("array", "sentence"), [
    (np.zeros((4, 3, 10, 12), np.float32), "must have the shape (samples, 3, 12, 10), not (4, 3, 10, 12)"),
    (np.zeros(SHAPE, np.float32), "must have the shape (samples, 3, 12, 10), not (3, 12, 10)"),
    (np.zeros((4, *SHAPE), np.complex64), "must be float32, or hold numbers that float32 holds, not complex64"),
    (np.full((4, *SHAPE), 2**24 + 1),
     "must be float32, or hold numbers that float32 holds, not int64 with values from 16777217 to 16777217"),
    (np.full((4, *SHAPE), 1e300), "must hold only finite numbers, unlike sample 0"),
    (np.zeros((0, *SHAPE), np.float32), "must hold at least one sample, not none"),
    (np.full((2, *SHAPE), np.nan, np.float32), "must hold only finite numbers, unlike sample 0"),
    (np.concatenate([samples(2), np.full((1, *SHAPE), np.inf, np.float32)]),
     "must hold only finite numbers, unlike sample 2"),
])
def test_samples_that_do_not_fit_are_refused(model, tmp_path, array, sentence):
    np.save(tmp_path / "samples.npy", array)
    said = refused(2, "run", model, "--calibrate", tmp_path / "samples.npy")
    assert said == f"Calibration array 'image' {sentence}"


@pytest.mark.parametrize(("array", "sentences"), [
    (samples().astype(np.float64), ()),
    (samples().astype(np.float16), ()),
    (np.arange(4 * 360).reshape(4, *SHAPE).astype(np.uint8), (r"of uint8 was taken as float32, 0 to 255, without",)),
    (np.stack([*samples(2), np.zeros(SHAPE, np.float32)]), (r"1 of 3 samples of 'image' are all zero, as sample 2",)),
    (np.zeros((3, *SHAPE), np.float32), (r"every sample of 'image' is all zero",)),
    (np.full((1, *SHAPE), 2, np.float32), (r"every sample of 'image' is of one value throughout",)),
    (np.stack([*samples(2), np.ones(SHAPE, np.float32)]), (r"1 of 3 samples of 'image' are of one value",)),
    (np.repeat(samples(1), 5, axis=0), (r"all 5 samples of 'image' are equal",)),
])
def test_what_is_odd_about_samples_is_said(model, tmp_path, array, sentences):
    np.save(tmp_path / "samples.npy", array)
    remarks = find_model(str(model), Silence(), calibrate=tmp_path / "samples.npy").ranges.remarks
    assert len(remarks) == len(sentences)
    for remark, sentence in zip(remarks, sentences, strict=True):
        assert re.search(sentence, remark)
    if sentences:
        for command in ("run", "check"):
            done = invoke(command, model, "--calibrate", tmp_path / "samples.npy")
            assert re.search(sentences[0].split()[-1], done.stdout), done.output


def test_an_input_that_nothing_reads_needs_no_samples(tmp_path):
    builder = FloatBuilder()
    builder.input((2, 5), "unread", TensorProto.INT32)
    onnx.save(builder.finish(builder.conv(builder.input((1, *SHAPE)), 3, 4)), tmp_path / "two.onnx")
    np.savez(tmp_path / "samples.npz", image=samples(3))
    first = quantise(tmp_path / "two.onnx", tmp_path / "samples.npz", Silence()).feeds()[0]
    assert {name: array.shape for name, array in first.items()} == {"image": (1, *SHAPE), "unread": (2, 5)}
    assert set(quantise(tmp_path / "two.onnx", None, Silence()).feeds()[0]) == {"image", "unread"}


def test_files_that_hold_no_samples_are_refused(model, tmp_path, monkeypatch):
    (tmp_path / "text.npy").write_text("no array")
    assert "text.npy' cannot be read: " in refused(2, "run", model, "--calibrate", tmp_path / "text.npy")
    (tmp_path / "text.txt").write_text("no array")
    assert refused(2, "run", model, "--calibrate", tmp_path / "text.txt") == (
        "Calibration file must end in .npz or .npy, not 'text.txt'")
    assert "cannot be read: No such file" in refused(2, "run", model, "--calibrate", tmp_path / "none.npz")
    np.savez(tmp_path / "two.npz", image=samples(), other=samples())
    assert "must hold the arrays image, not image, other" in refused(
        2, "run", model, "--calibrate", tmp_path / "two.npz")
    np.save(tmp_path / "samples.npy", samples())
    monkeypatch.setattr(inputs, "MAX_FILE_BYTES", 1000)
    assert "it must hold at most 1000 bytes" in refused(2, "run", model, "--calibrate", tmp_path / "samples.npy")
    monkeypatch.setattr(calibration, "MAX_FILE_BYTES", 1000)
    assert "must have at most 1000 bytes, not " in refused(2, "run", model, "--calibrate", tmp_path / "samples.npy")


def test_options_that_do_not_go_together_are_refused(model, tmp_path):
    np.save(tmp_path / "samples.npy", samples())
    assert "exclude each other" in refused(
        2, "run", model, "--float", "--calibrate", tmp_path / "samples.npy")
    assert refused(2, "run", "lenet5", "--calibrate", tmp_path / "samples.npy") == (
        "Option --calibrate needs a float model, and lenet5.onnx is already quantised")
    assert refused(2, "run", "lenet5", "--float") == (
        "Option --float needs a float model, and lenet5.onnx is already quantised")


def test_dynamic_dimensions_besides_the_batch_are_refused(tmp_path):
    builder = FloatBuilder()
    onnx.save(builder.finish(builder.conv(builder.input(("n", 3, "rows", 10)), 3, 4)), tmp_path / "free.onnx")
    with pytest.raises(UnsupportedModelError, match=r"'image' \(n,3,rows,10\)"):
        quantise(tmp_path / "free.onnx", None, Silence())


def test_a_tensor_that_is_too_large_is_refused_before_onnx_runtime_makes_it(tmp_path):
    builder = FloatBuilder()
    builder.input((1, 3, 1, 1))
    huge = builder.node("Expand", "image", builder.constant(np.array([1, 3, 60000, 60000], np.int64)))
    onnx.save(builder.finish(builder.conv(huge, 3, 4)), tmp_path / "huge.onnx")
    with pytest.raises(ModelTooLargeError, match=r"must have at most \d+ elements, not 10800000000$"):
        quantise(tmp_path / "huge.onnx", None, Silence())


def test_samples_of_which_the_model_makes_no_numbers_are_refused(tmp_path):
    builder = FloatBuilder()
    logarithm = builder.node("Log", builder.conv(builder.input((1, *SHAPE)), 3, 4))
    onnx.save(builder.finish(builder.conv(logarithm, 4, 4)), tmp_path / "log.onnx")
    with pytest.raises(InputError, match="its results are not finite"):
        quantise(tmp_path / "log.onnx", None, Silence())


def test_an_input_of_integers_needs_samples(tmp_path):
    builder = FloatBuilder()
    index = builder.input((1,), "index", TensorProto.INT64)
    x = builder.conv(builder.input((1, *SHAPE)), 3, 4)
    onnx.save(builder.finish(builder.node("Gather", x, index, axis=1)), tmp_path / "gather.onnx")
    with pytest.raises(InputError, match=r"'index' is int64"):
        quantise(tmp_path / "gather.onnx", None, Silence())


def test_a_preparation_that_changes_the_model_is_noticed(model, monkeypatch):
    def spoilt(read):
        prepared = prepare(read)
        for tensor in prepared.proto.graph.initializer:
            if len(tensor.dims) == 4:
                tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(1.01), tensor.name))
        return prepared

    monkeypatch.setattr(quantiser.float_graph, "prepare", spoilt)
    with pytest.raises(InputError, match=r"changes its outputs by .*--float"):
        quantise(model, None, Silence())


def test_a_model_with_more_operators_than_the_quantiser_can_take_is_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(quantiser, "_MOST_NODES", 29)
    for count in (29, 30):
        onnx.save(relus(count), tmp_path / f"{count}.onnx")
    find_model(str(tmp_path / "29.onnx"), Silence())
    monkeypatch.setattr(static_quantiser, "quantize_static", None)
    with pytest.raises(InputError, match=r"operators.*--shape"):
        find_model(str(tmp_path / "30.onnx"), Silence())
