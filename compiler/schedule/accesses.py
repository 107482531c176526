"""Accesses of commands to buffers and memory, derived from operands and settings by the layouts of docs/datapath.md.

:class:`Reader` knows nothing of plans and regions: it is how compiler/schedule/races.py sees a program. Each access is
the interval from the first to behind the last place, in bytes; weight memories are counted over all clusters.
:class:`Intervals` finds the accesses that overlap one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import gcd
from typing import Generic, Protocol, TypeVar

from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.counters import RECORD_WORDS
from tilewright.isa.encoding import BY_CHANNEL
from tilewright.isa.limits import BUFFER_ADDRESSES
from tilewright.isa.machine import PATCHES, SUM_BYTES, TABLE_BYTES, TABLE_SLOTS, TILE_BYTES, Machine

__all__ = ["Access", "Draft", "Interval", "Intervals", "MemoryTouches", "Reader", "T", "mesh", "same_teeth"]

_Operands = Mapping[str, int]

_PAGE = 4096
"""Addresses of a page, by which intervals are found."""


_ENDLESS = 1 << 62
"""Behind every address."""


@dataclass(frozen=True, slots=True)
class Access:
    """Places [start, stop) of a buffer, or of main memory, that a command reads or writes.

    With a ``step`` it is only ``size`` places from start, start + step, .. on.
    """

    space: str
    start: int
    stop: int
    write: bool = False
    step: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True)
class Draft:
    """A command with known accesses but without its waits.

    The array learns that an ``early`` load is complete from the ``ldw`` behind it.
    """

    mnemonic: str
    variant: str
    operands: Mapping[str, int] = field(default_factory=dict)
    accesses: tuple[Access, ...] = ()
    early: bool = False

    @property
    def configures(self) -> bool:
        """Whether it only makes settings for later commands."""
        return self.variant.startswith("set_") or self.variant == "window"

    @property
    def leaves_sums(self) -> bool:
        """Whether it is a command of the array that an ``act`` follows."""
        return self.mnemonic in ("conv23", "conv", "pool") and not self.configures and not self.operands["hold"]


class Interval(Protocol):
    """Places [start, stop); with a ``step`` only ``size`` of them from start, start + step, .. on, as of a comb."""

    @property
    def start(self) -> int: ...
    @property
    def stop(self) -> int: ...
    @property
    def step(self) -> int: ...
    @property
    def size(self) -> int: ...


def mesh(first: Interval, second: Interval) -> bool:
    """Tell whether two combs share no place because the teeth of one lie between those of the other.

    What has no gaps is one tooth.
    """
    step = gcd(first.step, second.step)
    size, other = (each.size if each.step else each.stop - each.start for each in (first, second))
    return step > 0 and (second.start - first.start) % step >= size and (first.start - second.start) % step >= other


def same_teeth(first: Interval, second: Interval) -> bool:
    """Tell whether all of the second interval within the bounds of the first meets it: it has no gaps, or the same."""
    step = first.step
    return step == 0 or (second.step == step and second.size == first.size and (second.start - first.start) % step == 0)


T = TypeVar("T", bound=Interval)


@dataclass(slots=True)
class Intervals(Generic[T]):
    """A collection of intervals, those on the same page of addresses together."""

    pages: dict[int, list[T]] = field(default_factory=dict)

    def overlapping(self, start: int, stop: int) -> list[T]:
        """Return the intervals that overlap [start, stop); an interval on several pages appears several times."""
        return [each for page in range(start // _PAGE, (stop - 1) // _PAGE + 1) for each in self.pages.get(page, ())
                if each.start < stop and start < each.stop]

    def replace(self, new: T, covers: Callable[[T], bool]) -> None:
        """Add ``new`` and drop what it covers: what lies inside it and touches no more, as far as ``covers`` agrees."""
        for page in range(new.start // _PAGE, (new.stop - 1) // _PAGE + 1):
            # On its page, an interval is as good as covered if its part there is.
            start = 0 if new.start <= page * _PAGE else new.start
            stop = new.stop if new.stop < (page + 1) * _PAGE else _ENDLESS
            kept = [each for each in self.pages.get(page, ())
                    if not (start <= each.start and each.stop <= stop and covers(each) and same_teeth(new, each))]
            kept.append(new)
            self.pages[page] = kept


@dataclass(frozen=True, slots=True)
class _Stored:
    """Places that a store writes, the ``number``-th of the program."""

    number: int
    start: int
    stop: int
    step: int
    size: int


@dataclass(slots=True)
class MemoryTouches:
    """Accesses to main memory of the commands of a program, in their order.

    ``recent`` are the accesses since the last fence. Stores are acknowledged in order, and loads of data have waited
    for the first ``waited`` of the ``stored``.
    """

    recent: list[Access] = field(default_factory=list)
    stores: Intervals[_Stored] = field(default_factory=Intervals)
    stored: int = 0
    waited: int = 0

    def add(self, accesses: Iterable[Access]) -> None:
        """Add the accesses of a load of data or of a store."""
        for access in accesses:
            if access.space != "memory":
                continue
            self.recent.append(access)
            if access.write:
                self.stored += 1
                self.stores.replace(_Stored(self.stored, access.start, access.stop, access.step, access.size),
                                    lambda _: True)
            else:
                self.waited = max(self.waited, self._last(access))

    def fence(self) -> None:
        """Count every access as complete."""
        self.recent.clear()
        self.waited = self.stored

    def in_use(self, start: int, stop: int, *, write: bool) -> bool:
        """Tell whether a command that may be under way writes what the host core reads, or touches what it writes."""
        return any(access.start < stop and start < access.stop and (write or access.write) for access in self.recent)

    def there(self, spans: Iterable[tuple[int, int]]) -> bool:
        """Tell whether a load of data has waited for all stores to memory [start, stop)."""
        return all(self._last(Access("memory", *span)) <= self.waited for span in spans)

    def _last(self, read: Access) -> int:
        """Return the number of the last store that writes what an access reads; 0 if none does."""
        return max((each.number for each in self.stores.overlapping(read.start, read.stop) if not mesh(each, read)),
                   default=0)


@dataclass(slots=True)
class Reader:
    """Follows the settings of the units and tells what each command touches."""

    machine: Machine
    settings: dict[str, dict[str, int]] = field(default_factory=dict)

    def accesses(self, command: EncodedCommand) -> tuple[Access, ...]:
        """Return the accesses of ``command``, and adopt the settings that it makes."""
        mnemonic, variant, operands = command.instruction.mnemonic, command.variant.name, command.operands
        if variant.startswith("set_") or variant == "window":
            self.settings.setdefault(mnemonic, {}).update(operands)
            return ()
        if variant == "fence":
            return ()
        handler = {"lda": self._lda, "ldw": self._ldw, "conv": self._conv, "conv23": self._conv23, "pool": self._sum,
                   "act": self._act, "sta": self._sta, "extension": self._own_unit}[mnemonic]
        found = tuple(handler(variant, operands))
        step, space = self._planes(mnemonic, operands)
        return (*found, *(replace(each, start=each.start + step, stop=each.stop + step) for each in found
                          if step and each.space == space))

    def _planes(self, mnemonic: str, op: _Operands) -> tuple[int, str]:
        """Return how far behind a command's bytes those of words' second plane lie, and in which buffer; 0: none."""
        if mnemonic in ("conv", "conv23", "pool"):
            return self.settings["conv"].get("plane_step", 0), "activations"
        if mnemonic == "act" and op.get("wide", 0):
            return TILE_BYTES * self.settings["pool"]["plane_words"], "results"
        return 0, ""

    def capacity(self, space: str) -> int:
        """Return the bytes of a buffer."""
        machine = self.machine
        return {"activations": machine.activation_bytes, "results": machine.result_bytes,
                "main": machine.weight_bytes, "ninths": machine.weight_bytes // 8,
                "parameters": 8 * machine.parameter_channels, "table": TABLE_SLOTS * TABLE_BYTES,
                "memory": 1 << 32}[space]

    def _lda(self, variant: str, op: _Operands) -> Iterator[Access]:
        cfg = self.settings["lda"]
        last = (cfg["chunks"] - 1) * cfg["chunk_step"] + cfg["chunk_bytes"]
        if not variant.startswith("fill"):
            yield _pixels(op["address"], op["rows"], cfg["memory_row_step"], cfg["chunks"], cfg["memory_chunk_step"],
                          cfg["chunk_bytes"])
        if variant == "residual":
            yield _rows("results", op["base"], op["rows"], cfg["row_step"], last, write=True)
        elif variant.endswith("linear"):
            yield _rows("activations", op["base"], op["rows"], cfg["row_step"],
                        (cfg["left"] + cfg["right"]) * cfg["channels"] + last, write=True)
        else:
            pixels = cfg["left"] + cfg["chunks"] * cfg["chunk_bytes"] // cfg["channels"] + cfg["right"]
            yield _rows("activations", op["base"], (op["y"] + op["rows"] - 1) // 4 + 1, cfg["row_step"],
                        -(-pixels // 4) * TILE_BYTES * cfg["channels"], write=True)

    def _ldw(self, variant: str, op: _Operands) -> Iterator[Access]:
        if variant.startswith("coded_"):
            machine, size = self.machine, op["steps"] * self.machine.decoded_bytes
            read = self.settings["ldw"]["words"] * machine.bus_bytes
            first = op["base"] * machine.bus_bytes // machine.decoded_bytes * machine.decoded_bytes
            yield Access("memory", op["address"], op["address"] + read)
            yield Access(variant.removeprefix("coded_"), first, first + size, write=True)
            return
        bus = self.machine.bus_bytes
        yield Access("memory", op["address"], op["address"] + op["words"] * bus)
        yield Access(variant, op["base"] * bus, (op["base"] + op["words"]) * bus, write=True)

    def _linear_input(self, op: _Operands) -> Access:
        cfg = self.settings["conv"]
        reach = (cfg["tiles_x"] - 1) * cfg["x_step"] + (cfg["kernel_y"] - 1) * cfg["kernel_y_step"]
        reach += (cfg["kernel_x"] - 1) * cfg["kernel_x_step"] + (op["groups"] - 1) * cfg["group_step"]
        reach += cfg.get("pair_words", 0) * TILE_BYTES
        return _rows("activations", op["base"], op["tiles_y"], cfg["y_step"], reach + cfg["runs"] * TILE_BYTES)

    def _weights(self, first_word: int, words: int) -> Access:
        size = TILE_BYTES * self.machine.clusters
        return Access("main", first_word * size, (first_word + words) * size)

    def _conv(self, variant: str, op: _Operands) -> Iterator[Access]:
        cfg = self.settings["conv"]
        steps = cfg["kernel_y"] * cfg["kernel_x"] * cfg["runs"]
        yield self._linear_input(op)
        yield self._weights(op["weight_base"], op["groups"] * steps * self.machine.lanes_per_cluster)

    def _conv23(self, variant: str, op: _Operands) -> Iterator[Access]:
        cfg = self.settings["conv"]
        rows, columns = 2 * op["y_half"] + 2 * op["tiles_y"] + 2, 2 * cfg["tiles_x"] + 2
        # The channels of the last block end with its last lane group's, which may go beyond the pixel's.
        runs = cfg["runs"] + (cfg["runs"] % 2 if self.machine.pairs_channels else 0)
        if variant == "run_four_patches":
            runs *= PATCHES * cfg["kernel_x"]
        channels = (op["groups"] - 1) * cfg.get("group_step", 0) + runs * TILE_BYTES
        row, first, step = (-(-columns // 4) - 1) * cfg["x_step"] + channels, op["base"], cfg["y_step"]
        if first + step < BUFFER_ADDRESSES:
            yield _rows("activations", first, -(-rows // 4), step, row)
        else:       # back to a block row above
            yield from (_rows("activations", (first + index * step) % BUFFER_ADDRESSES, 1, 0, row)
                        for index in range(-(-rows // 4)))
        kernels = op["groups"] * (1 if variant in BY_CHANNEL else runs) * self.machine.lanes_per_cluster
        yield self._weights(op["weight_base"], -(-kernels // 2))
        ninths = self._weights(op["weight_base"] // 8, -(-kernels // TILE_BYTES))
        yield Access("ninths", ninths.start, ninths.stop)

    def _sum(self, variant: str, op: _Operands) -> Iterator[Access]:
        yield self._linear_input(op)

    def _own_unit(self, variant: str, op: _Operands) -> Iterator[Access]:
        yield Access("activations", op["base"], op["base"] + op["items"] * op["item_bytes"], write=True)

    def _act(self, variant: str, op: _Operands) -> Iterator[Access]:
        if variant == "rows":
            yield Access("table", 0, TABLE_SLOTS * TABLE_BYTES)
            yield Access("results", op["base"], op["base"] + op["rows"] * op["length"], write=True)
            return
        cfg, window = self.settings["act"], self.settings.get("pool", {})
        rows, width = (window["rows"], window["width"]) if op["pooled"] else (op["rows"], cfg["width"])
        channels = parameters = op["channels"]
        if op["winograd"] and self.machine.pairs_channels and not op["shared"]:
            parameters = -(-channels // self.machine.lanes) * self.machine.lanes * self.machine.channel_parameters
        yield Access("parameters", 8 * op["parameter_base"], 8 * (op["parameter_base"] + parameters))
        channels *= SUM_BYTES if op["whole"] else 1
        if op["table"]:
            first, slots = (0, TABLE_SLOTS) if op["wide"] else (op["table_slot"], 1)
            yield Access("table", TABLE_BYTES * first, TABLE_BYTES * (first + slots))
        yield _rows("results", op["base"], rows, cfg["row_step"], (width - 1) * cfg["pixel_step"] + channels,
                    write=True)

    def _sta(self, variant: str, op: _Operands) -> Iterator[Access]:
        if variant == "status":
            yield Access("memory", op["address"], op["address"] + 4 * RECORD_WORDS, write=True)
            return
        cfg = self.settings["sta"]
        yield _rows("results", op["base"], op["rows"], cfg["row_step"],
                    (cfg["chunks"] - 1) * cfg["chunk_step"] + cfg["chunk_bytes"])
        if variant == "memory":
            yield _pixels(op["address"], op["rows"], cfg["target_row_step"], cfg["chunks"], cfg["target_chunk_step"],
                          cfg["chunk_bytes"], write=True)
        elif variant == "linear":
            yield _rows("activations", op["target"], op["rows"], cfg["target_row_step"],
                        (cfg["chunks"] - 1) * cfg["target_chunk_step"] + cfg["chunk_bytes"], write=True)
        else:
            # From the first channel's word in the first block to the last one's in the last, with all their banks.
            first = op["target"] + TILE_BYTES * TILE_BYTES * op["channel"]
            yield _rows("activations", first, (op["y"] + op["rows"] - 1) // 4 + 1, cfg["target_row_step"],
                        (op["x"] + cfg["chunks"] - 1) // 4 * cfg["target_chunk_step"] + TILE_BYTES * cfg["chunk_bytes"],
                        write=True)


def _pixels(address: int, rows: int, row_step: int, chunks: int, chunk_step: int, chunk_bytes: int, *,
            write: bool = False) -> Access:
    """Return the access to runs in main memory: exactly, where the gaps between them go on from row to row."""
    length = (chunks - 1) * chunk_step + chunk_bytes
    found = _rows("memory", address, rows, row_step, length, write=write)
    if chunks > 1 and chunk_step > chunk_bytes and (rows == 1 or row_step % chunk_step == 0):
        return replace(found, step=chunk_step, size=chunk_bytes)
    return replace(found, step=row_step, size=length) if rows > 1 and row_step > length else found


def _rows(space: str, base: int, rows: int, step: int, length: int, *, write: bool = False) -> Access:
    return Access(space, base, base + (rows - 1) * step + length, write)
