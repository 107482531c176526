"""Float models, and the same as quantisers leave them that quantise a part: some operators, or what products read."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

from tests.support.float_models import FloatBuilder

__all__ = ["MODELS", "SHAPE", "before_products", "by_static_quantisation", "normalised", "samples"]

SHAPE = (3, 8, 8)


def samples(count: int = 4) -> np.ndarray:
    """Return images for all of these models."""
    return np.random.default_rng(5).normal(size=(count, *SHAPE)).astype(np.float32)


def average() -> onnx.ModelProto:
    """LeakyRelu and Add → Relu before averages."""
    builder = FloatBuilder(1)
    x = builder.node("LeakyRelu", builder.conv(builder.input((1, *SHAPE)), 3, 8), alpha=0.1)
    total = builder.node("Relu", builder.node("Add", builder.conv(x, 8, 8), x))
    pooled = builder.node("AveragePool", total, kernel_shape=[2, 2], strides=[2, 2])
    x = builder.node("GlobalAveragePool", builder.node("LeakyRelu", builder.conv(pooled, 8, 8), alpha=0.2))
    return builder.finish(builder.gemm(builder.node("Flatten", x), 8, 5))


def swish() -> onnx.ModelProto:
    """Conv → HardSwish, a GELU taken apart, and squeeze-and-excitation."""
    builder = FloatBuilder(2)
    x = builder.node("HardSwish", builder.conv(builder.input((1, *SHAPE)), 3, 8))
    ratio = builder.node("Div", builder.conv(x, 8, 8), builder.constant(np.float32(np.sqrt(2))))
    y = builder.node("Mul", ratio, builder.node("Add", builder.node("Erf", ratio), builder.constant(np.float32(1))))
    gate = builder.node("HardSigmoid", builder.conv(builder.node("GlobalAveragePool", y), 8, 8, kernel=1))
    return builder.finish(builder.conv(builder.node("Mul", y, gate), 8, 4))


def decoder() -> onnx.ModelProto:
    """ConvTranspose, linear Resize, MaxPool and Concat, with a Sigmoid at the end."""
    builder = FloatBuilder(3)
    skip = builder.node("Relu", builder.conv(builder.input((1, *SHAPE)), 3, 8))
    x = builder.conv(builder.node("MaxPool", skip, kernel_shape=[2, 2], strides=[2, 2]), 8, 8)
    weights = builder.constant(builder.rng.normal(0, 0.3, (8, 8, 2, 2)).astype(np.float32))
    up = builder.node("ConvTranspose", builder.node("Relu", x), weights, kernel_shape=[2, 2], strides=[2, 2])
    x = builder.conv(builder.node("Concat", up, skip, axis=1), 16, 8)
    x = builder.node("Resize", builder.node("Relu", x), "", builder.constant(np.array([1, 1, 2, 2], np.float32)),
                     mode="linear", coordinate_transformation_mode="half_pixel")
    return builder.finish(builder.node("Sigmoid", builder.conv(x, 8, 2)))


def rectified() -> onnx.ModelProto:
    """BatchNormalization → PRelu behind a sum, and a curve of the input that is added to a function."""
    builder = FloatBuilder(4)
    image = builder.input((1, *SHAPE))
    total = builder.node("Add", builder.conv(image, 3, 8), builder.conv(image, 3, 8))
    x = builder.node("BatchNormalization", total, *(builder.constant(
        builder.rng.uniform(0.5, 1.5, 8).astype(np.float32)) for _ in range(4)))
    x = builder.node("PRelu", x, builder.constant(builder.rng.uniform(0, 0.3, (8, 1, 1)).astype(np.float32)))
    curve = builder.node("Sub", builder.node("Pow", image, builder.constant(np.float32(2))), image)
    return builder.finish(builder.node("Add", builder.node("Tanh", builder.conv(x, 8, 3)), curve))


def normalised() -> onnx.ModelProto:
    """A normalisation of pixels that is taken apart, as ConvNeXt's, between convolutions.

    ``quantize_static`` quantises its variance, and the sum of that with epsilon, alone.
    """
    builder = FloatBuilder(4)
    x = builder.conv(builder.input((1, *SHAPE)), 3, 32)
    pixels = builder.node("Transpose", x, perm=[0, 2, 3, 1])
    centred = builder.node("Sub", pixels, builder.node("ReduceMean", pixels, axes=[-1]))
    squares = builder.node("Pow", centred, builder.constant(np.float32(2)))
    variance = builder.node("Add", builder.node("ReduceMean", squares, axes=[-1]),
                            builder.constant(np.float32(1e-5)))
    x = builder.node("Div", centred, builder.node("Sqrt", variance))
    return builder.finish(builder.conv(builder.node("Transpose", x, perm=[0, 3, 1, 2]), 32, 4))


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {"average": average, "swish": swish, "decoder": decoder,
                                                 "rectified": rectified}


class _Samples(CalibrationDataReader):
    def __init__(self) -> None:
        self._rest = iter(samples())

    def get_next(self) -> dict[str, np.ndarray] | None:
        sample = next(self._rest, None)
        return None if sample is None else {"image": sample[np.newaxis]}


def by_static_quantisation(model: onnx.ModelProto, target: Path, form: QuantFormat = QuantFormat.QDQ,
                           unquantised: tuple[str, ...] = (), **options: object) -> None:
    """Write ``model`` as ``quantize_static`` makes it int8 with these ``options``, results of some left in float."""
    plain = target.with_suffix(".float.onnx")
    onnx.save(model, plain)
    extra: dict[str, object] = {"ActivationSymmetric": True, "WeightSymmetric": True}
    if unquantised:
        extra["OpTypesToExcludeOutputQuantization"] = list(unquantised)
    quantize_static(plain, target, _Samples(), quant_format=form, per_channel=True, activation_type=QuantType.QInt8,
                    weight_type=QuantType.QInt8, extra_options=extra, **options)


def before_products(model: onnx.ModelProto, target: Path) -> None:
    """Write ``model`` with int8 in front of products alone, and nothing quantised behind them, as NNCF leaves it."""
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    products = [node for node in model.graph.node if node.op_type in ("Conv", "ConvTranspose", "Gemm")]
    ranges = _ranges(model, {node.input[0] for node in products})
    nodes: list[onnx.NodeProto] = []
    made: dict[str, np.ndarray] = {}
    for node in model.graph.node:
        if node in products:
            x, levels = node.input[0], f"{node.input[0]}/levels"
            if levels not in {name for each in nodes for name in each.output}:
                made |= {f"{x}/scale": np.float32(ranges[x] / 127), f"{x}/zero": np.array(0, np.int8)}
                nodes += [helper.make_node("QuantizeLinear", [x, f"{x}/scale", f"{x}/zero"], [levels], f"{x}/quantise"),
                          helper.make_node("DequantizeLinear", [levels, f"{x}/scale", f"{x}/zero"], [f"{x}/floats"],
                                           f"{x}/dequantise")]
            name, axis = node.input[1], 1 if node.op_type == "ConvTranspose" else 0
            others = tuple(each for each in range(weights[name].ndim) if each != axis)
            scale = (np.abs(weights[name]).max(axis=others) / 127).astype(np.float32)
            made |= {f"{name}/levels": np.rint(weights[name] / np.expand_dims(scale, others)).astype(np.int8),
                     f"{name}/scale": scale, f"{name}/zero": np.zeros(scale.shape, np.int8)}
            given = [f"{name}/{each}" for each in ("levels", "scale", "zero")]
            nodes.append(helper.make_node("DequantizeLinear", given, [f"{name}/floats"], f"{name}/dequantise",
                                          axis=axis))
            node.input[:2] = [f"{x}/floats", f"{name}/floats"]
        nodes.append(node)
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del model.graph.node[:]
    model.graph.node.extend(copies)
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(array), name) for name, array in made.items())
    onnx.save(model, target)


def _ranges(model: onnx.ModelProto, names: set[str]) -> dict[str, float]:
    """Return the largest magnitude of tensors for the samples."""
    shown = onnx.ModelProto.FromString(model.SerializeToString())
    del shown.graph.output[:]
    shown.graph.output.extend(map(helper.make_empty_tensor_value_info, sorted(names - {"image"})))
    session = onnxruntime.InferenceSession(shown.SerializeToString(), providers=["CPUExecutionProvider"])
    found = dict.fromkeys(names, 0.0)
    for sample in samples()[:, np.newaxis]:
        results = dict(zip([each.name for each in session.get_outputs()], session.run(None, {"image": sample}),
                           strict=True), image=sample)
        found |= {name: max(found[name], float(np.abs(results[name]).max())) for name in names}
    return found
