"""Random networks full of concatenations, slices, upsampling and transposed convolutions, and what they compute.

What they compute is evaluated step by step with arrays of their own, so that it knows nothing of places in memory.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from tests.support.random_layers import Shape, build_layer
from tests.support.transposed import sums_by_definition
from tilewright.compiler.network.layers import CoreLayer, Layer, Network, Requantisation, TensorInfo
from tilewright.compiler.network.movements import ConcatMove, SliceMove, UpsampleMove, ViewMove
from tilewright.compiler.network.places import PlacementStep, copy_layer, place_tensors
from tilewright.compiler.network.reference import requantise, run_layer
from tilewright.compiler.network.transposed import TransposedConvolution, transposed_shape


@dataclass(frozen=True)
class Transposed:
    """A transposed convolution, by its definition."""

    input: str
    output: str
    weights: np.ndarray
    bias: np.ndarray
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    zero_point: int
    requantisation: Requantisation

    def evaluate(self, x: np.ndarray, shape: tuple[int, int, int]) -> np.ndarray:
        sums = sums_by_definition(x.astype(np.int64) - self.zero_point, self.weights, self.bias, shape, self.strides,
                                  self.pads, (1, 1), 1)
        return requantise(self.requantisation, sums.astype(np.int32))


@dataclass
class Sketch:
    """A network under construction: ``steps`` to be placed, and ``meaning`` to be evaluated."""

    rng: np.random.Generator
    tensors: dict[str, TensorInfo] = field(default_factory=dict)
    steps: list[PlacementStep] = field(default_factory=list)
    meaning: list[PlacementStep | Transposed] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)

    def tensor(self, shape: tuple[int, int, int], zero_point: int = 0) -> str:
        """Add a tensor and return its name."""
        name = f"t{len(self.tensors)}"
        self.tensors[name] = TensorInfo(name=name, shape=shape, scale=np.float32(1), zero_point=zero_point)
        return name

    def input(self, shape: tuple[int, int, int]) -> str:
        """Add an input of the network."""
        name = self.tensor(shape)
        self.inputs.append(name)
        return name

    def do(self, step: PlacementStep) -> None:
        """Append a step that means itself."""
        self.steps.append(step)
        self.meaning.append(step)

    def layer(self, source: str, outputs: int, kernel: int, stride: int = 1, kind: str = "conv",
              groups: int = 1, *, plain: bool = True) -> str:
        """Append a layer; if it is not ``plain``, sometimes with max pooling or a residual of that shape."""
        channels, height, width = self.tensors[source].shape
        pad = kernel // 2
        made = build_layer(self.rng, kind, channels, outputs, groups,
                           [Shape(size, kernel, stride, 1, pad, pad) for size in (height, width)])
        if plain:
            made = replace(made, pool=None, residual=None, out_shape=made.conv_shape)
        if made.residual is not None:
            same = [name for name, info in self.tensors.items() if info.shape == made.conv_shape]
            made = replace(made, residual=replace(made.residual, tensor=str(self.rng.choice(same))) if same else None)
        name = self.tensor(made.out_shape)
        self.do(replace(made, name=f"layer {name}", input=source, output=name))
        return name

    def concat(self, names: list[str], axis: int = 0) -> str:
        """Append a concatenation."""
        shape = list(self.tensors[names[0]].shape)
        shape[axis] = sum(self.tensors[name].shape[axis] for name in names)
        output = self.tensor((shape[0], shape[1], shape[2]))
        self.do(ConcatMove(name=f"concat {output}", onnx_nodes=("concat",), inputs=tuple(names), output=output,
                           axis=axis))
        return output

    def slice(self, source: str, starts: tuple[int, int, int], shape: tuple[int, int, int],
              steps: tuple[int, int] = (1, 1)) -> str:
        """Append a slice."""
        output = self.tensor(shape)
        self.do(SliceMove(name=f"slice {output}", onnx_nodes=("slice",), input=source, output=output, starts=starts,
                          steps=steps))
        return output

    def view(self, source: str, shape: tuple[int, int, int], dims: tuple[int, ...] | None = None) -> str:
        """Append another shape of the same bytes, for the host core with ``dims``."""
        output = self.tensor(shape)
        self.tensors[output] = replace(self.tensors[output], dims=dims)
        self.do(ViewMove(name=f"view {output}", onnx_nodes=("view",), input=source, output=output))
        return output

    def core(self, source: str, dims: tuple[int, ...]) -> str:
        """Append an operator of the host core on all the bytes of ``source`` as an array of ``dims``."""
        size = int(np.prod(dims))
        before = self.view(source, (size, 1, 1), dims)
        output = self.tensor((size, 1, 1))
        self.tensors[output] = replace(self.tensors[output], dims=dims)
        self.do(CoreLayer(name=f"core {output}", onnx_nodes=("core",), op="Neg", inputs=(before,), output=output,
                          attrs={}, reason="a test wants it there"))
        return output

    def upsample(self, source: str, factors: tuple[int, int]) -> str:
        """Append nearest upsampling."""
        channels, height, width = self.tensors[source].shape
        output = self.tensor((channels, height * factors[0], width * factors[1]))
        self.do(UpsampleMove(name=f"up {output}", onnx_nodes=("up",), input=source, output=output, factors=factors))
        return output

    def transposed(self, source: str, outputs: int, kernel: tuple[int, int], strides: tuple[int, int],
                   pads: tuple[int, int, int, int]) -> str:
        """Append a transposed convolution."""
        info, rng = self.tensors[source], self.rng
        shape = transposed_shape(info.shape, outputs, kernel, strides, pads)
        weights = rng.integers(-128, 128, (info.shape[0], outputs, *kernel), dtype=np.int8)
        bias = rng.integers(-1000, 1000, outputs).astype(np.int32)
        scale = np.full(outputs, 50 / (74 * 74 * (info.shape[0] * kernel[0] * kernel[1]) ** 0.5), np.float32)
        parameters = Requantisation(scale=scale, zero_point=3)
        output = self.tensor(shape)
        convolution = TransposedConvolution(
            name=f"transposed {output}", onnx_nodes=("transposed",), source=info, output=self.tensors[output],
            weights=weights, bias=bias, strides=strides, pads=pads, requantisation=parameters)
        layers, parts = convolution.layers()
        self.tensors |= parts
        self.steps += layers
        self.meaning.append(Transposed(source, output, weights, bias, strides, pads, info.zero_point, parameters))
        return output

    def network(self, outputs: list[str]) -> Network:
        """Return the network with its tensors in their places."""
        placed = place_tensors(self.steps, self.tensors, self.inputs, outputs)
        return Network(name="places", layers=placed.layers,
                       inputs=tuple(placed.tensors[name] for name in self.inputs),
                       outputs=tuple(placed.tensors[name] for name in outputs), tensors=placed.tensors)

    def evaluate(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return what each tensor is, by the meaning of the steps."""
        values = dict(inputs)
        for step in self.meaning:
            if isinstance(step, Layer):
                other = values[step.residual.tensor] if step.residual else None
                values[step.output] = run_layer(step, values[step.input], other)
            elif isinstance(step, Transposed):
                values[step.output] = step.evaluate(values[step.input], self.tensors[step.output].shape)
            elif isinstance(step, ConcatMove):
                values[step.output] = np.concatenate([values[name] for name in step.inputs], axis=step.axis)
            elif isinstance(step, SliceMove):
                (c, y, x), (channels, height, width) = step.starts, self.tensors[step.output].shape
                part = values[step.input][c:c + channels, y::step.steps[0], x::step.steps[1]]
                values[step.output] = part[:, :height, :width]
            elif isinstance(step, ViewMove):
                values[step.output] = self.seen_as(step.output, self.in_memory(values[step.input]))
            elif isinstance(step, CoreLayer):
                values[step.output] = np.negative(values[step.inputs[0]])
            else:
                assert isinstance(step, UpsampleMove)
                values[step.output] = values[step.input].repeat(step.factors[0], 1).repeat(step.factors[1], 2)
        return values

    @staticmethod
    def in_memory(value: np.ndarray) -> np.ndarray:
        """Return the elements in the order in which they lie; arrays of the host core are of other than 3 axes."""
        return value.ravel() if value.ndim != 3 else value.transpose(1, 2, 0).ravel()

    def seen_as(self, name: str, elements: np.ndarray) -> np.ndarray:
        """Return elements in the order in which they lie as the value of tensor ``name``."""
        info = self.tensors[name]
        if info.dims is not None:
            return elements.reshape(info.dims)
        channels, height, width = info.shape
        return elements.reshape(height, width, channels).transpose(2, 0, 1)


def random_sketch(rng: np.random.Generator, length: int = 9, largest: int = 12, *, views: bool = False,
                  ) -> tuple[Sketch, list[str]]:
    """Return a network of about ``length`` steps on images up to ``largest`` pixels, and its outputs.

    With ``views``, some steps count the same bytes in other shapes, and some are the host core's.
    """
    sketch = Sketch(rng)
    size = rng.integers(2, largest + 1, 2)
    for _ in range(int(rng.integers(1, 3))):
        sketch.input((int(rng.integers(1, 12)), int(size[0]), int(size[1])))
    sketch.layer(sketch.inputs[0], int(rng.integers(1, 12)), 3)
    while len(sketch.meaning) < length:
        if views and rng.random() < 0.5:
            grow_view(sketch)
        else:
            grow(sketch)
    read = {name for step in sketch.meaning
            for name in (step.inputs if isinstance(step, ConcatMove | CoreLayer) else
                         step.reads if isinstance(step, Layer) else (step.input,))}
    made = [step.output for step in sketch.meaning]
    outputs = [name for name in made if name not in read or rng.random() < 0.1]
    return sketch, outputs


def grow_view(sketch: Sketch) -> None:
    """Append another shape of what there is, perhaps with an operator of the host core before it."""
    rng = sketch.rng
    source = str(rng.choice(_images(sketch)))
    size = int(np.prod(sketch.tensors[source].shape))
    if rng.random() < 0.4:
        inner = int(rng.choice(_divisors(size)))
        source = sketch.core(source, (1, 1, size // inner, inner, 1))
    channels = int(rng.choice([each for each in _divisors(size) if each <= 48]))
    width = int(rng.choice(_divisors(size // channels)))
    sketch.view(source, (channels, size // channels // width, width))


def _divisors(size: int) -> list[int]:
    return [each for each in range(1, size + 1) if size % each == 0]


def _images(sketch: Sketch) -> list[str]:
    """Return the tensors that are no arrays of the host core."""
    made = [*sketch.inputs, *(step.output for step in sketch.meaning)]
    return [name for name in made if sketch.tensors[name].dims is None]


def grow(sketch: Sketch) -> None:
    """Append a random step."""
    rng, tensors = sketch.rng, sketch.tensors
    made = _images(sketch)
    source = made[int(rng.integers(len(made)))]
    channels, height, width = tensors[source].shape
    choice = rng.random()
    if choice < 0.35:
        kernel = int(rng.choice([1, 3, 3]))
        groups = channels if rng.random() < 0.2 else 1
        sketch.layer(source, channels if groups > 1 else int(rng.integers(1, 14)), kernel, int(rng.choice([1, 1, 2])),
                     groups=groups, plain=False)
    elif choice < 0.4:
        sketch.layer(source, channels, 1, kind="pass", groups=channels, plain=False)
    elif choice < 0.7:
        axis = int(rng.choice([0, 0, 0, 1, 2]))
        shape = tensors[source].shape
        fitting = [name for name in made
                   if tensors[name].shape[:axis] + tensors[name].shape[axis + 1:] == shape[:axis] + shape[axis + 1:]]
        names = [str(name) for name in rng.choice(fitting, int(rng.integers(1, 4)))]
        if sum(tensors[name].shape[axis] for name in names) <= 40:
            sketch.concat(names, axis)
    elif choice < 0.85:
        starts = [int(rng.integers(0, size)) if axis == 0 or rng.random() < 0.3 else 0
                  for axis, size in enumerate((channels, height, width))]
        steps = (1, 1) if rng.random() < 0.7 else (int(rng.integers(1, 3)), int(rng.integers(1, 4)))
        sketch.slice(source, (starts[0], starts[1], starts[2]),
                     (int(rng.integers(1, channels - starts[0] + 1)), -(-(height - starts[1]) // steps[0]),
                      -(-(width - starts[2]) // steps[1])), steps)
    elif choice < 0.93:
        if max(height, width) <= 12:
            sketch.upsample(source, (int(rng.integers(1, 3)), int(rng.integers(1, 4))))
    elif max(height, width) <= 8 and (pad := int(rng.integers(0, 2))) < min(height, width):
        kernel = int(rng.integers(1, 5)), int(rng.integers(1, 5))
        if min(kernel) > pad:
            sketch.transposed(source, int(rng.integers(1, 6)), kernel, (int(rng.integers(1, 3)), 2), (pad,) * 4)


def padded(sketch: Sketch, source: str, pads: tuple[int, int, int, int], value: int) -> str:
    """Append a layer that pads."""
    info = sketch.tensors[source]
    layer = copy_layer("pad", ("pad",), info, "", pads=pads, pad_value=value)
    output = sketch.tensor(layer.out_shape)
    sketch.do(replace(layer, output=output))
    return output
