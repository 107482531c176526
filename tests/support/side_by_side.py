"""Many layers in one network, each with inputs of its own: one compilation and one run for all of them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tests.support.random_layers import fitting_layers, network_of, random_narrow_layer, random_whole_layer
from tests.support.rtl import execute_rtl
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.network.layers import Layer, MaxPooling, Network, TensorInfo
from tilewright.compiler.network.reference import run_network
from tilewright.isa.core_names import HOST_CORE, HostName
from tilewright.isa.machine import Machine


def side_by_side(layers: Sequence[Layer]) -> Network:
    """Return a network of independent layers; layer i and its tensors have " i" behind their names."""
    renamed: list[Layer] = []
    tensors: dict[str, TensorInfo] = {}
    inputs: list[TensorInfo] = []
    outputs: list[TensorInfo] = []
    for index, layer in enumerate(layers):
        alone = network_of(layer)
        infos = {name: replace(info, name=f"{name} {index}", place=info.place and replace(
            info.place, parent=f"{info.place.parent} {index}")) for name, info in alone.tensors.items()}
        residual = layer.residual and replace(layer.residual, tensor=f"{layer.residual.tensor} {index}")
        renamed.append(replace(layer, name=f"{layer.name} {index}", input=f"{layer.input} {index}",
                               output=f"{layer.output} {index}", residual=residual))
        tensors |= {info.name: info for info in infos.values()}
        inputs += [infos[info.name] for info in alone.inputs]
        outputs += [infos[info.name] for info in alone.outputs]
    return Network(name="layers side by side", layers=tuple(renamed), inputs=tuple(inputs), outputs=tuple(outputs),
                   tensors=tensors)


def random_side_by_side(machine: Machine, seed: int, count: int = 12) -> tuple[Network, dict[str, np.ndarray]]:
    """Return layers side by side, and their inputs: some with a table, with one before a pooling, with whole sums."""
    rng = np.random.default_rng(seed)
    layers = fitting_layers(rng, machine, count) + fitting_layers(rng, machine, 2, random_narrow_layer)
    for index in range(0, count, 3):
        layers[index] = replace(layers[index], table=rng.integers(-128, 128, 256).astype(np.int8))
    layers[1] = _with_pool(layers[1])
    layers += fitting_layers(np.random.default_rng(seed + 1000), machine, 2, random_whole_layer)
    network = side_by_side(layers)
    return network, {info.name: rng.integers(-128, 128, info.shape, dtype=np.int8) for info in network.inputs}


def _with_pool(layer: Layer) -> Layer:
    channels, height, width = layer.conv_shape
    return replace(layer, residual=None, pool=MaxPooling(kernel=(1, 1), strides=(2, 2), pads=(0, 0, 0, 0)),
                   out_shape=(channels, -(-height // 2), -(-width // 2)))


def assert_layers_equal_the_reference(machine: Machine, seed: int, folder: Path, host: HostName = HOST_CORE) -> None:
    """Run such layers in RTL beside ``host``; assert that each computes what the reference does."""
    network, inputs = random_side_by_side(machine, seed)
    tensors, _ = execute_rtl(compile_layers(network, machine, keep_tensors=True), inputs, folder, host=host)
    expected = run_network(network, inputs)
    for layer in network.layers:
        np.testing.assert_array_equal(tensors[layer.output], expected[layer.output], err_msg=layer.name)
