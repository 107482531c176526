"""PReLU with a slope per channel, as a stage on the post-processing stream.

    y = round_half_even((x - zero_in) · (slope if x >= zero_in else slope of the channel) / 2^22) + zero_out

The slopes hold the change of scale from the input's quantisation to the output's. A layer takes up to 64 channels,
whose slopes are its parameters: the lower 26 of 32 bits each, two's complement.
"""

import numpy as np
from amaranth import Module, Mux, Signal, signed
from amaranth.lib.data import ArrayLayout, StructLayout
from amaranth.lib.wiring import Component, In, Out

from tilewright.isa.encoding import Field
from tilewright.isa.extension import PostStage

__all__ = ["EXTENSION"]

SHIFT = 22
FIRST = (Field("zero_in", 8, "zero point of the input", signed=True),
         Field("zero_out", 8, "zero point of the output", signed=True))
SECOND = (Field("slope", 25, "times 2^-22: of values from zero_in up"),)


def rounded(product):
    """Return product / 2^22, half to even."""
    floor, rest = product >> SHIFT, product & ((1 << SHIFT) - 1)
    half = 1 << (SHIFT - 1)
    return floor + ((rest > half) | ((rest == half) & (floor & 1 == 1)))


def compute(values, parameters, settings):
    """Return the stage's output for int8 ``values`` (..., channels)."""
    slopes = (np.ascontiguousarray(parameters).view("<i4")[:, 0] << 6 >> 6).astype(np.int64)
    x = values.astype(np.int64) - settings["zero_in"]
    y = rounded(x * np.where(x >= 0, settings["slope"], slopes)) + settings["zero_out"]
    return np.clip(y, -128, 127).astype(np.int8)


def slope_through(x, y, least):
    """Return an integer slope with which each x gives its y, both less their zero points, or None."""
    low, high = least, (1 << 25) - 1
    for each, wanted, (at_bottom, at_top) in zip(x.tolist(), y[0].tolist(), y[1].tolist(), strict=True):
        ends = [(2 * wanted - 1 << SHIFT - 1) + wanted % 2, (2 * wanted + 1 << SHIFT - 1) - wanted % 2]  # half to even
        if at_bottom:
            ends[0] = -(1 << 40)
        if at_top:
            ends[1] = 1 << 40
        if each < 0:
            each, ends = -each, [-ends[1], -ends[0]]
        if each:
            low, high = max(low, -(-ends[0] // each)), min(high, ends[1] // each)
        elif not ends[0] <= 0 <= ends[1]:
            return None
    return (low + high) // 2 if low <= high else None


def fit(tables, zero_in, zero_out):
    """Return fields and slopes with which `compute` gives ``tables``, int8 (channels, 256); None if none do."""
    x = np.arange(-128, 128) - zero_in

    def through(which, rows, least):
        bounds = np.stack((rows.min(0) == -128, rows.max(0) == 127), -1)
        return slope_through(x[which], (rows[0].astype(int)[which] - zero_out, bounds[which]), least)

    slope = through(x >= 0, tables[:1], 0)
    slopes = [through(x < 0, row[None], 1 - (1 << 25)) for row in tables]
    if slope is None or None in slopes:
        return None
    return ({"zero_in": zero_in, "zero_out": zero_out, "slope": slope},
            np.array(slopes, "<i4").view(np.uint8).reshape(-1, 4))


class Prelu(Component):
    """The stage of ``lanes`` values a cycle: a product in the first cycle, rounding and bounds in the second."""

    LATENCY = 2

    def __init__(self, lanes):
        self.lanes = lanes
        fields = {each.name: signed(each.width) if each.signed else each.width for each in FIRST + SECOND}
        super().__init__({
            "valid": In(1),
            "values": In(ArrayLayout(signed(8), lanes)),
            "parameters": In(ArrayLayout(32, lanes)),
            "settings": In(StructLayout(fields)),
            "o": Out(ArrayLayout(signed(8), lanes)),
        })

    def elaborate(self, platform):
        m = Module()
        second = Signal()
        m.d.sync += second.eq(self.valid)
        for lane in range(self.lanes):
            x = Signal(signed(9), name=f"x_{lane}")
            slope = Signal(signed(26), name=f"slope_{lane}")
            product = Signal(signed(35), name=f"product_{lane}", reset_less=True)
            y = Signal(signed(15), name=f"y_{lane}")
            m.d.comb += [
                x.eq(self.values[lane] - self.settings.zero_in),
                slope.eq(Mux(x < 0, self.parameters[lane][:26].as_signed(), self.settings.slope)),
                y.eq((product >> SHIFT) + self.settings.zero_out
                     + (product[SHIFT - 1] & (product[:SHIFT - 1].any() | product[SHIFT]))),
            ]
            with m.If(self.valid):
                m.d.sync += product.eq(x * slope)
            with m.If(second):
                m.d.sync += self.o[lane].eq(Mux(y > 127, 127, Mux(y < -128, -128, y)))
        return m


EXTENSION = PostStage(
    mnemonic="prelu", effect="PReLU with a slope per channel", operators=("PRelu",), fields=(FIRST, SECOND),
    parameter_bytes=4, fit=fit, compute=compute, component=Prelu)
