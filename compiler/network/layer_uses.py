"""Uses of a layer that most have not: a stage or unit of an extension, computed scales, planes for words of 16 bits."""

from dataclasses import dataclass

import numpy as np

from tilewright.isa.extension import BufferUnit, PostStage

__all__ = ["NO_WORDS", "ComputedScale", "StageUse", "UnitUse", "WordAddend", "WordPlanes"]


@dataclass(frozen=True, slots=True)
class StageUse:
    """The stage of an extension in a layer: names and values of the fields of its instruction."""

    stage: PostStage
    fields: tuple[tuple[str, int], ...]

    @property
    def settings(self) -> dict[str, int]:
        """The values by name."""
        return dict(self.fields)


@dataclass(frozen=True, slots=True)
class UnitUse:
    """The unit of an extension before a layer; its result replaces the first of each pixel's channels."""

    unit: BufferUnit
    fields: tuple[tuple[str, int], ...]

    def compute(self, x: np.ndarray) -> np.ndarray:
        """Return int8 (C, H, W) with the results in place of the first channels."""
        results = self.unit.compute(x.reshape(len(x), -1).T.copy(), dict(self.fields)).T
        count = self.unit.result_bytes
        return np.concatenate((results.reshape(count, *x.shape[1:]), x[count:]))


@dataclass(frozen=True, slots=True, kw_only=True)
class WordAddend:
    """A second input, by which a layer is a weighted sum of two tensors, element by element.

    Without a ``lower`` plane it is one of bytes, and so is the layer's own input without one: 256 times the byte.
    ``weights`` are int8: of this input, and of the layer's own. Before them may be a finer digit of the latter, in
    units of 1/256, by which its upper byte alone is multiplied.
    """

    upper: str
    lower: str
    weights: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WordPlanes:
    """The planes of lower bytes of a layer's input and output of 16 bits, ``""`` for one of bytes.

    The layer's own input and output are those of upper bytes then (`isa.words.word_planes`).
    """

    lower_input: str = ""
    lower_output: str = ""
    addend: WordAddend | None = None

    @property
    def also_read(self) -> tuple[str, ...]:
        """The tensors that the layer reads beside its input."""
        added = (self.addend.upper, self.addend.lower) if self.addend is not None else ()
        return tuple(name for name in (self.lower_input, *added) if name)

    def stored(self, own: str) -> tuple[str, ...]:
        """Return the planes of a layer of input ``own`` as they lie in the activation buffer, ``""`` for zeros.

        With an addend the weights meet a plane each from the first on, and in the second pass from the third on.
        """
        if self.addend is None:
            return (own, self.lower_input) if self.lower_input else (own,)
        planes = self.addend.upper, own, self.addend.lower, self.lower_input
        return ("", *planes) if len(self.addend.weights) > len(planes) // 2 else planes

    @property
    def planes_apart(self) -> int:
        """Planes from those that the first pass meets to those of the second."""
        return 1 if self.addend is None else 2

    @property
    def also_written(self) -> tuple[str, ...]:
        """The tensors that it writes beside its output."""
        return (self.lower_output,) if self.lower_output else ()

    @property
    def inputs(self) -> int:
        """Passes over the input: 2 of words of 16 bits."""
        return 1 if self.addend is None and not self.lower_input else 2

    @property
    def outputs(self) -> int:
        """Planes of the output."""
        return 1 + len(self.also_written)


NO_WORDS = WordPlanes()
"""Of a layer of bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedScale:
    """Bias and scale of each channel that the network computes, as ``ldw.parameters`` loads them.

    The layer is a depthwise convolution of one pixel, of as many ``taps`` at that pixel; the weights of channel c are
    127, or -127 where it is among the ``negative``. ``tensor``, int32 of (channels, 2), holds the parameters, and
    ``weights`` names the constant in which the weights lie as ``ldw`` loads them
    (``compiler.network.rows.channel_norms``).
    """

    tensor: str
    weights: str
    taps: int
    negative: tuple[bool, ...]

    @property
    def parameters(self) -> str:
        """The tensor that is loaded in place of constant parameters."""
        return self.tensor

    @property
    def images(self) -> tuple[str, ...]:
        """The tensors that are loaded in place of constant weights and parameters."""
        return self.weights, self.tensor
