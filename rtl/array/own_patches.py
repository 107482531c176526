"""Patches for all lanes of a cluster but the first, on machines whose buffer delivers four patches at once."""

from amaranth import Cat, Module, Signal
from amaranth.lib.data import ArrayLayout, StructLayout
from amaranth.lib.wiring import Component, In, Out

from tilewright.isa.machine import PATCHES, TILE_BYTES, Machine
from tilewright.rtl.arithmetic.winograd import DATA, VALUE, InputTransform
from tilewright.rtl.array.patch_pairs import PatchPairs
from tilewright.rtl.stream.stages import flow

__all__ = ["OwnPatches", "own_layout"]


def own_layout(machine: Machine) -> ArrayLayout:
    """Return the layout of the transformed patches of all lanes but the first: whether a lane has one, its 16 values.

    Each comes with the slot of its lane.
    """
    return ArrayLayout(StructLayout({"valid": 1, "v": ArrayLayout(DATA, TILE_BYTES)}), machine.fetch_slots - 1)


class OwnPatches(Component):
    """Transform the patches of a slot but the first; each leaves as many cycles later as its lane is behind the first.

    A patch waits before its transform, where it has fewer bits. The values of a lane stay until its next patch comes.

    Parameters
    ----------
    machine : Machine

    Members
    -------
    i : ``In(flow(...))``
        ``others`` of the activation buffer, in slots that have ``four``.
    four : ``Out(1)``
        The slot that leaves the transform of the first patch has them.
    o : ``Out(own_layout(machine))``
    """

    def __init__(self, machine: Machine) -> None:
        self._first = PatchPairs.LATENCY if machine.pairs_channels else 0
        super().__init__({
            "i": In(flow(ArrayLayout(ArrayLayout(VALUE, TILE_BYTES), PATCHES - 1))),
            "four": Out(1),
            "o": Out(own_layout(machine)),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        last = self._first + PATCHES - 1
        there = [self.i.valid, *(Signal(name=f"there_{cycle}") for cycle in range(1, last + 2))]
        m.d.sync += Cat(there[1:]).eq(Cat(there[:-1]))
        m.d.comb += self.four.eq(there[InputTransform.LATENCY])
        for lane in range(1, PATCHES):
            patch = self.i.payload[lane - 1]
            for cycle in range(self._first + lane):
                waiting = Signal.like(patch, name=f"patch_{lane}_{cycle}", reset_less=True)
                with m.If(there[cycle]):
                    m.d.sync += waiting.eq(patch)
                patch = waiting
            m.submodules[f"transform_{lane}"] = transform = InputTransform(1)
            comes = there[self._first + lane]
            m.d.comb += [
                transform.i.valid.eq(comes),
                transform.i.payload.patch.eq(patch),
                transform.i.payload.present.eq(1),
                self.o[lane - 1].valid.eq(there[self._first + lane + InputTransform.LATENCY]),
                self.o[lane - 1].v.eq(transform.o.payload.v),
            ]
        return m
