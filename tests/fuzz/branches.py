"""Convolutions that read one result and are concatenated, as in the fire modules of SqueezeNet."""

from tests.fuzz.choices import Choices
from tests.support.onnx_models import ModelBuilder, Value

__all__ = ["fire"]


def fire(choices: Choices, model: ModelBuilder, x: Value) -> Value:
    """Add a convolution of 1x1 of ``x`` and the concatenation of two or three that read it, of 1x1 and 3x3."""
    squeezed = model.conv(x, choices.pick((4, 8, 3)), kernel=1)
    kernels = [choices.pick((3, 1)) for _ in range(choices.between(2, 3))]
    parts = [model.conv(squeezed, choices.pick((4, 8, 12, 5)), kernel=size, pads=[size // 2] * 4) for size in kernels]
    return model.concat(parts, parts[0].scale, 1)
