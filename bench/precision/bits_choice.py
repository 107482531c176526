"""A choice of bits for every layer of a network, and how it is written as options of ``tilewright quantise``."""

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.runtime.precision.layer_bits import BitsText, LayerBits

__all__ = ["BitsChoice"]


@dataclass(frozen=True, slots=True, order=True)
class BitsChoice:
    """Bits of the weights and of the input of each layer, in the order of the layers."""

    weights: tuple[int, ...]
    activations: tuple[int, ...]

    @classmethod
    def eight(cls, layers: int) -> "BitsChoice":
        """Return 8 bits everywhere."""
        return cls((8,) * layers, (8,) * layers)

    def but(self, layer: int, *, weights: int | None = None, activations: int | None = None) -> "BitsChoice":
        """Return the same with other bits of one layer."""
        return BitsChoice(_at(self.weights, layer, weights), _at(self.activations, layer, activations))

    @property
    def words(self) -> bool:
        """Whether a layer reads 16 bits, for which the machine needs wide words."""
        return 16 in self.activations

    @property
    def narrow(self) -> bool:
        """Whether weights have fewer than 8 bits."""
        return min(self.weights) < 8

    def bits(self, layers: Sequence[str]) -> LayerBits:
        """Return the choice by the names of the layers."""
        return LayerBits(_texts(self.weights, layers), _texts(self.activations, layers))

    def options(self) -> list[str]:
        """Return the options of ``tilewright quantise``, with layers by their numbers."""
        numbers = [str(number) for number in range(1, len(self.weights) + 1)]
        found: list[str] = []
        for option, bits in (("--weights", self.weights), ("--activations", self.activations)):
            for text in _texts(bits, numbers):
                chosen = "" if len(text.layers) == len(numbers) else f":{','.join(text.layers)}"
                found += [option, f"int{text.bits}{chosen}"]
        return found

    def to_json(self) -> dict[str, list[int]]:
        """Return the same as JSON's types."""
        return {"weight_bits": list(self.weights), "activation_bits": list(self.activations)}


def _at(bits: tuple[int, ...], place: int, value: int | None) -> tuple[int, ...]:
    return bits if value is None else (*bits[:place], value, *bits[place + 1:])


def _texts(bits: Sequence[int], layers: Sequence[str]) -> tuple[BitsText, ...]:
    return tuple(BitsText(value, tuple(name for name, each in zip(layers, bits, strict=True) if each == value))
                 for value in sorted(set(bits) - {8}))
