"""The C of the baselines, compiled for this machine: every layer equals the integer reference."""

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.factor_networks import product_network
from tests.support.matrix_networks import matrix_network
from tests.support.random_layers import random_layer
from tests.support.random_places import random_sketch
from tests.support.side_by_side import side_by_side
from tests.support.stacks import resnet
from tilewright.compiler.emit.baseline import KERNELS, XPULP_KERNELS, emit_baseline
from tilewright.compiler.emit.baseline_constants import block_shape, packed_weights, receptive_field
from tilewright.compiler.network.layers import Layer, Network, Requantisation, TensorInfo
from tilewright.compiler.network.memory_map import tensor_bytes
from tilewright.compiler.network.operands import from_memory
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.isa import numerics
from tilewright.isa.memory import MAIN_BASE
from tilewright.models import builtin

# A library without a C library: what lies at MAIN_BASE on the simulated core is an array here.
NATIVE = '#include <stdint.h>\nuint8_t *memory;\n#define MEMORY memory\n#include "baseline.c"\n'
FLAGS = ("-O2", "-shared", "-fPIC", "-nostdlib", "-ffreestanding", "-std=c17", "-Wall", "-Wextra", "-Werror")


def run_natively(network: Network, inputs: dict[str, np.ndarray], folder: Path, *,
                 xpulp: bool = False) -> dict[str, np.ndarray]:
    """Return every tensor as the baseline's C computes it on this machine."""
    baseline = emit_baseline(network, xpulp=xpulp)
    (folder / "baseline.c").write_text(baseline.source)
    for header in (KERNELS, XPULP_KERNELS):
        (folder / header.name).write_bytes(header.read_bytes())
    (folder / "native.c").write_text(NATIVE)
    command = [sys.executable, "-m", "ziglang", "cc", *FLAGS, "native.c", "-o", "native.so"]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "native.so"))
    memory = np.full(baseline.memory_bytes, 0x55, np.uint8)
    memory[:len(baseline.image)] = np.frombuffer(baseline.image, np.uint8)
    for name, array in inputs.items():
        memory[baseline.tensors[name]:][:array.size] = array.transpose(1, 2, 0).ravel().view(np.uint8)
    ctypes.c_void_p.in_dll(library, "memory").value = memory.ctypes.data
    assert library.main() == 0
    tensors = {}
    for name, offset in baseline.tensors.items():
        info = network.tensors[name]
        tensors[name] = from_memory(memory[offset:][:tensor_bytes(info)].tobytes(), info)
    return tensors


def assert_exact(network: Network, folder: Path, seed: int, *, xpulp: bool = False) -> None:
    rng = np.random.default_rng(seed)
    inputs = {info.name: rng.integers(-128, 128, info.shape, dtype=np.int8) for info in network.inputs}
    tensors = run_natively(network, inputs, folder, xpulp=xpulp)
    for name, values in run_network(network, inputs).items():
        np.testing.assert_array_equal(tensors[name], values, err_msg=name)


either_core = pytest.mark.parametrize("xpulp", [False, True], ids=["scalar", "xpulp"])


@either_core
@pytest.mark.parametrize("name", ["lenet5", "lenet5_accel", "lenet5_qoperator"])
def test_every_tensor_of_lenet_equals_the_reference(name, xpulp, tmp_path):
    assert_exact(compile_network(builtin(name)), tmp_path, seed=1, xpulp=xpulp)


@either_core
@pytest.mark.parametrize("seed", range(5))
def test_tensors_inside_tensors_equal_the_reference(seed, xpulp, tmp_path):
    sketch, outputs = random_sketch(np.random.default_rng(seed), length=12)
    assert_exact(sketch.network(outputs), tmp_path, seed, xpulp=xpulp)


@either_core
def test_residual_layers_and_averages_equal_the_reference(xpulp, tmp_path):
    assert_exact(resnet(16, (8, 16), (2, 1)), tmp_path, seed=2, xpulp=xpulp)


@either_core
@pytest.mark.parametrize("seed", range(4))
def test_random_layers_equal_the_reference(seed, xpulp, tmp_path):
    rng = np.random.default_rng(seed)
    network = side_by_side([random_layer(rng, longest=14, widest=20) for _ in range(25)])
    assert_exact(network, tmp_path, seed, xpulp=xpulp)


def test_words_of_weights_are_filled_with_zeros_where_a_run_ends():
    """Runs of 5 bytes take two words; four channels make a block, of which each word is one channel's."""
    layer = compile_network(builtin("lenet5")).layers[0]
    words = np.frombuffer(packed_weights(layer, xpulp=True), np.int8)
    assert len(words) == 6 * 5 * 8
    block = words[:4 * 5 * 8].reshape(5, 2, 4, 4)  # kernel row, word, channel, byte
    np.testing.assert_array_equal(block[:, 0].transpose(1, 0, 2), layer.weights[:4, 0, :, :4])
    np.testing.assert_array_equal(block[:, 1, :, 0].T, layer.weights[:4, 0, :, 4])
    assert not block[:, 1, :, 1:].any()


def rescaling(scale: np.ndarray, bias: np.ndarray, zero_point: int) -> Network:
    """Return a network that requantises biases: channel c's sum is its pixel plus ``bias[c]``."""
    shape = len(scale), 1, 1
    layer = Layer(name="pass", kind="pass", onnx_nodes=(), input="x", output="y", in_shape=shape, conv_shape=shape,
                  out_shape=shape, weights=None, bias=bias.astype(np.int32), groups=len(scale),
                  requantisation=Requantisation(scale=scale.astype(np.float32), zero_point=zero_point))
    tensors = {name: TensorInfo(name=name, shape=shape, scale=np.float32(1), zero_point=0) for name in ("x", "y")}
    return Network(name="rescaling", layers=(layer,), inputs=(tensors["x"],), outputs=(tensors["y"],), tensors=tensors)


# Scales of one magnitude share a shift, those of all magnitudes do not, and from 1/2 on nothing is rounded quickly.
SCALES = {"alike": (-9.0, -8.0), "minute": (-31.0, -27.0), "all": (-40.0, 3.0), "large": (-1.0, 2.0)}


@pytest.mark.parametrize("scales", SCALES)
def test_sums_at_and_around_ties_round_as_float32_does(scales, tmp_path):
    """The quick rounding must doubt exactly where the float32 arithmetic may differ from it."""
    rng = np.random.default_rng(3)
    count = 40_000
    scale = np.float32(2.0 ** rng.uniform(*SCALES[scales], count))
    # Powers of two make true ties; the others come as near to one half as a sum can.
    scale[::4] = np.float32(2.0) ** np.round(np.log2(scale[::4]))
    wanted = (rng.integers(-140, 140, count) + 0.5) / scale.astype(np.float64)
    bias = np.clip(np.round(wanted) + rng.integers(-1, 2, count), -2**31 + 200, 2**31 - 200).astype(np.int64)
    bias[:6] = -2**31 + 128, 2**31 - 128, 0, 1, -1, 1 << 24
    network = rescaling(scale, bias, zero_point=-3)
    x = {"x": np.zeros((count, 1, 1), np.int8)}
    ours = run_natively(network, x, tmp_path)["y"].ravel()
    for value, total, factor in zip(ours.tolist(), bias.tolist(), scale.tolist(), strict=True):
        mantissa, shift = numerics.pack_scale(factor)
        assert value == numerics.requantise(total, bias=0, mantissa=mantissa, shift=shift, zero_point=-3, low=-128,
                                            high=127), (total, factor)


def test_receptive_fields_are_read_in_the_longest_runs():
    layers = {layer.name: layer for layer in compile_network(builtin("lenet5")).layers}
    fields = {name: receptive_field(layer) for name, layer in layers.items()}
    assert [(each.rows, each.runs, each.bytes) for each in fields.values()] == [
        (5, 1, 5), (5, 1, 30), (1, 1, 400), (1, 1, 120), (1, 1, 84)]
    assert [block_shape(layer) for layer in layers.values()] == [(2, 4), (2, 4), (1, 8), (1, 8), (1, 8)]


def test_the_text_names_its_source_and_every_layer():
    network = compile_network(builtin("lenet5"))
    text = emit_baseline(network).source
    assert text.startswith("/* Generated by compiler/emit/baseline.py: ")
    assert all(f"/* {layer.name}: conv " in text for layer in network.layers)
    assert MAIN_BASE == 0x8000_0000
    assert f"#define MEMORY ((uint8_t *){MAIN_BASE:#x}u)" in KERNELS.read_text()


@pytest.mark.parametrize("xpulp", [False, True])
@pytest.mark.parametrize(("x_zero", "s_zero"), [(0, 0), (-5, 7), (-128, -128)])
def test_products_by_computed_vectors_equal_the_reference(x_zero, s_zero, xpulp, tmp_path):
    assert_exact(product_network(20, x_zero=x_zero, s_zero=s_zero), tmp_path, seed=1, xpulp=xpulp)


@pytest.mark.parametrize("xpulp", [False, True])
@pytest.mark.parametrize(("x_zero", "w_zero"), [(0, 0), (-5, 7), (-128, -128)])
def test_products_by_computed_matrices_equal_the_reference(x_zero, w_zero, xpulp, tmp_path):
    assert_exact(matrix_network(21, 5, 9, x_zero, w_zero), tmp_path, seed=1, xpulp=xpulp)
