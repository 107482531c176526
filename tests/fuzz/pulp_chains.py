"""Random chains of PULP's tools against loops in whole numbers: ``python -m tests.fuzz.pulp_chains --chains 2000``.

Each is one of Deeploy's, of unsigned or of signed levels, or of those that NEMO and MATCH write, with a floor. The
integer reference must give every level of the output. What is refused is counted by its reason, and not judged. Exit
status 1 if a chain differs.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

import numpy as np
from onnx import ModelProto, TensorProto

from tests.fuzz.choices import Choices
from tests.support.pulp_networks import PulpNetwork, computed_in_whole_numbers
from tilewright.compiler.errors import CompileError
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.onnx.reader import read_model
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.runtime.oracle.conversion import dequantise_output, quantise_input

__all__ = ["chain", "difference"]

_Shape = tuple[int, int, int]
_SPREAD = 70 * 12
"""Of a product of a level and a weight, as it is drawn."""


class _Chain:
    """A network in the making: what it has computed last, and that tensor's shape."""

    def __init__(self, seed: int) -> None:
        self.choices, self.rng = Choices(seed), np.random.default_rng(seed)
        self.floored, self.signed = (choice := self.choices.pick((0, 0, 1, 2))) == 2, choice == 1
        size = self.choices.between(5, 10)
        self.shape: _Shape = (self.choices.pick((3, 1, 4)), size, size)
        self.net = PulpNetwork((1, *self.shape), TensorProto.INT8 if self.signed else TensorProto.FLOAT)
        self.given, self.last = self.shape, "x"

    def weights(self, *shape: int) -> np.ndarray:
        return self.rng.integers(-20, 21, shape).astype(np.float32)

    def levels(self, sums: str, channels: int, spread: float, rank: int = 3) -> str:
        """Return sums brought to levels, by numbers of each channel."""
        choices, rng = self.choices, self.rng
        shape = (channels, *(1,) * (rank - 1)) if rank == 3 else (channels,)
        multipliers = rng.integers(100, 1000, shape)
        if choices.chance(20):
            multipliers = np.full(shape, 1 << choices.between(0, 9))
        shift = max(int(np.log2(spread * multipliers.mean() / choices.pick((50, 20, 90)))), 1)
        addends = rng.integers(-40 << shift, 40 << shift, shape) if choices.chance(60) else np.zeros(shape, np.int64)
        if not self.floored:
            return self.net.shifted(sums, multipliers, addends, shift, signed=self.signed)
        scaled = self.net.add("Mul", sums, multipliers.astype(np.float32))
        if choices.chance(70):
            scaled = self.net.add("Add", scaled, addends.astype(np.float32))
        halved = self.net.add("Floor", self.net.add("Div", scaled, np.float32(1 << shift)))
        return self.net.add("Clip", halved, min=0.0, max=255.0)

    def convolution(self) -> None:
        choices, (channels, height, width) = self.choices, self.shape
        side = choices.pick((3, 1, 2)) if min(height, width) > 2 else 1
        depthwise = choices.chance(35)
        outputs = channels if depthwise else choices.pick((8, 4, 5))
        pad = side // 2 if side == 3 and choices.chance(70) else 0
        kernel = self.weights(outputs, 1 if depthwise else channels, side, side)
        sums = self.net.add("Conv", self.last, kernel, pads=[pad] * 4, group=channels if depthwise else 1)
        self.shape = outputs, height + 2 * pad - side + 1, width + 2 * pad - side + 1
        self.last = self.levels(sums, outputs, _SPREAD * kernel[0].size ** 0.5)

    def residual(self) -> None:
        before, shape = self.last, self.shape
        kernel = self.weights(shape[0], shape[0], 1, 1)
        other = self.levels(self.net.add("Conv", before, kernel, pads=[0] * 4, group=1), shape[0],
                            _SPREAD * shape[0] ** 0.5)
        total = self.net.add("Add", *((other, before) if self.choices.chance(50) else (before, other)))
        one = np.array(self.choices.pick((1, 3, 5)))
        if self.floored:
            halved = self.net.add("Floor", self.net.add("Div", self.net.add("Mul", total, one), np.float32(2)))
            self.last = self.net.add("Clip", halved, min=0.0, max=255.0)
        else:
            self.last = self.net.shifted(total, one, 0 * one, self.choices.between(1, 3), signed=self.signed)

    def weighed(self) -> None:
        """Add what came before to one or two of its own products, each times a number, and more at once."""
        choices, before, shape = self.choices, self.last, self.shape
        terms, factors = [before], [choices.pick((1, 2, 7, 100, 300))]
        for _ in range(choices.between(1, 2)):
            kernel = self.weights(shape[0], shape[0], 1, 1)
            terms.append(self.levels(self.net.add("Conv", before, kernel, pads=[0] * 4, group=1), shape[0],
                                     _SPREAD * shape[0] ** 0.5))
            factors.append(choices.pick((1, 3, 16, 27, 99)))
        total, *more = (self.net.add("Mul", each, np.array(factor)) for each, factor in
                        zip(terms, factors, strict=True))
        for each in more:
            total = self.net.add("Add", total, each)
        one = np.array(choices.pick((1, 3, 5)))
        shift = int(np.log2(sum(factors) * one)) + choices.between(0, 1)
        if self.floored:
            halved = self.net.add("Div", self.net.add("Mul", total, one), np.float32(1 << shift))
            self.last = self.net.add("Clip", self.net.add("Floor", halved), min=0.0, max=255.0)
        else:
            addend = np.array(choices.between(-9, 9) * choices.between(0, 1))
            self.last = self.net.shifted(total, one, addend, shift, signed=self.signed)

    def alone(self) -> None:
        if not self.floored:
            self.last = self.net.shifted(self.last, np.array(self.choices.between(1, 40)), np.array(
                self.choices.between(-30, 30)), self.choices.between(1, 5), signed=self.signed)

    def pool(self) -> None:
        channels, height, width = self.shape
        if min(height, width) >= 4:
            self.last = self.net.add("MaxPool", self.last, kernel_shape=[2, 2], strides=[2, 2])
            self.shape = channels, height // 2, width // 2

    def average(self) -> None:
        """Add an average as NEMO writes it, which nothing bounds; its factor is rounded down, so 8 bits hold it."""
        channels, height, width = self.shape
        if not self.floored or min(height, width) < 3:
            return
        size = self.choices.pick((2, 3))
        pooled = self.net.add("AveragePool", self.last, kernel_shape=[size, size], strides=[size, size])
        divisor = 1 << int(np.ceil(np.log2(32 * size * size)))
        scaled = self.net.add("Mul", self.net.add("Mul", pooled, np.array(size * size)),
                              np.array(divisor // (size * size)))
        self.last = self.net.add("Floor", self.net.add("Div", scaled, np.float32(divisor)))
        self.shape = channels, height // size, width // size

    def model(self) -> ModelProto:
        self.convolution()
        for _ in range(self.choices.between(1, 5)):
            self.choices.pick((self.convolution, self.convolution, self.residual, self.weighed, self.alone,
                               self.pool, self.average))()
        if self.choices.chance(60):
            size = int(np.prod(self.shape))
            flat = self.net.add("Flatten", self.last, axis=1)
            sums = self.net.add("Gemm", flat, self.weights(6, size), self.rng.integers(-99, 100, 6).astype(np.float32),
                                transB=1)
            return self.net.model(self.levels(sums, 6, _SPREAD * size ** 0.5, rank=1), (1, 6))
        return self.net.model(self.last, (1, *self.shape))


def chain(seed: int) -> tuple[ModelProto, np.ndarray]:
    """Return a random chain and an input of it."""
    made = _Chain(seed)
    low = -128 if made.signed else 0
    return made.model(), made.rng.integers(low, low + 256, (1, *made.given))


def difference(seed: int) -> int:
    """Return how many levels of a chain's output differ from the loops'.

    Raises
    ------
    CompileError
        If it is not compiled.
    """
    model, x = chain(seed)
    network = compile_network(read_model(model.SerializeToString()).SerializeToString())
    (given,), (info,) = network.inputs, network.outputs
    kind = np.int8 if model.graph.input[0].type.tensor_type.elem_type == TensorProto.INT8 else np.float32
    computed = run_network(network, {given.name: quantise_input(given, x.astype(kind))})
    theirs = computed_in_whole_numbers(model, x)[model.graph.output[0].name]
    return int(np.count_nonzero(np.asarray(dequantise_output(info, computed[info.name])) != theirs))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.pulp_chains")
    parser.add_argument("--chains", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    found, refused = 0, Counter[str]()
    for number in range(given.chains):
        seed = 100_000 * given.seed + number
        try:
            wrong = difference(seed)
        except CompileError as error:
            refused[str(error).partition(") ")[2][:90]] += 1
            continue
        if wrong:
            found += 1
            print(f"chain {seed}: {wrong} levels differ", flush=True)
    for reason, count in refused.most_common():
        print(f"  {count} refused: {reason}")
    print(f"{given.chains} chains, {found} differ, {sum(refused.values())} refused")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
