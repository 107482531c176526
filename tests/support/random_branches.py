"""Random networks, seeded, of tensors with several readers and of concatenations: fire modules, heads of detectors."""

from dataclasses import replace

import numpy as np

from tests.support.random_layers import RESIDUALS, Shape, build_layer
from tilewright.compiler.network.layers import Layer, MaxPooling, Network, Place, TensorInfo

__all__ = ["random_branches"]


class _Growth:
    """A network while it grows; ``parts`` are the places of what lies in a concatenation."""

    def __init__(self, rng: np.random.Generator, shape: tuple[int, int, int], widest: int) -> None:
        self.rng, self.widest = rng, widest
        self.shapes = {"input": shape}
        self.parts: dict[str, Place] = {}
        self.layers: list[Layer] = []

    def below(self, stop: int) -> int:
        return int(self.rng.integers(stop))

    def outputs(self) -> int:
        """Return a number of channels, mostly one that conv23 can store side by side."""
        count = 1 + self.below(self.widest)
        return count if self.rng.random() < 0.3 else -(-count // 4) * 4

    def layer(self, source: str, outputs: int, kernel: int, *, pool: bool = False) -> str:
        """Append a convolution of the size of its input, with max pooling behind it or without."""
        pad = kernel // 2
        axes = [Shape(size, kernel, 1, 1, pad, pad) for size in self.shapes[source][1:]]
        made = build_layer(self.rng, "conv", self.shapes[source][0], outputs, 1, axes)
        name = f"tensor{len(self.layers)}"
        window = MaxPooling(kernel=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1)) if pool else None
        shape = (outputs, *((size + 1) // 2 if pool else size for size in made.conv_shape[1:]))
        made = replace(made, name=f"layer{len(self.layers)}", input=source, output=name, pool=window, residual=None,
                       out_shape=shape, pad_value=self.below(2) * -128)
        alike = [other for other, size in self.shapes.items() if size == shape and other not in self.parts]
        if alike and not pool and self.rng.random() < 0.2:
            residual = replace(RESIDUALS[self.below(len(RESIDUALS))], tensor=alike[self.below(len(alike))])
            made = replace(made, residual=residual)
        self.shapes[name] = shape
        self.layers.append(made)
        return name

    def module(self, source: str) -> str:
        """Append a layer, two or three that read it, and mostly the concatenation of what they compute."""
        squeezed = self.layer(source, self.outputs(), int(self.rng.choice([1, 1, 3])))
        pool = self.rng.random() < 0.2 and min(self.shapes[squeezed][1:]) > 4
        parts = [self.layer(squeezed, self.outputs(), int(self.rng.choice([1, 3, 3])), pool=pool)
                 for _ in range(2 + self.below(2))]
        if self.rng.random() < 0.15:
            return parts[self.below(len(parts))]
        if self.rng.random() < 0.2 and not pool:
            parts.insert(self.below(2), squeezed)
        return self.joined(parts)

    def joined(self, parts: list[str]) -> str:
        """Add a concatenation of tensors that no other has."""
        name, offset = f"joined{len(self.layers)}", 0
        channels = sum(self.shapes[part][0] for part in parts)
        _, height, width = self.shapes[parts[0]]
        for part in parts:
            self.parts[part] = Place(parent=name, offset=offset, row_step=width * channels, pixel_step=channels)
            offset += self.shapes[part][0]
        self.shapes[name] = channels, height, width
        return name


def random_branches(rng: np.random.Generator, longest: int = 9, widest: int = 20) -> Network:
    """Return one to three modules, each on the one before, and up to two heads, on images up to ``longest`` pixels."""
    growth = _Growth(rng, (int(rng.integers(1, widest)), *(int(size) for size in rng.integers(3, longest + 1, 2))),
                     widest)
    last = "input"
    for _ in range(int(rng.integers(1, 4))):
        last = growth.module(last)
    for _ in range(growth.below(3)):
        names = [last, last, *growth.shapes]
        head = growth.layer(names[growth.below(len(names))], growth.outputs(), int(rng.choice([1, 3])))
        if rng.random() < 0.5:
            growth.layer(head, growth.outputs(), 1)
    tensors = {name: TensorInfo(name=name, shape=shape, scale=np.float32(1), zero_point=0,
                                place=growth.parts.get(name)) for name, shape in growth.shapes.items()}
    read = {name for layer in growth.layers for name in layer.reads}
    inside = {tensors[name].place.parent for name in read if tensors[name].place is not None}
    made = [name for name in tensors if name != "input"]
    ends = [name for name in made if (name not in read and tensors[name].place is None)
            or (rng.random() < 0.08 and name not in inside)]
    return Network(name="branches", layers=tuple(growth.layers), inputs=(tensors["input"],),
                   outputs=tuple(tensors[name] for name in ends), tensors=tensors)
