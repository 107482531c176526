"""How a tensor lies in main memory: NHWC, gap-free or as part of a larger tensor."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tilewright.compiler.network.layers import Layer, Place, Shape, TensorInfo

__all__ = ["LayerLayouts", "Layout", "channels_of", "layout_of", "place_of"]


@dataclass(frozen=True, slots=True)
class Layout:
    """Bytes from a row to the next and from a pixel to the next; the channels of a pixel follow one another.

    ``shape`` is (channels, height, width) of a tensor of int8. Where its rows are those of several ``images`` that do
    not go on from one to the next, these are ``image_step`` bytes apart.
    """

    shape: Shape
    row_step: int
    pixel_step: int
    images: int = 1
    image_step: int = 0

    @property
    def rows_whole(self) -> bool:
        """Whether the pixels of a row follow one another without gaps."""
        return self.shape[2] == 1 or self.pixel_step == self.shape[0]

    @property
    def whole(self) -> bool:
        """Whether there are no gaps at all."""
        channels, height, width = self.shape
        return self.images == 1 and self.rows_whole and (height == 1 or self.row_step == width * channels)

    @property
    def span(self) -> int:
        """Bytes from the first element to behind the last."""
        channels, height, width = self.shape
        return self.at(height - 1, width - 1) + channels

    def at(self, row: int, column: int) -> int:
        """Return the bytes from the first element to that pixel."""
        image, y = divmod(row, self.shape[1] // self.images)
        return image * self.image_step + y * self.row_step + column * self.pixel_step


def layout_of(info: TensorInfo) -> Layout:
    """Return how a tensor of int8 lies in memory."""
    channels, _, width = info.shape
    if info.place is None:
        return Layout(info.shape, width * channels, channels)
    images = info.images if info.place.image_step else 1
    return Layout(info.shape, info.place.row_step, info.place.pixel_step, images, info.place.image_step)


def place_of(info: TensorInfo) -> Place:
    """Return where a tensor lies in what holds it, which may be itself."""
    channels, _, width = info.shape
    return info.place or Place(parent=info.name, offset=0, row_step=width * channels, pixel_step=channels)


def channels_of(info: TensorInfo, first: int, stop: int) -> TensorInfo:
    """Return a range of a tensor's channels as a part of what the tensor lies in."""
    place = place_of(info)
    absent = info.absent and info.absent.part(first, stop, place_of(info.in_model))
    return replace(info, name=f"{info.name}[{first}:{stop}]", shape=(stop - first, *info.shape[1:]),
                   place=replace(place, offset=place.offset + first), dims=None, absent=absent,
                   onnx_name=None, onnx_dtype=None, onnx_shape=None)


@dataclass(frozen=True, slots=True)
class LayerLayouts:
    """Layouts of a layer's tensors in memory; the ``outputs`` are those of ``Layer.writes``."""

    input: Layout
    residual: Layout | None
    outputs: tuple[Layout, ...]
    addend: Layout | None = None

    @property
    def inputs_whole(self) -> bool:
        """Whether nothing lies between the pixels of a row of any input."""
        return self.input.rows_whole and (self.addend is None or self.addend.rows_whole)

    @classmethod
    def of(cls, layer: Layer, tensors: Mapping[str, TensorInfo]) -> "LayerLayouts":
        """Return those of a layer of a network with these ``tensors``."""
        residual = layout_of(tensors[layer.residual.tensor]) if layer.residual else None
        added = layer.words.addend
        return cls(layout_of(tensors[layer.input]), residual, tuple(layout_of(tensors[name]) for name in layer.writes),
                   None if added is None else layout_of(tensors[added.upper]))

    @classmethod
    def gap_free(cls, layer: Layer) -> "LayerLayouts":
        """Return the layouts of a layer whose tensors are not parts of others."""
        def alone(shape: Shape) -> Layout:
            return Layout(shape, shape[2] * shape[0], shape[0])
        return cls(alone(layer.in_shape), alone(layer.conv_shape) if layer.residual else None,
                   (alone(layer.out_shape),) * len(layer.writes))
