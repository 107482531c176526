"""The question asked of every model: does each integer tensor equal ONNX Runtime's?"""

from pathlib import Path

import numpy as np

from tilewright.compiler.layers import Network
from tilewright.compiler.pipelines import compile_network
from tilewright.compiler.reference import run_network
from tilewright.runtime.quantization import as_int8, dequantize_output, quantize_input
from tilewright.runtime.reference import Reference, session


def random_inputs(network: Network, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return inputs of the model that fill the range of int8, a few beyond it."""
    inputs = {}
    for info in network.inputs:
        if info.onnx_dtype == "float32":
            levels = rng.uniform(-135, 135, info.onnx_shape) - info.zero_point
            inputs[info.onnx_name] = (levels * info.scale).astype(np.float32)
        else:
            bounds = np.iinfo(info.onnx_dtype)
            inputs[info.onnx_name] = rng.integers(bounds.min, bounds.max + 1, info.onnx_shape).astype(info.onnx_dtype)
    return inputs


def assert_exact(model: bytes | Path, samples: int = 3) -> Network:
    """Compile ``model`` and compare every tensor with ONNX Runtime's, and every output with an untouched session's."""
    network, reference, untouched = compile_network(model), Reference(model), session(model)
    assert reference.rounded_in_float == ()
    rng = np.random.default_rng(0)
    for _ in range(samples):
        inputs = random_inputs(network, rng)
        expected = reference.run(inputs)
        tensors = run_network(network, {i.name: quantize_input(i, inputs[i.onnx_name]) for i in network.inputs})
        assert tensors.keys() == network.tensors.keys()
        for name, tensor in tensors.items():
            wrong = np.count_nonzero(tensor.ravel() != as_int8(expected[name]).ravel()) if name in expected else 0
            assert wrong == 0, f"{wrong} of {tensor.size} elements of {name} differ"
            assert name in expected or name in inputs, f"{name} is no tensor of ONNX Runtime's"
        results = untouched.run([info.onnx_name for info in network.outputs], inputs)
        for info, result in zip(network.outputs, results, strict=True):
            np.testing.assert_array_equal(dequantize_output(info, tensors[info.name]), result)
    # A network that only saturates would prove nothing.
    assert all(len(np.unique(tensors[layer.output])) > 1 for layer in network.layers)
    return network
