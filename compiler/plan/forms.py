"""The forms in which a layer can be computed: by which algorithm, and as itself or as a layer of stride 1.

Where a lane group sees few channels, as in a depthwise convolution, a Winograd tile takes so few cycles that it pays to
compute all results of stride 1 and drop those that the stride skips: max pooling over windows of one pixel does that.
"""

from collections.abc import Iterator
from dataclasses import replace

from tilewright.compiler.network.layers import Layer, MaxPool
from tilewright.compiler.network.options import BEST, Options
from tilewright.compiler.plan.walk import Algorithm
from tilewright.isa.limits import MAX_PIXEL_BYTES, MAX_WINDOW_STRIDE


def algorithms(layer: Layer, options: Options = BEST) -> tuple[Algorithm, ...]:
    """Return the algorithms that can compute ``layer`` as it is and that ``options`` allow."""
    if layer.kind != "conv":
        return ("sum",)
    winograd = options.winograd == "auto" and fits_winograd(layer) and layer.strides == (1, 1)
    return ("conv23", "conv") if winograd else ("conv",)


def forms(layer: Layer, options: Options = BEST) -> Iterator[tuple[Layer, Algorithm]]:
    """Yield what can be computed in place of ``layer``, and by which algorithm."""
    for algorithm in algorithms(layer, options):
        yield layer, algorithm
    drops = (layer.groups > 1 and layer.strides != (1, 1) and max(layer.strides) <= MAX_WINDOW_STRIDE
             and layer.pool is None and layer.residual is None)
    if layer.kind == "conv" and options.winograd == "auto" and fits_winograd(layer) and drops:
        yield at_stride_one(layer), "conv23"


def fits_winograd(layer: Layer) -> bool:
    """Tell whether kernel and channels are those of ``conv23``, whatever the stride."""
    return layer.kernel == (3, 3) and layer.dilations == (1, 1) and layer.in_shape[0] <= MAX_PIXEL_BYTES


def at_stride_one(layer: Layer) -> Layer:
    """Return ``layer`` at stride 1, with a pooling that keeps the pixels that its stride does not skip."""
    channels, height, width = layer.conv_shape
    rows, columns = layer.strides
    return replace(layer, strides=(1, 1), conv_shape=(channels, (height - 1) * rows + 1, (width - 1) * columns + 1),
                   pool=MaxPool(kernel=(1, 1), strides=layer.strides, pads=(0, 0, 0, 0)))
