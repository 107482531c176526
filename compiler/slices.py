"""Part of a network as a network of its own: what is simulated when a run is cut at layer borders."""

from tilewright.compiler.layers import Layer, Network


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
    read = [name for layer in layers for name in reads(layer)]
    written = dict.fromkeys(layer.output for layer in layers)
    later = {name for layer in network.layers[stop:] for name in reads(layer)}
    later |= {tensor.name for tensor in network.outputs}
    names = dict.fromkeys([*read, *written])
    return Network(
        name=f"{network.name}, layers {first}:{stop}",
        layers=layers,
        inputs=tuple(network.tensors[name] for name in dict.fromkeys(read) if name not in written),
        outputs=tuple(network.tensors[name] for name in written if name in later),
        tensors={name: network.tensors[name] for name in names},
    )


def reads(layer: Layer) -> tuple[str, ...]:
    """Return the tensors that a layer reads."""
    return (layer.input,) if layer.residual is None else (layer.input, layer.residual.tensor)
