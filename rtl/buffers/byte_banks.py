"""A buffer of byte-wide banks: any run of bytes, at any byte address, read and written in every cycle."""

from amaranth import Cat, Module, Mux, Signal, Value, ValueLike
from amaranth.lib.data import ArrayLayout, StructLayout
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out, PureInterface
from amaranth.utils import exact_log2

from tilewright.rtl.stream.stages import Pipeline, flow

__all__ = ["ByteBanks"]


class ByteBanks(Component):
    """Byte ``a`` lies in bank ``a % banks``, word ``a // banks``; addresses wrap at the end of the buffer.

    Takes one read and one write of 1 .. ``banks`` bytes per cycle.  Data are at ``data`` in the cycle
    ``READ_LATENCY`` after ``read``.  A read sees the writes that were offered in earlier cycles, not the one
    offered in the same cycle.

    Both sides go the same way: the word is registered, then each bank registers whether it uses that or the next. The
    banks' outputs go straight into registers, and the bytes are rotated behind those.

    Parameters
    ----------
    banks : int
        A power of two: bytes in the longest run.
    depth : int
        A power of two: words in a bank.

    Attributes
    ----------
    read : flow
        ``address`` in bytes, ``count``: bytes that are wanted.
    data : list of bytes
        Byte ``i`` is that at ``address + i``, for ``i < count``; the others mean nothing.
    write : flow
        ``address``, ``count``, and the bytes ``data``, of which the first ``count`` are written.
    """

    READ_LATENCY = 5

    def __init__(self, banks: int, depth: int) -> None:
        self.banks = banks
        self.depth = depth
        self.address_width = exact_log2(banks) + exact_log2(depth)
        window = {"address": self.address_width, "count": range(banks + 1)}
        super().__init__({
            "read": In(flow(StructLayout(window))),
            "data": Out(ArrayLayout(8, banks)),
            "write": In(flow(StructLayout(window | {"data": ArrayLayout(8, banks)}))),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        write, written = self._spread(m, "write_", self.write)
        read, wanted = self._spread(m, "read_", self.read)
        rotated = _rotate_right(write.data, -write.offset)
        write.step(rotated=rotated)
        read.step(offset=read.offset)
        loaded = []
        for bank in range(self.banks):
            m.submodules[f"bank_{bank}"] = memory = Memory(shape=8, depth=self.depth, init=[])
            write_port, read_port = memory.write_port(), memory.read_port()
            m.d.comb += [
                Cat(write_port.en, write_port.addr).eq(written[bank]),
                write_port.data.eq(write.rotated.word_select(bank, 8)),
                Cat(read_port.en, read_port.addr).eq(wanted[bank]),
            ]
            arrived = Signal(name=f"arrived_{bank}")
            byte = Signal(8, name=f"byte_{bank}", reset_less=True)
            m.d.sync += arrived.eq(read_port.en)
            with m.If(arrived):
                m.d.sync += byte.eq(read_port.data)
            loaded.append(byte)
        read.step()
        read.step()
        read.step(data=_rotate_right(Cat(loaded), read.offset))
        assert read.depth == self.READ_LATENCY
        m.d.comb += self.data.eq(read.data)
        return m

    def _spread(self, m: Module, prefix: str, port: PureInterface) -> tuple[Pipeline, list[Value]]:
        """Append the two stages that find each bank's word.

        Returns the pipeline, before it steps into the second of them, and per bank the register of (use, word).
        """
        width = exact_log2(self.banks)
        request = {name: port.payload[name] for name in port.payload.shape().members}
        pipe = Pipeline(m, port.valid, prefix=prefix, **request)
        pipe.step(word=pipe.address[width:], offset=pipe.address[:width])
        word = pipe.word
        following = (word + 1)[:len(word)]
        chosen = []
        for bank in range(self.banks):
            distance = (bank - pipe.offset)[:width]
            use = Signal(name=f"{prefix}use_{bank}")
            choice = Signal(len(word), name=f"{prefix}word_of_{bank}", reset_less=True)
            m.d.sync += use.eq(pipe.valid & (distance < pipe.count))
            with m.If(pipe.valid):
                m.d.sync += choice.eq(Mux(bank < pipe.offset, following, word))
            chosen.append(Cat(use, choice))
        return pipe, chosen


def _rotate_right(word: ValueLike, places: Value) -> Value:
    """Return ``word`` with byte ``i + places`` (modulo its bytes) at place ``i``."""
    word = Cat(word)
    return (Cat(word, word) >> Cat(0, 0, 0, places[: exact_log2(len(word) // 8)]))[: len(word)]
