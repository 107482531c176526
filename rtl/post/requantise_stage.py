"""The requantisers of post-processing, one for each of its lanes, and the bytes of whole sums in place of values."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from amaranth import Cat, Const, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib.data import ArrayLayout, View
from amaranth.lib.wiring import PureInterface

from tilewright.isa.integers.shift_requantise import BIAS_BITS, MULTIPLIER_BITS
from tilewright.isa.machine import SUM_BYTES, Machine
from tilewright.rtl.arithmetic.requantise import BYTE, MANTISSA_BITS, Requantise
from tilewright.rtl.post.parameter_buffer import ParameterBuffer
from tilewright.rtl.stream.stages import Pipeline

__all__ = ["Arrived", "Requantised", "byte_of", "requantise_sums"]


_ONE = 1 << MANTISSA_BITS - 1


def _nothing() -> Value:
    return Const(0)


@dataclass(slots=True)
class Arrived:
    """Facts about sums as they arrive: the number of values, and whether these are bytes of whole sums.

    A cycle later ``part`` tells which quarter of the bytes it is, and ``takes`` again whether these are meant.
    ``rows`` are results of the unit of rows, if the machine has one: they take the place of sums. ``lower``: of words
    of 16 bits the lower byte leaves. ``wide``: results are such words, from when all before them have left.
    """

    count: Value = field(default_factory=_nothing)
    whole: Value = field(default_factory=_nothing)
    part: Value = field(default_factory=_nothing)
    takes: Value = field(default_factory=_nothing)
    rows: PureInterface | None = None
    lower: Value = field(default_factory=_nothing)
    wide: Value = field(default_factory=_nothing)


@dataclass(frozen=True, slots=True)
class Requantised:
    """Values, and that the next have come; of a machine with a curve their words, and that lower bytes leave."""

    value: Value
    comes: Value
    words: Value
    lower: Value


def requantise_sums(m: Module, machine: Machine, response: PureInterface, parameters: ParameterBuffer,
                    clamp: View, arrived: Arrived, bounds: View | Mapping[str, Value]) -> Requantised:
    """Requantise the first of the sums of ``response``, or of rows, to values within ``bounds``.

    Returns the values, which stay.
    """
    value = Signal(ArrayLayout(signed(8), machine.post_lanes), reset_less=True)
    units: list[Requantise] = []
    lower = _delayed(m, response.valid, arrived.lower) if machine.wide_words else None
    for lane in range(machine.post_lanes):
        m.submodules[f"requantize_{lane}"] = unit = Requantise(
            unsigned(0), whole=machine.whole_sums, integers=machine.integer_requantise,
            floats=machine.float_requantise, bits=16 if machine.wide_words else 8)
        given, total, bias, mantissa, shift = _sum_of(response, parameters, arrived, lane)
        m.d.comb += [
            unit.i.valid.eq(given & (arrived.whole | (lane < arrived.count))),
            unit.i.payload.acc.eq(total),
            unit.i.payload.bias.eq(bias),
            unit.i.payload.mantissa.eq(mantissa),
            unit.i.payload.shift.eq(shift),
            *(unit.i.payload[name].eq(bounds[name]) for name in ("zero_point", "low", "high")),
        ]
        if machine.integer_requantise:
            _by_shift(m, unit, parameters.data[lane], clamp, arrived)
        units.append(unit)
        with m.If(unit.o.valid):
            m.d.sync += value[lane].eq(unit.o.payload.value if lower is None else byte_of(
                unit.o.payload.value, arrived.wide, lower))
    if machine.whole_sums:
        _choose_bytes(m, units, arrived)
    comes = Signal(name="comes")
    m.d.sync += comes.eq(units[0].o.valid)  # there is always a first
    return Requantised(Cat(value), comes, *_words(m, machine, units, lower))


def _words(m: Module, machine: Machine, units: list[Requantise], lower: Value | None) -> tuple[Value, Value]:
    """Return whole words, and whether their lower bytes leave; nothing on a machine without a curve."""
    if lower is None or not machine.bends_words:
        return Const(0), Const(0)
    words, lowers = Signal(ArrayLayout(16, len(units)), name="whole_words", reset_less=True), Signal(name="lowers")
    m.d.sync += lowers.eq(lower)
    for lane, unit in enumerate(units):
        with m.If(unit.o.valid):
            m.d.sync += words[lane].eq(unit.o.payload.value)
    return Cat(words), lowers


def _delayed(m: Module, valid: Value, lower: Value) -> Value:
    """Return ``lower``, which comes with sums, when their results have been requantised."""
    pipe = Pipeline(m, valid, prefix="words_", lower=lower)
    for _ in range(Requantise.LATENCY):
        pipe.step()
    return Value.cast(pipe.lower)


def byte_of(word: Value, wide: Value, lower: Value) -> Value:
    """Return the byte of a result that leaves: of ``wide`` words the upper one, or the ``lower`` one less 128."""
    return Mux(wide, Mux(lower, Cat(word[:7], ~word[7]), word[8:]), word[:8])


def _sum_of(response: PureInterface, parameters: ParameterBuffer, arrived: Arrived,
            lane: int) -> tuple[Value, ...]:
    """Return whether a sum comes, of the array or of rows, a lane's sum, and its bias, mantissa and shift."""
    channel, rows = parameters.data[lane], arrived.rows
    # A byte may be another channel's than the requantiser's, which may not exist: its scale is 1.
    own = (response.valid, response.payload[lane], channel.bias, Mux(arrived.whole, _ONE, channel.mantissa),
           Mux(arrived.whole, MANTISSA_BITS - 1, channel.shift))
    if rows is None:
        return own
    given = rows.payload
    other = Const(1), given.entries[lane], Const(0), given.mantissa, given.shift
    return (own[0] | rows.valid, *(Mux(rows.valid, b, a) for a, b in zip(own[1:], other[1:], strict=True)))


def _by_shift(m: Module, unit: Requantise, channel: View, clamp: View, arrived: Arrived) -> None:
    """Give a unit the integers of sums of the array that are no bytes, where the clamp says so."""
    rows = Const(0) if arrived.rows is None else arrived.rows.valid
    integer = clamp.integer & ~arrived.whole & ~rows
    if unit.bits > BYTE:
        integer = integer & ~arrived.wide
    if not unit.floats:     # those that are none have the scale 1
        integer = clamp.integer
        m.d.comb += unit.integer.eq(integer)
    else:
        m.d.comb += unit.i.payload.integer.eq(integer)
    addend = Cat(channel.bias[BIAS_BITS:], channel.mantissa[MULTIPLIER_BITS:], channel.shift)
    m.d.comb += [
        unit.shifts.eq(clamp.integer_shift),
        unit.long.eq(clamp.integer_long),
        unit.twice.eq(clamp.integer_long & clamp.integer_twice),
        unit.i.payload.addend.eq(addend),
    ]
    with m.If(integer):
        m.d.comb += unit.i.payload.bias.eq(channel.bias[:BIAS_BITS].as_signed())


def _choose_bytes(m: Module, units: list[Requantise], arrived: Arrived) -> None:
    """Give each unit its byte of the sums of all: a vector of bytes is a quarter of theirs."""
    lanes = len(units)
    for lane, unit in enumerate(units):
        places = [divmod(part * lanes + lane, SUM_BYTES) for part in range(SUM_BYTES)]
        choices = Cat(units[source].total.word_select(byte, 8) for source, byte in places)
        m.d.comb += [unit.byte.eq(choices.word_select(arrived.part, 8)), unit.takes_byte.eq(arrived.takes)]
