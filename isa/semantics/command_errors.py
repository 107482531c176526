"""Commands that no hardware could execute: one exception for each reason, with what it found in typed fields.

Each is a :exc:`CommandError`, and its text goes on with the sentence "Command ...".
"""

from dataclasses import dataclass

from tilewright.errors import SimulationError
from tilewright.isa.encoding import SEMAPHORE_WIDTH
from tilewright.isa.rows.row_norm import MAX_NORM_LENGTH

__all__ = [
    "CommandError", "HeldSumsMissingError", "HeldTilesError", "LaneChannelsError", "OutsideBufferError",
    "PartialPixelError", "PatchBlocksError", "ResidualPooledError", "RowNormError", "RowTableError",
    "SemaphoreEmptyError", "SemaphoreOverflowError",
    "SettingMissingError", "Shape", "SumsMismatchError", "SumsMissingError", "UnalignedWeightsError",
    "UnitMissingError", "WideWordsError", "WordPlanesError", "ZeroOperandError", "ZeroSettingError",
]

Shape = tuple[int, ...]


class CommandError(SimulationError):
    """A command refers to something outside the machine, or lacks something that it needs."""


@dataclass
class SemaphoreEmptyError(CommandError):
    """A command waits for a semaphore at zero."""

    semaphore: str

    def __str__(self) -> str:
        return f"waits for {self.semaphore}, which no command before it has signalled"


@dataclass
class SemaphoreOverflowError(CommandError):
    """A command signals a semaphore at its greatest value."""

    semaphore: str

    def __str__(self) -> str:
        return f"must keep the semaphore {self.semaphore} below {1 << SEMAPHORE_WIDTH}, and overflows it"


@dataclass
class UnitMissingError(CommandError):
    """A command needs a unit that the machine leaves out."""

    unit: str
    machine: str

    def __str__(self) -> str:
        return f"must not use {self.unit}, which machine {self.machine} lacks"


@dataclass
class ZeroOperandError(CommandError):
    """An operand that the hardware counts down from is zero."""

    operand: str

    def __str__(self) -> str:
        return f"must have {self.operand} of at least 1, not 0"


@dataclass
class OutsideBufferError(CommandError):
    """A command reaches the place ``index`` of a buffer that has ``size`` of them; ``place`` names the kind."""

    place: str
    index: int
    size: int

    def __str__(self) -> str:
        return f"must stay inside its buffers, not reach {self.place} {self.index} of {self.size}"


@dataclass
class UnalignedWeightsError(CommandError):
    """The weights start at an unaligned word; those of conv23 must start at a multiple of eight."""

    weight_base: int
    multiple: int = 8

    def __str__(self) -> str:
        return f"must have a weight_base that is a multiple of {self.multiple}, not {self.weight_base}"


@dataclass
class HeldTilesError(CommandError):
    """A command that holds sums, or goes on from held ones, has more of them than the accumulators."""

    tiles: int
    groups: int
    capacity: int

    def __str__(self) -> str:
        return (f"must have 1 lane group and at most {self.capacity} tiles, whose sums can be held, "
                f"not {self.groups} and {self.tiles}")


@dataclass
class LaneChannelsError(CommandError):
    """A command whose lanes see a channel each has more or fewer channels than lanes."""

    channels: int
    lanes: int

    def __str__(self) -> str:
        return f"must have a channel for each of {self.lanes} lanes, not {self.channels}"


@dataclass
class PatchBlocksError(CommandError):
    """A command takes four patches at once from blocks that do not begin at multiples of ``unit`` bytes."""

    unit: int

    def __str__(self) -> str:
        return (f"must find blocks, block rows and lane groups at multiples of {self.unit} bytes, and loops over "
                "clusters and over the channels of a lane")


@dataclass
class SettingMissingError(CommandError):
    """A command uses a setting that no set variant of ``mnemonic`` before it has set."""

    mnemonic: str
    setting: str

    def __str__(self) -> str:
        return f"must find {self.setting} of {self.mnemonic} set before it"


@dataclass
class ZeroSettingError(CommandError):
    """A setting that the hardware counts down from is zero."""

    mnemonic: str
    setting: str

    def __str__(self) -> str:
        return f"must find {self.setting} of {self.mnemonic} set to at least 1, not 0"


@dataclass
class PartialPixelError(CommandError):
    """A run of the blocked layout is no whole number of pixels."""

    chunk_bytes: int
    channels: int

    def __str__(self) -> str:
        return f"must find chunk_bytes set to a multiple of channels ({self.channels}), not {self.chunk_bytes}"


class HeldSumsMissingError(CommandError):
    """A command goes on from sums that no command before it has held, or one of another shape or kind."""

    def __str__(self) -> str:
        return "must find sums of its own tiles, held by an earlier command"


class SumsMissingError(CommandError):
    """A command takes the sums of a mac command when none are left."""

    def __str__(self) -> str:
        return "must find sums that a mac command has left"


@dataclass
class SumsMismatchError(CommandError):
    """A command takes sums (rows, columns, channels) of another shape, or of the other kind of tile."""

    expected: Shape
    expected_winograd: bool
    found: Shape
    found_winograd: bool

    def __str__(self) -> str:
        return (f"must find sums of shape {self.expected}, winograd {int(self.expected_winograd)}, "
                f"not {self.found}, winograd {int(self.found_winograd)}")


class WholeSumsError(CommandError):
    """A command leaves whole sums, and what they pass through would change their bytes."""

    def __str__(self) -> str:
        return ("must leave whole sums without residual, pooling and table, with the zero point 0 and the bounds -128 "
                "and 127")


class WideWordsError(CommandError):
    """A command leaves words of 16 bits, and what they pass through takes bytes."""

    def __str__(self) -> str:
        return ("must leave words of 16 bits without residual and pooling, not as whole sums, and without a table "
                "where a bus word has less than 8 bytes")


class WordPlanesError(CommandError):
    """A command sums up words of 16 bits, and holds its sums or goes on from held ones; or a plane is not aligned."""

    def __str__(self) -> str:
        return ("must sum up both planes of words of 16 bits at once, without accumulate and hold, and of conv23 have "
                "them a multiple of 256 bytes apart")


class ResidualPooledError(CommandError):
    """A command has residual and pooled, which exclude each other."""

    def __str__(self) -> str:
        return "must not have residual and pooled together"


@dataclass
class RowNormError(CommandError):
    """A command normalises rows that are too long, or whose spread the root has no digits for."""

    length: int
    spread: int = 0

    def __str__(self) -> str:
        if not self.spread:
            return f"must normalise rows of at most {MAX_NORM_LENGTH} bytes, not {self.length}"
        return f"must find spreads that leave a root of 24 bits in rows of {self.length}, not {self.spread}"


@dataclass
class RowTableError(CommandError):
    """A command normalises rows by a table whose first entry, that of a row's largest element, is too small."""

    entry: int

    def __str__(self) -> str:
        return f"must find at least 2**23 in the first word of the value tables, not {self.entry}"
