"""The question asked of every model: does each integer tensor equal ONNX Runtime's?"""

from pathlib import Path

import numpy as np

from tilewright.compiler.kernels.preparation import unprepared
from tilewright.compiler.network.image_forms import images_of
from tilewright.compiler.network.layers import Network, TensorInfo
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.runtime.oracle.conversion import as_int8, dequantise_output, quantise_input
from tilewright.runtime.oracle.exact_products import Kernels
from tilewright.runtime.oracle.onnx_runtime import Reference, session


def random_inputs(network: Network, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return inputs of the model that fill the range of int8, a few beyond it."""
    inputs = {}
    for info in network.inputs:
        if info.onnx_dtype == "float32" and info.dtype == "float32":
            inputs[info.onnx_name] = rng.standard_normal(info.onnx_shape).astype(np.float32)
        elif info.onnx_dtype == "float32":
            levels = rng.uniform(-135, 135, info.onnx_shape) - info.zero_point
            inputs[info.onnx_name] = unprepared(info.preparation, (levels * info.scale).astype(np.float32))
        else:
            bounds = np.iinfo(info.onnx_dtype)
            inputs[info.onnx_name] = rng.integers(bounds.min, bounds.max + 1, info.onnx_shape).astype(info.onnx_dtype)
    return inputs


def assert_exact(model: bytes | Path, samples: int = 3, kernels: Kernels | None = None) -> Network:
    """Compile ``model`` and compare every tensor with ONNX Runtime's, and every output with an untouched session's.

    ``kernels`` asks for the route of a processor with such kernels; the sums are the same.
    """
    network, reference = compile_network(model), Reference(model, kernels=kernels)
    untouched = session(model, kernels)
    assert (reference.rounded_in_float, reference.untrusted) == ((), "")
    rng = np.random.default_rng(0)
    for _ in range(samples):
        inputs = random_inputs(network, rng)
        expected = reference.run(inputs)
        tensors = run_network(network, {i.name: quantise_input(i, inputs[i.onnx_name]) for i in network.inputs})
        assert tensors.keys() == network.tensors.keys()
        for name, tensor in tensors.items():
            wrong = np.count_nonzero(tensor.ravel() != as_int8(expected[name]).ravel()) if name in expected else 0
            assert wrong == 0, f"{wrong} of {tensor.size} elements of {name} differ"
            assert name in expected or name in inputs, f"{name} is no tensor of ONNX Runtime's"
        results = untouched.run([info.onnx_name for info in network.outputs], inputs)
        for info, result in zip(network.outputs, results, strict=True):
            np.testing.assert_array_equal(dequantise_output(info, tensors[info.name]), result)
    # A network that only saturates would prove nothing.
    assert all(len(np.unique(tensors[layer.output])) > 1 for layer in network.layers)
    return network


def assert_layers(model: bytes | Path, samples: int = 2, levels: int = 1, rtol: float = 1e-4) -> Network:
    """Compile ``model`` and compare every tensor and output with ONNX Runtime's, exact where the layers say so.

    A tensor behind a layer that is not exact may differ by ``levels``, and a float by ``rtol`` of the largest.
    """
    network, reference, untouched = compile_network(model), Reference(model), session(model)
    assert reference.untrusted == ""
    loose = inexact_tensors(network)
    rng = np.random.default_rng(0)
    compared = 0
    for _ in range(samples):
        inputs = random_inputs(network, rng)
        expected = reference.run(inputs)
        expected |= images_of(expected, network.tensors)
        given = {info.name: _given(info, inputs[info.onnx_name]) for info in network.inputs}
        tensors = run_network(network, given)
        for name in tensors.keys() & expected.keys():
            wanted = expected[name]
            if network.tensors[name].dtype == "int8" and wanted.dtype in (np.int8, np.uint8):
                off = np.abs(tensors[name].ravel().astype(int) - as_int8(wanted).ravel())
                limit = levels if name in loose else 0
                assert off.max() <= limit, f"{np.count_nonzero(off > limit)} of {off.size} elements of {name} differ"
                compared += 1
        results = untouched.run([info.onnx_name for info in network.outputs], inputs)
        for info, result in zip(network.outputs, results, strict=True):
            wanted, found = np.asarray(result), _output(info, tensors[info.name])
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
            if info.name not in loose:
                np.testing.assert_array_equal(found, wanted)
            elif info.dtype != "int8":
                np.testing.assert_allclose(found, wanted, rtol, rtol * float(np.abs(wanted).max()) + levels * 1e-6)
            compared += 1
    assert compared
    return network


def inexact_tensors(network: Network) -> set[str]:
    """Return the tensors in which a result shows of a layer that is not exact."""
    loose: set[str] = set()
    for layer in network.layers:
        if not layer.exact or loose & set(layer.reads):
            loose |= set(layer.writes)
            loose |= {info.place.parent for name in layer.writes if (info := network.tensors[name]).place is not None}
        loose |= {name for name, info in network.tensors.items() if info.place and info.place.parent in loose}
    return loose


def _given(info: TensorInfo, array: np.ndarray) -> np.ndarray:
    """Return an input of the model as the tensor that the first layers read."""
    if info.dtype == "int8" and info.onnx_dtype in ("float32", "int8", "uint8"):
        return quantise_input(info, array).reshape(info.array_shape)
    return array.reshape(info.array_shape)


def _output(info: TensorInfo, tensor: np.ndarray) -> np.ndarray:
    if info.dtype == "int8" or info.channels is not None:
        return dequantise_output(info, tensor)
    return tensor.reshape(info.onnx_shape)
