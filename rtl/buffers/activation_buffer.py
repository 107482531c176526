"""The activation buffer: 16 byte-wide banks that deliver a 4x4 patch or a run of 16 bytes per cycle.

Layouts (docs/datapath.md): linear, byte address a in bank a % 16; blocked, byte (x, y, c) in bank
(x % 4 + 4 * (y % 4) + c) % 16. Each bank picks its word by itself: a run lies in two neighbouring words, or each
half of it in two, a patch in the four blocks around its corner.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from amaranth import Cat, Module, Mux, ShapeLike, Signal, Value
from amaranth.lib import stream
from amaranth.lib.data import ArrayLayout, StructLayout
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out, Signature

from tilewright.isa.extension import unit_of
from tilewright.isa.machine import PATCHES, TILE_BYTES, Machine
from tilewright.rtl.arithmetic.winograd import VALUE
from tilewright.rtl.stream.stages import Pipeline, flow

__all__ = ["BANKS", "ActivationBuffer", "BankWrite", "activation_write_signature", "read_request", "rotate",
           "spare_write"]

BANKS = TILE_BYTES


def activation_write_signature(machine: Machine) -> Signature:
    """Return the write port: up to a bus word, or 16 bytes of it, per cycle, always accepted.

    Byte i < ``count`` of ``data`` goes to byte ``address + i``; with ``blocked`` to bank ``(address + i) % 16``,
    word ``address // 16 + i``: neighbouring channels of a pixel.
    """
    return Signature({
        "valid": Out(1),
        **({"blocked": Out(1)} if machine.winograd else {}),
        "address": Out(20),
        "count": Out(5),
        "data": Out(8 * machine.written_bytes),
    })


def read_request(machine: Machine, meta_shape: ShapeLike) -> StructLayout:
    """Return the layout of a read request.

    ``word`` (of the first byte; of a patch's block) and ``rotation`` (bank of the first byte; of a patch's block,
    its channel % 16) say where. ``right``, ``below``, ``diagonal`` are the words from a block to its neighbours;
    for a run, ``right`` is 1, and its bytes 8..15 are read ``below`` words further on. ``half_x``, ``half_y``: the
    patch starts at column, row 2 of its block. ``reuse``: the patch's left half is the right half of the patch before.
    Without ``present`` nothing is read, and only ``meta`` passes. ``four``: as of `FourPatchBuffer`. A plain array,
    which reads no patches, has only ``rotation``, ``word``, and ``below`` where there are paired rows.
    """
    bits = (machine.activation_bytes // BANKS).bit_length() - 1
    if not machine.winograd:
        below = {"below": bits} if machine.paired_rows else {}
        return StructLayout({"present": 1, "rotation": 4, "word": bits, **below, "meta": meta_shape})
    four = {"four": 1} if machine.takes_four_patches else {}
    return StructLayout({
        "present": 1, "linear": 1, "reuse": 1, "half_x": 1, "half_y": 1, "rotation": 4, **four,
        "word": bits, "right": bits, "below": bits, "diagonal": bits, "meta": meta_shape,
    })


def spare_write(machine: Machine) -> StructLayout:
    """Return the layout of a write of the unit of an extension: ``count`` bytes from byte ``address`` on."""
    return StructLayout({"address": 20, "count": 3, "data": 8 * min(4, machine.bus_bytes)})


class BankWrite:
    """Registers of what is written to a bank: whether, the word, and the byte."""

    def __init__(self, number: int, bits: int) -> None:
        self.enable = Signal(name=f"write_{number}")
        self.address = Signal(bits, name=f"write_address_{number}", reset_less=True)
        self.value = Signal(8, name=f"write_data_{number}", reset_less=True)


class ActivationBuffer(Component):
    """One read and one write per cycle, in both layouts.

    A request is answered exactly ``latency`` cycles later (``LATENCY`` with patches, one less without), and sees what
    was written in the cycle before or earlier; of ``spare``, in the same cycle or before. After ``READ_LATENCY`` cycles
    the banks have been read and may be written.
    With ``reuse`` the eight banks of the old columns stay asleep.

    Parameters
    ----------
    machine : Machine
    meta_shape : ShapeLike
        Shape of what rides along.

    Members
    -------
    write : ``In(activation_write_signature(machine))``
    spare : ``In(stream.Signature(spare_write(machine)))``
        Of machines with the unit of an extension: linear writes, to banks that the write of the cycle before leaves
        alone.
    i : ``In(flow(read_request(machine, meta_shape)))``
    o : ``Out(flow(...))``
        ``patch`` (the run, or 4 rows of 4), ``present``, ``meta``.
    """

    LATENCY = 6
    READ_LATENCY = 3

    def __init__(self, machine: Machine, meta_shape: ShapeLike) -> None:
        self.machine = machine
        self._has_spare = unit_of(machine) is not None
        self.latency = self.LATENCY if machine.winograd else self.LATENCY - 1
        others = {"others": ArrayLayout(ArrayLayout(VALUE, 16), PATCHES - 1), "four": 1} \
            if machine.takes_four_patches else {}
        super().__init__({
            "write": In(activation_write_signature(machine)),
            **({"spare": In(stream.Signature(spare_write(machine)))} if self._has_spare else {}),
            "i": In(flow(read_request(machine, meta_shape))),
            "o": Out(flow(StructLayout({
                "patch": ArrayLayout(VALUE, 16), "present": 1, "meta": meta_shape, **others}))),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        banks = [self._bank(m, f"bank_{number}", self.machine.activation_bytes // BANKS) for number in range(BANKS)]
        for bank, written in zip(banks, self._write(m), strict=True):
            port = bank.write_port()
            m.d.comb += [port.en.eq(written.enable), port.addr.eq(written.address), port.data.eq(written.value)]

        request = self.i.payload
        pipe = Pipeline(m, self.i.valid, **{name: request[name] for name in request.shape().members})
        if not self.machine.winograd:
            self._read_runs(m, pipe, banks)
            return m
        columns = self._awake(m)
        raw = self._read(m, pipe, banks, columns)
        rotated = Signal(8 * BANKS, reset_less=True)
        turned = self._rotate_far(m, raw, pipe)
        with m.If(pipe.valid & pipe.present):
            m.d.sync += rotated.eq(turned)
        pipe.step()
        self._place(m, pipe, rotated)
        pipe.step()
        m.d.comb += [
            self.o.valid.eq(pipe.valid),
            self.o.payload.present.eq(pipe.present),
            self.o.payload.meta.eq(pipe.meta),
        ]
        return m

    @staticmethod
    def _rotate_far(m: Module, raw: Value, pipe: Pipeline) -> Value:
        """Return ``raw`` rotated by the multiples of four bytes, and by eight more where the patch starts in row 2.

        For to start in row 2 of four means to be turned by two rows of four bytes.
        """
        rotation = Signal(4, name="far_rotation")
        pipe.join(near=pipe.rotation[:2])
        m.d.comb += rotation.eq(pipe.rotation ^ (pipe.half_y << 3))
        return rotate(m, raw, rotation, (3, 2))

    @staticmethod
    def _bank(m: Module, name: str, words: int) -> Memory:
        m.submodules[name] = bank = Memory(shape=8, depth=words, init=[])
        return bank

    def _awake(self, m: Module) -> list[Signal]:
        """Return whether the banks of each residue modulo 4 are read, in the stages after the request.

        Banks alike modulo 4 hold the same column of a patch, and with ``reuse`` two columns rest.
        """
        request = self.i.payload
        stages = [Signal(4, name=f"awake_{stage}") for stage in range(4)]
        for residue in range(4):
            column = (residue - request.rotation)[:2]
            new = ~request.reuse | (column[1] ^ request.half_x) if self.machine.column_reuse else 1
            m.d.comb += stages[0][residue].eq(self.i.valid & request.present & new)
        m.d.sync += [after.eq(before) for before, after in pairwise(stages)]
        return stages

    def _read(self, m: Module, pipe: Pipeline, banks: Sequence[Memory], awake: Sequence[Signal]) -> Signal:
        """Return the banks' bytes, registered, four stages after the request."""
        rows = self._rows(m, pipe, awake)
        raw = Signal(8 * BANKS, reset_less=True)
        for b, bank in enumerate(banks):
            port = bank.read_port()
            address = Signal(len(port.addr), name=f"address_{b}", reset_less=True)
            with m.If(awake[1][b % 4]):
                m.d.sync += address.eq(rows[b])
            m.d.comb += [port.addr.eq(address), port.en.eq(awake[2][b % 4])]
            with m.If(awake[3][b % 4]):  # nothing between the block RAM and its register
                m.d.sync += raw[8 * b:8 * b + 8].eq(port.data)
        pipe.step()
        pipe.step()
        pipe.step()
        return raw

    def _rows(self, m: Module, pipe: Pipeline, awake: Sequence[Signal]) -> list[Value]:
        """Return the word that each bank reads, a stage after the request."""
        request = self.i.payload
        wraps = [Signal(name=f"wraps_{b}", reset_less=True) for b in range(BANKS)]
        drops = [Signal(name=f"drops_{b}", reset_less=True) for b in range(BANKS)]
        for b in range(BANKS):
            place = Signal(4, name=f"place_{b}")
            m.d.comb += place.eq(b - request.rotation)
            with m.If(awake[0][b % 4]):
                m.d.sync += [
                    wraps[b].eq(Mux(request.linear, b < request.rotation, request.half_x & ~place[1])),
                    drops[b].eq(Mux(request.linear, place[3] if self.machine.paired_rows else 0,
                                    request.half_y & ~place[3])),
                ]
        pipe.step(
            here=request.word,
            beside=(request.word + request.right)[:len(request.word)],
            under=(request.word + request.below)[:len(request.word)],
            across=(request.word + request.diagonal)[:len(request.word)],
        )
        here, beside, under, across = pipe.here, pipe.beside, pipe.under, pipe.across
        return [Mux(drops[b], Mux(wraps[b], across, under), Mux(wraps[b], beside, here)) for b in range(BANKS)]

    def _read_runs(self, m: Module, pipe: Pipeline, banks: Sequence[Memory]) -> None:
        """Put out runs, or halves of two runs: all that an array without patches reads."""
        request = self.i.payload
        size, paired = len(request.word), self.machine.paired_rows
        words = {"here": request.word, "beside": (request.word + 1)[:size]}
        if paired:
            words |= {"under": (request.word + request.below)[:size],
                      "across": (request.word + request.below + 1)[:size]}
        pipe.step(**words)
        # The pipeline's values are named outside of conditions, since naming one adds its registers at that place.
        read, rotation, here, beside = pipe.valid & pipe.present, pipe.rotation, pipe.here, pipe.beside
        under, across = (pipe.under, pipe.across) if paired else (here, beside)
        addresses = [Signal(size, name=f"address_{b}", reset_less=True) for b in range(BANKS)]
        with m.If(read):
            for b, address in enumerate(addresses):
                wraps = b < rotation
                place = Signal(4, name=f"place_{b}")
                m.d.comb += place.eq(b - rotation)
                first = Mux(wraps, beside, here)
                m.d.sync += address.eq(Mux(place[3], Mux(wraps, across, under), first) if paired else first)
        pipe.step()
        ports = [bank.read_port() for bank in banks]
        for port, address in zip(ports, addresses, strict=True):
            m.d.comb += [port.addr.eq(address), port.en.eq(pipe.valid & pipe.present)]
        pipe.step()
        raw = Signal(8 * BANKS, reset_less=True)
        with m.If(pipe.valid & pipe.present):  # nothing between the block RAM and its register
            m.d.sync += raw.eq(Cat(port.data for port in ports))
        pipe.step()
        turned = rotate(m, raw, pipe.rotation)
        with m.If(pipe.valid & pipe.present):
            m.d.sync += self.o.payload.patch.as_value().eq(turned)
        pipe.step()
        assert pipe.depth == self.latency
        m.d.comb += [
            self.o.valid.eq(pipe.valid),
            self.o.payload.present.eq(pipe.present),
            self.o.payload.meta.eq(pipe.meta),
        ]

    def _place(self, m: Module, pipe: Pipeline, rotated: Value) -> None:
        """Register the patch: rotated by the bytes left, its half columns in order, perhaps half from that before."""
        patch = self.o.payload.patch
        reuse = pipe.reuse if self.machine.column_reuse else 0
        half_x, byte = pipe.half_x, rotate(m, rotated, pipe.near, (1, 0)).word_select
        with m.If(pipe.valid & pipe.present):
            for y in range(4):
                for x in range(4):
                    here = Mux(half_x, byte(4 * y + (x + 2) % 4, 8), byte(4 * y + x, 8))
                    m.d.sync += patch[4 * y + x].eq(
                        Mux(reuse, patch[4 * y + x + 2], here) if x < 2 else here)

    def _write(self, m: Module) -> list[BankWrite]:
        """Register the write, which comes late in its cycle; a cycle later register each bank's byte."""
        write = Signal(StructLayout({name: member.shape for name, member in self.write.signature.members.items()
                                     if name != "valid"}), name="write_held", reset_less=True)
        valid = Signal(name="write_valid")
        m.d.sync += valid.eq(self.write.valid)
        with m.If(self.write.valid):
            m.d.sync += [write[name].eq(getattr(self.write, name)) for name in write.shape().members]
        data = [write.data.word_select(i, 8) for i in range(self.machine.written_bytes)]
        clashes, found = list[Value](), list[BankWrite]()
        for b in range(BANKS):
            place = Signal(4, name=f"write_place_{b}")  # which byte of the bus word
            wraps = b < write.address[:4]
            step = Mux(write.blocked, place, wraps) if self.machine.winograd else wraps
            found.append(BankWrite(b, (self.machine.activation_bytes // BANKS).bit_length() - 1))
            enable, address, value = found[-1].enable, found[-1].address, found[-1].value
            m.d.comb += place.eq(b - write.address[:4])
            wanted = Signal(name=f"write_wanted_{b}")
            m.d.comb += wanted.eq(valid & (place < write.count))
            m.d.sync += enable.eq(wanted)
            if self._has_spare:
                clashes.append(wanted & self._write_spare(m, b, (enable, address, value)))
            with m.If(wanted):
                m.d.sync += [
                    address.eq(write.address[4:] + step),
                    value.eq(Cat(*data).word_select(place[:len(data).bit_length() - 1], 8)),
                ]
        if self._has_spare:
            m.d.comb += self.spare.ready.eq(~Cat(clashes).any())
        return found

    def _write_spare(self, m: Module, b: int, bank: tuple[Signal, Signal, Signal]) -> Value:
        """Give bank ``b`` to the spare writer while its write is accepted; return whether that write needs the bank."""
        enable, address, value = bank
        spare, place, wants = self.spare.payload, Signal(4, name=f"spare_place_{b}"), Signal(name=f"spare_wants_{b}")
        m.d.comb += [place.eq(b - spare.address[:4]), wants.eq(self.spare.valid & (place < spare.count))]
        with m.If(wants & self.spare.ready):
            m.d.sync += [
                enable.eq(1),
                address.eq(spare.address[4:] + (b < spare.address[:4])),
                value.eq(spare.data.word_select(place[:2], 8)),
            ]
        return wants


def rotate(m: Module, raw: Value, rotation: Value, levels: Iterable[int] = range(4)) -> Value:
    """Return ``raw`` rotated so that byte ``rotation`` comes first; only the bits ``levels`` of ``rotation`` count."""
    for level in levels:
        shift = 8 << level
        turned = Signal(len(raw), name=f"turned_{level}")
        m.d.comb += turned.eq(Mux(rotation[level], Cat(raw[shift:], raw[:shift]), raw))
        raw = turned
    return raw
