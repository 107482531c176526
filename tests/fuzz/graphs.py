"""Random CNN graphs in ONNX: integers in either form, or floats.

A graph is a function of its choices (`tests.fuzz.choices`), so a graph that fails can be made smaller by leaving
choices out. It grows operator by operator from one or two inputs; whatever nothing reads becomes an output.
"""

import math
from collections.abc import Callable

import numpy as np

from tests.fuzz.branches import fire
from tests.fuzz.channel_factors import excited
from tests.fuzz.choices import Choices
from tests.fuzz.dead_nodes import without_dead_nodes
from tests.fuzz.float_builder import FloatBuilder
from tests.fuzz.fuzz_graph import FuzzGraph
from tests.fuzz.levels import random_levels, random_tail
from tests.fuzz.matrix_products import attended
from tests.fuzz.mixed_builder import MixedBuilder
from tests.fuzz.movements import MovementChain
from tests.fuzz.normalisations import apart, random_normalisation
from tests.fuzz.prepared_inputs import prepared_input
from tests.fuzz.reductions import random_reduction
from tests.fuzz.resizes import random_resize
from tests.support.onnx_models import ModelBuilder, Value

MAX_ELEMENTS = 4096
"""Of one tensor: simulation is the cost."""

FOCUSES = ("apart", "bytes", "wide", "mixed", "branches", "matrices")
"""A normalisation taken apart, an image of bytes, a kernel beyond 63 columns, layers in float between others,
tensors with several readers whose results are concatenated, and products of two computed matrices."""

_MAX_CHANNELS, _MAX_OUTPUTS = 24, 4
_TYPES: tuple[tuple[type, int | None], ...] = ((np.int8, 0), (np.int8, None), (np.uint8, None), (np.uint8, 128))

# op, attributes, the result's scale for an input in about -2..2, its zero point in a type of 8 bits from 0
_UNARY: tuple[tuple[str, dict[str, float], float], ...] = (
    ("Relu", {}, 1 / 90), ("LeakyRelu", {"alpha": 0.1}, 1 / 80), ("Sigmoid", {}, 1 / 256),
    ("Tanh", {}, 1 / 128), ("HardSigmoid", {"alpha": 1 / 6, "beta": 0.5}, 1 / 256), ("HardSwish", {}, 1 / 80),
    ("Elu", {"alpha": 1.0}, 1 / 80), ("Softplus", {}, 1 / 90), ("Neg", {}, 1 / 64), ("Abs", {}, 1 / 64),
    ("Exp", {}, 1 / 40), ("Erf", {}, 1 / 128), ("Selu", {}, 1 / 60), ("Softsign", {}, 1 / 150), ("Sqrt", {}, 1 / 100),
    ("Floor", {}, 1 / 60), ("Celu", {"alpha": 0.7}, 1 / 80), ("ThresholdedRelu", {"alpha": 0.5}, 1 / 80))


def random_graph(choices: Choices, form: str, *, transposed: bool = True) -> FuzzGraph:
    """Return a graph in ``form``: ``qdq``, ``qoperator`` or ``float``; with ConvTranspose, or without."""
    return _Growth(choices, form, transposed).grow()


def focused_graph(choices: Choices, focus: str, form: str, *, transposed: bool = True) -> FuzzGraph:
    """Return a graph in ``form``, ``qdq`` or ``float``, that has what ``focus`` says: one of :data:`FOCUSES`."""
    return _Growth(choices, form, transposed, focus).grow()


class _Growth:
    """One graph while it grows: values that exist, and those that nothing has read."""

    def __init__(self, choices: Choices, form: str, transposed: bool, focus: str = "") -> None:
        self.choices, self.form, self.transposed, self.focus = choices, form, transposed, focus
        self.dtype, zero_point = choices.pick(_TYPES)
        options = {"seed": choices.below(1 << 16), "dtype": self.dtype, "zero_point": zero_point}
        if focus == "mixed":
            self.model: ModelBuilder = MixedBuilder(choices, **options)
        else:
            self.model = FloatBuilder("qdq", **options) if form == "float" else ModelBuilder(form, **options)
        if choices.chance(15):
            self.model.pruned = 0.5
        self.values: list[Value] = []
        self.unread: dict[str, Value] = {}
        self.ends: list[tuple[str, int]] = []     # outputs that are no quantised tensor: name, and type

    def grow(self) -> FuzzGraph:
        """Build the whole graph."""
        if self.focus in ("bytes", "wide"):
            self._start_focused()
        else:
            self._start()
        if self.focus == "apart":
            self._new(apart(self.choices, self.model, self._operand()))
        grown = {"branches": fire, "matrices": attended}.get(self.focus)
        for _ in range(self.choices.between(1, 3) if grown else 0):
            self._new(grown(self.choices, self.model, self._operand()))
        for _ in range(self.choices.between(1, 4 if self.focus else 10)):
            x = self._operand()
            step = self.choices.pick(_STEPS if len(x.shape) == 4 else _VECTOR_STEPS)
            for value in step(self, x) or ():
                self._new(value)
        if self.choices.chance(30):
            self._classify()
        if self.choices.chance(30):
            self._tail()
        if self.choices.chance(40):
            self._move_about()
        return self._finish()

    def _move_about(self) -> None:
        """Move elements through other ranks; at times a convolution reads the result."""
        x = self._operand()
        y = MovementChain(self.choices, self.model, x, MAX_ELEMENTS).grow() if self.form != "float" else None
        if y is not None:
            self._new(self.model.conv(y, 3, kernel=1) if self.choices.chance(50) else y)

    def _start(self) -> None:
        choices = self.choices
        for _ in range(1 + choices.chance(15)):
            shape = (1, choices.pick((1, 3, 4, 2, 8, 5, 16, 7)), choices.between(1, 17), choices.between(1, 17))
            if choices.chance(20):
                self._new(prepared_input(choices, self.model, shape))
            else:
                self._new(self.model.input(shape, integer=self.form != "float" and choices.chance(10)))
        # An input that goes into nothing but an output is no CNN.
        for value in list(self.values):
            self._read(value)
            self._new(self.conv(value))

    def _start_focused(self) -> None:
        """Begin with an image of bytes, or with a kernel beyond 63 columns whose stride and width have a factor."""
        choices = self.choices
        if self.focus == "bytes":
            shape = (1, choices.pick((3, 1, 4)), choices.between(2, 12), choices.between(2, 12))
            x = prepared_input(choices, self.model, shape, image=True)
            self._new(self.conv(x))
            return
        stride = choices.pick((2, 4, 8, 3, 6))
        kernel, outputs = choices.between(64, 63 * 2 if stride % 2 == 0 else 63 * 3), choices.between(1, 9)
        width = -(-kernel // stride) * stride + stride * outputs
        x = self.model.input((1, choices.pick((1, 2)), choices.between(1, 2), width))
        pad = choices.pick((0, kernel // 2, kernel - 1, stride))
        self._new(self.model.conv(x, choices.pick((4, 8, 3)), kernel=(1, kernel), strides=(1, stride),
                                  pads=(0, pad, 0, choices.pick((pad, 0)))))

    def _new(self, value: Value) -> None:
        self.values.append(value)
        self.unread[value.name] = value

    def _read(self, *values: Value) -> None:
        for value in values:
            self.unread.pop(value.name, None)

    def _operand(self) -> Value:
        """Return a value to go on with: mostly one that nothing has read yet."""
        fresh = list(self.unread.values())[::-1]
        value = self.choices.pick(self.values[::-1] if self.choices.chance(25) or not fresh else fresh)
        self._read(value)
        return value

    def _like(self, x: Value) -> Value:
        """Return a value of the shape of ``x``, another one if there is one."""
        others = [value for value in self.values[::-1] if value.shape == x.shape and value.name != x.name]
        if others and not self.choices.chance(30):
            value = self.choices.pick(others)
        elif len(x.shape) == 4:
            value = self.model.conv(x, x.shape[1], kernel=1)
            self.values.append(value)
        else:
            value = self.model.gemm(x, x.shape[1])
            self.values.append(value)
        self._read(value)
        return value

    # ---- operators with windows

    def _window(self, x: Value, largest: int, dilated: bool) -> dict[str, object]:
        """Return a window that fits, as attributes of Conv; ``kernel`` included."""
        choices = self.choices
        kernel = [choices.pick((3, 1, 2, largest, 4)), 0]
        kernel[1] = choices.between(1, largest) if choices.chance(25) else kernel[0]
        strides = [choices.pick((1, 2, 1, 3))] * 2
        if choices.chance(10):
            strides[1] = choices.between(1, 3)
        dilations = [choices.between(1, 3)] * 2 if dilated and choices.chance(15) else [1, 1]
        pads = [0] * 4
        for axis in range(2):
            extent = dilations[axis] * (kernel[axis] - 1) + 1
            most = kernel[axis] - 1
            pads[axis] = pads[axis + 2] = min(kernel[axis] // 2, most) if choices.chance(60) else 0
            if choices.chance(12):
                pads[axis], pads[axis + 2] = choices.between(0, most), choices.between(0, most)
            if x.shape[2 + axis] + pads[axis] + pads[axis + 2] < extent:
                kernel[axis], dilations[axis], pads[axis], pads[axis + 2] = 1, 1, 0, 0
        return {"kernel": tuple(kernel), "strides": strides, "dilations": dilations, "pads": pads}

    def conv(self, x: Value) -> Value:
        """Add a convolution of any kind."""
        choices, channels = self.choices, x.shape[1]
        window = self._window(x, 5, dilated=True)
        kind = choices.pick(("plain", "plain", "depthwise", "grouped"))
        groups, outputs = 1, choices.pick((4, 8, 3, 1, 16, 5, 20))
        if kind == "depthwise" and channels > 1:
            groups, outputs = channels, channels * (2 if channels <= 8 and choices.chance(20) else 1)
        elif kind == "grouped":
            groups = choices.pick([n for n in range(1, channels + 1) if channels % n == 0])
            outputs = groups * choices.between(1, max(1, min(4, _MAX_CHANNELS // groups)))
        biases = ("int32", "none", "float32") if self.form == "qdq" else ("int32", "none")
        clip = "Relu" if self.form != "qoperator" and choices.chance(25) else ""
        attrs = {key: value for key, value in window.items() if key == "kernel" or any(
            each != (0 if key == "pads" else 1) for each in value)}
        return self.model.conv(x, outputs, groups=groups, bias=choices.pick(biases), clip=clip,
                               per_channel=not choices.chance(30), **attrs)

    def pool(self, x: Value) -> Value:
        """Add pooling of any kind."""
        choices = self.choices
        kind = choices.pick(("max", "average", "global", "global max"))
        if kind == "global":
            return self.model.average(x)
        if kind == "global max" and self.form != "qoperator":
            return self._moved_float("GlobalMaxPool", x, (1, x.shape[1], 1, 1))
        window = self._window(x, 4, dilated=False)
        kernel = window.pop("kernel")
        window.pop("dilations")
        assert isinstance(kernel, tuple)
        size = min(kernel)
        pads = [min(each, size - 1) for each in window["pads"]]
        attrs: dict[str, object] = {"strides": window["strides"], "pads": pads}
        if choices.chance(20):
            attrs["ceil_mode"] = 1
        if any(n + pads[i] + pads[i + 2] < size for i, n in enumerate(x.shape[2:])):
            size, attrs = 1, {}
        if kind == "max":
            return self.model.max_pool(x, size, **attrs)
        if choices.chance(30):
            attrs["count_include_pad"] = 1
        return self.model.average(x, size, **attrs)

    def transposed_conv(self, x: Value) -> Value | None:
        """Add a ConvTranspose; only QDQ and float have one."""
        if self.form == "qoperator" or not self.transposed:
            return None
        choices, model = self.choices, self.model
        stride, outputs = choices.pick((2, 1, 3)), choices.pick((4, 3, 1))
        kernel = choices.pick((2, 3, 4))
        pad = choices.below(kernel)
        extra = choices.below(stride) if choices.chance(20) else 0
        size = tuple((n - 1) * stride + kernel - 2 * pad + extra for n in x.shape[2:])
        if min(size) < 1 or math.prod(size) * outputs > MAX_ELEMENTS:
            return None
        weights = model.rng.integers(-127, 128, (x.shape[1], outputs, kernel, kernel)).astype(np.int8)
        out = model.value((1, outputs, *size), np.float32(x.scale * np.sqrt(x.shape[1] * kernel)))
        if self.form == "float":
            w = model.constant((weights / (74 * np.sqrt(x.shape[1]))).astype(np.float32))
        else:
            parameters = [model.constant(weights), model.constant(np.float32(0.006)), model.constant(np.int8(0))]
            w = model.node("DequantizeLinear", parameters, f"weights{len(model.nodes)}")
        attrs = {"output_padding": [extra] * 2} if extra else {}
        result = model.node("ConvTranspose", [model.dequantised(x), w], f"float{len(model.nodes)}",
                            strides=[stride] * 2, pads=[pad] * 4, kernel_shape=[kernel] * 2, **attrs)
        model.quantised(result, out)
        return out

    # ---- two operands

    def add(self, x: Value) -> Value:
        """Add a residual addition."""
        other = self._like(x)
        return self.model.add(*((x, other) if self.choices.chance(50) else (other, x)))

    def combine(self, x: Value) -> Value | None:
        """Multiply, subtract, divide or compare two tensors, or one with a constant."""
        choices, model = self.choices, self.model
        op = choices.pick(("Mul", "Sub", "Max", "Min", "Add", "Mul"))
        out = model.value(x.shape, np.float32(x.scale * (2 if op != "Mul" else 1)))
        if self.form == "qoperator":
            other = self._like(x)
            names = [name for value in (x, other) for name in (value.name, *model.parameters(value))]
            model.node("QLinearMul", [*names, *model.parameters(out)], out.name, "com.microsoft")
            return out
        if choices.chance(50):
            second = model.dequantised(self._like(x))
        else:
            shape = choices.pick(((), (1, x.shape[1], 1, 1) if len(x.shape) == 4 else (x.shape[1],)))
            second = model.constant(model.rng.uniform(-1.5, 1.5, shape).astype(np.float32))
        operands = [model.dequantised(x), second]
        if op in ("Max", "Min") and choices.chance(30):
            operands.append(model.dequantised(self._like(x)))
        model.quantised(model.node(op, operands, f"float{len(model.nodes)}"), out)
        return out

    def gate(self, x: Value) -> Value | None:
        """Multiply by a function of the same tensor (SiLU), or scale channels by their averages."""
        model = self.model
        if len(x.shape) == 4 and self.choices.chance(40):
            return excited(model, self.choices, x)
        if self.form == "qoperator":
            return None
        weights = self.unary_of("Sigmoid", {}, 1 / 256, x)
        out = model.value(x.shape, np.float32(x.scale * 0.7))
        model.quantised(model.node("Mul", [model.dequantised(x), model.dequantised(weights)],
                                   f"float{len(model.nodes)}"), out)
        return out

    def concat(self, x: Value) -> Value | None:
        """Concatenate two or three tensors along one axis."""
        choices = self.choices
        axis = choices.pick((1, 1, 2, 3)) if len(x.shape) == 4 else 1
        fits = [value for value in self.values[::-1] if len(value.shape) == len(x.shape) and all(
            a == b for i, (a, b) in enumerate(zip(value.shape, x.shape, strict=True)) if i != axis)]
        parts = [x, *(choices.pick(fits) for _ in range(choices.between(1, 2)))]
        if sum(math.prod(part.shape) for part in parts) > MAX_ELEMENTS or sum(p.shape[1] for p in parts) > 64:
            return None
        self._read(*parts)
        scale = x.scale if choices.chance(50) else np.float32(x.scale * 1.3)
        return self.model.concat(parts, scale, axis)

    # ---- elementwise

    def unary(self, x: Value) -> Value | None:
        """Add an operator of one tensor, which may change scale and zero point."""
        op, attrs, scale = self.choices.pick(_UNARY)
        return self.unary_of(op, attrs, scale, x)

    def unary_of(self, op: str, attrs: dict[str, float], scale: float, x: Value) -> Value | None:
        """Add this one."""
        model = self.model
        out = model.value(x.shape, np.float32(scale))
        if self.form == "qoperator":
            if op == "Relu" and self.dtype is np.int8:
                return model.relu(x)
            if op not in ("Sigmoid", "LeakyRelu"):
                return None
            model.node(f"QLinear{op}", [x.name, *model.parameters(x), *model.parameters(out)], out.name,
                       "com.microsoft", **attrs)
            return out
        source = model.dequantised(x)
        if op in ("Exp", "Softplus"):       # bounded, or one large value is the whole range
            bounds = [model.constant(np.float32(-3)), model.constant(np.float32(2))]
            source = model.node("Clip", [source, *bounds], f"float{len(model.nodes)}")
        if op == "Sqrt":
            source = model.node("Abs", [source], f"float{len(model.nodes)}")
        model.quantised(model.node(op, [source], f"float{len(model.nodes)}", **attrs), out)
        return out

    def clip(self, x: Value) -> Value | None:
        """Add a clip; on int8 in the QOperator form a ReLU."""
        low, high = self.choices.pick(((0.0, 6.0), (0.0, 0.5), (-0.3, 0.4), (-1.0, 1.0)))
        if self.form == "qoperator":
            return self.model.relu(x) if self.dtype is np.int8 else None
        return self.model.clip(x, low, high)

    # ---- movement

    def _moved_float(self, op: str, x: Value, shape: tuple[int, ...], extra: tuple[str, ...] = (),
                     **attrs: object) -> Value:
        return self.model.moved(op, x, shape, extra, **attrs)

    def pad(self, x: Value) -> Value:
        """Pad with a constant, or otherwise."""
        choices, model = self.choices, self.model
        mode = choices.pick(("constant", "constant", "edge", "reflect"))
        pads = [choices.below(3) for _ in range(4)]
        if mode == "reflect":
            pads = [min(each, x.shape[2 + i % 2] - 1) for i, each in enumerate(pads)]
        shape = (*x.shape[:2], x.shape[2] + pads[0] + pads[2], x.shape[3] + pads[1] + pads[3])
        names = [model.constant(np.array([0, 0, *pads[:2], 0, 0, *pads[2:]]))]
        if mode == "constant":
            integer = self.form == "qoperator"
            value = 0.25 if choices.chance(50) else 0.0
            names.append(model.constant(self.dtype(x.zero_point if not value else 9) if integer else np.float32(value)))
        return self._moved_float("Pad", x, shape, tuple(names), mode=mode)

    def resize(self, x: Value) -> Value | None:
        """Resize height and width."""
        found = random_resize(self.choices, self.model, self.form, x.shape, MAX_ELEMENTS)
        return None if found is None else self._moved_float("Resize", x, *found[:2], **found[2])

    def levels(self, x: Value) -> Value | None:
        """Add what the host core computes with levels."""
        return None if self.form != "qdq" else random_levels(self.choices, self.model, x)

    def split(self, x: Value) -> list[Value] | None:
        """Cut the channels in two."""
        channels = x.shape[1]
        if channels < 2:
            return None
        cut = self.choices.between(1, channels - 1)
        model, sizes = self.model, (cut, channels - cut)
        parts = [model.value((1, n, *x.shape[2:]), x.scale, x.zero_point) for n in sizes]
        if self.form == "qoperator":
            model.split(x.name, [part.name for part in parts], sizes)
            return parts
        names = [f"part{len(model.nodes)}_{i}" for i in range(2)]
        model.split(model.dequantised(x), names, sizes)
        for name, part in zip(names, parts, strict=True):
            model.quantised(name, part)
        return parts

    def slice(self, x: Value) -> Value:
        """Cut a part out, along one axis, with a step perhaps."""
        choices, model = self.choices, self.model
        axis = choices.pick((1, 2, 3)) if len(x.shape) == 4 else 1
        extent = x.shape[axis]
        start = choices.below(extent)
        end, step = choices.between(start + 1, extent), choices.pick((1, 1, 2))
        shape = list(x.shape)
        shape[axis] = len(range(start, end, step))
        bounds = tuple(model.constant(np.array([each])) for each in (start, end, axis, step))
        return self._moved_float("Slice", x, tuple(shape), bounds)

    def shuffle(self, x: Value) -> Value:
        """Move elements: between channels and space, or transposed there and back."""
        _, channels, height, width = x.shape
        kind = self.choices.pick(("channels", "transpose", "to depth", "to space"))
        if kind == "to depth" and height % 2 == 0 and width % 2 == 0 and self.form != "qoperator":
            return self._moved_float("SpaceToDepth", x, (1, 4 * channels, height // 2, width // 2), blocksize=2)
        if kind == "to space" and channels % 4 == 0 and self.form != "qoperator":
            shape = (1, channels // 4, 2 * height, 2 * width)
            return self._moved_float("DepthToSpace", x, shape, blocksize=2, mode=self.choices.pick(("DCR", "CRD")))
        if kind == "channels" and channels % 2 == 0:
            y = self.model.reshape(x, (1, 2, channels // 2, height, width))
            y = self._moved_float("Transpose", y, (1, channels // 2, 2, height, width), perm=(0, 2, 1, 3, 4))
            return self.model.reshape(y, x.shape)
        perm = self.choices.pick(((0, 1, 3, 2), (0, 2, 3, 1), (0, 3, 1, 2)))
        return self._moved_float("Transpose", x, tuple(x.shape[axis] for axis in perm), perm=perm)

    def mean(self, x: Value) -> Value | None:
        """Take the average or maximum along axes."""
        return None if self.form == "qoperator" else random_reduction(self.choices, self.model, x)

    def normalise(self, x: Value) -> Value | None:
        """Add a normalisation, or a PRelu."""
        return None if self.form == "qoperator" else random_normalisation(self.choices, self.model, x)

    # ---- vectors

    def flatten(self, x: Value) -> Value:
        """Flatten, by one of the operators that do."""
        count = math.prod(x.shape[1:])
        if self.choices.chance(30):
            return self.model.reshape(x, (1, count))
        return self.model.flatten(x)

    def dense(self, x: Value) -> Value:
        """Add a matrix product."""
        choices = self.choices
        outputs = choices.pick((10, 4, 1, 33))
        if choices.chance(30):
            return self.model.matmul(x, outputs, per_channel=choices.chance(50))
        bias = choices.pick(("int32", "none"))
        return self.model.gemm(x, outputs, bias=bias, per_channel=choices.chance(50), transposed=choices.chance(50))

    def _classify(self) -> None:
        x = self._operand()
        if len(x.shape) == 4:
            x = self.flatten(x if self.choices.chance(50) else self.model.average(x))
            self._new(x)
            self._read(x)
        self._new(self.dense(x))

    def _tail(self) -> None:
        """End a tensor in float: softmax, a position, a power."""
        model, x = self.model, self._operand()
        source = model.node("DequantizeLinear", [x.name, *model.parameters(x)], f"float{len(model.nodes)}") \
            if self.form == "qoperator" else model.dequantised(x)
        model.outputs.append(random_tail(self.choices, model, source, x.shape))

    def _finish(self) -> FuzzGraph:
        ends = list(self.unread.values())[::-1][:_MAX_OUTPUTS]
        for value in ends:
            self.model.output(value, integer=self.form != "float" and self.choices.chance(15))
        if not self.model.outputs:
            self.model.output(self.values[-1])
        model = without_dead_nodes(self.model.proto())
        return FuzzGraph(model, self.form, tuple(node.op_type for node in model.graph.node))


Step = Callable[[_Growth, Value], list[Value] | None]


def _one(add: Callable[[_Growth, Value], Value | None]) -> Step:
    """Return a step that leaves out what would grow too large."""
    def step(growth: _Growth, x: Value) -> list[Value] | None:
        before = len(growth.model.nodes)
        value = add(growth, x)
        if value is None:
            assert len(growth.model.nodes) == before, "what is left out adds no node"
            growth.unread[x.name] = x
            return None
        return [value]
    return step


_STEPS: tuple[Step, ...] = (
    *[_one(_Growth.conv)] * 8, *[_one(_Growth.pool)] * 3, *[_one(_Growth.add)] * 3, *[_one(_Growth.concat)] * 2,
    *[_one(_Growth.unary)] * 4, _one(_Growth.clip), *[_one(_Growth.gate)] * 2, _one(_Growth.pad), _one(_Growth.resize),
    _Growth.split, _one(_Growth.slice), _one(_Growth.combine), _one(_Growth.transposed_conv), _one(_Growth.shuffle),
    _one(_Growth.mean), _one(_Growth.normalise), _one(_Growth.flatten), _one(_Growth.levels))

_VECTOR_STEPS: tuple[Step, ...] = (
    *[_one(_Growth.dense)] * 4, _one(_Growth.unary), _one(_Growth.add), _one(_Growth.concat), _one(_Growth.clip),
    _one(_Growth.gate), _one(_Growth.slice), _one(_Growth.combine))
