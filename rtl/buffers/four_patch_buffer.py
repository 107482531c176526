"""The activation buffer of a machine whose lanes take a patch each: four memories a bank, all read at once.

Layouts and single reads are those of `ActivationBuffer`. Two bits of a word's number choose one of the four memories of
its bank. Blocks begin at multiples of ``block_unit`` words, so these bits tell four channels apart, which lie at the
same word of their memories. The number of a channel rotates its patch, and the choice among the four blocks around the
patch's corner. In the number of the first channel these two bits are zero, so each further one adds a constant.
"""

from collections.abc import Sequence

from amaranth import Cat, Const, Module, Mux, ShapeLike, Signal, Value
from amaranth.lib.memory import Memory
from amaranth.utils import exact_log2

from tilewright.isa.machine import PATCHES, Machine
from tilewright.rtl.buffers.activation_buffer import BANKS, ActivationBuffer, BankWrite, rotate
from tilewright.rtl.stream.stages import Pipeline

__all__ = ["FourPatchBuffer", "activation_buffer"]


def activation_buffer(machine: Machine, meta_shape: ShapeLike) -> ActivationBuffer:
    """Return the activation buffer that ``machine`` has."""
    return (FourPatchBuffer if machine.takes_four_patches else ActivationBuffer)(machine, meta_shape)


class FourPatchBuffer(ActivationBuffer):
    """One read and one write per cycle; a read with ``four`` has ``others``, the patches of the next three channels.

    Those are ``lanes_per_fetch`` apart, and the bits of the first's number that tell them apart are zero. No read has
    both ``four`` and ``reuse``.
    """

    def __init__(self, machine: Machine, meta_shape: ShapeLike) -> None:
        super().__init__(machine, meta_shape)
        self._step = machine.lanes_per_fetch
        self._chosen = exact_log2(self._step)       # of a word, the lower of the two bits that choose a memory
        self._levels = [level for level in range(4) if level not in (self._chosen, self._chosen + 1)]

    def elaborate(self, platform: object) -> Module:
        m = Module()
        banks = [[self._bank(m, f"bank_{number}_{part}", self.machine.activation_bytes // BANKS // PATCHES)
                  for part in range(PATCHES)] for number in range(BANKS)]
        for parts, written in zip(banks, self._write(m), strict=True):
            self._write_parts(m, parts, written)
        request = self.i.payload
        pipe = Pipeline(m, self.i.valid, **{name: request[name] for name in request.shape().members})
        raw = self._read_parts(m, pipe, banks, self._awake(m))
        four, valid = pipe.four, pipe.valid & pipe.present
        # Of a single read only one memory of a bank is read; the others give zero.
        single = raw[0] | Mux(four, 0, raw[1] | raw[2] | raw[3])
        rotated = [Signal(8 * BANKS, name=f"rotated_{part}", reset_less=True) for part in range(PATCHES)]
        turned = [self._rotate_far(m, single, pipe),
                  *(self._turn(m, pipe, part, raw[part]) for part in range(1, PATCHES))]
        for part in range(PATCHES):
            with m.If(valid & four if part else valid):
                m.d.sync += rotated[part].eq(turned[part])
        pipe.step()
        self._place(m, pipe, rotated[0])
        half_x, reads_four = pipe.half_x, pipe.valid & pipe.present & pipe.four
        for part in range(1, PATCHES):
            byte = rotated[part].word_select
            with m.If(reads_four):
                m.d.sync += [self.o.payload.others[part - 1][4 * y + x].eq(
                    Mux(half_x, byte(4 * y + (x + 2) % 4, 8), byte(4 * y + x, 8))) for y in range(4) for x in range(4)]
        pipe.step()
        m.d.comb += [
            self.o.valid.eq(pipe.valid),
            *(self.o.payload[name].eq(getattr(pipe, name)) for name in ("present", "meta", "four")),
        ]
        return m

    def _part(self, word: Value) -> Value:
        """Return which memory of a bank has ``word``."""
        return word[self._chosen:self._chosen + 2]

    def _address(self, word: Value) -> Value:
        """Return the place of ``word`` in its memory."""
        return Cat(word[:self._chosen], word[self._chosen + 2:])

    def _write_parts(self, m: Module, parts: Sequence[Memory], written: BankWrite) -> None:
        for number, part in enumerate(parts):
            port = part.write_port()
            m.d.comb += [
                port.en.eq(written.enable & (self._part(written.address) == number)),
                port.addr.eq(self._address(written.address)),
                port.data.eq(written.value),
            ]

    def _turn(self, m: Module, pipe: Pipeline, part: int, raw: Value) -> Value:
        """Return the patch of memory ``part``, whose half blocks are put in order from above to below."""
        first = 8 * self._step * part
        upper = self._levels[-1]    # by which half a patch is turned, as half a block does
        rotation = Signal(4, name=f"rotation_{part}")
        m.d.comb += [rotation.eq(pipe.rotation), rotation[upper].eq(pipe.rotation[upper] ^ pipe.half_y)]
        return rotate(m, Cat(raw[first:], raw[:first]), rotation, self._levels)

    def _read_parts(self, m: Module, pipe: Pipeline, banks: Sequence[Sequence[Memory]],
                    awake: Sequence[Signal]) -> list[Signal]:
        """Return the bytes of each of the four memories of all banks, registered, four stages after the request."""
        rows = self._rows(m, pipe, awake)
        corners = self._corners(m, pipe)
        four = [pipe.four, Signal(name="reads_four")]
        m.d.sync += four[1].eq(four[0])
        raw = [Signal(8 * BANKS, name=f"raw_{part}", reset_less=True) for part in range(PATCHES)]
        for b, parts in enumerate(banks):
            row, chosen = Signal(len(corners[0]), name=f"row_{b}"), Signal(2, name=f"part_{b}", reset_less=True)
            m.d.comb += row.eq(rows[b])
            with m.If(awake[1][b % 4]):
                m.d.sync += chosen.eq(self._part(row))
            for number, part in enumerate(parts):
                port, mine = part.read_port(), Signal(name=f"read_{b}_{number}")
                address = Signal(len(port.addr), name=f"address_{b}_{number}", reset_less=True)
                corner = corners[(b - self._step * number) % BANKS]
                with m.If(awake[1][b % 4]):
                    m.d.sync += address.eq(self._address(Mux(four[0], corner, row)))
                m.d.comb += [port.addr.eq(address), port.en.eq(awake[2][b % 4] & (four[1] | (chosen == number)))]
                m.d.sync += mine.eq(port.en)
                with m.If(awake[3][b % 4]):  # nothing between the block RAM and its register, which has a reset
                    m.d.sync += raw[number][8 * b:8 * b + 8].eq(Mux(mine, port.data, 0))
        pipe.step()
        pipe.step()
        pipe.step()
        return raw

    def _corners(self, m: Module, pipe: Pipeline) -> list[Signal]:
        """Return the words that are read where a patch's byte k would lie if its channel were 0, a stage after `_rows`.

        Of four channels the first has one of four numbers modulo 16. So which half of a block a place belongs to is one
        of few functions of them.
        """
        request = self.i.payload
        number = Cat(request.rotation[level] for level in self._levels)
        numbers = [sum(1 << level for index, level in enumerate(self._levels) if n >> index & 1)
                   for n in range(PATCHES)]
        words: dict[tuple[int, int], Signal] = {}
        halves: dict[tuple[str, int], Signal] = {}
        found = []
        for place in range(BANKS):
            # Bit n: with the n-th of the numbers the place is in the right, or lower, half.
            right, lower = (sum(((place - first) % BANKS >> bit & 1) << n for n, first in enumerate(numbers))
                            for bit in (1, 3))
            for name, half, mask in (("wraps", request.half_x, right), ("drops", request.half_y, lower)):
                if (name, mask) not in halves:
                    halves[name, mask] = across = Signal(name=f"{name}_{mask:x}", reset_less=True)
                    with m.If(self.i.valid & request.four):
                        m.d.sync += across.eq(half & ~Const(mask, PATCHES).bit_select(number, 1))
            if (right, lower) not in words:
                words[right, lower] = word = Signal(len(request.word), name=f"corner_{right:x}_{lower:x}")
                wraps, drops = halves["wraps", right], halves["drops", lower]
                m.d.comb += word.eq(Mux(drops, Mux(wraps, pipe.across, pipe.under), Mux(wraps, pipe.beside, pipe.here)))
            found.append(words[right, lower])
        return found
