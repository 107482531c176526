"""Random networks of a few layers, seeded: mostly one behind the other, with branches, residuals, two readers too."""

from dataclasses import replace

import numpy as np

from tests.support.random_layers import RESIDUALS, Shape, build_layer
from tilewright.compiler.network.layers import Layer, Network, TensorInfo


def random_chain(rng: np.random.Generator, longest: int = 14, widest: int = 40) -> Network:
    """Return 2 to 6 layers of images up to ``longest`` pixels high and wide, with up to ``widest`` channels."""
    shapes = {"input": (int(rng.integers(1, widest)), *(int(size) for size in rng.integers(3, longest + 1, 2)))}
    layers: list[Layer] = []
    inputs = ["input"]
    for index in range(int(rng.integers(2, 7))):
        names = list(shapes)
        source = names[-1] if rng.random() < 0.85 else names[rng.integers(len(names))]
        layer = replace(random_layer_on(rng, shapes[source], widest), name=f"layer{index}", input=source,
                        output=f"tensor{index}")
        if layer.residual:
            others = [name for name in names if shapes[name] == layer.conv_shape]
            name = others[rng.integers(len(others))] if others and rng.random() < 0.7 else f"residual{index}"
            if name not in shapes:
                inputs.append(name)
            layer = replace(layer, residual=replace(layer.residual, tensor=name))
            shapes = {name: layer.conv_shape, **shapes}
        shapes[layer.output] = layer.out_shape
        layers.append(layer)
    tensors = {name: TensorInfo(name=name, shape=shape, scale=np.float32(1), zero_point=0)
               for name, shape in shapes.items()}
    read = {name for layer in layers for name in layer.reads}
    outputs = [layer.output for layer in layers if layer.output not in read or rng.random() < 0.1]
    return Network(name="chain", layers=tuple(layers), inputs=tuple(tensors[name] for name in inputs),
                   outputs=tuple(tensors[name] for name in outputs), tensors=tensors)


def random_layer_on(rng: np.random.Generator, shape: tuple[int, int, int], widest: int) -> Layer:
    """Return a layer whose input is of ``shape``."""
    channels, height, width = shape
    outputs = int(rng.integers(1, widest + 1))
    kind = str(rng.choice(["3x3"] * 4 + ["conv"] * 4 + ["fc", "average", "depthwise"]))
    if kind == "3x3" and min(height, width) >= 2:
        pad = int(rng.integers(height < 3 or width < 3, 2))
        axes = [Shape(size, 3, 1, 1, pad, pad) for size in (height, width)]
    elif kind == "fc":
        axes = [Shape(size, size, 1, 1, 0, 0) for size in (height, width)]
    else:
        axes = []
        for size in (height, width):
            kernel = int(rng.integers(1, min(5, size) + 1))
            before, after = (int(pad) for pad in rng.integers(0, kernel, 2))
            axes.append(Shape(size, kernel, int(rng.choice([1, 1, 2])), 1, before, after))
    if kind in ("average", "depthwise"):
        return build_layer(rng, "average" if kind == "average" else "conv", channels, channels, channels, axes)
    return build_layer(rng, "conv", channels, outputs, 1, axes)


def random_inputs(rng: np.random.Generator, network: Network) -> dict[str, np.ndarray]:
    """Return values of all inputs, int8 (C, H, W) by name."""
    return {info.name: rng.integers(-128, 128, info.shape, dtype=np.int8) for info in network.inputs}


def random_separable(rng: np.random.Generator, longest: int = 16, widest: int = 160) -> Network:
    """Return one to three times a convolution, a depthwise one and a convolution of 1x1, now and then with a residual.

    Residuals of depthwise layers are inputs. Some of what lies between is an output, or is read again.
    """
    name, shape = "input", (int(rng.integers(1, 65)), *(int(size) for size in rng.integers(3, longest + 1, 2)))
    shapes, layers, inputs = {name: shape}, [], [name]

    def append(outputs: int, groups: int, kernel: int, stride: int, residual: str = "") -> None:
        nonlocal name
        before = int(rng.integers(0, kernel))
        axes = [Shape(size, kernel, stride, 1, before, max(kernel - size - before, kernel - 1 - before))
                for size in shapes[name][1:]]
        layer = replace(build_layer(rng, "conv", shapes[name][0], outputs, groups, axes), pool=None,
                        name=f"layer{len(layers)}", input=name, output=f"tensor{len(layers)}")
        layer = replace(layer, out_shape=layer.conv_shape, residual=None)
        if residual == "new":
            residual = f"residual{len(layers)}"
            inputs.append(residual)
            shapes[residual] = layer.conv_shape
        if residual and shapes[residual] == layer.conv_shape:
            layer = replace(layer, residual=replace(RESIDUALS[rng.integers(len(RESIDUALS))], tensor=residual))
        name = layer.output
        shapes[name] = layer.out_shape
        layers.append(layer)

    for _ in range(int(rng.integers(1, 4))):
        source, wide = name, int(rng.integers(17, widest + 1))
        wide += -wide % int(rng.choice([1, 8, 16]))
        append(wide, 1, int(rng.choice([1, 1, 1, 3])), 1)
        append(wide, wide, int(rng.choice([2, 3, 3, 3, 5])), int(rng.choice([1, 1, 2])),
               "new" if rng.random() < 0.2 else "")
        append(shapes[source][0] if rng.random() < 0.7 else int(rng.integers(1, 65)), 1, 1, 1,
               source if rng.random() < 0.7 else "")
    tensors = {each: TensorInfo(name=each, shape=size, scale=np.float32(1), zero_point=0)
               for each, size in shapes.items()}
    outputs = [layer.output for layer in layers if layer is layers[-1] or rng.random() < 0.1]
    return Network(name="separable", layers=tuple(layers), inputs=tuple(tensors[each] for each in inputs),
                   outputs=tuple(tensors[each] for each in outputs), tensors=tensors)
