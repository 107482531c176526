"""Tensors inside tensors: concatenation, slicing and nearest upsampling become addresses, and cost no copy.

A movement (``compiler/network/movements.py``) says that one tensor is made of, or is part of, another.
:func:`place_tensors` gives each part its place in the whole, so that whoever computes it writes it where it belongs:

    concat     the inputs lie in the output, one after the other along an axis
    slice      the output lies in the input
    upsample   the input is stored once for every pixel it becomes, each time to another phase of the output
    view       input and output are the same bytes
    piece      the output lies among the bytes of the input
    assembly   the inputs lie among the bytes of the output

A tensor has one home. Where it belongs to a second place, the layer that computes it stores it there too
(``Layer.also``); where no layer of the datapath computes it (an input of the model, a result of the host core, the
whole of other parts) a layer that copies it does.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.compiler.network.layers import (
    ByteSteps,
    CoreLayer,
    Layer,
    Pads,
    Pair,
    Place,
    Requantisation,
    Shape,
    TensorInfo,
)
from tilewright.compiler.network.movements import (
    AssemblyMove,
    ConcatMove,
    Movement,
    PieceMove,
    SliceMove,
    UpsampleMove,
    ViewMove,
)
from tilewright.compiler.network.strided_views import reshaped_place, whole_place

__all__ = ["Placed", "PlacementStep", "TensorPart", "copy_layer", "place_tensors"]


PlacementStep = Layer | CoreLayer | Movement


@dataclass(frozen=True, slots=True)
class Placed:
    """The layers left to compute, and all tensors with their places."""

    layers: tuple[Layer | CoreLayer, ...]
    tensors: dict[str, TensorInfo]


def place_tensors(steps: Sequence[PlacementStep], tensors: Mapping[str, TensorInfo], inputs: Collection[str],
                  outputs: Collection[str] = ()) -> Placed:
    """Turn movements into places.

    Parameters
    ----------
    steps : sequence of Layer, CoreLayer or Movement
        In an order in which they can be executed. Tensors that they move are int8, with dims of (1, channels, height,
        width), or vectors.
    tensors : mapping of str to TensorInfo
        Every tensor that ``steps`` name. Those that have a place already keep it, inside a whole that may find a
        place in turn.
    inputs, outputs : collection of str
        Tensors of the model's border, by their names.

    Returns
    -------
    Placed
        Layers of the datapath and of the core in the same order, some storing to more places, some that only copy
        added. No tensor lies in one that itself lies in another.
    """
    state = _Placement(dict(tensors), frozenset(inputs), _readers(steps, outputs))
    for step in _share_concats(steps):
        state.add(step)
    return Placed(tuple(state.layers), state.located())


def copy_layer(name: str, onnx_nodes: tuple[str, ...], source: TensorInfo, output: str, *,
               pads: Pads = (0, 0, 0, 0), pad_value: int = 0) -> Layer:
    """Return the layer that copies ``source`` to ``output``, with ``pads`` of ``pad_value`` around it."""
    channels, height, width = source.shape
    shape = channels, height + pads[0] + pads[2], width + pads[1] + pads[3]
    return Layer(name=name, kind="pass", onnx_nodes=onnx_nodes, input=source.name, output=output, in_shape=source.shape,
                 conv_shape=shape, out_shape=shape, weights=None, bias=np.zeros(channels, np.int32), pads=pads,
                 groups=channels, pad_value=pad_value,
                 requantisation=Requantisation(scale=np.ones(channels, np.float32), zero_point=0))


@dataclass(frozen=True, slots=True)
class TensorPart:
    """Pixel (y, x), channel c of a part is pixel ``start + steps * (y, x)``, channel ``start + c`` of ``whole``."""

    whole: str
    start: Shape
    steps: Pair = (1, 1)

    def place(self, shape: Shape) -> Place:
        """Return the place in bytes, in a whole of ``shape``."""
        channels, _, width = shape
        c, y, x = self.start
        return Place(parent=self.whole, offset=(y * width + x) * channels + c,
                     row_step=self.steps[0] * width * channels, pixel_step=self.steps[1] * channels)


def _part_of(place: Place, shape: Shape) -> TensorPart:
    """Return the part whose place in a whole of ``shape`` is ``place``."""
    channels, _, width = shape
    y, rest = divmod(place.offset, width * channels)
    x, c = divmod(rest, channels)
    return TensorPart(place.parent, (c, y, x), (place.row_step // (width * channels), place.pixel_step // channels))


@dataclass(frozen=True, slots=True)
class _AllOf:
    """The same bytes as all of ``source``."""

    source: str


@dataclass(frozen=True, slots=True)
class _Among:
    """At ``steps`` among the bytes of ``whole``, which has no gaps."""

    whole: str
    steps: ByteSteps


_Home = TensorPart | _AllOf | _Among


class _Placement:
    """Layers and homes found so far.

    ``inner`` are the tensors that have their homes in one, and ``auxiliary`` those that only tell of a home.
    """

    def __init__(self, tensors: dict[str, TensorInfo], inputs: frozenset[str], readers: Counter[str]) -> None:
        self.tensors = tensors
        self.readers = readers
        self.layers: list[Layer | CoreLayer] = []
        self.makers: dict[str, int] = {}
        self.fixed = set(inputs)
        self.homes: dict[str, _Home] = {}
        self.inner: dict[str, list[str]] = {}
        self.auxiliary: set[str] = set()
        for info in tensors.values():
            # Bytes of whole sums stay where they are: what they lie in lies in nothing else.
            if info.place is not None and tensors[info.place.parent].dtype == "int8":
                self.settle(info.name, _part_of(info.place, tensors[info.place.parent].shape))

    def add(self, step: PlacementStep) -> None:
        """Take over a layer, or turn a movement into homes."""
        match step:
            case Layer():
                self.makers[step.output] = len(self.layers)
                self.layers.append(step)
            case CoreLayer():
                info = self.tensors[step.output]
                image = info.dims is None or (len(info.dims) == 4 and info.dims[0] == 1)
                if info.dtype != "int8" or not (image or info.shape[1:] == (1, 1)):
                    self.fixed.add(step.output)
                self.layers.append(step)
            case SliceMove():
                self.settle(step.output, TensorPart(step.input, step.starts, step.steps))
            case ViewMove():
                self.settle_in(step, _AllOf)
            case PieceMove(steps=steps):
                self.settle_in(step, lambda source: _Among(source, steps))
            case AssemblyMove():
                for name, steps in zip(step.inputs, step.steps, strict=True):
                    self.put(step, name, [_Among(step.output, steps)], move=True)
            case ConcatMove():
                self.join(step)
            case UpsampleMove():
                self.repeat(step)

    def join(self, step: ConcatMove) -> None:
        """Put tensors one after the other."""
        start = 0
        for name in step.inputs:
            corner = [0, 0, 0]
            corner[step.axis] = start
            self.put(step, name, [TensorPart(step.output, (corner[0], corner[1], corner[2]))], move=True)
            start += self.tensors[name].shape[step.axis]

    def repeat(self, step: UpsampleMove) -> None:
        """Put a tensor to every phase of a larger one."""
        rows, columns = step.factors
        phases = [TensorPart(step.output, (0, y, x), step.factors) for y in range(rows) for x in range(columns)]
        # Who else reads the input had better find it in one piece.
        alone = step.input in self.makers and self.readers[step.input] == 1
        self.put(step, step.input, phases, move=alone)

    def settle(self, name: str, home: _Home) -> None:
        """Give a tensor its home."""
        self.homes[name] = home
        self.inner.setdefault(home.source if isinstance(home, _AllOf) else home.whole, []).append(name)

    def settle_in(self, step: ViewMove | PieceMove, home: Callable[[str], _Home]) -> None:
        """Give what is all or part of a tensor its home in that; in a copy of it where gaps are in the way."""
        source = self.tensors[step.input]
        self.settle(step.output, home(source.name))
        if self.place_of(step.output) is None:
            packed = self.copy_of(source.name, None)
            self.layers.append(copy_layer(f"{step.name}, copy of {source.name}", step.onnx_nodes, source, packed))
            self.makers[packed] = len(self.layers) - 1
            self.inner[source.name].remove(step.output)
            self.settle(step.output, home(packed))

    def put(self, step: Movement, name: str, parts: Sequence[TensorPart | _Among], *, move: bool) -> None:
        """See to it that tensor ``name`` comes to lie at all of ``parts``; it may ``move`` to the first."""
        if move and self.moved(name, parts[0]):
            parts = parts[1:]
        origin = self.origin(name)
        index, copies = self.makers.get(origin), []
        for part in parts:
            copy = self.copy_of(name, part)
            seen = None if index is None else copy if origin == name else self.seen_as(origin, copy)
            if index is None or seen is None:
                copies.append(copy)
                continue
            layer = self.layers[index]
            assert isinstance(layer, Layer)
            self.layers[index] = replace(layer, also=(*layer.also, seen))
        if copies:
            layer = copy_layer(f"{step.name}, copy of {name}", step.onnx_nodes, self.tensors[name], copies[0])
            self.layers.append(replace(layer, also=tuple(copies[1:])))

    def moved(self, name: str, part: TensorPart | _Among) -> bool:
        """Give ``name``, and what it is a view of, its home at ``part``; tell whether that is possible."""
        origin = self.origin(name)
        if origin in self.homes or origin in self.fixed:
            return False
        if origin == name:
            self.settle(name, part)
        else:
            place = self.copy_of(name, part)
            self.auxiliary.add(place)
            self.settle(origin, _AllOf(place))
        if self.possible(origin):
            return True
        home = self.homes.pop(origin)
        self.inner[home.source if isinstance(home, _AllOf) else home.whole].remove(origin)
        return False

    def origin(self, name: str) -> str:
        """Return the tensor that ``name`` is all the bytes of."""
        while isinstance(home := self.homes.get(name), _AllOf) and home.source not in self.auxiliary:
            name = home.source
        return name

    def seen_as(self, name: str, copy: str) -> str | None:
        """Return a tensor of the shape of ``name`` that is all the bytes of ``copy``; None if its gaps forbid it."""
        seen = self.copy_of(name, None)
        self.settle(seen, _AllOf(copy))
        if self.place_of(seen) is not None:
            self.auxiliary.add(copy)
            return seen
        self.inner[copy].remove(seen)
        del self.homes[seen], self.tensors[seen]
        return None

    def copy_of(self, name: str, part: TensorPart | _Among | None) -> str:
        """Return a new tensor like ``name``, with its home at ``part`` if there is one."""
        plain = f"{name} in {part.whole}" if part is not None else f"{name}, packed"
        new, count = plain, 1
        while new in self.tensors:
            count += 1
            new = f"{plain}#{count}"
        self.tensors[new] = replace(self.tensors[name], name=new, onnx_name=None, onnx_dtype=None, onnx_shape=None,
                                    place=None)
        if part is not None:
            self.settle(new, part)
        return new

    def place_of(self, name: str) -> Place | None:
        """Return where a tensor lies in what lies in nothing else; None for a view that gaps forbid."""
        home, shape = self.homes.get(name), self.tensors[name].shape
        if home is None:
            return whole_place(name, shape)
        if isinstance(home, _AllOf):
            place = self.place_of(home.source)
            return place and reshaped_place(place, self.tensors[home.source].shape, shape)
        outer = self.place_of(home.whole)
        if outer is None:
            return None
        if isinstance(home, _Among):
            steps, whole = home.steps, self.tensors[home.whole].shape
            vector = reshaped_place(outer, whole, (math.prod(whole), 1, 1))
            return vector and Place(parent=outer.parent, offset=outer.offset + steps.offset, row_step=steps.row,
                                    pixel_step=steps.pixel)
        c, y, x = home.start
        return Place(parent=outer.parent, offset=outer.offset + y * outer.row_step + x * outer.pixel_step + c,
                     row_step=home.steps[0] * outer.row_step, pixel_step=home.steps[1] * outer.pixel_step)

    def possible(self, name: str) -> bool:
        """Tell whether a tensor and all that lie in it can lie where they are to."""
        waiting = [name]
        while waiting:
            each = waiting.pop()
            if self.place_of(each) is None:
                return False
            waiting += self.inner.get(each, ())
        return True

    def located(self) -> dict[str, TensorInfo]:
        """Return the tensors with their places in what lies in nothing else."""
        return {name: replace(info, place=self.place_of(name)) if name in self.homes else info
                for name, info in self.tensors.items() if name not in self.auxiliary}


def _readers(steps: Sequence[PlacementStep], outputs: Collection[str]) -> Counter[str]:
    """Return how often each tensor is read, by steps or as an output of the model."""
    readers = Counter(outputs)
    for step in steps:
        if isinstance(step, Layer):
            readers.update(step.reads)
        elif isinstance(step, (CoreLayer, ConcatMove, AssemblyMove)):
            readers.update(step.inputs)
        else:
            readers.update((step.input,))
    return readers


def _share_concats(steps: Sequence[PlacementStep]) -> list[PlacementStep]:
    """Return ``steps`` with concatenations that go on from earlier ones made of those, so that nothing is in both.

    Dense blocks concatenate all that is there so far again and again.
    """
    done: list[ConcatMove] = []
    shared: list[PlacementStep] = []
    for step in steps:
        if isinstance(step, ConcatMove):
            original = step
            for other in sorted(done, key=lambda each: -len(each.inputs)):
                size = len(other.inputs)
                starts = [start for start in range(len(step.inputs) - size + 1)
                          if step.inputs[start:start + size] == other.inputs]
                if other.axis == step.axis and starts:
                    start = starts[0]
                    step = replace(step, inputs=(*step.inputs[:start], other.output, *step.inputs[start + size:]))
                    break
            done.append(original)
        shared.append(step)
    return shared
