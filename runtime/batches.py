"""Batches of images for a model of one image: split the arrays, run each image, and stack the answers."""

from collections.abc import Mapping, Sequence

import numpy as np

from tilewright.errors import InputError
from tilewright.runtime.oracle.inputs import NodeArg

__all__ = ["batch_size", "feeds", "images_of", "require_batches", "stacked"]


def batch_size(feed: Mapping[str, np.ndarray], inputs: Sequence[NodeArg]) -> int:
    """Return how many images the arrays hold for a model of one: 1 unless every array has that many, more than one.

    A model is of one image if the first extent of each of its inputs is 1. Arrays that are neither one image nor a
    batch count as one, for `check_inputs` to refuse.
    """
    sizes = {_images(feed[each.name], each) for each in inputs if each.name in feed}
    return sizes.pop() if len(sizes) == 1 else 1


def _images(array: np.ndarray, argument: NodeArg) -> int:
    """Return how many images an array holds, 1 if it is no batch of them."""
    batched = argument.shape[:1] == (1,) and array.ndim == len(argument.shape) and array.shape[1:] == argument.shape[1:]
    return max(array.shape[0], 1) if batched else 1


def images_of(feed: Mapping[str, np.ndarray], index: int) -> dict[str, np.ndarray]:
    """Return one image of a batch, with its leading extent of 1."""
    return {name: array[index:index + 1] for name, array in feed.items()}


def feeds(feed: Mapping[str, np.ndarray], images: int) -> list[dict[str, np.ndarray]]:
    """Return the inputs of each image of a batch."""
    return [images_of(feed, index) for index in range(images)] if images > 1 else [dict(feed)]


def stacked(answers: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """Return the outputs of all images as one array each, their leading extents joined."""
    return [np.concatenate(each) for each in zip(*answers, strict=True)]


def require_batches(outputs: Sequence[NodeArg], images: int) -> None:
    """Refuse a batch for a model whose outputs could not be stacked.

    Raises
    ------
    InputError
        If the first extent of an output is not 1.
    """
    for each in outputs:
        if each.shape[:1] != (1,):
            raise InputError(f"Inputs must be of one image, not of {images}, as output {each.name!r} of shape "
                             f"{each.shape} has no leading 1 to stack answers along; run one image after the other")
