"""Networks that use all units, run in RTL for coverage: each tensor must be that of the integer reference."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.support.random_chains import random_chain
from tests.support.random_layers import fitting_layers, random_layer, random_narrow_layer, with_tables
from tests.support.rtl import execute_rtl
from tests.support.side_by_side import side_by_side
from tests.support.stacks import resnet
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.layers import Network
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.isa.dram.dram import DramTiming, dram_named
from tilewright.isa.machine import Machine, MemoryTiming
from tilewright.models import builtin

__all__ = ["EXAMPLES", "Example", "run"]


@dataclass(frozen=True, slots=True)
class Example:
    """A network for a machine, what it is there for, and the memory that it runs on; the default one if None."""

    name: str
    purpose: str
    networks: Callable[[Machine], Iterator[Network]]
    timing: MemoryTiming | None = None


def _from_onnx(name: str) -> Callable[[Machine], Iterator[Network]]:
    def networks(machine: Machine) -> Iterator[Network]:
        yield compile_network(builtin(name))

    return networks


def _tables(machine: Machine) -> Iterator[Network]:
    yield with_tables(resnet(16, (8, 16), (1, 1)))


def _layers(machine: Machine) -> Iterator[Network]:
    rng = np.random.default_rng(2)
    yield side_by_side(fitting_layers(rng, machine, 60, lambda rng: random_layer(rng, longest=10, widest=24)))
    yield side_by_side(fitting_layers(rng, machine, 10, random_narrow_layer))


def _chains(machine: Machine) -> Iterator[Network]:
    for seed in range(5):
        yield random_chain(np.random.default_rng(seed))


EXAMPLES = (
    Example("lenet5", "5×5 kernels, max pooling, matrices", _from_onnx("lenet5")),
    Example("mlperf-kws", "depthwise and 1×1 layers", _from_onnx("mlperf-kws")),
    Example("mlperf-resnet8", "3×3 kernels by Winograd, residuals, strides", _from_onnx("mlperf-resnet8")),
    Example("a residual network with tables", "a value table in each layer", _tables),
    Example("70 random layers", "all windows of pooling, residuals, tables, padding and strides that the tests draw, "
            "from slow memory with random stalls", _layers,
            MemoryTiming(latency_cycles=55, bytes_per_cycle=2, stall_percent=30)),
    Example("5 random networks", "layers chained on chip, branches, two readers, on DRAM", _chains,
            DramTiming.of(dram_named("ddr3l-1600x16", 200))),
)
"""Of docs/coverage.md."""


def run(example: Example, machine: Machine, folder: Path, coverage: Path) -> Iterator[list[str]]:
    """Run the networks of an example one by one; yield the tensors of each that are wrong.

    Verilator's counts of the one that ran last are in the file ``coverage``.
    """
    for network in example.networks(machine):
        rng = np.random.default_rng(0)
        inputs = {info.name: rng.integers(-128, 128, info.array_shape, dtype=np.int8) for info in network.inputs}
        compiled = compile_layers(network, machine, keep_tensors=True)
        tensors, _ = execute_rtl(compiled, inputs, folder, timing=example.timing, coverage=coverage)
        expected = run_network(network, inputs)
        yield [f"{example.name}, {machine.name}: tensor {name} of {network.name} differs from the reference"
               for name, tensor in tensors.items() if not np.array_equal(tensor, expected[name])]
