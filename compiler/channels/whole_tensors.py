"""Tensors of a network with the channels that are not in memory filled in, as the model has them."""

from collections.abc import Mapping

import numpy as np

from tilewright.compiler.network.layers import TensorInfo

__all__ = ["in_model", "whole_values"]


def in_model(tensors: Mapping[str, TensorInfo]) -> dict[str, TensorInfo]:
    """Return ``tensors`` as they are in the model, with all channels."""
    return {name: info.in_model for name, info in tensors.items()}


def whole_values(stored: Mapping[str, np.ndarray], tensors: Mapping[str, TensorInfo]) -> dict[str, np.ndarray]:
    """Return the values of tensors in memory with constant channels filled in; without those whose others vary."""
    found = {}
    for name, array in stored.items():
        absent = tensors[name].absent
        if absent is None:
            found[name] = array
        elif absent.values is not None:
            found[name] = absent.filled_in(array)
    return found
