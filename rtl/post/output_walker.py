"""The walk over the outputs of one MAC command, in the order in which their sums become available.

Every step is a vector: up to ``post_lanes`` channels, or bytes of their whole sums, of one output pixel.  There is no
division and no product: all is counted.  Along each axis a place (`place_layout`) says where the pixel lies among the
pooling windows.  Without pooling every pixel is a window of its own, and so there is one walk and one way to an address
for both.
"""

from amaranth import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.data import ArrayLayout, Struct, StructLayout, View
from amaranth.lib.wiring import Component, In, Out
from amaranth.utils import exact_log2

from tilewright.isa.machine import SUM_BYTES, TABLE_SLOTS, Machine
from tilewright.rtl.post.axis_cursor import (
    KERNEL_WIDTH,
    STRIDE_WIDTH,
    AxisCursor,
    Countdown,
    PixelCursor,
    PoolingAxis,
    place_layout,
)
from tilewright.rtl.stream.commands import views

__all__ = ["OutputSteps", "OutputWalker", "PoolingWindow", "PostRun", "shares_parameters", "vector_layout"]


class PoolingWindow(Struct):
    """Operands of ``pool.window``."""

    kernel_x: KERNEL_WIDTH
    kernel_y: KERNEL_WIDTH
    stride_x: STRIDE_WIDTH
    stride_y: STRIDE_WIDTH
    left: 4
    top: 4
    width: 12
    rows: 10


class OutputSteps(Struct):
    """Operands of ``act.set_output``."""

    width: 12
    pixel_step: 12
    row_step: 20


class PostRun(Struct):
    """Operands of ``act.run`` and its signals."""

    base: 20
    rows: 10
    winograd: 1
    parameter_base: 12
    channels: 12
    residual: 1
    pooled: 1
    table: 1
    table_slot: 2
    table_first: 1
    whole: 1
    signals: 2


def shares_parameters(machine: Machine) -> bool:
    """Return whether a run tells if the pixels of a tile share the parameters of their channel."""
    return machine.pairs_channels and machine.channel_kernels


def vector_layout(machine: Machine) -> StructLayout:
    """Return the layout of a step: its sums and their number, their channels, and the position of the pixel.

    ``vector`` counts what is written of a lane group's pixel, where that may be more than a vector for each slice; of
    words of 16 bits each slice is there twice, the second time for the plane of ``lower`` bytes.
    """
    slices = machine.lanes // machine.post_lanes
    place = place_layout(exact_log2(machine.result_bytes), pooling=machine.max_pooling)
    return StructLayout({
        "tile": 2,
        "pixel": 2,
        "slice": range(slices),
        **({"vector": range(SUM_BYTES * slices)} if machine.whole_sums else {}),
        **({"lower": 1} if machine.wide_words else {}),
        "group": range(machine.parameter_channels // machine.lanes),
        "count": range(machine.post_lanes + 1),
        "ends_tiles": 1,
        "ends_run": 1,
        "y": place,
        "x": place,
    })


class _Position:
    """Where the walk stands: lane group, tile and pixel in it; along each axis a cursor, and the tiles left."""

    def __init__(self, m: Module, machine: Machine, output: OutputSteps) -> None:
        address_width = exact_log2(machine.result_bytes)
        self.x: AxisCursor | PixelCursor
        self.y: AxisCursor | PixelCursor
        if machine.max_pooling:
            self.x = AxisCursor(m, "x", address_width, 12, output.pixel_step)
            self.y = AxisCursor(m, "y", address_width, 10, output.row_step)
        else:
            self.x = PixelCursor(m, "x", address_width, output.pixel_step)
            self.y = PixelCursor(m, "y", address_width, output.row_step)
        self.columns, self.rows = Countdown(m, "columns", 12), Countdown(m, "rows", 10)  # of tiles
        self.groups = Countdown(m, "groups", 12 - exact_log2(machine.lanes))
        self.tile = Signal(range(machine.tiles))
        self.right = Signal()  # the pixel in its tile
        self.below = Signal()
        self.odd_width = Signal()
        self.odd_rows = Signal()
        self.drops_right = Signal()  # no window has the pixels of a tile's right column
        self.drops_below = Signal()
        self.group = Signal(range(machine.parameter_channels // machine.lanes))


class OutputWalker(Component):
    """Name the vectors of a run one by one, up to one per cycle, without a gap from the first to the last.

    Only vectors with an output inside width, rows and channels are named, each once; what lies outside takes no
    cycle, nor do on a machine that takes four patches at once those that a stride of 2 drops.  The first vector of a
    run is at ``o`` ``LATENCY`` cycles after ``run`` was taken, and one cycle later for each window that begins, whole
    strides ahead, in the padding (along the axis that has more of them).

    Parameters
    ----------
    machine : Machine

    Attributes
    ----------
    run : stream
        Taken only when idle.
    run_shared : In
        Operand ``shared`` of the same run, of machines with kernels by channel that take channels in pairs.
    run_wide : In
        Operand ``wide`` of the same run, of machines with words of 16 bits.
    output, pool : In
        Configuration; must not change from the cycle in which ``run`` is taken until the walk has ended.
    o : stream
        The vectors.
    axes : Out
        The windows along y and x, of the run whose vectors are at ``o`` or were last.
    winograd, shared, residual, table, table_slot, table_first, whole, wide, signals : Out
        Of the same run.
    idle : Out
        No run is being walked.
    """

    LATENCY = 2

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        super().__init__({
            "run": In(stream.Signature(PostRun)),
            **({"run_shared": In(1), "shared": Out(1)} if shares_parameters(machine) else {}),
            **({"run_wide": In(1), "wide": Out(1)} if machine.wide_words else {}),
            "output": In(OutputSteps),
            "pool": In(PoolingWindow),
            "o": Out(stream.Signature(vector_layout(machine))),
            "axes": Out(ArrayLayout(PoolingAxis, 2)),
            "winograd": Out(1),
            "residual": Out(1),
            "table": Out(1),
            "table_slot": Out(range(TABLE_SLOTS)),
            "table_first": Out(1),
            "whole": Out(1),
            "signals": Out(2),
            "idle": Out(1),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        at = _Position(m, self.machine, self.output)
        if isinstance(at.x, AxisCursor) and isinstance(at.y, AxisCursor):
            m.d.comb += [Cat(self.axes).eq(Cat(at.y.axis, at.x.axis))]
        slices_end, tail = self._slices(m, at.groups)
        self._describe(m, at, slices_end)
        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += [self.idle.eq(1), self.run.ready.eq(1)]
                with m.If(self.run.valid):
                    self._load(m, at, tail)
                    m.next = "SEEK"
            with m.State("SEEK"):
                # Whole strides of padding; where there are none, next is now.
                m.d.comb += [at.x.seek.eq(1), at.y.seek.eq(1)]
                for cursor in (at.x, at.y):
                    m.d.sync += [each.eq(cursor.next) for each in (cursor.now, cursor.tile, cursor.start)]
                with m.If(~at.x.carry & ~at.y.carry):
                    m.next = "WALK"
            with m.State("WALK"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready & slices_end):
                    self._next_pixel(m, at)
        return m

    def _describe(self, m: Module, at: _Position, slices_end: Value) -> None:
        """Say at ``o`` where the walk is, and what ends there."""
        o = self.o.payload
        raster_end = at.columns.last & at.rows.last
        tile_end = slices_end & ~(self._has_right(at) & ~at.right) & ~(self._has_below(at) & ~at.below)
        m.d.comb += [
            o.tile.eq(at.tile),
            o.pixel.eq(Cat(at.right, at.below)),
            o.group.eq(at.group),
            o.ends_tiles.eq(tile_end & ((at.tile == self.machine.tiles - 1) | raster_end)),
            o.ends_run.eq(tile_end & raster_end & at.groups.last),
            *(o.y[name].eq(at.y.now[name]) for name in o.y.shape().members),
            *(o.x[name].eq(at.x.now[name]) for name in o.x.shape().members),
        ]

    def _has_right(self, at: _Position) -> Value:
        """Return whether the tile has a right column of pixels."""
        return self.winograd & ~(at.columns.last & at.odd_width) & ~at.drops_right

    def _has_below(self, at: _Position) -> Value:
        """Return whether the tile has a lower row of pixels."""
        return self.winograd & ~(at.rows.last & at.odd_rows) & ~at.drops_below

    def _next_pixel(self, m: Module, at: _Position) -> None:
        """Go to the next pixel of the tile: to the right, below, or else to the next tile."""
        with m.If(self._has_right(at) & ~at.right):
            m.d.sync += [at.right.eq(1), at.x.now.eq(at.x.next)]
        with m.Elif(self._has_below(at) & ~at.below):
            m.d.sync += [at.right.eq(0), at.below.eq(1), at.x.now.eq(at.x.tile), at.y.now.eq(at.y.next)]
        with m.Else():
            m.d.sync += [at.right.eq(0), at.below.eq(0), at.tile.eq(Mux(self.o.payload.ends_tiles, 0, at.tile + 1))]
            self._next_tile(m, at)

    def _next_tile(self, m: Module, at: _Position) -> None:
        """Go to the next tile of the row, to the next row, or else to the next lane group."""
        with m.If(~at.columns.last):
            at.columns.step()
            m.d.sync += [at.x.now.eq(at.x.next), at.x.tile.eq(at.x.next), at.y.now.eq(at.y.tile)]
        with m.Else():
            at.columns.restart()
            m.d.sync += [at.x.now.eq(at.x.start), at.x.tile.eq(at.x.start)]
            with m.If(~at.rows.last):
                at.rows.step()
                m.d.sync += [at.y.now.eq(at.y.next), at.y.tile.eq(at.y.next)]
            with m.Else():
                at.rows.restart()
                self._next_lane_group(m, at)

    def _next_lane_group(self, m: Module, at: _Position) -> None:
        """Go back to the first pixel, and on by the channels of a lane group; after the last one the run ends."""
        at.groups.step()
        lanes = self.machine.lanes
        step = Mux(self.whole, SUM_BYTES * lanes, lanes) if self.machine.whole_sums else lanes
        address = (at.y.start.address + step)[:len(at.y.start.address)]
        each = self.machine.channel_parameters
        m.d.sync += at.group.eq(at.group + (Mux(self.by_pixel, each, 1) if each > 1 else 1))
        for place in (at.y.now, at.y.tile, at.y.start):
            m.d.sync += [place.eq(at.y.start), place.address.eq(address)]
        with m.If(at.groups.last):
            m.next = "IDLE"

    def share(self, m: Module, head: View) -> None:
        """Take from the command at the ``head`` of the queue whether its pixels share a bias, and words are wide."""
        if self.machine.wide_words:
            m.d.comb += self.run_wide.eq(views(head, "act", "run")[1].wide)
        if shares_parameters(self.machine):
            m.d.comb += self.run_shared.eq(views(head, "act", "run")[0].shared)

    @property
    def wide_kinds(self) -> tuple[list[Value], list[Value]]:
        """Whether results of the next run, and of the last, are words of 16 bits; empty lists without words."""
        return ([self.run_wide], [self.wide]) if self.machine.wide_words else ([], [])

    @property
    def by_pixel(self) -> Value:
        """Whether each pixel of a tile has parameters of its own, where channels are taken in pairs."""
        return self.winograd & ~self.shared if shares_parameters(self.machine) else self.winograd

    def _load(self, m: Module, at: _Position, tail: Signal) -> None:
        """Go to the start of a run."""
        machine, run, width, pool = self.machine, self.run.payload, self.output.width, self.pool
        lanes = exact_log2(machine.lanes)
        halves = run.winograd if machine.winograd else Const(0)
        drops_right, drops_below = self._drops(m, at)
        at.x.load(pooled=run.pooled & ~drops_right, kernel=pool.kernel_x, stride=pool.stride_x, padding=pool.left,
                  windows=pool.width, size=Mux(drops_right, pool.width, width), base=0)
        at.y.load(pooled=run.pooled & ~drops_below, kernel=pool.kernel_y, stride=pool.stride_y, padding=pool.top,
                  windows=pool.rows, size=Mux(drops_below, pool.rows, run.rows), base=run.base)
        at.columns.load((width - 1)[:12] >> halves)
        at.rows.load((run.rows - 1)[:10] >> halves)
        at.groups.load((run.channels - 1)[lanes:12])
        m.d.sync += [
            *([self.winograd.eq(run.winograd)] if machine.winograd else []),
            *([self.residual.eq(run.residual)] if machine.residual_adder else []),
            *([self.table.eq(run.table), self.table_slot.eq(run.table_slot)] if machine.value_tables else []),
            *([self.table_first.eq(run.table_first & run.table & run.residual)]
              if machine.value_tables and machine.residual_adder else []),
            *([self.whole.eq(run.whole)] if machine.whole_sums else []),
            *([self.shared.eq(self.run_shared)] if shares_parameters(machine) else []),
            *([self.wide.eq(self.run_wide)] if machine.wide_words else []),
            self.signals.eq(run.signals),
            at.odd_width.eq(width[0]),
            at.odd_rows.eq(run.rows[0]),
            tail.eq(self._last(run.whole, (run.channels - 1)[:lanes],
                               self.run_wide if machine.wide_words else Const(0))),
            at.group.eq(run.parameter_base[lanes:]),
            Cat(at.tile, at.right, at.below).eq(0),
        ]

    def _drops(self, m: Module, at: _Position) -> tuple[Value, Value]:
        """Return, and keep, whether windows of one pixel and stride 2 leave out the right, the lower pixels of a tile.

        Along such an axis a tile is walked as one pixel, the window's own. The arrays that take one patch at a time are
        no faster than post-processing is with all pixels, so only machines that take four ask.
        """
        run, pool = self.run.payload, self.pool
        if not (self.machine.takes_four_patches and self.machine.max_pooling):
            return Const(0), Const(0)
        windows = run.winograd & run.pooled
        found = (windows & (pool.kernel_x == 1) & (pool.stride_x == 2) & (pool.left == 0),
                 windows & (pool.kernel_y == 1) & (pool.stride_y == 2) & (pool.top == 0))
        m.d.sync += [at.drops_right.eq(found[0]), at.drops_below.eq(found[1])]
        return found

    def _slices(self, m: Module, groups: Countdown) -> tuple[Signal, Signal]:
        """Count the vectors of a pixel's lane group; return its end, and the register of its last byte."""
        machine, o = self.machine, self.o
        lanes = exact_log2(machine.post_lanes)
        wide = self.wide if machine.wide_words else Const(0)
        tail = Signal(len(self._last(Const(1), Const(0, exact_log2(machine.lanes)), Const(0))))
        whole_group = Const(machine.lanes - 1, exact_log2(machine.lanes))
        last = Mux(groups.last, tail, self._last(self.whole, whole_group, wide))
        counter = Signal(len(tail) - lanes, name="vector")
        end = Signal()
        m.d.comb += [
            end.eq(counter == last[lanes:]),
            o.payload.count.eq(Mux(self._in_last(counter, last[lanes:], end) & groups.last, tail[:lanes] + 1,
                                   machine.post_lanes)),
            o.payload.slice.eq(counter),
        ]
        if machine.whole_sums:
            m.d.comb += o.payload.vector.eq(counter)
            with m.If(self.whole):
                m.d.comb += o.payload.slice.eq(counter >> exact_log2(SUM_BYTES))
        if machine.wide_words:
            m.d.comb += o.payload.lower.eq(self.wide & counter[0])
            with m.If(self.wide):
                m.d.comb += o.payload.slice.eq(counter >> 1)
                if machine.whole_sums:
                    m.d.comb += o.payload.vector.eq(counter >> 1)
        if len(counter):
            with m.If(o.valid & o.ready):
                m.d.sync += counter.eq(Mux(end, 0, counter + 1))
        return end, tail

    def _in_last(self, counter: Value, last: Value, end: Value) -> Value:
        """Return whether the vector is one of the last slice: of words either of two."""
        return end | (self.wide & ((counter | 1) == last)) if self.machine.wide_words else end

    def _last(self, whole: Value, lane: Value, wide: Value) -> Value:
        """Return the number of the last byte that a lane group leaves, from that of its last lane.

        Of ``wide`` words a vector of upper bytes and one of lower bytes take turns.
        """
        last = lane
        if self.machine.whole_sums:
            last = Mux(whole, Cat(Const(SUM_BYTES - 1, exact_log2(SUM_BYTES)), lane), lane)
        if not self.machine.wide_words:
            return last
        vector = exact_log2(self.machine.post_lanes)
        return Mux(wide, Cat(lane[:vector], Const(1, 1), lane[vector:]), last)
