"""One small .tflite file for each operator that is read, in several forms: quantised to int8, seeded."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tflite

from tests.support.tflite_choices import CHOICES
from tests.support.tflite_files import TfliteFile

__all__ = ["CASES", "Maker", "content_of", "float_network"]

Maker = Callable[[TfliteFile, np.random.Generator], tuple[list[int], list[int]]]
"""A function that fills a file and returns its inputs and its outputs."""

CASES: dict[str, Maker] = {}
"""By name."""


def content_of(name: str) -> bytes:
    """Return the file of a case."""
    file = TfliteFile()
    return file.content(*CASES[name](file, np.random.default_rng(sum(name.encode()))))


def _case(name: str, maker: Maker) -> None:
    CASES[name] = maker


def _scale(rng: np.random.Generator) -> float:
    return float(np.exp(rng.uniform(-5, -2)))


def _product(kind: str, shape: tuple[int, ...], kernel: tuple[int, int], outputs: int, *, result: tuple[int, int],
             per_channel: bool = True, **options: Any) -> Maker:
    """Return a convolution; ``outputs`` is the multiplier of a depthwise one."""
    def fill(file: TfliteFile, rng: np.random.Generator) -> tuple[list[int], list[int]]:
        depthwise, channels = kind == "DEPTHWISE_CONV_2D", shape[3]
        count = channels * outputs if depthwise else outputs
        form = (1, *kernel, count) if depthwise else (outputs, *kernel, channels)
        scales = rng.uniform(0.002, 0.02, count if per_channel else 1).astype(np.float32)
        x = file.tensor(shape, scale := _scale(rng), int(rng.integers(-128, 128)))
        inputs = [x, file.constant(rng.integers(-127, 128, form).astype(np.int8), scales,
                                   axis=3 if depthwise else 0)]
        if kind == "TRANSPOSE_CONV":
            inputs = [file.constant(np.array([1, *result, outputs], np.int32)), inputs[1], x]
        inputs.append(file.constant(rng.integers(-2000, 2000, count).astype(np.int32), scales * scale))
        size = np.sqrt(np.prod(kernel) * (1 if depthwise else channels))
        y = file.tensor((1, *result, count), float(scale * scales.mean() * 40 * size), int(rng.integers(-128, 128)))
        extra = {"DepthMultiplier": outputs} if depthwise else {}
        file.operator(kind, inputs, [y], **options, **extra)
        return [x], [y]
    return fill


_SAME = {"Padding": 0, "StrideW": 1, "StrideH": 1, "DilationWFactor": 1, "DilationHFactor": 1}
_VALID = {**_SAME, "Padding": 1}
_case("conv", _product("CONV_2D", (1, 9, 7, 3), (3, 3), 8, result=(9, 7), **_SAME))
_case("conv relu6", _product("CONV_2D", (1, 8, 8, 5), (3, 3), 8, result=(4, 4),
                             **{**_SAME, "StrideW": 2, "StrideH": 2}, FusedActivationFunction=3))
_case("conv relu", _product("CONV_2D", (1, 8, 8, 5), (1, 1), 8, result=(8, 8), **_VALID, FusedActivationFunction=1))
_case("conv per tensor", _product("CONV_2D", (1, 8, 8, 4), (5, 3), 6, result=(4, 6), per_channel=False, **_VALID))
_case("conv dilated", _product("CONV_2D", (1, 12, 12, 4), (3, 3), 6, result=(12, 12),
                               **{**_SAME, "DilationWFactor": 2, "DilationHFactor": 3}))
_case("depthwise", _product("DEPTHWISE_CONV_2D", (1, 9, 9, 6), (3, 3), 1, result=(5, 5),
                            **{**_SAME, "StrideW": 2, "StrideH": 2}))
_case("depthwise by 3", _product("DEPTHWISE_CONV_2D", (1, 8, 8, 4), (3, 3), 3, result=(8, 8), **_SAME))
_case("depthwise of one", _product("DEPTHWISE_CONV_2D", (1, 8, 8, 1), (3, 5), 8, result=(8, 8), **_SAME))
_UP = {"Padding": 0, "StrideW": 2, "StrideH": 2}
_case("transposed", _product("TRANSPOSE_CONV", (1, 5, 5, 4), (3, 3), 6, result=(10, 10), **_UP))
_case("transposed valid", _product("TRANSPOSE_CONV", (1, 5, 4, 4), (2, 2), 6, result=(10, 8), **{**_UP, "Padding": 1}))


def _dense(rows: int, shape: tuple[int, ...], outputs: int, per_channel: bool, **options: Any) -> Maker:
    def fill(file: TfliteFile, rng: np.random.Generator) -> tuple[list[int], list[int]]:
        size = int(np.prod(shape)) // rows
        scales = rng.uniform(0.002, 0.02, outputs if per_channel else 1).astype(np.float32)
        x = file.tensor(shape, scale := _scale(rng), int(rng.integers(-128, 128)))
        weights = file.constant(rng.integers(-127, 128, (outputs, size)).astype(np.int8), scales)
        bias = file.constant(rng.integers(-2000, 2000, outputs).astype(np.int32), scales * scale)
        y = file.tensor((*shape[:-1], outputs) if options.get("KeepNumDims") else (rows, outputs),
                        float(scale * scales.mean() * 40 * np.sqrt(size)), int(rng.integers(-128, 128)))
        file.operator("FULLY_CONNECTED", [x, weights, bias], [y], **options)
        return [x], [y]
    return fill


_case("dense", _dense(1, (1, 60), 17, False))
_case("dense per channel", _dense(1, (1, 60), 17, True, FusedActivationFunction=1))
_case("dense of an image", _dense(1, (1, 4, 3, 5), 9, False))
_case("dense of many", _dense(1, (1, 2, 5, 120), 6, True))
_case("dense of rows", _dense(6, (1, 6, 10), 8, False, KeepNumDims=True))


def _two(kind: str, first: tuple[int, ...], second: tuple[int, ...], *, constant: bool = False, alike: bool = False,
         turned: bool = False, **options: Any) -> Maker:
    """Return an operator on two tensors, ``turned`` with the second in front."""
    def fill(file: TfliteFile, rng: np.random.Generator) -> tuple[list[int], list[int]]:
        scales = [_scale(rng) for _ in range(3)]
        zeros = [int(rng.integers(-128, 128)) for _ in range(3)]
        if alike:
            scales, zeros = scales[:1] * 3, zeros[:1] * 3
        elif kind in ("MUL", "SQUARED_DIFFERENCE"):
            scales[2] = scales[0] * scales[1] * 90
        a = file.tensor(first, scales[0], zeros[0])
        b = file.constant(rng.integers(-128, 128, second).astype(np.int8), scales[1], zero=zeros[1]) if constant else \
            file.tensor(second, scales[1], zeros[1])
        y = file.tensor(np.broadcast_shapes(first, second), scales[2], zeros[2])
        file.operator(kind, [b, a] if turned else [a, b], [y], **options)
        return [a] if constant else [a, b], [y]
    return fill


def _batch_product(first: tuple[int, ...], second: tuple[int, ...], *, turned: bool = False) -> Maker:
    """Return a product of two computed matrices; of a ``turned`` one the last two axes are exchanged."""
    def fill(file: TfliteFile, rng: np.random.Generator) -> tuple[list[int], list[int]]:
        scales = [_scale(rng) for _ in range(2)]
        a, b = (file.tensor(shape, scale, int(rng.integers(-128, 128)))
                for shape, scale in zip((first, second), scales, strict=True))
        y = file.tensor((*first[:-1], second[-2 if turned else -1]), scales[0] * scales[1] * 400, 5)
        file.operator("BATCH_MATMUL", [a, b], [y], AdjX=False, AdjY=turned)
        return [a, b], [y]
    return fill


for _kind in ("ADD", "SUB", "MUL"):
    _case(f"{_kind.lower()}", _two(_kind, (1, 16, 16, 16), (1, 16, 16, 16)))
    _case(f"{_kind.lower()} relu", _two(_kind, (1, 8, 8, 4), (1, 8, 8, 4), FusedActivationFunction=1))
    _case(f"{_kind.lower()} per channel", _two(_kind, (1, 8, 8, 4), (1, 1, 1, 4)))
    _case(f"{_kind.lower()} of one", _two(_kind, (1, 8, 8, 4), (1,), constant=True))
    _case(f"{_kind.lower()} of rows", _two(_kind, (1, 40), (1, 40)))
_case("mul by channels", _two("MUL", (1, 8, 8, 4), (1, 1, 4), constant=True))
_case("add by channels", _two("ADD", (1, 8, 8, 24), (24,), constant=True, FusedActivationFunction=1))
_case("sub from channels", _two("SUB", (1, 8, 8, 24), (1, 1, 1, 24), constant=True, turned=True))
_case("sub by channels", _two("SUB", (1, 8, 8, 24), (1, 1, 24), constant=True))
_case("squared difference", _two("SQUARED_DIFFERENCE", (1, 8, 8, 4), (1, 8, 8, 4)))
_case("batch product", _batch_product((1, 6, 10), (1, 7, 10), turned=True))
_case("batch product of four axes", _batch_product((1, 2, 6, 10), (1, 2, 10, 5)))
_case("maximum", _two("MAXIMUM", (1, 8, 8, 4), (1, 8, 8, 4), alike=True))
_case("minimum", _two("MINIMUM", (1, 8, 8, 4), (1, 8, 8, 4), alike=True))


def _pool(kind: str, shape: tuple[int, ...], kernel: tuple[int, int], result: tuple[int, int], **options: Any) -> Maker:
    def fill(file: TfliteFile, rng: np.random.Generator) -> tuple[list[int], list[int]]:
        scale, zero = _scale(rng), int(rng.integers(-128, 128))
        x, y = file.tensor(shape, scale, zero), file.tensor((1, *result, shape[3]), scale, zero)
        file.operator(kind, [x], [y], FilterHeight=kernel[0], FilterWidth=kernel[1], **options)
        return [x], [y]
    return fill


_TWO = {"StrideW": 2, "StrideH": 2}
_ONE = {"StrideW": 1, "StrideH": 1}
for _kind in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
    _case(f"{_kind.lower()}", _pool(_kind, (1, 8, 8, 16), (2, 2), (4, 4), Padding=1, **_TWO))
    _case(f"{_kind.lower()} same", _pool(_kind, (1, 9, 7, 16), (3, 3), (9, 7), Padding=0, **_ONE))
    _case(f"{_kind.lower()} whole", _pool(_kind, (1, 5, 6, 32), (5, 6), (1, 1), Padding=1, **_ONE))
    _case(f"{_kind.lower()} relu", _pool(_kind, (1, 8, 8, 16), (3, 3), (6, 6), Padding=1, **_ONE,
                                         FusedActivationFunction=1))


def _one(kind: str, shape: tuple[int, ...], *, scale: float | None = None, zero: int | None = None,
         result: tuple[float, int] | None = None, **options: Any) -> Maker:
    """Return a function of one tensor; ``result`` is scale and zero point of what it gives."""
    def fill(file: TfliteFile, rng: np.random.Generator) -> tuple[list[int], list[int]]:
        own = scale or _scale(rng), int(rng.integers(-60, 60)) if zero is None else zero
        given = own if result == (0, 0) else result or (own[0] * float(rng.uniform(0.6, 1.6)),
                                                        int(rng.integers(-60, 60)))
        x, y = file.tensor(shape, *own), file.tensor(shape, *given)
        file.operator(kind, [x], [y], **options)
        return [x], [y]
    return fill


_ALL = (1, 16, 16, 4)
_case("logistic", _one("LOGISTIC", _ALL, scale=0.05, result=(1 / 256, -128)))
_case("tanh", _one("TANH", _ALL, scale=0.03, result=(1 / 128, 0)))
_case("hard swish", _one("HARD_SWISH", _ALL, scale=0.05))
_case("gelu", _one("GELU", _ALL, scale=0.03, Approximate=False))
_case("gelu by tanh", _one("GELU", _ALL, scale=0.03, Approximate=True))
_case("leaky relu", _one("LEAKY_RELU", _ALL, Alpha=0.1))
_case("relu", _one("RELU", _ALL, result=(0, 0)))
_case("relu rescaled", _one("RELU", _ALL))
_case("relu6", _one("RELU6", _ALL, scale=0.06, result=(0, 0)))
_case("relu6 rescaled", _one("RELU6", _ALL, scale=0.06))
_case("relu of 1", _one("RELU_N1_TO_1", _ALL, scale=0.02, result=(0, 0)))
_case("requantised", _one("QUANTIZE", _ALL))
_case("exp", _one("EXP", _ALL, scale=0.03, result=(0.2, -128)))
_case("elu", _one("ELU", _ALL, scale=0.03, result=(0.02, -60)))
_case("rsqrt", _one("RSQRT", _ALL, scale=0.05, zero=-128, result=(0.02, -128)))
_case("softmax", _one("SOFTMAX", (1, 12), scale=0.1, result=(1 / 256, -128), Beta=1.0))
_case("softmax of rows", _one("SOFTMAX", (1, 30, 20), scale=0.05, result=(1 / 256, -128), Beta=1.0))


def _prelu(slopes: tuple[int, ...]) -> Maker:
    def fill(file: TfliteFile, _: np.random.Generator) -> tuple[list[int], list[int]]:
        rng = np.random.default_rng(3)
        x = file.tensor((1, 8, 8, slopes[-1] if slopes[-1] > 1 else 6), 0.05, 5)
        alpha = file.constant(rng.integers(-127, 128, slopes).astype(np.int8), 0.004)
        y = file.tensor(file.shapes[x], 0.045, -7)
        file.operator("PRELU", [x, alpha], [y])
        return [x], [y]
    return fill


_case("prelu", _prelu((1, 1, 6)))
_case("prelu of one slope", _prelu((1, 1, 1)))


def _moved(kind: str, shape: tuple[int, ...], result: tuple[int, ...], *constants: np.ndarray, first: bool = False,
           times: int = 1, **options: Any) -> Maker:
    """Return a move of a tensor, with constants behind it, or before it; it has ``times`` results."""
    def fill(file: TfliteFile, rng: np.random.Generator) -> tuple[list[int], list[int]]:
        numbers = _scale(rng), int(rng.integers(-128, 128))
        given, x = file.tensor(shape, *numbers), file.tensor(shape, *numbers)
        file.operator("ADD", [given, given], [x])
        others = [file.constant(each, *(numbers[:1] if each.dtype == np.int8 else ()),
                                zero=numbers[1] if each.dtype == np.int8 else 0) for each in constants]
        outputs = [file.tensor(result, *numbers) for _ in range(times)]
        file.operator(kind, [*others, x] if first else [x, *others], outputs, **options)
        return [given], outputs
    return fill


def _ints(*values: Any) -> np.ndarray:
    return np.array(values, np.int32)


_case("reshape", _moved("RESHAPE", (1, 4, 6, 5), (1, 120), _ints(1, 120)))
_case("reshape to an image", _moved("RESHAPE", (1, 120), (1, 4, 6, 5), _ints(1, 4, 6, 5)))
_case("reshape of an image", _moved("RESHAPE", (1, 4, 6, 5), (1, 8, 5, 3), _ints(1, 8, 5, 3)))
_case("squeeze", _moved("SQUEEZE", (1, 1, 6, 5), (1, 6, 5), SqueezeDims=(1,)))
_case("expand dims", _moved("EXPAND_DIMS", (1, 6, 5), (1, 1, 6, 5), np.array(1, np.int32)))
_case("transpose", _moved("TRANSPOSE", (1, 4, 6, 5), (1, 5, 4, 6), _ints(0, 3, 1, 2)))
_case("transpose of rows", _moved("TRANSPOSE", (1, 6, 5), (1, 5, 6), _ints(0, 2, 1)))
_case("pad", _moved("PAD", (1, 4, 6, 5), (1, 7, 9, 5), _ints([0, 0], [1, 2], [3, 0], [0, 0])))
_case("pad channels", _moved("PAD", (1, 4, 6, 5), (1, 4, 6, 8), _ints([0, 0], [0, 0], [0, 0], [1, 2])))
_case("pad by a level", _moved("PADV2", (1, 4, 6, 5), (1, 7, 9, 5), _ints([0, 0], [1, 2], [3, 0], [0, 0]),
                               np.array(-17, np.int8)))
_case("mirror pad", _moved("MIRROR_PAD", (1, 4, 6, 5), (1, 7, 11, 5), _ints([0, 0], [1, 2], [3, 2], [0, 0]), Mode=0))
_case("mirror pad symmetric", _moved("MIRROR_PAD", (1, 4, 6, 5), (1, 7, 11, 5), _ints([0, 0], [1, 2], [3, 2], [0, 0]),
                                     Mode=1))
_case("nearest by 2", _moved("RESIZE_NEAREST_NEIGHBOR", (1, 4, 6, 5), (1, 8, 12, 5), _ints(8, 12)))
_case("nearest centred", _moved("RESIZE_NEAREST_NEIGHBOR", (1, 4, 6, 5), (1, 8, 12, 5), _ints(8, 12),
                                HalfPixelCenters=True))
_case("nearest aligned", _moved("RESIZE_NEAREST_NEIGHBOR", (1, 4, 6, 5), (1, 7, 9, 5), _ints(7, 9), AlignCorners=True))
_case("bilinear by 2", _moved("RESIZE_BILINEAR", (1, 4, 6, 5), (1, 8, 12, 5), _ints(8, 12), HalfPixelCenters=True))
_case("bilinear by 4", _moved("RESIZE_BILINEAR", (1, 4, 6, 5), (1, 16, 24, 5), _ints(16, 24), HalfPixelCenters=True))
_case("bilinear plain", _moved("RESIZE_BILINEAR", (1, 4, 6, 5), (1, 8, 12, 5), _ints(8, 12)))
_case("bilinear aligned", _moved("RESIZE_BILINEAR", (1, 4, 6, 5), (1, 7, 11, 5), _ints(7, 11), AlignCorners=True))
_case("bilinear by 3", _moved("RESIZE_BILINEAR", (1, 4, 6, 5), (1, 12, 15, 5), _ints(12, 15), HalfPixelCenters=True))
_case("strided slice", _moved("STRIDED_SLICE", (1, 8, 9, 5), (1, 3, 4, 5), _ints(0, 1, 1, 0), _ints(1, 7, 9, 5),
                              _ints(1, 2, 2, 1)))
_case("strided slice shrunk", _moved("STRIDED_SLICE", (1, 8, 9, 5), (1, 9, 5), _ints(0, 3, 0, 0), _ints(1, 4, 9, 5),
                                     _ints(1, 1, 1, 1), ShrinkAxisMask=2, BeginMask=12, EndMask=12))
_case("slice", _moved("SLICE", (1, 8, 9, 5), (1, 3, 9, 2), _ints(0, 2, 0, 1), _ints(1, 3, -1, 2)))
_case("split", _moved("SPLIT", (1, 4, 6, 8), (1, 4, 6, 4), np.array(3, np.int32), first=True, times=2, NumSplits=2))
_case("split by sizes", _moved("SPLIT_V", (1, 6, 6, 8), (1, 3, 6, 8), _ints(3, 3), np.array(1, np.int32), times=2,
                               NumSplits=2))
_case("unpack", _moved("UNPACK", (1, 3, 6, 5), (1, 6, 5), times=3, Num=3, Axis=1))
_case("gather", _moved("GATHER", (1, 4, 6, 5), (1, 4, 3, 5), _ints(5, 0, 2), Axis=2))
_case("depth to space", _moved("DEPTH_TO_SPACE", (1, 4, 6, 12), (1, 8, 12, 3), BlockSize=2))
_case("space to depth", _moved("SPACE_TO_DEPTH", (1, 4, 6, 3), (1, 2, 3, 12), BlockSize=2))


def _joined(kind: str, shapes: tuple[tuple[int, ...], ...], result: tuple[int, ...], **options: Any) -> Maker:
    def fill(file: TfliteFile, rng: np.random.Generator) -> tuple[list[int], list[int]]:
        numbers = _scale(rng), int(rng.integers(-128, 128))
        given = [file.tensor(shape, *numbers) for shape in shapes]
        inputs = [file.tensor(shape, *numbers) for shape in shapes]
        for x, total in zip(given, inputs, strict=True):
            file.operator("ADD", [x, x], [total])
        y = file.tensor(result, *numbers)
        file.operator(kind, inputs, [y], **options)
        return given, [y]
    return fill


_case("concatenation", _joined("CONCATENATION", ((1, 4, 6, 5), (1, 4, 6, 3)), (1, 4, 6, 8), Axis=3))
_case("concatenation of rows", _joined("CONCATENATION", ((1, 4, 5), (1, 2, 5)), (1, 6, 5), Axis=1))
_case("pack", _joined("PACK", ((1, 6, 5), (1, 6, 5)), (1, 2, 6, 5), Axis=1, ValuesCount=2))


def _reduced(kind: str, shape: tuple[int, ...], result: tuple[int, ...], axes: tuple[int, ...], *, own: bool = False,
             keep: bool = False) -> Maker:
    def fill(file: TfliteFile, rng: np.random.Generator) -> tuple[list[int], list[int]]:
        scale = _scale(rng)
        zero = int(rng.integers(-128, 128))
        x = file.tensor(shape, scale, zero)
        y = file.tensor(result, *((scale, zero) if own else (scale * float(rng.uniform(0.2, 0.5)),
                                                             int(rng.integers(-50, 50)))))
        file.operator(kind, [x, file.constant(_ints(*axes))], [y], KeepDims=keep)
        return [x], [y]
    return fill


_case("mean", _reduced("MEAN", (1, 7, 7, 32), (1, 32), (1, 2)))
_case("mean of one scale", _reduced("MEAN", (1, 2, 2, 64), (1, 64), (1, 2), own=True))
_case("mean kept", _reduced("MEAN", (1, 7, 5, 32), (1, 1, 1, 32), (1, 2), keep=True))
_case("mean of rows", _reduced("MEAN", (1, 6, 5, 8), (1, 5, 8), (1,)))
_case("mean of all", _reduced("MEAN", (1, 6, 10), (1, 10), (1,)))
_case("mean of channels", _reduced("MEAN", (1, 7, 5, 8), (1, 7, 5), (3,)))
_case("largest", _reduced("REDUCE_MAX", (1, 7, 5, 8), (1, 8), (1, 2), own=True))


_case("smallest", _reduced("REDUCE_MIN", (1, 7, 5, 8), (1, 8), (1, 2), own=True))
_case("reverse", _moved("REVERSE_V2", (1, 4, 6, 5), (1, 4, 6, 5), _ints(2)))
_case("tile", _moved("TILE", (1, 4, 3, 5), (1, 8, 3, 10), _ints(1, 2, 1, 2)))
_case("unit length", _one("L2_NORMALIZATION", (1, 24), result=(1 / 128, 0)))


def _place(file: TfliteFile, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """Return the places of the largest of channels, as a segmentation ends."""
    x = file.tensor((1, 6, 5, 21), 0.1, int(rng.integers(-100, 100)))
    y = file.tensor((1, 6, 5), dtype="int32")
    file.operator("ARG_MAX", [x, file.constant(_ints(3))], [y], OutputType=int(tflite.TensorType.INT32))
    return [x], [y]


_case("place of the largest", _place)


def _residual(file: TfliteFile, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """Return a block as residual networks have it, with a mean and a dense layer behind."""
    x = file.tensor((1, 12, 12, 8), 0.04, 3)
    y = x
    for _ in range(2):
        weights = file.constant(rng.integers(-127, 128, (8, 3, 3, 8)).astype(np.int8),
                                scales := rng.uniform(0.002, 0.01, 8).astype(np.float32))
        bias = file.constant(rng.integers(-900, 900, 8).astype(np.int32), scales * np.float32(0.04))
        made = file.tensor((1, 12, 12, 8), 0.04, -5)
        file.operator("CONV_2D", [y, weights, bias], [made], **_SAME)
        total = file.tensor((1, 12, 12, 8), 0.0613, -128)
        file.operator("ADD", [made, y], [total], FusedActivationFunction=1)
        y = file.tensor((1, 12, 12, 8), 0.04, -5)
        file.operator("QUANTIZE", [total], [y])
    mean = file.tensor((1, 8), 0.0213, -20)
    file.operator("MEAN", [y, file.constant(_ints(1, 2))], [mean], KeepDims=False)
    weights = file.constant(rng.integers(-127, 128, (5, 8)).astype(np.int8), 0.01)
    answer = file.tensor((1, 5), 0.05, 1)
    file.operator("FULLY_CONNECTED", [mean, weights, -1], [answer])
    return [x], [answer]


_case("residual block", _residual)


def _of_bytes(file: TfliteFile, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """Return a convolution of uint8 by uint8, as TensorFlow Lite's first quantised models have it."""
    x = file.tensor((1, 8, 8, 4), 0.04, 119, dtype="uint8")
    weights = file.constant(rng.integers(0, 256, (6, 3, 3, 4)).astype(np.uint8), 0.01, zero=131)
    bias = file.constant(rng.integers(-900, 900, 6).astype(np.int32), np.float32(0.04) * np.float32(0.01))
    y = file.tensor((1, 8, 8, 6), 0.09, 101, dtype="uint8")
    file.operator("CONV_2D", [x, weights, bias], [y], **_SAME)
    answer = file.tensor((1, 8, 8, 6), 0.09, 101 - 128)
    file.operator("QUANTIZE", [y], [answer])
    return [x], [answer]


def _with_float_border(file: TfliteFile, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """Return a dense layer of int8 whose model takes and gives floats."""
    given, x = file.tensor((1, 20), dtype="float32"), file.tensor((1, 20), 0.03, -4)
    file.operator("QUANTIZE", [given], [x])
    weights = file.constant(rng.integers(-127, 128, (7, 20)).astype(np.int8), 0.01)
    y, answer = file.tensor((1, 7), 0.07, 11), file.tensor((1, 7), dtype="float32")
    file.operator("FULLY_CONNECTED", [x, weights, -1], [y])
    file.operator("DEQUANTIZE", [y], [answer])
    return [given], [answer]


def _joined_floats(file: TfliteFile, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """Return levels of two scales and a function in float, joined as floats and quantised."""
    a, b = file.tensor((1, 6, 5, 4), 0.03, 5), file.tensor((1, 6, 5, 3), 0.05, -9)
    floats = [file.tensor((1, 6, 5, size), dtype="float32") for size in (4, 3)]
    bent, joined = file.tensor((1, 6, 5, 4), dtype="float32"), file.tensor((1, 6, 5, 11), dtype="float32")
    y = file.tensor((1, 6, 5, 11), 0.041, 3)
    for levels, real in zip((a, b), floats, strict=True):
        file.operator("DEQUANTIZE", [levels], [real])
    file.operator("TANH", [floats[0]], [bent])
    file.operator("CONCATENATION", [*floats, bent], [joined], Axis=3)
    file.operator("QUANTIZE", [joined], [y])
    return [a, b], [y]


CASES |= CHOICES
_case("floats joined and quantised", _joined_floats)
_case("uint8", _of_bytes)
_case("float border", _with_float_border)


def float_network() -> bytes:
    """Return a small network of floats, half of its weights in float16: two convolutions, a mean, a dense layer."""
    file, rng = TfliteFile(), np.random.default_rng(5)

    def constant(*shape: int) -> int:
        return file.constant(rng.normal(0, 0.3, shape).astype(np.float32))

    x = y = file.tensor((1, 12, 12, 3), dtype="float32", name="image")
    half = file.constant(rng.normal(0, 0.3, (8, 3, 3, 3)).astype(np.float16))
    weights = file.tensor((8, 3, 3, 3), dtype="float32")
    file.operator("DEQUANTIZE", [half], [weights])
    y = file.tensor((1, 12, 12, 8), dtype="float32")
    file.operator("CONV_2D", [x, weights, constant(8)], [y], **_SAME, FusedActivationFunction=3)
    z = file.tensor((1, 6, 6, 8), dtype="float32")
    file.operator("DEPTHWISE_CONV_2D", [y, constant(1, 3, 3, 8), constant(8)], [z],
                  **{**_SAME, "StrideW": 2, "StrideH": 2}, DepthMultiplier=1, FusedActivationFunction=1)
    mean, answer = file.tensor((1, 8), dtype="float32"), file.tensor((1, 5), dtype="float32", name="scores")
    file.operator("MEAN", [z, file.constant(_ints(1, 2))], [mean], KeepDims=False)
    file.operator("FULLY_CONNECTED", [mean, constant(5, 8), constant(5)], [answer])
    return file.content([x], [answer])
