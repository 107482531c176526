"""Many layers in one network, each with inputs of its own: one compilation and one run for all of them."""

from collections.abc import Sequence
from dataclasses import replace

from tests.support.random_layers import network_of
from tilewright.compiler.network.layers import Layer, Network, TensorInfo


def side_by_side(layers: Sequence[Layer]) -> Network:
    """Return a network of independent layers; layer i and its tensors have " i" behind their names."""
    renamed: list[Layer] = []
    tensors: dict[str, TensorInfo] = {}
    inputs: list[TensorInfo] = []
    outputs: list[TensorInfo] = []
    for index, layer in enumerate(layers):
        alone = network_of(layer)
        infos = {name: replace(info, name=f"{name} {index}") for name, info in alone.tensors.items()}
        residual = layer.residual and replace(layer.residual, tensor=f"{layer.residual.tensor} {index}")
        renamed.append(replace(layer, name=f"{layer.name} {index}", input=f"{layer.input} {index}",
                               output=f"{layer.output} {index}", residual=residual))
        tensors |= {info.name: info for info in infos.values()}
        inputs += [infos[info.name] for info in alone.inputs]
        outputs += [infos[info.name] for info in alone.outputs]
    return Network(name="layers side by side", layers=tuple(renamed), inputs=tuple(inputs), outputs=tuple(outputs),
                   tensors=tensors)
