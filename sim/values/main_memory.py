"""Main memory of the fast engine: one array, and windows that limit what a DMA may access."""

from collections.abc import Iterable

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from tilewright.errors import SimulationError
from tilewright.isa.counters import FAULTS, READ_OUTSIDE, WRITE_OUTSIDE
from tilewright.isa.memory import MAIN_BASE, MAIN_END, AddressWindow, Fault

__all__ = ["MainMemory", "Steps", "WindowError"]

Steps = tuple[int, int]
_ADDRESSES = 1 << 32


class WindowError(SimulationError):
    """A request of the coprocessor is not wholly inside a window that permits it.

    The address of ``fault`` is that of the request's first bus word.
    """

    def __init__(self, fault: Fault, windows: Iterable[AddressWindow]) -> None:
        allowed = ", ".join(f"{w.base:#x}..{w.limit:#x}" for w in windows) or "there are none"
        super().__init__(f"A DMA request must stay inside a window ({allowed}), not "
                         f"{FAULTS[fault.code]} at {fault.address:#x}")
        self.fault = fault


class MainMemory:
    """``size`` bytes at ``MAIN_BASE``; counts the bus words read and the bytes written."""

    def __init__(self, size: int, windows: Iterable[AddressWindow] = ()) -> None:
        self.bytes = np.zeros(size, np.int8)
        self.windows = tuple(windows)
        for window in self.windows:
            if not MAIN_BASE <= window.base < window.limit <= MAIN_END:
                raise ValueError(f"Window must lie in [{MAIN_BASE:#x}, {MAIN_END:#x}) and not be empty, "
                                 f"not [{window.base:#x}, {window.limit:#x})")
        self.words_read = 0
        self.bytes_written = 0

    def put(self, address: int, data: bytes) -> None:
        """Set the bytes at ``address``, as the host does before a run.

        Raises
        ------
        ValueError
            If they do not fit the memory.
        """
        self._host_slice(address, len(data))[:] = np.frombuffer(data, np.int8)

    def get(self, address: int, size: int) -> bytes:
        """Return the bytes at ``address``; raises as :meth:`put` does."""
        return self._host_slice(address, size).tobytes()

    def _host_slice(self, address: int, size: int) -> NDArray[np.int8]:
        first = address - MAIN_BASE
        if not 0 <= first <= first + size <= self.bytes.size:
            raise ValueError(f"Memory has {self.bytes.size} bytes from {MAIN_BASE:#x}, not the {size} at {address:#x}")
        return self.bytes[first:first + size]

    def read_strided(self, address: int, shape: tuple[int, int, int], steps: Steps, bus_bytes: int) -> NDArray[np.int8]:
        """Return (rows, runs, run bytes) at ``address``, rows and runs ``steps`` bytes apart; a view, unless it wraps.

        Raises
        ------
        WindowError
            If a run's bus words are not wholly inside a readable window.
        """
        starts = self._check(address, shape, steps, bus_bytes, code=READ_OUTSIDE)
        self.words_read += int((-(-(starts + shape[2]) // bus_bytes) - starts // bus_bytes).sum())
        if _wraps(address, shape, steps):
            return self.bytes[(starts - MAIN_BASE)[:, :, None] + np.arange(shape[2])]
        return self._view(address, shape, steps)

    def write_strided(self, address: int, data: NDArray[np.int8], steps: Steps, bus_bytes: int) -> None:
        """Write (rows, runs, run bytes) at ``address``; the counterpart of :meth:`read_strided`.

        Run after run: where they overlap, the last one stays.
        """
        shape = data.shape[0], data.shape[1], data.shape[2]
        starts = self._check(address, shape, steps, bus_bytes, code=WRITE_OUTSIDE)
        if _wraps(address, shape, steps) or _overlap(shape, steps, starts):
            for start, run in zip(starts.ravel() - MAIN_BASE, data.reshape(-1, shape[2]), strict=True):
                self.bytes[start:start + shape[2]] = run
        else:
            self._view(address, shape, steps)[:] = data
        self.bytes_written += data.size

    def _check(self, address: int, shape: tuple[int, int, int], steps: Steps, bus_bytes: int, *,
               code: int) -> NDArray[np.int64]:
        """Return the address of each run, modulo 2**32 as in hardware, if all of them lie where they may."""
        rows, runs, size = shape
        starts = (address + np.arange(rows)[:, None] * steps[0] + np.arange(runs) * steps[1]) % _ADDRESSES
        low, high = starts // bus_bytes * bus_bytes, -(-(starts + size) // bus_bytes) * bus_bytes
        allowed = np.zeros(starts.shape, bool)
        for window in self.windows:
            if window.writable if code == WRITE_OUTSIDE else window.readable:
                allowed |= (low >= window.base) & (high <= window.limit)
        if not allowed.all():
            raise WindowError(Fault(code, int(low[~allowed][0])), self.windows)
        if starts.min() < MAIN_BASE or starts.max() + size > MAIN_BASE + self.bytes.size:
            raise ValueError(f"Memory must cover the windows; it has {self.bytes.size} bytes from "
                             f"{MAIN_BASE:#x}, and {int(starts.max()) + size:#x} was used")
        return starts

    def _view(self, address: int, shape: tuple[int, int, int], steps: Steps) -> NDArray[np.int8]:
        # A step of an axis of one does not matter, and may be any 32-bit number.
        strides = (steps[0] if shape[0] > 1 else 0, steps[1] if shape[1] > 1 else 0, 1)
        return as_strided(self.bytes[address - MAIN_BASE:], shape, strides)


def _wraps(address: int, shape: tuple[int, int, int], steps: Steps) -> bool:
    """Tell whether the address of a run passes the end of the address space."""
    return address + (shape[0] - 1) * steps[0] + (shape[1] - 1) * steps[1] >= _ADDRESSES


def _overlap(shape: tuple[int, int, int], steps: Steps, starts: NDArray[np.int64]) -> bool:
    """Tell whether runs overlap, which takes a look at all of them where neither rows nor columns of runs are apart."""
    rows, runs, size = shape
    row, run = steps
    apart = (rows == 1 or row >= (runs - 1) * run + size) and (runs == 1 or run >= size)
    apart |= (runs == 1 or run >= (rows - 1) * row + size) and (rows == 1 or row >= size)
    return not apart and bool((np.diff(np.sort(starts, axis=None)) < size).any())
