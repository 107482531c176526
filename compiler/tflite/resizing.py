"""Linear resizing of TensorFlow Lite."""

import numpy as np

from tilewright.compiler.tflite.bounds import put_result
from tilewright.compiler.tflite.graph_builder import GraphBuilder
from tilewright.compiler.tflite.tensors import TfliteOperator

__all__ = ["resize_bilinear"]


def resize_bilinear(builder: GraphBuilder, operator: TfliteOperator) -> None:
    """Add a RESIZE_BILINEAR."""
    x, y = builder.tensor(operator.inputs[0]), builder.tensor(operator.outputs[0])
    if len(x.shape) != 4 or len(y.shape) != 4 or x.shape[3] != y.shape[3] or 0 in (*x.shape, *y.shape):
        raise operator.refusal(f"its input and output have the shapes {list(x.shape)} and {list(y.shape)}",
                               "convert the model again")
    if y.is_levels:
        builder.near(operator, "its weights have 11 bits")
    mode = "align_corners" if operator.options["AlignCorners"] else \
        "half_pixel" if operator.options["HalfPixelCenters"] else "asymmetric"
    sizes = builder.constant(np.array([1, y.shape[3], y.shape[1], y.shape[2]], np.int64), f"{y.name}:sizes")
    put_result(builder, operator, builder.node("Resize", [builder.real(operator.inputs[0]), "", "", sizes],
                                               like=y.name, mode="linear", coordinate_transformation_mode=mode))
