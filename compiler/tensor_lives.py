"""The tensors of a compiled network in main memory: their addresses, and between which layers they are needed."""

from collections.abc import Mapping
from dataclasses import dataclass

from tilewright.compiler.network.layers import Network
from tilewright.compiler.network.memory_map import root_of, tensor_bytes

__all__ = ["WEIGHTS", "TensorLife", "tensor_lives"]

WEIGHTS = " weights"
"""Name of the constants' place: no tensor of a model has one that begins with a blank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorLife:
    """A place in main memory over time.

    Attributes
    ----------
    name : str
        Of the tensor; of all weights and constants together it is ``WEIGHTS``.
    address, size : int
        Bytes.
    first, last : int
        Layers by whose run it is taken, counted from 0: what the caller writes or reads lives from or to the border.
    """

    name: str
    address: int
    size: int
    first: int
    last: int


def tensor_lives(network: Network, weights: tuple[int, int], addresses: Mapping[str, int]) -> tuple[TensorLife, ...]:
    """Return the life of each tensor that ``addresses`` place, and of the constants.

    ``weights`` are address and bytes of the constants. Parts of tensors live with the tensor they are part of.
    """
    end = max(0, len(network.layers) - 1)
    spans: dict[str, tuple[int, int]] = {root_of(info): (0, 0) for info in network.inputs}
    for index, layer in enumerate(network.layers):
        for name in (*layer.writes, *layer.reads):
            root = root_of(network.tensors[name]) if name in network.tensors else name
            spans[root] = (spans.get(root, (index, index))[0], index)
    for info in network.outputs:
        root = root_of(info)
        spans[root] = (spans.get(root, (0, 0))[0], end)
    lives = [TensorLife(name=WEIGHTS, address=weights[0], size=weights[1], first=0, last=end)] if weights[1] else []
    lives += [TensorLife(name=name, address=address, size=tensor_bytes(network.tensors[name]), first=spans[name][0],
                         last=spans[name][1])
              for name, address in addresses.items() if network.tensors[name].place is None and name in spans]
    return tuple(lives)
