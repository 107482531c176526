"""One axis of the walk over outputs: the position of a pixel in the pooling windows, and the tiles that are left."""

from amaranth import Const, Module, Mux, Signal, Value, ValueLike
from amaranth.lib.data import Struct, StructLayout

__all__ = ["KERNEL_WIDTH", "STRIDE_WIDTH", "AxisCursor", "Countdown", "PixelCursor", "PoolingAxis", "place_layout"]

KERNEL_WIDTH = 4
STRIDE_WIDTH = 3


class PoolingAxis(Struct):
    """The windows along one axis: ``reach`` is kernel - stride, or 0 if that is negative."""

    kernel: KERNEL_WIDTH
    stride: STRIDE_WIDTH
    reach: KERNEL_WIDTH


def place_layout(address_width: int, *, pooling: bool = True) -> StructLayout:
    """Return the layout of a pixel's place along one axis; without ``pooling`` only its address.

    ``window`` counts the windows before the last one that starts at or before the pixel, and stays at 15; ``inside``
    is the pixel's position in that window, at most 15; ``address`` is where that window's result lies; ``edge``:
    the pixel is the image's first.
    """
    if not pooling:
        return StructLayout({"address": address_width})
    return StructLayout({"window": 4, "inside": 4, "address": address_width, "edge": 1})


class AxisCursor:
    """A place that moves along an axis, and the places to return to: of the tile's first pixel, of the run's.

    ``left`` counts the windows after the place's, ``more`` says that there are some: after the last one the place
    stays in it.  With ``seek`` the next place is that of the same pixel, one window on if there is one.
    ``here`` and ``behind``, known a step ahead, say that this pixel, and the next one, lie in a window that follows: so
    a step only chooses between numbers that were made beside each other.
    """

    def __init__(self, m: Module, name: str, address_width: int, index_width: int, step: Value) -> None:
        self.m = m
        layout = StructLayout({**place_layout(address_width).members, "left": index_width, "more": 1,
                               "here": 1, "behind": 1})
        self.axis = Signal(PoolingAxis, name=f"{name}_axis")
        self.now = Signal(layout, name=f"{name}_now")
        self.tile = Signal(layout, name=f"{name}_tile")
        self.start = Signal(layout, name=f"{name}_start")
        self.seek = Signal(name=f"{name}_seek")
        self.carry = Signal(name=f"{name}_carry")
        self.more = Signal(name=f"{name}_more")  # of the next place
        self.next = Signal(layout, name=f"{name}_next")
        m.d.comb += [
            self.carry.eq(Mux(self.seek, self.now.here, self.now.behind)),
            self.next.address.eq(self.now.address + Mux(self.carry, step, 0)),
            self.next.window.eq(self.now.window + (self.carry & (self.now.window != 15))),
            self.next.left.eq(self.now.left - self.carry),
            self.more.eq(Mux(self.carry, self.now.left != 1, self.now.more)),
            self.next.more.eq(self.more),
            self.next.edge.eq(self.seek),
        ]
        self._foresee(m)

    def _foresee(self, m: Module) -> None:
        """Make ``inside`` of the next place, and its flags; unless it seeks, windows begin at their first pixel."""
        inside, stride, seek = self.now.inside, self.axis.stride, self.seek
        behind = Mux(
            seek,
            Mux(self.now.here, inside + 1 >= stride << 1, inside + 1 >= stride),
            Mux(self.now.behind, stride == 1, inside + 2 >= stride))
        m.d.comb += [
            self.next.inside.eq(Mux(
                seek,
                Mux(self.now.here, inside - stride, inside),
                Mux(self.now.behind, 0, inside + ~inside.all()))),
            self.next.here.eq(seek & self.now.here & self.more & (inside >= stride << 1)),
            self.next.behind.eq(self.more & behind),
        ]

    def load(self, *, pooled: Value, kernel: Value, stride: Value, padding: Value, windows: Value, size: Value,
             base: ValueLike) -> None:
        """Go to the first pixel, in the first window; `seek` goes on from there."""
        count = Mux(pooled, windows, size)
        first_stride, inside = Mux(pooled, stride, 1), Mux(pooled, padding, 0)
        self.m.d.sync += [
            self.axis.kernel.eq(Mux(pooled, kernel, 1)),
            self.axis.stride.eq(first_stride),
            self.axis.reach.eq(Mux(pooled & (kernel > stride), kernel - stride, 0)),
            self.now.inside.eq(inside),
            self.now.here.eq((count != 1) & (inside >= first_stride)),
            self.now.behind.eq((count != 1) & (inside + 1 >= first_stride)),
            self.now.window.eq(0),
            self.now.address.eq(base),
            self.now.edge.eq(1),
            self.now.left.eq(count - 1),
            self.now.more.eq(count != 1),
        ]


class PixelCursor:
    """A place that moves along an axis where there are no windows: an address, and where to return to."""

    def __init__(self, m: Module, name: str, address_width: int, step: Value) -> None:
        self.m = m
        layout = place_layout(address_width, pooling=False)
        self.now = Signal(layout, name=f"{name}_now")
        self.tile = Signal(layout, name=f"{name}_tile")
        self.start = Signal(layout, name=f"{name}_start")
        self.seek = Signal(name=f"{name}_seek")
        self.next = Signal(layout, name=f"{name}_next")
        self.carry = Const(0)
        m.d.comb += self.next.address.eq(self.now.address + Mux(self.seek, 0, step))

    def load(self, *, base: ValueLike, **_: ValueLike) -> None:
        """Go to the first pixel."""
        self.m.d.sync += self.now.address.eq(base)


class Countdown:
    """Counts ``size`` steps; ``last`` is a register."""

    def __init__(self, m: Module, name: str, width: int) -> None:
        self.m = m
        self.start = Signal(width, name=f"{name}_start")
        self.left = Signal(width, name=f"{name}_left")
        self.last = Signal(name=f"{name}_last")

    def load(self, less_one: Value) -> None:
        self.m.d.sync += [self.start.eq(less_one), self.left.eq(less_one), self.last.eq(less_one == 0)]

    def restart(self) -> None:
        self.m.d.sync += [self.left.eq(self.start), self.last.eq(self.start == 0)]

    def step(self) -> None:
        self.m.d.sync += [self.left.eq(self.left - 1), self.last.eq(self.left == 1)]
