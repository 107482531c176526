"""Facts that a page gives of a layer beside its cost: the shapes of its tensors, its attributes, and its block."""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from tilewright.compiler.network.layers import TensorInfo
from tilewright.runtime.execution.job import Job, JobLayer

__all__ = ["attribute_texts", "blocks", "tensor_texts"]

_MANY = 12
"""Layers that no longer fit into a glance."""

_SEPARATORS = re.compile(r"[/.]|__")


def tensor_texts(layer: JobLayer, job: Job) -> dict[str, list[str]]:
    """Return the tensors that a layer reads and writes, each as name, type and shape."""
    return {side: [_text(name, job.tensors[name][0]) for name in dict.fromkeys(names) if name in job.tensors]
            for side, names in (("reads", layer.inputs), ("writes", layer.outputs))}


def _text(name: str, info: TensorInfo) -> str:
    return f"{info.onnx_name or name}: {info.dtype} {' × '.join(map(str, info.shape))}"


def blocks(names: Sequence[str], shapes: Mapping[str, Sequence[int]]) -> list[str]:
    """Return for each layer, by name and in order, the block it is part of.

    A block is what neighbours have in common: the path that their names begin with (``layer1/0/conv1`` is of
    ``layer1/0``), at the depth that makes about as many blocks as each has layers. Layers whose names have no paths are
    of one block as long as their results (``shapes``: channels, height, width) keep height and width. In a network of
    few layers each is a block of its own.
    """
    if len(names) < _MANY:
        return _numbered(names)
    paths = [[part for part in _SEPARATORS.split(name) if part] for name in names]
    deepest = max((len(path) for path in paths), default=1) - 1
    cuts = [["/".join(path[:min(depth, len(path) - 1)]) for path in paths] for depth in range(1, deepest + 1)]
    useful = [cut for cut in cuts if 1 < _runs(cut) <= max(2, len(names) // 2)]
    if useful:
        wanted = len(names) ** 0.5
        return _numbered(min(useful, key=lambda cut: abs(_runs(cut) - wanted)))
    sizes = [" × ".join(map(str, shapes[name][1:])) if name in shapes else "" for name in names]
    return _numbered([f"results of {size}" if size else "" for size in sizes])


def _runs(labels: Sequence[str]) -> int:
    return sum(1 for _ in groupby(labels))


def _numbered(labels: Sequence[str]) -> list[str]:
    """Return the labels, those that come back after others told apart: a block is of neighbours."""
    seen: dict[str, int] = {}
    found: list[str] = []
    for label, group in groupby(labels):
        seen[label] = seen.get(label, 0) + 1
        name = label or "others"
        found += [name if seen[label] == 1 else f"{name} ({seen[label]})"] * len(list(group))
    return found


def attribute_texts(attributes: Mapping[str, Any]) -> dict[str, str]:
    """Return a layer's attributes as text; pairs as 3 × 3."""
    return {name: " × ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
            for name, value in attributes.items()}
