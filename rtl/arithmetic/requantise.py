"""Requantise: an int32 sum to int8, bit for bit as float32 does it, in a pipeline that never stalls.

    clamp(rne(fl32(fl32(acc + bias) * scale)) + zero_point)          scale = mantissa * 2**-shift

A positive float32 number is a 24-bit mantissa, top bit set, and a power of two.  Only one in 2**9 of the powers
matters at the end: from 256 on every int8 is saturated, below 1/4 all is zero.  So the last alignment shifts ten
bits, not the whole mantissa, and what lies below them counts only as zero or not.

The normalising helpers and :func:`round_and_clamp` serve
:mod:`tilewright.rtl.arithmetic.residual_add` too.
"""

from amaranth import Cat, Const, Module, Mux, ShapeLike, Value, signed, unsigned
from amaranth.lib.data import StructLayout
from amaranth.lib.wiring import Component, In, Out

from tilewright.isa.integers.long_requantise import NUDGE_BITS
from tilewright.isa.integers.shift_requantise import MULTIPLIER_BITS, SHIFT_BITS
from tilewright.rtl.arithmetic.product import append_products
from tilewright.rtl.stream.stages import Pipeline, flow

__all__ = [
    "BYTE", "MANTISSA_BITS", "Requantise", "coarse_zeros", "jam", "leading_zeros", "normalise_product",
    "round_and_clamp",
    "round_mantissa",
]

MANTISSA_BITS = 24
BYTE = 8


def leading_zeros(word: Value) -> Value:
    """Return the number of zeros above the highest set bit of ``word``; ``len(word) - 1`` if none is set."""
    last = len(word) - 1
    count = Const(last)
    for place in range(1, last + 1):
        count = Mux(word[place], last - place, count)
    return count


def coarse_zeros(word: Value) -> Value:
    """Return the number of whole bytes of zeros at the top of ``word``; its length is a multiple of 8."""
    return leading_zeros(Cat(word.word_select(byte, 8).any() for byte in range(len(word) // 8)))


def jam(word: Value, bits: int) -> Value:
    """Return the upper ``bits`` bits of ``word``, the last of them set if any bit left out is set.

    Rounding half to even further up comes out as for the whole word.
    """
    cut = len(word) - bits
    return Cat(word[: cut + 1].any(), word[cut + 1 :])


def normalise_product(product: Value) -> tuple[Value, Value]:
    """Shift out the leading zero, if there is one, of a product of two normalised factors.

    Returns
    -------
    word : Value
        As wide as the product, top bit set unless the product is zero.
    zero : Value
        One if there was a zero to shift out.
    """
    top = product[-1]
    return Mux(top, product, product << 1)[: len(product)], ~top


def round_mantissa(word: Value) -> Value:
    """Return the upper 24 bits of ``word``, rounded half to even: 25 bits, because 2**24 may be reached."""
    kept, half, rest = word[-MANTISSA_BITS:], word[-MANTISSA_BITS - 1], word[: -MANTISSA_BITS - 1].any()
    return (kept + (half & (rest | kept[0])))[: MANTISSA_BITS + 1]


def round_and_clamp(pipe: Pipeline, bits: int = 8, *, integers: bool = False) -> None:
    """Append the way from float32 to int8, or to integers of ``bits`` bits: three stages, the last makes ``value``.

    Takes ``rounded`` (25 bits, at least 2**23 unless zero), ``places`` (signed) and ``negative``, which stand for
    ``± rounded * 2**-(places + 24 - bits)``, and ``zero_point``, ``low``, ``high`` (signed, of ``bits`` bits).

    With ``integers`` it also takes ``integer``, which tells that ``quotient`` (9 bits), 1 more if it goes ``up``,
    stands in place of the magnitude.
    """
    # Align: as many bits of integer (one more for 2**24), one half, and whether anything lies below.
    below = 23 - bits
    top, bottom = pipe.rounded[below:], pipe.rounded[:below]
    in_range = (pipe.places >= 0) & (pipe.places <= bits)
    too_large = (pipe.places < 0) & pipe.rounded[23:].any()
    places = pipe.places[:bits.bit_length()]
    aligned = top >> places
    lost = Cat(top[place] & (places > place) for place in range(bits)).any()
    whole, half, rest = (Mux(too_large, 1 << bits, Mux(in_range, aligned[1:], 0))[:bits + 1], in_range & aligned[0],
                         lost | bottom.any())
    if integers:    # ~q = -(q + 1), and a quotient goes up where it is negative
        whole, half, rest = (Mux(pipe.integer, pipe.quotient, whole), Mux(pipe.integer, pipe.up, half),
                             rest | pipe.integer)
    pipe.step(whole=whole, half=half, rest=rest, negative=pipe.negative)
    _add_and_clamp(pipe, pipe.half & (pipe.rest | pipe.whole[0]), bits)


def _add_and_clamp(pipe: Pipeline, up: Value, bits: int) -> None:
    """Append two stages: ± (``whole`` and 1 more if it goes ``up``) and the zero point, then what is within bounds."""
    # -(w + up) = ~w + (1 - up), so one adder does for both signs.
    whole = (Cat(pipe.whole, 0) ^ pipe.negative.replicate(bits + 2)).as_signed()
    pipe.step(value=(whole + pipe.zero_point + (up ^ pipe.negative))[:bits + 2].as_signed())
    clamped = Mux(pipe.value > pipe.high, pipe.high, Mux(pipe.value < pipe.low, pipe.low, pipe.value))
    pipe.step(value=clamped[:bits].as_signed())


def shifted_down(word: Value, count: Value, bits: int) -> tuple[Value, Value]:
    """Return the lowest ``bits`` bits of ``word`` shifted right by ``count``, and whether any bit above them is set."""
    above = Const(0, 1)
    for place in reversed(range(len(count))):
        step, kept = 1 << place, bits - 1 + (1 << place)
        above |= ~count[place] & word[kept:].any()
        moved = word[step:]
        word = Mux(count[place], moved[:kept], word[:kept])[:kept]
    return word[:bits], above


class Requantise(Component):
    """Bring sums to int8; bit-exact with :func:`tilewright.isa.numerics.requantise`.

    With ``integers`` also in whole numbers, with :func:`tilewright.isa.integers.shift_requantise.shift_requantise` and
    :func:`tilewright.isa.integers.long_requantise.long_requantise`; those modules tell why there is no signed sum.
    Without ``floats`` in whole numbers alone, or by a scale of 1.

    Takes a value in any cycle, up to one per cycle; each leaves exactly ``LATENCY`` cycles later, with its metadata.
    There is no back-pressure: whoever issues a value must have room for the result.

    Parameters
    ----------
    meta_shape : ShapeLike
        Shape of the metadata.
    whole : bool
        Whether a byte may take the place of a sum.
    integers : bool
        Whether a sum may be requantised in whole numbers.
    floats : bool
        Whether there are scales other than 1; else there are ``integers``, and results have 8 bits.
    bits : int
        Of the result: 8, or 16; then ``zero_point``, ``low`` and ``high`` do not ride with a value, and must stay until
        it has left.

    Attributes
    ----------
    i : flow
        ``acc`` and ``bias`` (their sum wraps), ``mantissa`` (top bit set) and ``shift`` of the scale, ``zero_point``,
        ``low``, ``high`` (``low <= high``), ``meta``. With ``integers`` also ``integer``, where ``mantissa`` is a
        multiplier of 18 bits, and ``addend``, less than that. Where that is ``long``, ``mantissa`` is the lower part of
        a multiplier and ``shift`` its shift, and of ``addend`` the lowest four bits and the two highest are those of
        the multiplier from bit 24 on. Without ``floats`` what says ``integer`` is no part of it.
    shifts, long, twice : In
        With ``integers``: the shift of those sums that are not long, and which kind they are, ``twice`` only with
        ``long``; these are the same while any is on its way.
    integer : In
        Without ``floats``, as these: whether sums are requantised in whole numbers; else the scale is 1.
    o : flow
        ``value``, ``meta``.
    total : Out
        With ``whole``: the sum of ``acc`` and ``bias``, a cycle behind ``i``.
    byte, takes_byte : In
        With ``whole``, in the same cycle: a signed byte, and whether it goes on in place of the sum.
    """

    LATENCY = 14

    def __init__(self, meta_shape: ShapeLike, *, whole: bool = False, integers: bool = False, floats: bool = True,
                 bits: int = 8) -> None:
        assert floats or (integers and bits == BYTE)
        self.whole, self.integers, self.floats, self.bits = whole, integers, floats, bits
        request = StructLayout(
            {
                "acc": signed(32),
                "bias": signed(32),
                "mantissa": unsigned(MANTISSA_BITS),
                "shift": unsigned(7),
                "zero_point": signed(bits),
                "low": signed(bits),
                "high": signed(bits),
                **({"integer": 1} if integers and floats else {}),
                **({"addend": MULTIPLIER_BITS} if integers else {}),
                "meta": meta_shape,
            }
        )
        result = StructLayout({"value": signed(bits), "meta": meta_shape})
        bytes_of_sums = {"total": Out(32), "byte": In(8), "takes_byte": In(1)} if whole else {}
        shifts = {"shifts": In(SHIFT_BITS), "long": In(1), "twice": In(1)} if integers else {}
        if not floats:
            shifts["integer"] = In(1)
        super().__init__({"i": In(flow(request)), "o": Out(flow(result)), **bytes_of_sums, **shifts})

    def _begin(self, m: Module, held: tuple[str, ...]) -> Pipeline:
        """Return the pipeline of a request, along which its members move, but for those ``held``, which stay."""
        request = self.i.payload
        rides = [name for name in request.shape().members if name not in held]
        pipe = Pipeline(m, self.i.valid, **{name: request[name] for name in rides})
        pipe.hold(**{name: request[name] for name in held})
        if not self.floats:
            pipe.join(mantissa=Cat(Mux(self.integer, request.mantissa[:18], 1), request.mantissa[18:]))
        return pipe

    def elaborate(self, platform: object) -> Module:
        m = Module()
        held = ("zero_point", "low", "high") if self.bits > BYTE else ()
        pipe = self._begin(m, held)

        # The sum, as sign and magnitude.  `places` collects the power of two for round_and_clamp.
        pipe.step(total=(pipe.acc + pipe.bias)[:32], places=self._first_places(pipe))
        negative = pipe.total[-1]
        word = ((pipe.total ^ negative.replicate(32)) + negative)[:32]
        if self.whole:
            m.d.comb += self.total.eq(pipe.total)
            sign = self.byte[-1]
            word = Mux(self.takes_byte, ((self.byte ^ sign.replicate(8)) + sign)[:8], word)
            negative = Mux(self.takes_byte, sign, negative)
        pipe.step(word=word, negative=negative)
        if self.floats:
            self._by_scale(m, pipe)
        else:
            self._alone(m, pipe)
        assert pipe.depth == self.LATENCY
        m.d.comb += [
            self.o.valid.eq(pipe.valid),
            self.o.payload.value.eq(pipe.value),
            self.o.payload.meta.eq(pipe.meta),
        ]
        return m

    def _by_scale(self, m: Module, pipe: Pipeline) -> None:
        """Append the way from magnitudes to results by float32 scales, and in whole numbers beside it."""
        # To float32: normalise by bytes, then by bits, and round.  What will be shifted stays as it is.
        zeros = self._of_real(pipe, coarse_zeros(pipe.word))
        pipe.step(word=(pipe.word << Cat(Const(0, 3), zeros))[:32], zeros=zeros)
        zeros = self._of_real(pipe, leading_zeros(pipe.word[-8:]))
        pipe.step(word=(pipe.word << zeros)[:32], zeros=Cat(zeros, pipe.zeros))
        rounded = round_mantissa(pipe.word)
        carry = rounded[-1]  # then all else is zero
        factor = Cat(rounded[:23], rounded[23] | carry)
        pipe.step(
            factor=Mux(pipe.integer, pipe.word, factor) if self.integers else factor,
            places=(pipe.places + pipe.zeros)[:8].as_signed(),
            carry=carry,
        )

        self._multiply(m, pipe, (pipe.places - self._of_real(pipe, pipe.carry))[:8].as_signed())
        word, zero = normalise_product(jam(pipe.product[:48], 27))
        pipe.step(word=word, places=(pipe.places + self._of_real(pipe, zero))[:8].as_signed(),
                  **(self._added(pipe) if self.integers else {}))
        pipe.step(rounded=round_mantissa(pipe.word), **(self._quotient(pipe) if self.integers else {}))

        round_and_clamp(pipe, self.bits, integers=self.integers)

    def _alone(self, m: Module, pipe: Pipeline) -> None:
        """Append the way from magnitudes to results in whole numbers, as long as that by scales, which waits twice."""
        pipe.step()
        pipe.step()
        pipe.step(factor=pipe.word)
        self._multiply(m, pipe, pipe.places)
        pipe.step(**self._added(pipe))
        pipe.step(**self._quotient(pipe))
        pipe.step(whole=pipe.quotient, half=pipe.up, negative=pipe.negative)
        _add_and_clamp(pipe, pipe.half, self.bits)

    def _multiply(self, m: Module, pipe: Pipeline, places: Value) -> None:
        """Append the product of ``factor`` and the scale, or the multiplier; ``places`` are those behind it.

        24 x 24 bits, or more, in four products of at most 18 x 18. They have registers of their own, before and behind;
        the factor's is another, for it is a long way to the DSP blocks.
        """
        low, high, scale_high = pipe.factor[:18], pipe.factor[18:], self._scale_high(pipe)
        append_products(
            m, pipe,
            {"lower": (low, pipe.mantissa[:18]), "middle_a": (low, scale_high), "middle_b": (high, pipe.mantissa[:18]),
             "upper": (high, scale_high)}, places=places)
        pipe.step(outer=Cat(pipe.lower, pipe.upper), middle=pipe.middle_a + pipe.middle_b)
        pipe.step(product=Cat(pipe.outer[:18], (pipe.outer[18:] + pipe.middle)[: len(pipe.outer) - 18]))

    @property
    def _is_long(self) -> Value:
        return self.long if self.floats else self.long & self.integer

    def _of_real(self, pipe: Pipeline, value: Value) -> Value:
        """Return ``value``, or zero where the sum is requantised by a shift."""
        return value & (~pipe.integer).replicate(len(value)) if self.integers else value

    def _first_places(self, pipe: Pipeline) -> Value:
        """Return the first ``places``; of a sum that is requantised in integers, the shift."""
        if not self.floats:
            return Mux(self._is_long, pipe.shift[:SHIFT_BITS], self.shifts & self.integer.replicate(SHIFT_BITS))
        real = pipe.shift - (56 - self.bits)
        if not self.integers:
            return real
        return Mux(pipe.integer, Mux(self.long, pipe.shift[:SHIFT_BITS], self.shifts), real)[:len(real)].as_signed()

    def _scale_high(self, pipe: Pipeline) -> Value:
        """Return bits 18 and up of the factor: 6 of a mantissa, 13 of a long multiplier, none of a short one."""
        if not self.integers:
            return pipe.mantissa[18:]
        word = Cat(pipe.mantissa[18:], pipe.addend[:4], pipe.addend[-2:], 1)
        if not self.floats:
            return word & self._is_long.replicate(len(word))
        # One operation on all bits: its result is one port of the product, as `ecp5_product` has it.
        return word & Cat((~pipe.integer | self.long).replicate(6), (pipe.integer & self.long).replicate(len(word) - 6))

    def _added(self, pipe: Pipeline) -> dict[str, Value]:
        """Return the numerator of an integer, less one where its sum is negative: 63 bits."""
        negative, twice = pipe.negative, self.twice & pipe.places[SHIFT_BITS - 1]
        short = ~self.long if self.floats else ~self.long & self.integer
        lowest = (pipe.addend & short.replicate(MULTIPLIER_BITS)) ^ negative.replicate(MULTIPLIER_BITS)
        addend = Cat(lowest, negative.replicate(NUDGE_BITS - MULTIPLIER_BITS), twice ^ negative,
                     (negative & ~twice).replicate(len(pipe.product) - NUDGE_BITS - 1))
        return {"numerator": (pipe.product + addend)[:len(pipe.product)]}

    def _quotient(self, pipe: Pipeline) -> dict[str, Value]:
        """Return a ``quotient`` of 9 bits, 256 for all that is greater than 255, and whether it goes ``up``."""
        moved, great = shifted_down(Cat(Const(0, 1), pipe.numerator), pipe.places[:SHIFT_BITS], 1 + BYTE)
        return {"quotient": Cat(moved[1:] & ~great.replicate(BYTE), great),
                "up": Mux(self._is_long, moved[0], pipe.negative)}
