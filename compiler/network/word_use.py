"""Which planes of bytes a layer with words of 16 bits reads and writes beside its own input and output."""

from dataclasses import dataclass

__all__ = ["NO_WORDS", "WordPlanes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WordPlanes:
    """The planes of lower bytes of a layer's input and output of 16 bits, ``""`` for one of bytes.

    The layer's own input and output are those of upper bytes then (`isa.words.word_planes`).
    """

    lower_input: str = ""
    lower_output: str = ""

    @property
    def also_read(self) -> tuple[str, ...]:
        """What the layer reads beside its input."""
        return (self.lower_input,) if self.lower_input else ()

    @property
    def also_written(self) -> tuple[str, ...]:
        """What it writes beside its output."""
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
