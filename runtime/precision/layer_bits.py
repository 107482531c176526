"""A choice of bits: of the weights of some layers 4 or 2 instead of 8, and of what some layers read 16 instead of 8."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from tilewright.errors import InputError

__all__ = ["ACTIVATION_BITS", "ALL_LAYERS", "EIGHT", "WEIGHT_BITS", "BitsText", "LayerBits", "bits_given"]

WEIGHT_BITS, ACTIVATION_BITS = (2, 4, 8), (8, 16)
"""Bits that may be chosen, of weights and of inputs."""

ALL_LAYERS = "*"
"""Stands for every layer in a choice."""


@dataclass(frozen=True, slots=True)
class BitsText:
    """A choice as it is typed: bits of layers that are named, numbered or matched by a pattern."""

    bits: int
    layers: tuple[str, ...] = (ALL_LAYERS,)

    def named(self, layers: Sequence[str]) -> dict[str, int]:
        """Return the bits of those of a model's ``layers``, in their order, that are meant.

        Raises
        ------
        InputError
            If a text means none of them.
        """
        found: dict[str, int] = {}
        for text in self.layers:
            near = [text] if text in layers else [name for name in layers if _means(text, name)]
            if not near and re.fullmatch(r"[0-9]{1,9}", text) and 1 <= int(text) <= len(layers):
                near = [layers[int(text) - 1]]
            if not near:
                listed = ", ".join(f"{place} {name}" for place, name in enumerate(layers, 1))
                raise InputError(f"Layer must be the name or the number of one with weights, a part of its name, or "
                                 f"a pattern with *, not {text!r}; there are {listed}")
            found |= dict.fromkeys(near, self.bits)
        return found


@dataclass(frozen=True, slots=True)
class LayerBits:
    """Bits of a network as they are typed: of two choices for a layer the later one counts, without one it has 8."""

    weights: tuple[BitsText, ...] = field(default=())
    activations: tuple[BitsText, ...] = field(default=())

    def of_weights(self, layers: Sequence[str]) -> dict[str, int]:
        """Return the bits of the weights of each layer that has not 8; raises as `BitsText.named` does."""
        return _chosen(self.weights, layers)

    def of_activations(self, layers: Sequence[str]) -> dict[str, int]:
        """Return the bits of what each layer reads that has not 8; raises as `BitsText.named` does."""
        return _chosen(self.activations, layers)


EIGHT = LayerBits()
"""Everything in 8 bits."""


def bits_given(weights: Sequence[str] | None, activations: Sequence[str] | None) -> LayerBits:
    """Return what the options ``--weights`` and ``--activations`` say.

    Raises
    ------
    InputError
        If one has not the form int4 or int4:LAYER,LAYER.
    """
    return LayerBits(tuple(_read("--weights", text, WEIGHT_BITS) for text in weights or ()),
                     tuple(_read("--activations", text, ACTIVATION_BITS) for text in activations or ()))


def _means(text: str, name: str) -> bool:
    """Tell whether a text means a layer: it is a pattern of its name, or a part of it such as conv1 of /conv1/Conv."""
    return fnmatchcase(name, text) or text in re.split("[/.;:]", name)


def _chosen(texts: Sequence[BitsText], layers: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for text in texts:
        found |= text.named(layers)
    return {name: bits for name, bits in found.items() if bits != 8}


def _read(option: str, text: str, allowed: Sequence[int]) -> BitsText:
    kind, colon, layers = text.partition(":")
    bits: Mapping[str, int] = {f"int{each}": each for each in allowed}
    named = tuple(filter(None, layers.split(",")))
    if kind not in bits or (colon and not named):
        raise InputError(f"Option {option} must be {', '.join(bits)}, alone or with layers as in int{allowed[-1]}:"
                         f"conv1,3, not {text!r}")
    return BitsText(bits[kind], named or (ALL_LAYERS,))
