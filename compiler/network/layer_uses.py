"""Uses of a layer that most have not: a stage or a unit of an extension, and planes of bytes for words of 16 bits."""

from dataclasses import dataclass

import numpy as np

from tilewright.isa.extension import BufferUnit, PostStage

__all__ = ["NO_WORDS", "StageUse", "UnitUse", "WordPlanes"]


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
class WordPlanes:
    """The planes of lower bytes of a layer's input and output of 16 bits, ``""`` for one of bytes.

    The layer's own input and output are those of upper bytes then (`isa.words.word_planes`).
    """

    lower_input: str = ""
    lower_output: str = ""

    @property
    def also_read(self) -> tuple[str, ...]:
        """The tensors that the layer reads beside its input."""
        return (self.lower_input,) if self.lower_input else ()

    @property
    def also_written(self) -> tuple[str, ...]:
        """The tensors that it writes beside its output."""
        return (self.lower_output,) if self.lower_output else ()

    @property
    def inputs(self) -> int:
        """Planes of the input: 2 of words of 16 bits."""
        return 1 + len(self.also_read)

    @property
    def outputs(self) -> int:
        """Planes of the output."""
        return 1 + len(self.also_written)


NO_WORDS = WordPlanes()
"""Of a layer of bytes."""
