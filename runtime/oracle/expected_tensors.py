"""The tensors of a network that can be compared with ONNX Runtime: those it exposes and does not round in float."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tilewright.compiler.batch.in_batch import image_name
from tilewright.compiler.network.image_forms import images_of
from tilewright.compiler.network.layers import TensorInfo
from tilewright.compiler.network.memory_map import root_of, words_of
from tilewright.compiler.network.operands import from_memory, of_images, to_memory
from tilewright.runtime.oracle.conversion import as_int8

__all__ = ["inexact_tensors", "of_batch", "with_parts"]


def with_parts(reference: Mapping[str, np.ndarray], tensors: Mapping[str, TensorInfo]) -> dict[str, np.ndarray]:
    """Return ``reference`` and, cut from its tensors, those of ``tensors`` that lie in one of them, or are its images.

    Parameters
    ----------
    reference : mapping of str to ndarray
        As `runtime.oracle.onnx_runtime` returns them.
    tensors : mapping of str to TensorInfo
        Of the network; those inside others are int8 and become so.
    """
    found = dict(reference) | images_of(reference, tensors)
    for name, info in tensors.items():
        if info.place is not None and info.place.parent in reference and name not in reference and (
                words_of(name, tensors) == name):
            whole = tensors[info.place.parent]
            content = to_memory(as_int8(reference[whole.name]).reshape(whole.array_shape), whole)
            found[name] = from_memory(content[info.place.offset:], info)
    return found


def of_batch(references: Sequence[Mapping[str, np.ndarray]],
             tensors: Mapping[str, TensorInfo]) -> dict[str, np.ndarray]:
    """Return the result of :func:`with_parts` for a batch that ONNX Runtime has computed image by image.

    Parameters
    ----------
    references : sequence of mapping of str to ndarray
        Of each image, as `runtime.oracle.onnx_runtime` returns them.
    tensors : mapping of str to TensorInfo
        Of the network; those of single images among them are `compiler.batch.in_batch.image_name`'s.
    """
    if len(references) == 1:
        return with_parts(references[0], tensors)
    one = {name: info.of_image for name, info in tensors.items() if info.images > 1}
    images = [with_parts(reference, one) for reference in references]
    found: dict[str, np.ndarray] = {}
    for name, first in images[0].items():
        arrays = [image[name] for image in images]
        if name in one:
            found[name] = of_images([each.reshape(one[name].array_shape) for each in arrays], tensors[name])
        elif first.ndim:
            found[name] = np.concatenate(arrays)
        found |= {image_name(name, index): each for index, each in enumerate(arrays)}
    return found


def inexact_tensors(layers: Iterable[tuple[Sequence[str], Sequence[str], bool]],
                    infos: Mapping[str, TensorInfo]) -> frozenset[str]:
    """Return the integer tensors that may be some levels off, and everything computed of them.

    Floats alone are not among them: a kernel's are near ONNX Runtime's, and can be held to that. What they are
    rounded to is.

    Parameters
    ----------
    layers : iterable of (sequence of str, sequence of str, bool)
        Tensors that each reads and writes, and whether ONNX Runtime's result is reproducible; in execution order.
    infos : mapping of str to TensorInfo
        Of all tensors in memory by name. Parts of a tensor count as the whole. Others stay on chip: int8, and whole.
    """
    found: set[str] = set()
    near: set[str] = set()
    for inputs, outputs, exact in layers:
        read, written = ({root_of(infos[name]) if name in infos else name for name in names}
                         for names in (inputs, outputs))
        first = words_of(outputs[0], infos)
        floats = first in infos and infos[first].dtype == "float32"
        if read & found or (not floats and (not exact or read & near)):
            found |= written
        elif not exact or read & near:
            near |= written
    return frozenset(name for name, info in infos.items() if root_of(info) in found) | (found - infos.keys())
