"""A depthwise layer between two 1x1 layers, as MobileNets have it, in RTL: exact, and at the rate promised."""

import numpy as np

from tests.support.random_places import Sketch
from tests.support.rtl import execute_rtl
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.reference import run_network
from tilewright.isa.machine import PRESETS
from tilewright.runtime.execution.records import RECORD_BYTES, differences, read_record

LEAST_RATE = 0.5
"""MAC per multiplier of a lane and cycle; a dot product of 16 bytes would reach 0.06."""


def test_depthwise_3x3_keeps_half_the_multipliers_busy(tmp_path):
    rng, machine = np.random.default_rng(0), PRESETS["base"]
    sketch = Sketch(rng)
    middle = sketch.layer(sketch.layer(sketch.input((24, 28, 28)), 96, 1), 96, 3, groups=96)
    last = sketch.layer(middle, 24, 1)
    network = sketch.network([middle, last])
    compiled = compile_layers(network, machine)
    inputs = {info.name: rng.integers(-128, 128, info.shape, dtype=np.int8) for info in network.inputs}
    records = [(address, RECORD_BYTES) for address in compiled.memory.records]
    tensors, result = execute_rtl(compiled, inputs, tmp_path, dumps=records)
    expected = run_network(network, inputs)
    for name in (middle, last):
        np.testing.assert_array_equal(tensors[name], expected[name])
    counts = differences([read_record(content) for content in result.dumps[-len(records):]])
    assert compiled.plans[1].nest.algorithm == "conv23"
    assert network.layers[1].macs / counts[1]["cycles"] / (8 * machine.lanes) >= LEAST_RATE
