"""Random .tflite graphs against LiteRT: ``python -m tests.fuzz.tflite_graphs --graphs 200 --seed 0 --reference tflm``.

Each is a chain of operators with branches that meet again, quantised to int8 with random scales, zero points and
activations. The integer reference must give the engine's tensors to the bit, by default those of LiteRT's default
session; graphs of which the note on
reading says that operators may be one level off are counted, and not judged. It needs the extra `tflite`. Exit status
1 if a graph differs.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.fuzz.choices import Choices
from tests.support.litert_results import engine_tensors, feeds
from tests.support.tflite_files import TfliteFile
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.onnx.reader import read_model
from tilewright.compiler.onnx.reading_notes import notes_of
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.compiler.tflite.flat_file import read_file
from tilewright.compiler.tflite.mark import ENGINES, EngineName
from tilewright.runtime.oracle.conversion import dequantise_output, quantise_input
from tilewright.runtime.oracle.inputs import node_arg

__all__ = ["difference", "graph"]

_Shape = tuple[int, ...]


class _Graph:
    """A file in the making: its tensors have scale and zero point, and values of every level."""

    def __init__(self, seed: int) -> None:
        self.choices, self.rng, self.file = Choices(seed), np.random.default_rng(seed), TfliteFile()
        self.numbers: dict[int, tuple[float, int]] = {}

    def tensor(self, shape: _Shape, like: int | None = None, scale: float | None = None) -> int:
        """Add a tensor, with the quantisation of another or one of its own."""
        numbers = self.numbers[like] if like is not None else (
            scale or float(np.exp(self.rng.uniform(-5, -2))), int(self.choices.pick((-128, 0, 3, -77, 127))))
        index = self.file.tensor(shape, *numbers)
        self.numbers[index] = numbers
        return index

    def add(self, kind: str, inputs: Sequence[int], output: int, **options: Any) -> int:
        """Add an operator and return its output."""
        self.file.operator(kind, inputs, [output], **options)
        return output

    def shape(self, index: int) -> _Shape:
        """Return a tensor's shape."""
        return self.file.shapes[index]

    def product(self, x: int) -> int:
        """Add a convolution, or one of each channel."""
        choices, shape = self.choices, self.shape(x)
        depthwise, side, stride = choices.chance(40), choices.pick((3, 1, 2, 5)), choices.pick((1, 2))
        same = choices.chance(70) or min(shape[1:3]) < side
        size = [-(-each // stride) if same else -(-(each - side + 1) // stride) for each in shape[1:3]]
        outputs = shape[3] * choices.pick((1, 2)) if depthwise else choices.pick((8, 5, 16))
        form = (1, side, side, outputs) if depthwise else (outputs, side, side, shape[3])
        scales = self.rng.uniform(0.002, 0.02, outputs if choices.chance(70) else 1).astype(np.float32)
        weights = self.file.constant(self.rng.integers(-127, 128, form).astype(np.int8), scales, axis=3 * depthwise)
        own = self.numbers[x][0]
        bias = self.file.constant(self.rng.integers(-2000, 2000, outputs).astype(np.int32), scales * np.float32(own))
        reach = side * side * (1 if depthwise else shape[3])
        y = self.tensor((1, *size, outputs), scale=float(own * scales.mean() * 40 * np.sqrt(reach)))
        options = {"Padding": 0 if same else 1, "StrideW": stride, "StrideH": stride, "DilationWFactor": 1,
                   "DilationHFactor": 1, "FusedActivationFunction": choices.pick((0, 1, 3))}
        extra = {"DepthMultiplier": outputs // shape[3]} if depthwise else {}
        return self.add("DEPTHWISE_CONV_2D" if depthwise else "CONV_2D", [x, weights, bias], y, **options, **extra)

    def function(self, x: int) -> int:
        """Add a function of each element."""
        kind = self.choices.pick(("LEAKY_RELU", "LOGISTIC", "TANH", "HARD_SWISH", "QUANTIZE", "RELU"))
        if kind in ("LOGISTIC", "TANH"):
            numbers = (1 / 256, -128) if kind == "LOGISTIC" else (1 / 128, 0)
            y = self.file.tensor(self.shape(x), *numbers)
            self.numbers[y] = numbers
        else:
            y = self.tensor(self.shape(x), scale=self.numbers[x][0] * float(self.rng.uniform(0.6, 1.7)))
        return self.add(kind, [x], y, **({"Alpha": 0.2} if kind == "LEAKY_RELU" else {}))

    def pool(self, x: int) -> int:
        """Add a pooling."""
        shape, side = self.shape(x), self.choices.pick((2, 3))
        if min(shape[1:3]) < side:
            return x
        same = self.choices.chance(50)
        size = [-(-each // 2) if same else -(-(each - side + 1) // 2) for each in shape[1:3]]
        return self.add(self.choices.pick(("AVERAGE_POOL_2D", "MAX_POOL_2D")), [x],
                        self.tensor((1, *size, shape[3]), like=x), Padding=0 if same else 1, StrideW=2, StrideH=2,
                        FilterWidth=side, FilterHeight=side)

    def pair(self, x: int) -> int:
        """Add a branch that meets the other again."""
        kind = self.choices.pick(("ADD", "SUB", "MUL", "CONCATENATION"))
        other = self.function(x) if self.choices.chance(50) else self.add("RELU", [x], self.tensor(self.shape(x)))
        if kind == "CONCATENATION":
            # All of one quantisation, as LiteRT demands.
            other = self.add("RELU", [other], self.tensor(self.shape(x), like=x))
            shape = self.shape(x)
            return self.add(kind, [x, other], self.tensor((*shape[:3], 2 * shape[3]), like=x), Axis=3)
        scales = self.numbers[x][0], self.numbers[other][0]
        scale = scales[0] * scales[1] * 90 if kind == "MUL" else max(scales) * float(self.rng.uniform(0.7, 2))
        inputs = [x, other] if self.choices.chance(50) else [other, x]
        return self.add(kind, inputs, self.tensor(self.shape(x), scale=scale),
                        FusedActivationFunction=self.choices.pick((0, 1, 3)))

    def widen(self, x: int) -> int:
        """Add a transposed convolution or a linear resize."""
        choices, shape = self.choices, self.shape(x)
        if max(shape[1:3]) > 20:
            return x
        if choices.chance(40):
            size = [int(choices.pick((2 * each, 4 * each, 2 * each - 1, each + 3, 3 * each))) for each in shape[1:3]]
            corners, half = choices.pick(((False, False), (True, False), (False, True)))
            return self.add("RESIZE_BILINEAR", [x, self.file.constant(np.array(size, np.int32))],
                            self.tensor((1, *size, shape[3]), like=x), AlignCorners=corners, HalfPixelCenters=half)
        same, side, stride, outputs = choices.chance(50), choices.pick((3, 2, 4)), 2, choices.pick((8, 5))
        size = [each * stride if same else (each - 1) * stride + side for each in shape[1:3]]
        scales = self.rng.uniform(0.002, 0.02, outputs).astype(np.float32)
        weights = self.file.constant(self.rng.integers(-127, 128, (outputs, side, side, shape[3])).astype(np.int8),
                                     scales)
        own = self.numbers[x][0]
        inputs = [self.file.constant(np.array([1, *size, outputs], np.int32)), weights, x]
        if choices.chance(70):
            inputs.append(self.file.constant(self.rng.integers(-2000, 2000, outputs).astype(np.int32),
                                             scales * np.float32(own)))
        y = self.tensor((1, *size, outputs), scale=float(own * scales.mean() * 40 * np.sqrt(side * side * shape[3])))
        return self.add("TRANSPOSE_CONV", inputs, y, Padding=0 if same else 1, StrideW=stride, StrideH=stride,
                        FusedActivationFunction=0)

    def channels(self, x: int) -> int:
        """Add a softmax of the channels, or slopes or factors of theirs."""
        shape, kind = self.shape(x), self.choices.pick(("SOFTMAX", "PRELU", "MUL"))
        if kind == "SOFTMAX":
            y = self.file.tensor(shape, 1 / 256, -128)
            self.numbers[y] = 1 / 256, -128
            return self.add(kind, [x], y, Beta=1.0)
        zero = int(self.choices.pick((0, 0, 5, -128)))
        values = self.rng.integers(max(-128, zero - 128), min(127, zero + 127) + 1, (1, 1, shape[3])).astype(np.int8)
        constant = self.file.constant(values, np.float32(self.rng.uniform(0.002, 0.02)), zero=zero)
        y = self.tensor(shape, scale=self.numbers[x][0] * float(self.rng.uniform(0.6, 1.7)))
        return self.add(kind, [x, constant], y, **({"FusedActivationFunction": 0} if kind == "MUL" else {}))

    def move(self, x: int) -> int:
        """Add a pad, a repetition or a slice."""
        shape, kind = self.shape(x), self.choices.pick(("PAD", "RESIZE_NEAREST_NEIGHBOR", "SLICE"))
        if kind == "PAD":
            paddings = self.file.constant(np.array([[0, 0], [1, 0], [2, 1], [0, 0]], np.int32))
            return self.add(kind, [x, paddings], self.tensor((1, shape[1] + 1, shape[2] + 3, shape[3]), like=x))
        if kind == "SLICE":
            size = (1, max(shape[1] - 1, 1), shape[2], shape[3])
            begin, sizes = (self.file.constant(np.array(each, np.int32)) for each in (
                (0, min(1, shape[1] - 1), 0, 0), size))
            return self.add(kind, [x, begin, sizes], self.tensor(size, like=x))
        size = 2 * shape[1], 2 * shape[2]
        return self.add(kind, [x, self.file.constant(np.array(size, np.int32))],
                        self.tensor((1, *size, shape[3]), like=x))

    def end(self, x: int) -> int:
        """Add a dense layer, of a mean or of the whole image."""
        shape = self.shape(x)
        if self.choices.chance(50):
            axes = self.file.constant(np.array([1, 2], np.int32))
            x = self.add("MEAN", [x, axes], self.tensor((1, shape[3]), scale=self.numbers[x][0] * float(
                self.choices.pick((self.rng.uniform(0.2, 0.6), 1)))), KeepDims=False)
        size = int(np.prod(self.shape(x)))
        scale = np.float32(0.01)
        weights = self.file.constant(self.rng.integers(-127, 128, (7, size)).astype(np.int8), scale)
        y = self.tensor((1, 7), scale=float(self.numbers[x][0] * scale * 40 * np.sqrt(size)))
        return self.add("FULLY_CONNECTED", [x, weights, -1], y)


def graph(seed: int) -> bytes:
    """Return a random file."""
    made = _Graph(seed)
    choices = made.choices
    x = given = made.tensor((1, choices.between(5, 14), choices.between(5, 14), choices.pick((3, 1, 8))))
    for _ in range(choices.between(2, 6)):
        step = choices.pick((made.product, made.pair, made.function, made.pool, made.move, made.widen, made.channels))
        x = step(x)
    return made.file.content([given], [made.end(made.product(x))])


def difference(content: bytes, seed: int, engine: EngineName = "litert") -> int:
    """Return how many elements of the output differ from the engine's, for one seeded input."""
    model = read_file(content, "graph")
    given = feeds(model, seed)
    network = compile_network(read_model(content, engine).SerializeToString())
    named = {model.tensors[index].name: values for index, values in given.items()}
    computed = run_network(network, {info.name: quantise_input(info, named[node_arg(info).name])
                                     for info in network.inputs})
    theirs = engine_tensors(content, model, given, engine)
    wrong = 0
    for info in network.outputs:
        index = next(each for each in model.outputs if model.tensors[each].name == node_arg(info).name)
        wrong += int(np.count_nonzero(dequantise_output(info, computed[info.name]).ravel() != theirs[index].ravel()))
    for index, values in theirs.items():
        ours = computed.get(f"{model.tensors[index].name}")
        if ours is not None and index not in model.outputs and ours.dtype == values.dtype and ours.size == values.size:
            wrong += int(np.count_nonzero((np.moveaxis(ours, -3, -1) if ours.ndim > 2 else ours).ravel()
                                          != values.ravel()))
    return wrong


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.tflite_graphs")
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reference", choices=ENGINES, default="litert")
    given = parser.parse_args(arguments)
    found = near = 0
    for number in range(given.graphs):
        seed = 100_000 * given.seed + number
        content = graph(seed)
        if any("one level off" in note for note in notes_of(read_model(content, given.reference))):
            near += 1
            continue
        wrong = difference(content, seed, given.reference)
        if wrong:
            found += 1
            print(f"graph {seed}: {wrong} elements differ", flush=True)
    print(f"{given.graphs} graphs, {found} differ, {near} may by their note")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
