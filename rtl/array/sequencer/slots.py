"""A tile slot as the array's lanes see it, by the kind of array."""

from amaranth import Mux, Value
from amaranth.lib.data import Struct

from tilewright.isa.machine import Machine

__all__ = ["DEPTH", "AnySlot", "PairSlot", "Slot", "WordPairSlot", "WordSlot", "slot_of", "sum_before"]

DEPTH = 16
"""Words of the memories of sums: what a LUT RAM holds, and so how many finished tiles wait for post-processing."""


class Slot(Struct):
    """A tile slot as a lane sees it; goes with the slot's data from the sequencer on.

    Attributes
    ----------
    present
        A tile is in the slot.
    tile
        Its number in the tile group.
    load
        First slot of a step: the lane takes its weights.
    clear
        First step of the tile group: the sums start from zero.
    finish
        Last step: the sums leave the accumulators.
    complete
        Last slot of a group whose sums leave.
    dot
        A dot product, not a 4x4 patch.
    """

    present: 1
    tile: 2
    load: 1
    clear: 1
    finish: 1
    complete: 1
    dot: 1


class PairSlot(Struct):
    """A tile slot of an array that takes channels in pairs: two output channels of a lane have slots in turn.

    Of conv23, `present` and what follows it speak of the slot's product, and ``arrives`` of its patch.

    Attributes
    ----------
    present, tile, load, clear, finish, complete, dot
        As of `Slot`.
    second
        The product is that of a lane's second output channel.
    arrives
        A patch of the tile, or a run, comes with the slot.
    """

    present: 1
    tile: 2
    load: 1
    clear: 1
    finish: 1
    complete: 1
    dot: 1
    second: 1
    arrives: 1


class WordSlot(Struct):
    """A `Slot` of an array that sums up words of 16 bits.

    ``shift``: first step of a tile group's plane of lower bytes, to which 256 times the sums before are added.
    """

    present: 1
    tile: 2
    load: 1
    clear: 1
    finish: 1
    complete: 1
    dot: 1
    shift: 1


class WordPairSlot(Struct):
    """A `PairSlot` of such an array, with the ``shift`` of its product."""

    present: 1
    tile: 2
    load: 1
    clear: 1
    finish: 1
    complete: 1
    dot: 1
    second: 1
    arrives: 1
    shift: 1


AnySlot = Slot | PairSlot | WordSlot | WordPairSlot
"""A slot of any array."""


def slot_of(machine: Machine) -> type[AnySlot]:
    """Return the slot of the array of ``machine``."""
    if machine.wide_words:
        return WordPairSlot if machine.pairs_channels else WordSlot
    return PairSlot if machine.pairs_channels else Slot


def sum_before(slot: AnySlot, kept: Value) -> Value:
    """Return the sum to which a slot's product is added: the one ``kept``, or 0 in a tile group's first step."""
    if isinstance(slot, WordSlot | WordPairSlot):
        shifted = (kept << 8)[:len(kept)].as_signed()
        return Mux(slot.clear, 0, Mux(slot.shift, shifted, kept))
    return Mux(slot.clear, 0, kept)
