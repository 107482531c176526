"""Part of a network as a network of its own: what is simulated when a run is cut at layer borders."""

from tilewright.compiler.layers import Network


def slice_network(network: Network, first: int, stop: int) -> Network:
    """Return the layers from ``first`` up to, not including, ``stop``.

    Its inputs are the tensors that those layers read and do not compute, in the order in which they are read. Its
    outputs are those they compute that a later layer reads or the model hands out.

    Raises
    ------
    ValueError
        If that is no layer, or not all of them exist.
    """
    if not 0 <= first < stop <= len(network.layers):
        raise ValueError(f"Layers must be a range inside 0:{len(network.layers)} with one layer or more, "
                         f"not {first}:{stop}")
    layers = network.layers[first:stop]
    read = [name for layer in layers for name in layer.reads]
    written = dict.fromkeys(name for layer in layers for name in layer.writes)
    later = {name for layer in network.layers[stop:] for name in layer.reads}
    later |= {tensor.name for tensor in network.outputs}
    names = [name for name in dict.fromkeys([*read, *written]) if name in network.tensors]
    return Network(
        name=f"{network.name}, layers {first}:{stop}",
        layers=layers,
        inputs=tuple(network.tensors[name] for name in names if name not in written),
        outputs=tuple(network.tensors[name] for name in written if name in later),
        tensors={name: network.tensors[name] for name in names},
        constants={name: network.constants[name] for name in dict.fromkeys(read) if name in network.constants},
    )
