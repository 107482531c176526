"""One kernel of every family in RTL: its C on the real core gives NumPy's bits, in about the cycles that it tells."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.core_kernels import same_bits
from tests.support.core_networks import CoreStack, inputs_of
from tilewright.compiler.compile import compile_layers, emit_elf
from tilewright.compiler.network.reference import run_network
from tilewright.isa.machine import PRESETS, MemoryTiming
from tilewright.runtime.execution.accounting import account
from tilewright.runtime.execution.engines import execute
from tilewright.runtime.execution.job import job_of_compiled
from tilewright.tools.progress import Silence

TOLERANCE = 0.35
"""Of each layer's cycles: floats take longer or shorter by their values."""


def kernels_side_by_side():
    """Return a network of host-core layers that all read the same tensors, float32 x and int8 q of 8 channels 6x5."""
    stack = CoreStack((8, 6, 5), seed=7)
    del stack.tensors["input"]
    image = (1, 8, 6, 5)
    stack.tensor("x", image)
    stack.tensor("q", image, "int8")
    stack.handed_in = ["x", "q"]
    rng = stack.rng

    def constant(name, values, dtype=np.float32):
        stack.constants[name] = np.asarray(values, dtype)
        return name

    channel = constant("channel", rng.uniform(0.5, 2, (8, 1, 1)))
    vectors = [constant(f"vector{k}", rng.uniform(0.5, 2, 8)) for k in range(4)]
    scale, zero = constant("scale", 0.02), constant("zero", 3, np.int8)
    sums = constant("sums", rng.integers(-2**15, 2**15, image), np.int32)
    scaled = [["Cast", [0], ["to", 1]], ["Mul", [-1, 1], []], ["Add", [-1, 2], []]]
    levels = {"y_scale": 1 / 256, "y_zero_point": -128}
    layers = [
        ("Mul", ("x", channel), image), ("Div", ("x", channel), image), ("Greater", ("x", channel), image, "bool"),
        ("Add", ("x", channel), image), ("Max", ("x", channel), image), ("Sqrt", (channel,), (8, 1, 1)),
        ("Exp", ("x",), image), ("Log", (channel,), (8, 1, 1)), ("Tanh", ("x",), image), ("Sigmoid", ("x",), image),
        ("Gelu", ("x",), image),
        ("Pow", (constant("bases", rng.uniform(0.5, 2, 24)), constant("exponents", rng.normal(size=24))), (24,)),
        ("HardSwish", ("x",), image), ("Round", ("x",), image),
        ("Relu", ("q",), image, "int8"), ("QuantizeLinear", ("x", scale, zero), image, "int8"),
        ("DequantizeLinear", ("q", scale, zero), image), ("Cast", ("x",), image, "int32", {"to": 6}),
        ("Chain", (sums, scale, channel), image, "float32", {"steps": [*scaled, ["Relu", [-1], []]]}),
        ("LevelsOfSums", (sums, scale, channel, constant("step", 5.1), zero), image, "int8", {"bits": 16}),
        ("LookUp", ("q", constant("table", rng.normal(size=256))), image),
        ("WordLookUp", ("q", constant("words", rng.integers(-(1 << 15), 1 << 15, 1 << 16), np.int16)), image, "int8"),
        ("SoftmaxOfLevels", ("q",), image, "float32", {"scale_value": 0.06, "axis": 1}),
        ("LogSoftmaxOfLevels", ("q",), image, "float32", {"scale_value": 0.06, "axis": 1}),
        ("LogSoftmaxOfLevels", ("q",), image, "int8", {"scale_value": 0.06, "axis": 1, "y_scale": 0.1,
                                                       "y_zero_point": 127}),
        ("SoftmaxOfLevels", ("q",), image, "int8", {"scale_value": 0.06, "axis": 1, **levels}),
        ("ResponseOfLevels", ("q",), image, "int8",
         {"scale_value": 0.5, "zero_point_value": 3, "size": 5, "y_scale": 0.4, "y_zero_point": 3}),
        ("Transpose", ("q",), (1, 6, 5, 8), "int8", {"perm": [0, 2, 3, 1]}), ("Transpose", ("x",), (5, 6, 8, 1)),
        ("Reshape", ("q", constant("shape", [1, 240], np.int64)), (1, 240), "int8"),
        ("Concat", ("q", "q"), (1, 16, 6, 5), "int8", {"axis": 1}),
        ("Concat", ("x", "x"), (1, 8, 6, 10), "float32", {"axis": 3}),
        ("Pad", ("q", constant("pads", [0, 0, 1, 2, 0, 0, 1, 0], np.int64)), (1, 8, 8, 7), "int8"),
        ("Resize", ("q", "", constant("scales", [1, 1, 2, 2])), (1, 8, 12, 10), "int8"),
        ("Resize", ("x", "", constant("wider", [1, 1, 1.5, 1.2])), (1, 8, 9, 6), "float32", {"mode": "linear"}),
        ("ReduceMean", ("x", constant("axes", [2, 3], np.int64)), (1, 8, 1, 1)),
        ("GlobalMaxPool", ("x",), (1, 8, 1, 1)),
        ("ArgMax", ("x",), (1, 1, 6, 5), "int64", {"axis": 1}), ("ArgMax", ("q",), (1, 1, 6, 5), "int64", {"axis": 1}),
        ("Softmax", ("x",), image, "float32", {"axis": 1}),
        ("Conv", ("x", constant("w", rng.normal(size=(2, 8, 3, 3))), constant("bias", rng.normal(size=2))),
         (1, 2, 6, 5), "float32", {"pads": [1, 1, 1, 1]}),
        ("ConvTranspose", ("x", constant("wt", rng.normal(size=(8, 2, 2, 2)))), (1, 2, 12, 10), "float32",
         {"strides": [2, 2]}),
        ("MaxPool", ("q",), (1, 8, 3, 2), "int8", {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("AveragePool", ("x",), (1, 8, 6, 5), "float32", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
        ("MatMul", ("x", constant("right", rng.normal(size=(5, 3)))), (1, 8, 6, 3)),
        ("QLinearConv", ("q", scale, zero, constant("wq", rng.integers(-128, 127, (4, 8, 3, 3)), np.int8),
                         constant("wscale", 0.01), constant("wzero", 0, np.int8), constant("yscale", 0.3), zero),
         (1, 4, 4, 3), "int8"),
        ("BatchNormalization", ("x", *vectors), image), ("InstanceNormalization", ("x", *vectors[:2]), image),
        ("LRN", ("x",), image, "float32", {"size": 5}),
        ("NormalisationOfLevels", ("q",), image, "int8", {
            "kind": "InstanceNormalization", "scale_value": 0.05, "y_scale": 0.03, "y_zero_point": -3,
            "gains": rng.uniform(0.5, 1.5, 8).tolist(), "shifts": rng.normal(size=8).tolist()}),
    ]
    for op, inputs, dims, *rest in layers:
        stack.core(op, inputs, dims, *rest)
    stack.handed_out = [layer.output for layer in stack.layers]
    return stack.network("kernels side by side")


@pytest.mark.parametrize("staged", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_kernels_in_rtl_give_numpys_bits_in_the_predicted_cycles(staged, tmp_path, monkeypatch):
    network, size = kernels_side_by_side(), PRESETS["base"]
    monkeypatch.setattr("tilewright.compiler.kernels.staging.STAGE_BYTES", (1 << 19) * staged)
    # The datapath would look up the floats.
    monkeypatch.setattr("tilewright.compiler.compile.with_float_bytes", lambda network, machine: network)
    compiled = compile_layers(network, size, keep_tensors=True)
    inputs, timing = inputs_of(network), MemoryTiming.default(size)
    job = replace(job_of_compiled(compiled, network.name), elf=emit_elf(compiled, network.name, tmp_path))
    expected = run_network(network, inputs)
    reports = {}
    for engine in ("rtl", "fast"):
        execution = execute(job, engine, inputs, job.lasting, timing, steps=Silence())
        for tensor, values in expected.items():
            assert execution.tensors[tensor].tobytes() == np.ascontiguousarray(values).tobytes(), (engine, tensor)
        reports[engine] = {layer.name: layer.cycles for layer in account(job, engine, timing, execution).layers}
    errors = {name: reports["fast"][name] / cycles - 1 for name, cycles in reports["rtl"].items()}
    shown = "\n".join(f"{name:24} {reports['rtl'][name]:9} {errors[name]:+.2f}" for name in errors)
    assert max(map(abs, errors.values())) <= TOLERANCE, shown


EDGES = np.array([0, -0.0, 1, -1, 0.5, 1.5, 2.5, -2.5, 3e38, -3e38, 1e-40, -3e-39, 1.17549435e-38, np.inf, -np.inf,
                  np.nan, 8388607.5, -8388608, 1e-30, -104.2, -87.5, -100, 88.7, 88.8, 2147483648, -2147483648, 3e9,
                  1e20, 1e-45], np.float32)
"""Zeros, halves, subnormals, infinities, NaN, and where exponentials and casts leave their range."""

TURNS = (0, 8, 19)
"""Places by which the exponents of powers are turned against their bases."""


def test_floats_at_the_edges_are_numpys_in_rtl(tmp_path):
    """Of a power, a host compiles the same C for all of float32 (`tests.compiler.kernels.language`); a pair takes 7,500
    cycles here, so each number is a base and an exponent three times, not 29.
    """
    stack, count = CoreStack((1, 1, 1), seed=1), len(EDGES)
    del stack.tensors["input"]
    stack.tensor("x", (count,))
    stack.tensor("y", (count, 1))
    stack.tensor("turned", (len(TURNS), count))
    stack.handed_in = ["x", "y", "turned"]
    stack.constants |= {"scale": np.array(0.5, np.float32), "zero": np.array(3, np.int8)}
    for op in ("Add", "Sub", "Mul", "Div", "Max"):
        stack.core(op, ("x", "y"), (count, count))
    stack.core("Pow", ("x", "turned"), (len(TURNS), count))
    stack.core("Less", ("x", "y"), (count, count), "bool")
    for op in ("Exp", "Log", "Sqrt", "Tanh", "Sigmoid", "Erf", "Softplus", "Round", "Floor"):
        stack.core(op, ("x",), (count,))
    for code, dtype in ((3, "int8"), (6, "int32"), (7, "int64")):
        stack.core("Cast", ("x",), (count,), dtype, {"to": code})
    stack.core("QuantizeLinear", ("x", "scale", "zero"), (count,), "int8")
    stack.handed_out = [layer.output for layer in stack.layers]
    network, size = stack.network("edges"), PRESETS["base"]
    compiled = compile_layers(network, size, keep_tensors=True)
    job = replace(job_of_compiled(compiled, "edges"), elf=emit_elf(compiled, "edges", tmp_path))
    inputs = {"x": EDGES, "y": EDGES[::-1].reshape(count, 1).copy(),
              "turned": np.stack([np.roll(EDGES, turn) for turn in TURNS])}
    execution = execute(job, "rtl", inputs, job.lasting, MemoryTiming.default(size), steps=Silence())
    wrong = [name for name, values in run_network(network, inputs).items()
             if not same_bits(execution.tensors[name], np.ascontiguousarray(values))]
    assert not wrong
