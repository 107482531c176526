"""Architectural state of the coprocessor: buffers, settings, sums between the array and post-processing, semaphores.

Buffers are flat byte arrays indexed by physical place (bank + 16 * word), so that both layouts of the activation
buffer are index arithmetic on the same bytes.
"""

from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tilewright.isa.counters import RECORD_WORDS
from tilewright.isa.lacking import WINOGRAD, has_unit
from tilewright.isa.machine import TABLE_BYTES, TABLE_SLOTS, TILE_BYTES, UNITS, Machine
from tilewright.isa.semantics.command_errors import SettingMissingError, ZeroSettingError

__all__ = ["CoprocessorState", "Float32", "Int8", "Int32", "Int64", "MemoryPort", "Settings", "Steps", "TileSums"]

Int8 = NDArray[np.int8]
Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]
Float32 = NDArray[np.float32]
Steps = tuple[int, int]


class MemoryPort(Protocol):
    """Main memory as the coprocessor reaches it: rows of runs, checked against the windows."""

    def read_strided(self, address: int, shape: tuple[int, int, int], steps: Steps, bus_bytes: int) -> Int8:
        """Return (rows, runs, run bytes) at ``address``, rows and runs ``steps`` bytes apart."""

    def write_strided(self, address: int, data: Int8, steps: Steps, bus_bytes: int) -> None:
        """Write (rows, runs, run bytes) at ``address``."""


class Settings(dict[str, int]):
    """Operands of the set variants of ``mnemonic``, by field name; they hold until set again."""

    def __init__(self, mnemonic: str) -> None:
        super().__init__()
        self.mnemonic = mnemonic

    def __missing__(self, setting: str) -> int:
        raise SettingMissingError(self.mnemonic, setting)

    def require(self, *counts: str) -> "Settings":
        """Return the settings if those that the hardware counts down from are not zero."""
        for setting in counts:
            if not self[setting]:
                raise ZeroSettingError(self.mnemonic, setting)
        return self


@dataclass(slots=True)
class TileSums:
    """Sums of one mac command on their way to ``act``: int32, (rows, columns, lanes * groups)."""

    sums: Int32
    winograd: bool


def _no_counts() -> NDArray[np.uint32]:
    return np.zeros(RECORD_WORDS, np.uint32)


@dataclass
class CoprocessorState:
    """Everything that a program can observe between two commands.

    Attributes
    ----------
    machine : Machine
    counters : callable
        Returns the record that ``sta.status`` stores: values do not know the time.
    semaphores : Counter
        By name.
    activations, results : int8 (bytes)
        The activation buffer and the result buffer.
    weight_words, ninth_words : int8 (words, clusters, 16)
        The weight memories.
    parameters : int8 (8 * channels)
    tables : int8 (slots, 256)
    settings : dict of str to Settings
        By mnemonic; conv23, conv and pool.sum share what conv sets.
    sums : deque of TileSums
        Oldest first.
    held : int32 (rows, columns, lanes) or None
        Sums that the accumulators keep for a command with ``hold``; for pairs of channels int64, four times the sum.
    unpacked : dict
        Weights as the array multiplies by them, and their eta, kept until others are loaded: a copy of some state.
    has_all : bool
        The machine leaves out no unit.
    """

    machine: Machine
    counters: Callable[[], NDArray[np.uint32]] = _no_counts
    semaphores: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        machine = self.machine
        self.has_all = all(has_unit(machine, unit) for unit in (WINOGRAD, *UNITS))
        self.activations: Int8 = np.zeros(machine.activation_bytes, np.int8)
        self.results: Int8 = np.zeros(machine.result_bytes, np.int8)
        self.weight_words: Int8 = np.zeros((machine.weight_words, machine.clusters, TILE_BYTES), np.int8)
        self.ninth_words: Int8 = np.zeros((machine.weight_words // 8, machine.clusters, TILE_BYTES), np.int8)
        self.parameters: Int8 = np.zeros(8 * machine.parameter_channels, np.int8)
        self.tables: Int8 = np.zeros((TABLE_SLOTS, TABLE_BYTES), np.int8)
        self.settings = {mnemonic: Settings(mnemonic)
                         for mnemonic in ("lda", "ldw", "conv", "act", "pool", "sta", "extension")}
        self.sums: deque[TileSums] = deque()
        self.held: Int32 | Int64 | None = None
        self.unpacked: dict[tuple[str, int, int, int], NDArray[Any]] = {}
