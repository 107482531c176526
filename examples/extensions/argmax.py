"""Index of the largest channel of each pixel, as a unit on the activation buffer: what ends a segmentation network.

The unit takes 16 channels a cycle, and writes the index, of the first of several, over the first byte of the pixel.
"""

import numpy as np
from amaranth import Cat, Module, Mux, Signal, signed
from amaranth.lib import stream
from amaranth.lib.data import ArrayLayout, StructLayout
from amaranth.lib.wiring import Component, In, Out

from tilewright.isa.encoding import Field
from tilewright.isa.extension import BufferUnit

__all__ = ["EXTENSION"]

FIELDS = (Field("least", 1, "1: the index of the smallest channel"),)


def fit(attributes, channels):
    """Return the fields for ArgMax along the channels of an image; None of any other."""
    if attributes.get("axis", 0) not in (1, -3) or attributes.get("select_last_index", 0) or channels > 128:
        return None
    return {"least": 0}


def compute(items, settings):
    """Return the index of each item's largest, or smallest, byte: int8 (items, 1)."""
    found = items.argmin(axis=1) if settings["least"] else items.argmax(axis=1)
    return found.astype(np.uint8).view(np.int8)[:, None]


def better(m, name, one, other):
    """Return the better of two candidates, (key, index), of which ``one`` has the lower index."""
    key, index = Signal(8, name=f"key_{name}"), Signal(8, name=f"index_{name}")
    takes = Signal(name=f"takes_{name}")
    m.d.comb += [takes.eq(other[0] > one[0]), key.eq(Mux(takes, other[0], one[0])),
                 index.eq(Mux(takes, other[1], one[1]))]
    return key, index


class ArgMax(Component):
    """The best of a word in the first cycle, by a tree of comparators, and of the item in the second.

    Keys are unsigned and greater for better bytes; those behind the end of the item are zero, and lose to equals.
    """

    LATENCY = 2

    def __init__(self):
        word = StructLayout({"data": ArrayLayout(signed(8), 16), "count": 5, "first": 1, "last": 1})
        super().__init__({
            "i": In(stream.Signature(word)),
            "settings": In(StructLayout({each.name: each.width for each in FIELDS})),
            "o": Out(stream.Signature(ArrayLayout(signed(8), 1))),
        })

    def elaborate(self, platform):
        m = Module()
        word, go = self.i.payload, Signal()
        found = []
        for place in range(16):
            key = Signal(8, name=f"key_of_{place}")
            with m.If(place < word.count):
                m.d.comb += key.eq(word.data[place] ^ Mux(self.settings.least, 0x7F, 0x80))
            found.append((key, place))
        while len(found) > 1:
            found = [better(m, f"{len(found)}_{place}", *found[place:place + 2]) for place in range(0, len(found), 2)]

        # Where the result is held up, everything waits.
        m.d.comb += [go.eq(~self.o.valid | self.o.ready), self.i.ready.eq(go)]
        comes, first, last = Signal(), Signal(), Signal()
        key, index, best, where, base = (Signal(8, name=name) for name in ("key", "index", "best", "where", "base"))
        ahead = (Mux(first, 0, best), Mux(first, 0, where))
        new = better(m, "item", ahead, (key, (index + base)[:8]))
        with m.If(go):
            m.d.sync += [comes.eq(self.i.valid), key.eq(found[0][0]), index.eq(found[0][1]), first.eq(word.first),
                         last.eq(word.last), self.o.valid.eq(comes & last)]
            with m.If(self.i.valid):
                m.d.sync += base.eq(Mux(word.first, 0, base + 16))
            with m.If(comes):
                m.d.sync += [best.eq(new[0]), where.eq(new[1])]
        m.d.comb += Cat(self.o.payload).eq(where)
        return m


EXTENSION = BufferUnit(
    mnemonic="argmax", effect="index of the largest channel of each pixel", operators=("ArgMax",), result_bytes=1,
    fit=fit, compute=compute, component=ArgMax, fields=FIELDS)
