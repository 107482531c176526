"""Arrays of the constants of an ONNX file."""

import numpy as np
from onnx import TensorProto, numpy_helper

from tilewright.compiler.errors import BadModelError

__all__ = ["array_of"]


def array_of(tensor: TensorProto) -> np.ndarray:
    """Return the values of a constant.

    Raises
    ------
    BadModelError
        If they are not as many as its shape says.
    """
    try:
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError) as error:
        lines = [line.strip().rstrip(".") for line in str(error).splitlines() if line.strip()]
        cause = lines[0] if lines else type(error).__name__
        raise BadModelError(f"Tensor {tensor.name!r} must have as many values as its shape {list(tensor.dims)!r} "
                            f"says: {cause}") from error
