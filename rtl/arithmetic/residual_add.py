"""Residual add: two int8 values to one, bit for bit as ONNX Runtime's QLinearAdd does it on x86-64.

    clamp(rne(fl32(a * scale_a + fl32(b * scale_b + offset))))

Two fused multiply-adds in a row, in a pipeline that never stalls.  A product of 8 by 24 bits is exact in 32 bits, so
the numbers between are ``± word * 2**-point`` with a word of 32 bits whose top bit is set.  A word of zero stands for
zero and has the point ``FAR``, which makes it the smaller of any two.
"""

from amaranth import Cat, Const, Module, Mux, ShapeLike, Value, signed, unsigned
from amaranth.lib.data import StructLayout
from amaranth.lib.wiring import Component, In, Out

from tilewright.rtl.arithmetic.product import append_products
from tilewright.rtl.arithmetic.requantise import (
    MANTISSA_BITS,
    coarse_zeros,
    leading_zeros,
    normalise_product,
    round_and_clamp,
    round_mantissa,
)
from tilewright.rtl.stream.stages import Pipeline, flow

__all__ = [
    "FAR", "POINT_BITS", "SETTINGS", "WORD_BITS", "ResidualAdd", "add", "multiply", "shift_right", "signed_point",
]

WORD_BITS = 32
POINT_BITS = 9
FAR = Const((1 << (POINT_BITS - 1)) - 1, signed(POINT_BITS))

SETTINGS = StructLayout(
    {
        "mantissa_a": unsigned(MANTISSA_BITS),
        "shift_a": unsigned(7),
        "mantissa_b": unsigned(MANTISSA_BITS),
        "shift_b": unsigned(7),
        "offset_negative": unsigned(1),
        "offset_mantissa": unsigned(MANTISSA_BITS),
        "offset_shift": unsigned(7),
        "unsigned": unsigned(1),
        "low": signed(8),
        "high": signed(8),
    }
)


def signed_point(value: Value) -> Value:
    """Cut ``value`` to the width of a point."""
    assert len(value) >= POINT_BITS
    return value[:POINT_BITS].as_signed()


def shift_right(word: Value, places: Value, *, by: int) -> Value:
    """Return ``word >> (places * by)``, its last bit set if any bit that left was; ``by`` is 1 or 8."""
    groups = [word[start : start + by].any() for start in range(0, len(word), by)][: (1 << len(places)) - 1]
    lost = Cat(group & (places > index) for index, group in enumerate(groups)).any()
    shifted = word >> Cat(Const(0, by.bit_length() - 1), places)
    return Cat(shifted[0] | lost, shifted[1:])


def multiply(m: Module, name: str, pipe: Pipeline, mantissa: Value, shift: Value) -> None:
    """Append five stages that bring ``operand`` (signed 9, magnitude below 256) to operand * scale, exact.

    ``name`` begins the names of the modules that multiply.
    """
    negative = pipe.operand[-1]
    pipe.step(magnitude=((pipe.operand ^ negative.replicate(9)) + negative)[:8], negative=negative)
    zeros = leading_zeros(pipe.magnitude)
    factor = (pipe.magnitude << zeros)[:8]
    lower, upper = f"{name}_lower", f"{name}_upper"
    append_products(m, pipe, {lower: (factor, mantissa[:18]), upper: (factor, mantissa[18:])}, point=shift + zeros)
    lower, upper = getattr(pipe, lower), getattr(pipe, upper)
    pipe.step(product=Cat(lower[:18], (lower[18:] + upper)[:14]))
    word, zero = normalise_product(pipe.product)
    is_zero = ~pipe.product[-2:].any()
    pipe.step(word=word, point=signed_point(Mux(is_zero, FAR, pipe.point + zero)))


def add(pipe: Pipeline) -> None:
    """Append eight stages that add ``other_word``, ``other_point``, ``other_negative`` to word, point, negative.

    Leaves ``total``: 40 bits, top bit set unless zero, whose upper 32 are the word that belongs to ``point``, and
    which rounds to any 24 or more of its bits as the exact sum does.
    """
    # The larger magnitude first. Of two points the smaller belongs to the larger number, so keys hold it inverted.
    key, other_key = (
        Cat(word, ~point[:-1], point[-1])
        for word, point in ((pipe.word, pipe.point), (pipe.other_word, pipe.other_point))
    )
    pipe.step(
        swap=other_key > key,
        ahead=pipe.other_point - pipe.point,
        behind=pipe.point - pipe.other_point,
    )
    swap = pipe.swap
    distance = Mux(swap, pipe.behind, pipe.ahead)
    pipe.step(
        big=Mux(swap, pipe.other_word, pipe.word),
        small=Mux(swap, pipe.word, pipe.other_word),
        point=Mux(swap, pipe.other_point, pipe.point),
        negative=Mux(swap, pipe.other_negative, pipe.negative),
        subtract=pipe.negative ^ pipe.other_negative,
        coarse=Mux(distance[6:].any(), 7, distance[3:6]),
        fine=distance[:3],
    )
    # Align with one bit to spare, in which also what is shifted out leaves its trace.  Two places apart or more, at
    # most one leading bit cancels and the trace stays far below the rounding; less than that, nothing is lost.
    pipe.step(small=shift_right(Cat(Const(0, 1), pipe.small), pipe.coarse, by=8))
    pipe.step(small=shift_right(pipe.small, pipe.fine, by=1))
    width = WORD_BITS + 2
    small = Cat(pipe.small, Const(0, 1)) ^ pipe.subtract.replicate(width)
    pipe.step(total=(Cat(Const(0, 1), pipe.big) + small + pipe.subtract)[:width])
    # Normalise, in 40 bits so that they are whole bytes.  The carry and the spare bit move the point.
    total = Cat(Const(0, 40 - width), pipe.total)
    pipe.step(total=total, zeros=coarse_zeros(total))
    pipe.step(total=(pipe.total << Cat(Const(0, 3), pipe.zeros))[:40])
    zeros = leading_zeros(pipe.total[-8:])
    pipe.step(
        total=(pipe.total << zeros)[:40], point=signed_point(pipe.point + Cat(zeros, pipe.zeros).as_unsigned() - 1)
    )


class ResidualAdd(Component):
    """Add two quantised values; bit-exact with :func:`tilewright.isa.numerics.add_residual`.

    Takes a pair in any cycle, up to one per cycle; each sum leaves exactly ``LATENCY`` cycles later, with its
    metadata. There is no back-pressure: whoever issues a pair must have room for the result.

    Parameters
    ----------
    meta_shape : ShapeLike
        Shape of the metadata.

    Attributes
    ----------
    settings : SETTINGS
        Arguments of the reference function by the same names; must not change while any pair is on its way.
        (Not ``config``, which is a keyword of Verilog.)
    i : flow
        ``a`` and ``b``, first and second operand of the operator, and ``meta``.
    o : flow
        ``value``, ``meta``.
    """

    LATENCY = 27

    def __init__(self, meta_shape: ShapeLike) -> None:
        request = StructLayout({"a": signed(8), "b": signed(8), "meta": meta_shape})
        result = StructLayout({"value": signed(8), "meta": meta_shape})
        super().__init__({"settings": In(SETTINGS), "i": In(flow(request)), "o": Out(flow(result))})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        settings, request = self.settings, self.i.payload

        # b * scale_b + offset, rounded.
        pipe = Pipeline(m, self.i.valid, operand=self._extend(request.b), meta=request.meta)
        multiply(m, "b", pipe, settings.mantissa_b, settings.shift_b)
        pipe.hold(
            other_word=Cat(Const(0, 8), settings.offset_mantissa),
            other_point=signed_point(Mux(settings.offset_mantissa[-1], settings.offset_shift + 8, FAR)),
            other_negative=settings.offset_negative,
        )
        add(pipe)
        pipe.step(rounded=round_mantissa(pipe.total), is_zero=~pipe.total[-1])
        rounded, carry = pipe.rounded, pipe.rounded[-1]  # with a carry, all else is zero
        pipe.step(
            word=Cat(Const(0, 8), rounded[:23], rounded[23] | carry),
            point=signed_point(Mux(pipe.is_zero, FAR, pipe.point - carry)),
        )

        # Plus a * scale_a, which is made just in time: until then only eight bits of it ride along.
        first = Pipeline(m, self.i.valid, prefix="a_", operand=self._extend(request.a))
        while first.depth < pipe.depth - 5:
            first.step()
        multiply(m, "a", first, settings.mantissa_a, settings.shift_a)
        pipe.join(other_word=first.word, other_point=first.point, other_negative=first.negative)
        add(pipe)
        pipe.step(rounded=round_mantissa(pipe.total), places=signed_point(pipe.point - 24))

        pipe.hold(zero_point=Mux(settings.unsigned, -128, 0), low=settings.low, high=settings.high)
        round_and_clamp(pipe)
        assert pipe.depth == self.LATENCY
        m.d.comb += [
            self.o.valid.eq(pipe.valid),
            self.o.payload.value.eq(pipe.value),
            self.o.payload.meta.eq(pipe.meta),
        ]
        return m

    def _extend(self, operand: Value) -> Value:
        """Return the operand as the model has it, in 9 bits: an unsigned one is 128 more than ours."""
        bits, top, is_unsigned = operand[:7], operand[7], self.settings.unsigned
        return Cat(bits, top ^ is_unsigned, top & ~is_unsigned).as_signed()
