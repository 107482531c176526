"""Random layers and machines, seeded: every kind of layer the back end takes, on presets and on tiny buffers."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tests.support.machines import WINOGRAD_MACHINES
from tilewright.compiler.network.layers import Layer, MaxPooling, Network, Requantisation, Residual, TensorInfo
from tilewright.compiler.network.strided_views import whole_place
from tilewright.compiler.plan.planner import DoesNotFitError, plan_layer
from tilewright.isa.machine import Machine

# Few different ones, because the reference computes all 65,536 sums of each.
RESIDUALS = tuple(
    Residual(tensor="residual", scale_a=np.float32(scale_a), scale_b=np.float32(scale_b), zero_a=zero_a, zero_b=zero_b,
             zero_out=zero_out, low=low, high=high, unsigned=unsigned)
    for scale_a, scale_b, zero_a, zero_b, zero_out, low, high, unsigned in (
        (0.7, 0.9, 0, 0, 0, -128, 127, False),
        (1.1, 0.3, 5, -7, -128, -128, 127, False),
        (0.37, 1.9, -3, 11, 4, 4, 100, True)))


@dataclass(frozen=True, slots=True)
class Shape:
    """A layer's axis: sizes, and the window that moves over it."""

    image: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int

    @property
    def out(self) -> int:
        """Positions of the window."""
        return (self.image + self.before + self.after - (self.kernel - 1) * self.dilation - 1) // self.stride + 1


def random_axis(rng: np.random.Generator, kernel: int, longest: int) -> Shape:
    """Return an axis of at most ``longest`` pixels with at least one output."""
    stride = int(rng.choice([1, 1, 1, 2, 3] if kernel > 1 else [1, 1, 2, 3]))
    dilation = int(rng.choice([1, 1, 1, 2, 3])) if kernel > 1 else 1
    before, after = (int(pad) for pad in rng.integers(0, kernel + 1, 2))
    if rng.random() < 0.4:
        before = after = 0
    least = max(1, (kernel - 1) * dilation + 1 - before - after)
    return Shape(int(rng.integers(least, max(least, longest) + 1)), kernel, stride, dilation, before, after)


def random_pool(rng: np.random.Generator, height: int, width: int) -> MaxPooling | None:
    """Return 2x2 or 3x3 windows with stride 2, or others, as far as they fit a layer of that size."""
    kernel, stride, pad = ((2, 2, 0), (2, 2, 0), (3, 2, 1), (3, 2, 0), (3, 1, 1), (2, 3, 0), (5, 3, 2))[rng.integers(7)]
    if min(height, width) < kernel:
        return None
    pads = (pad, pad, pad, pad)
    if rng.random() < 0.3:
        pads = (pad, int(rng.integers(0, kernel)), int(rng.integers(0, kernel)), pad)
    return MaxPooling(kernel=(kernel, kernel), strides=(stride, stride), pads=pads)


def random_layer(rng: np.random.Generator, longest: int = 24, widest: int = 70) -> Layer:
    """Return a layer of images up to ``longest`` pixels high and wide, and up to ``widest`` channels."""
    kind = str(rng.choice(["conv"] * 12 + ["fc"] * 3 + ["average"] * 3 + ["pass"] * 3))
    channels = int(rng.integers(1, widest + 1) if rng.random() < 0.6 else rng.integers(1, 9))
    outputs = int(rng.integers(1, widest + 1) if rng.random() < 0.6 else rng.integers(1, 9))
    groups = 1
    if kind == "conv" and rng.random() < 0.2:
        groups = int(rng.choice([2, 3, 4, channels]))
        channels, outputs = -(-channels // groups) * groups, -(-outputs // groups) * groups
    if kind in ("average", "pass"):
        outputs, groups = channels, channels
    if kind == "fc":
        largest = 8 if rng.random() < 0.8 else 15
        shapes = [Shape(size, size, 1, 1, 0, 0) for size in map(int, rng.integers(1, largest, 2))]
    elif kind == "pass":
        shapes = [Shape(int(size), 1, 1, 1, 0, 0) for size in rng.integers(1, longest + 1, 2)]
    elif kind == "conv" and groups > 1 and rng.random() < 0.6:
        # Winograd by lane groups that see few channels, at stride 2 dropping results.
        strides = rng.choice([1, 1, 2, 3], 2) if rng.random() < 0.5 else np.ones(2, int)
        shapes = [Shape(int(rng.integers(3, longest + 1)), 3, int(stride), 1, *map(int, rng.integers(0, 2, 2)))
                  for stride in strides]
    elif kind == "conv" and rng.random() < 0.4:
        pads = rng.integers(0, 3, 4) if rng.random() < 0.3 else np.full(4, rng.integers(0, 2))
        shapes = [Shape(int(rng.integers(3, longest + 1)), 3, 1, 1, int(pads[i]), int(pads[i + 2])) for i in range(2)]
    else:
        kernel_y = int(rng.integers(1, 8))
        kernel_x = kernel_y if rng.random() < 0.8 else int(rng.integers(1, 8))
        shapes = [random_axis(rng, kernel, longest) for kernel in (kernel_y, kernel_x)]
    layer = build_layer(rng, "conv" if kind == "fc" else kind, channels, outputs, groups, shapes)
    return all_alike(layer) if layer.kind != "conv" and rng.random() < 0.6 else layer


def mostly_small_layer(rng: np.random.Generator) -> Layer:
    """Return a layer that simulates quickly: one in five of images up to 24 pixels high and wide, others up to 12."""
    return random_layer(rng, longest=24, widest=70) if rng.random() < 0.2 else random_layer(rng, 12, 36)


def fitting_layers(rng: np.random.Generator, machine: Machine, count: int,
                   draw: Callable[[np.random.Generator], Layer] = mostly_small_layer) -> list[Layer]:
    """Return layers of which each fits ``machine``."""
    layers: list[Layer] = []
    while len(layers) < count:
        layer = draw(rng)
        try:
            plan_layer(layer, machine)
        except DoesNotFitError:
            continue
        layers.append(layer)
    return layers


def all_alike(layer: Layer) -> Layer:
    """Return ``layer`` with one bias and one scale for all channels, as averages and value tables have them."""
    scale = np.full_like(layer.requantisation.scale, layer.requantisation.scale[0])
    return replace(layer, bias=np.full_like(layer.bias, layer.bias[0]),
                   requantisation=replace(layer.requantisation, scale=scale))


def random_narrow_layer(rng: np.random.Generator, longest: int = 24) -> Layer:
    """Return a convolution whose kernel rows have few bytes: of few channels, depthwise, or with dilated columns.
    """
    channels = int(rng.integers(1, 9))
    shapes = [random_axis(rng, int(rng.integers(2, 8)), longest),
              random_axis(rng, int(rng.integers(1, 8 // channels + 1)), longest)]
    groups = 1
    if (extra := rng.random()) < 0.2:
        shapes[1] = replace(random_axis(rng, int(rng.integers(2, 6)), longest), dilation=1)
        channels = groups = int(rng.integers(1, 40))
    elif extra < 0.4:
        kernel_x = int(rng.integers(2, 6))
        least = 2 * (kernel_x - 1) + 1
        shapes[1] = Shape(int(rng.integers(least, longest + 1)), kernel_x, 1, 2, 0, 0)
    elif extra < 0.7:  # 17 to 24 bytes
        shapes[1] = replace(random_axis(rng, -(-17 // channels), longest), dilation=1)
    return build_layer(rng, "conv", channels, groups * int(rng.integers(1, 40 if groups == 1 else 3)), groups, shapes)


def random_large_layer(rng: np.random.Generator) -> Layer:
    """Return a layer whose kernel has more rows, or columns, or both, than a command's loops count."""
    kind = str(rng.choice(["conv", "conv", "depthwise", "average"]))
    channels = int(rng.choice([1, 2, 3, 8, 16, 24]))
    outputs = channels if kind != "conv" else int(rng.integers(1, 20))
    both = rng.random() < 0.3
    sizes = [*map(int, rng.integers(64, 72, 2))] if both else [int(rng.integers(64, 140)), 1]
    if not both and rng.random() < 0.3:
        sizes[1] = int(rng.integers(2, 4))
    if rng.random() < 0.5:
        sizes.reverse()
    if kind == "average" and rng.random() < 0.8:
        channels = int(rng.choice([16, 24, 48]))  # many, so that images too large for the buffer occur
        shapes = [Shape(size, size, 1, 1, 0, 0) for size in sizes]
        return all_alike(build_layer(rng, kind, channels, channels, channels, shapes))
    shapes = []
    for size in sizes:
        dilation = int(rng.choice([1, 1, 2])) if not both and kind != "average" else 1
        pads = [int(pad) for pad in rng.integers(0, min(size, 40), 2)] if rng.random() < 0.3 else [0, 0]
        least = max(1, (size - 1) * dilation + 1 - sum(pads))
        shapes.append(Shape(least + int(rng.integers(0, 6)), size, int(rng.choice([1, 1, 2])), dilation, *pads))
    layer = build_layer(rng, "average" if kind == "average" else "conv", channels, outputs,
                        1 if kind == "conv" else channels, shapes)
    return all_alike(layer) if kind == "average" and rng.random() < 0.6 else layer


def build_layer(rng: np.random.Generator, kind: str, channels: int, outputs: int, groups: int,
                shapes: list[Shape]) -> Layer:
    """Return a layer of these sizes with random weights, scales, zero points, clamp, residual or max pooling."""
    height, width = shapes
    conv_shape = outputs, height.out, width.out
    extra = rng.random()
    pool = random_pool(rng, height.out, width.out) if extra < 0.3 else None
    residual = RESIDUALS[rng.integers(len(RESIDUALS))] if extra > 0.8 else None
    out = conv_shape
    if pool:
        sizes = [(conv_shape[1 + i] + pool.pads[i] + pool.pads[2 + i] - pool.kernel[i]) // pool.strides[i] + 1
                 for i in range(2)]
        out = (outputs, *sizes)
    terms = channels // groups * height.kernel * width.kernel if kind == "conv" else height.kernel * width.kernel
    weights = None
    if kind == "conv":
        weights = rng.integers(-128, 128, (outputs, channels // groups, height.kernel, width.kernel)).astype(np.int8)
        beyond = rng.spawn(1)[0]
        if pool is None and beyond.random() < 0.2:
            weights = weights.astype(np.int16)
            weights.flat[beyond.integers(weights.size, size=beyond.integers(1, 5))] += 117
    typical = 50.0 / (74 * 74 * terms ** 0.5 if kind == "conv" else 74 * terms ** 0.5)
    low, high = (-128, 127) if rng.random() < 0.5 else sorted(int(bound) for bound in rng.integers(-128, 128, 2))
    table = random_table(rng) if rng.random() < 0.25 else None
    return Layer(
        name=f"{kind} {channels}x{height.image}x{width.image}", kind=kind, onnx_nodes=("node",), input="x", output="y",
        in_shape=(channels, height.image, width.image), conv_shape=conv_shape, out_shape=out, weights=weights,
        bias=rng.integers(-20000, 20000, outputs).astype(np.int32), kernel=(height.kernel, width.kernel),
        strides=(height.stride, width.stride), dilations=(height.dilation, width.dilation),
        pads=(height.before, width.before, height.after, width.after), groups=groups,
        pad_value=int(rng.integers(-128, 128)),
        requantisation=Requantisation(scale=(typical * rng.uniform(0.3, 3, outputs)).astype(np.float32),
                                      zero_point=int(rng.integers(-20, 20)), low=low, high=high),
        residual=residual, table=table, pool=pool,
        table_first=residual is not None and table is not None and bool(rng.integers(2)))


def random_table(rng: np.random.Generator) -> np.ndarray:
    """Return a value table with every int8 value in it, in any order."""
    return rng.permutation(np.arange(-128, 128)).astype(np.int8)


def with_tables(network: Network, every: int = 1) -> Network:
    """Return ``network`` with a random value table in every ``every``-th layer."""
    rng = np.random.default_rng(9)
    layers = tuple(replace(layer, table=random_table(rng)) if index % every == 0 and isinstance(layer, Layer) else layer
                   for index, layer in enumerate(network.layers))
    return replace(network, layers=layers)


def random_whole_layer(rng: np.random.Generator) -> Layer:
    """Return a convolution that leaves its sums whole."""
    while (layer := random_layer(rng, 12, 40)).kind != "conv":
        pass
    return with_whole_sums(layer)


def with_whole_sums(layer: Layer) -> Layer:
    """Return a convolution with its sums whole, and nothing behind them."""
    channels, height, width = layer.conv_shape
    return replace(layer, residual=None, pool=None, table=None, table_first=False, whole=True,
                   out_shape=(4 * channels, height, width),
                   requantisation=Requantisation(scale=np.ones(channels, np.float32), zero_point=0))


def network_of(layer: Layer) -> Network:
    """Return the network that consists of ``layer``; whole sums lie in a tensor of int32, which is the output."""
    infos = [TensorInfo(name=layer.input, shape=layer.in_shape, scale=np.float32(1), zero_point=0)]
    if layer.residual:
        infos.append(TensorInfo(name=layer.residual.tensor, shape=layer.conv_shape, scale=np.float32(1), zero_point=0))
    output = TensorInfo(name=layer.output, shape=layer.out_shape, scale=np.float32(1), zero_point=0)
    parts = []
    if layer.whole:
        parts = [replace(output, place=whole_place("sums", layer.out_shape))]
        output = replace(output, name="sums", shape=layer.conv_shape, dtype="int32", dims=(1, *layer.conv_shape))
    return Network(name=layer.name, layers=(layer,), inputs=tuple(infos), outputs=(output,),
                   tensors={info.name: info for info in (*infos, output, *parts)})


def random_machine(rng: np.random.Generator, *, any_array: bool = False) -> Machine:
    """Return a machine of a preset's size, or one with buffers so small that most layers must be cut.

    Its array is ``winograd``; with ``any_array`` those of the small ones are of every kind.
    """
    if rng.random() < 0.3:
        return WINOGRAD_MACHINES[str(rng.choice(list(WINOGRAD_MACHINES)))]
    lanes, clusters, post_lanes = ((1, 1, 1), (2, 1, 2), (4, 1, 4), (4, 2, 2), (8, 2, 4), (8, 4, 8), (16, 4, 8))[
        rng.integers(7)]
    arrays = ["plain", "winograd", *(["inner", "winograd_inner"] if lanes > clusters else [])]
    array = str(rng.choice(arrays)) if any_array else "winograd"
    return Machine(lanes=lanes, clusters=clusters, post_lanes=post_lanes, array=array,
                   bus_bytes=int(rng.choice([4, 8, 16])),
                   activation_bytes=int(rng.choice([4096, 8192, 32768])),
                   weight_bytes=int(rng.choice([4096, 8192, 32768])), result_bytes=int(rng.choice([1024, 2048, 8192])),
                   parameter_channels=int(rng.choice([16, 32, 128])))
