"""Part of a network as a separate network, for runs that are cut at layer borders."""

from collections.abc import Collection, Mapping

import numpy as np

from tilewright.compiler.network.layers import Network, TensorInfo
from tilewright.compiler.network.memory_map import root_of
from tilewright.compiler.network.operands import Values

__all__ = ["given", "slice_network"]


def slice_network(network: Network, first: int, stop: int) -> Network:
    """Return the layers from ``first`` up to, not including, ``stop``.

    Its inputs are the tensors that those layers read and do not compute, in the order in which they are read; of one
    that lies in another, or has parts, the whole, unless all of that is computed. Its outputs are those tensors they
    compute that a later layer reads or the model hands out, in whole or in part.

    Raises
    ------
    ValueError
        If that is no layer, or not all of them exist.
    """
    if not 0 <= first < stop <= len(network.layers):
        raise ValueError(f"Layers must be a range inside 0:{len(network.layers)} with one layer or more, "
                         f"not {first}:{stop}")
    layers = network.layers[first:stop]
    read = dict.fromkeys(name for layer in layers for name in layer.reads)
    written = dict.fromkeys(name for layer in layers for name in layer.writes)
    later = {name for layer in network.layers[stop:] for name in layer.reads}
    later |= {tensor.name for tensor in network.outputs}
    known = network.tensors
    wholes = dict.fromkeys(root_of(known[name]) for name in (*read, *written) if name in known)
    missing = [root_of(known[name]) for name in read
               if name in known and name not in written and root_of(known[name]) not in network.constants
               and not _computed(root_of(known[name]), written, known)]
    names = [name for name in dict.fromkeys([*read, *written, *wholes]) if name in known]
    touched = {root_of(known[name]) for name in later if name in known}
    return Network(
        name=f"{network.name}, layers {first}:{stop}",
        layers=layers,
        inputs=tuple(known[name] for name in dict.fromkeys(missing)),
        outputs=tuple(known[name] for name in written if root_of(known[name]) in touched),
        tensors={name: known[name] for name in names},
        constants={name: network.constants[name] for name in (*read, *wholes) if name in network.constants},
    )


def _computed(whole: str, written: Collection[str], tensors: Mapping[str, TensorInfo]) -> bool:
    """Tell whether the tensors ``written``, of which no two overlap unless alike, make up all of ``whole``."""
    if whole in written:
        return True
    places = {(info.place, info.bytes) for info in (tensors[name] for name in written)
              if info.place is not None and info.place.parent == whole}
    return sum(size for _, size in places) == tensors[whole].bytes


def given(part: Network, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the inputs of ``part``, a range of layers, from the ``values`` of all tensors.

    Of a tensor that the range writes some parts of, those are zero: it has to compute them itself.
    """
    inputs = Values(part.tensors)
    for info in part.inputs:
        inputs[info.name] = values[info.name]
    for name in (name for layer in part.layers for name in layer.writes):
        if part.tensors[name].place is not None:
            inputs[name] = np.zeros_like(values[name])
    return {info.name: inputs[info.name] for info in part.inputs}
