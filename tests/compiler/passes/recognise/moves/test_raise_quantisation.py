"""Heads of a detector that are flattened, joined and turned: levels of other scales are made before they are moved."""

import numpy as np

from tests.support.exactness import assert_layers
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.network.layers import CoreLayer


def joined_heads(sides, channels=64, kept=48):
    """Return a model of images whose channels lie before all their pixels, one behind the other, some of them turned.

    Each has a scale of its own, and the last is that of all.
    """
    model = ModelBuilder("qdq", seed=3)
    parts, scale = [], np.float32(0)
    for side in sides:
        image = model.conv(model.input((1, 4, side, side)), channels, kernel=1)
        parts.append(model.reshape(image, (1, channels, side * side)))
        scale = max(scale, image.scale)
    whole = model.concat(parts, np.float32(scale), axis=2)
    length = sum(side**2 for side in sides)
    names = [f"{whole.name} {part}" for part in ("boxes", "classes")]
    model.split(model.dequantised(whole), names, [kept, channels - kept])
    boxes = model.value((1, kept, length), whole.scale, whole.zero_point)
    model.quantised(names[0], boxes)
    bins = model.moved("Transpose", model.reshape(boxes, (1, 4, kept // 4, length)), (1, kept // 4, 4, length),
                       perm=[0, 2, 1, 3])
    classes = model.value((1, channels - kept, length), whole.scale, whole.zero_point)
    model.quantised(names[1], classes)
    return model.finish(model.conv(bins, 1, kernel=1), classes)


def test_parts_of_other_scales_are_quantised_as_images_and_moved_at_once():
    network = assert_layers(joined_heads((20, 10, 5)))
    assert not any(isinstance(layer, CoreLayer) for layer in network.layers)
