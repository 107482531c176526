"""The walk over the outputs of one MAC command, in the order in which their sums become available.

Every step is a vector: up to ``post_lanes`` channels of one output pixel.  There is no division and no product: all
is counted.  Along each axis a `Place` says where the pixel lies among the pooling windows.  Without pooling every
pixel is a window of its own, and so there is one walk and one way to an address for both.
"""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.data import ArrayLayout, Struct, StructLayout
from amaranth.lib.wiring import Component, In, Out
from amaranth.utils import exact_log2

from tilewright.isa.machine import TABLE_SLOTS

KERNEL_WIDTH = 4
STRIDE_WIDTH = 3


class WindowAxis(Struct):
    """The windows along one axis: ``reach`` is kernel - stride, or 0 if that is negative."""

    kernel: KERNEL_WIDTH
    stride: STRIDE_WIDTH
    reach: KERNEL_WIDTH


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
    signals: 2


def place_layout(address_width):
    """Return the layout of a pixel's place along one axis.

    ``window`` counts the windows before the last one that starts at or before the pixel, and stays at 15; ``inside``
    is the pixel's position in that window, at most 15; ``address`` is where that window's result lies; ``edge``:
    the pixel is the image's first.
    """
    return StructLayout({"window": 4, "inside": 4, "address": address_width, "edge": 1})


def vector_layout(machine):
    """Return the layout of a step: which sums, how many of them, whose channels, and where the pixel lies."""
    place = place_layout(exact_log2(machine.result_bytes))
    return StructLayout({
        "tile": 2,
        "pixel": 2,
        "slice": range(machine.lanes // machine.post_lanes),
        "group": range(machine.parameter_channels // machine.lanes),
        "count": range(machine.post_lanes + 1),
        "ends_tiles": 1,
        "ends_run": 1,
        "y": place,
        "x": place,
    })


class _Cursor:
    """A place that moves along an axis, and the places to return to: of the tile's first pixel, of the run's.

    ``left`` counts the windows after the place's, ``more`` says that there are some: after the last one the place
    stays in it.  With ``seek`` the next place is that of the same pixel, one window on if there is one.
    ``here`` and ``behind`` say ahead of time that this pixel, the next one lie in a window that follows: so a step only
    chooses between numbers that were made beside each other.
    """

    def __init__(self, m, name, address_width, index_width, step):
        self.m = m
        layout = StructLayout({**place_layout(address_width).members, "left": index_width, "more": 1,
                               "here": 1, "behind": 1})
        self.axis = Signal(WindowAxis, name=f"{name}_axis")
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

    def _foresee(self, m):
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

    def load(self, *, pooled, kernel, stride, padding, windows, size, base):
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


class _Countdown:
    """Counts ``size`` steps; ``last`` is a register."""

    def __init__(self, m, name, width):
        self.m = m
        self.start = Signal(width, name=f"{name}_start")
        self.left = Signal(width, name=f"{name}_left")
        self.last = Signal(name=f"{name}_last")

    def load(self, less_one):
        self.m.d.sync += [self.start.eq(less_one), self.left.eq(less_one), self.last.eq(less_one == 0)]

    def restart(self):
        self.m.d.sync += [self.left.eq(self.start), self.last.eq(self.start == 0)]

    def step(self):
        self.m.d.sync += [self.left.eq(self.left - 1), self.last.eq(self.left == 1)]


class OutputWalker(Component):
    """Name the vectors of a run one by one, up to one per cycle, without a gap from the first to the last.

    Only vectors with an output inside width, rows and channels are named, each once; what lies outside takes no
    cycle.  The first vector of a run is at ``o`` ``LATENCY`` cycles after ``run`` was taken, and one cycle later for
    each window that begins, whole strides ahead, in the padding (along the axis that has more of them).

    Parameters
    ----------
    machine : Machine

    Attributes
    ----------
    run : stream
        Taken only when idle.
    output, pool : In
        Configuration; must not change from the cycle in which ``run`` is taken until the walk has ended.
    o : stream
        The vectors.
    axes : Out
        The windows along y and x, of the run whose vectors are at ``o`` or were last.
    winograd, residual, table, table_slot, signals : Out
        Of the same run.
    idle : Out
        No run is being walked.
    """

    LATENCY = 2

    def __init__(self, machine):
        self.machine = machine
        super().__init__({
            "run": In(stream.Signature(PostRun)),
            "output": In(OutputSteps),
            "pool": In(PoolingWindow),
            "o": Out(stream.Signature(vector_layout(machine))),
            "axes": Out(ArrayLayout(WindowAxis, 2)),
            "winograd": Out(1),
            "residual": Out(1),
            "table": Out(1),
            "table_slot": Out(range(TABLE_SLOTS)),
            "signals": Out(2),
            "idle": Out(1),
        })

    def elaborate(self, platform):
        m = Module()
        machine, run, o = self.machine, self.run.payload, self.o.payload
        lanes = exact_log2(machine.lanes)
        address_width = exact_log2(machine.result_bytes)
        x = _Cursor(m, "x", address_width, 12, self.output.pixel_step)
        y = _Cursor(m, "y", address_width, 10, self.output.row_step)
        columns, rows = _Countdown(m, "columns", 12), _Countdown(m, "rows", 10)  # of tiles
        groups = _Countdown(m, "groups", 12 - lanes)
        tile = Signal(range(machine.tiles))
        right, below = Signal(), Signal()  # the pixel in its tile
        odd_width, odd_rows = Signal(), Signal()
        group = Signal(o.group.shape())
        m.d.comb += [Cat(self.axes).eq(Cat(y.axis, x.axis))]

        slices_end, tail = self._slices(m, groups, tile)
        has_right = self.winograd & ~(columns.last & odd_width)
        has_below = self.winograd & ~(rows.last & odd_rows)
        raster_end = columns.last & rows.last
        tile_end = slices_end & ~(has_right & ~right) & ~(has_below & ~below)
        m.d.comb += [
            o.tile.eq(tile),
            o.pixel.eq(Cat(right, below)),
            o.group.eq(group),
            o.ends_tiles.eq(tile_end & ((tile == machine.tiles - 1) | raster_end)),
            o.ends_run.eq(tile_end & raster_end & groups.last),
            *(o.y[name].eq(y.now[name]) for name in o.y.shape().members),
            *(o.x[name].eq(x.now[name]) for name in o.x.shape().members),
        ]

        with m.FSM():
            with m.State("IDLE"):
                m.d.comb += [self.idle.eq(1), self.run.ready.eq(1)]
                with m.If(self.run.valid):
                    self._load(m, x, y, columns, rows, groups)
                    m.d.sync += [
                        self.winograd.eq(run.winograd),
                        self.residual.eq(run.residual),
                        self.table.eq(run.table),
                        self.table_slot.eq(run.table_slot),
                        self.signals.eq(run.signals),
                        odd_width.eq(self.output.width[0]),
                        odd_rows.eq(run.rows[0]),
                        tail.eq((run.channels - 1)[:lanes]),
                        group.eq(run.parameter_base[lanes:]),
                        Cat(tile, right, below).eq(0),
                    ]
                    m.next = "SEEK"
            with m.State("SEEK"):
                # Whole strides of padding; where there are none, next is now.
                m.d.comb += [x.seek.eq(1), y.seek.eq(1)]
                for cursor in (x, y):
                    m.d.sync += [each.eq(cursor.next) for each in (cursor.now, cursor.tile, cursor.start)]
                with m.If(~x.carry & ~y.carry):
                    m.next = "WALK"
            with m.State("WALK"):
                m.d.comb += self.o.valid.eq(1)
                with m.If(self.o.ready & slices_end):
                    with m.If(has_right & ~right):
                        m.d.sync += [right.eq(1), x.now.eq(x.next)]
                    with m.Elif(has_below & ~below):
                        m.d.sync += [right.eq(0), below.eq(1), x.now.eq(x.tile), y.now.eq(y.next)]
                    with m.Else():
                        m.d.sync += [right.eq(0), below.eq(0), tile.eq(Mux(o.ends_tiles, 0, tile + 1))]
                        with m.If(~columns.last):
                            columns.step()
                            m.d.sync += [x.now.eq(x.next), x.tile.eq(x.next), y.now.eq(y.tile)]
                        with m.Else():
                            columns.restart()
                            m.d.sync += [x.now.eq(x.start), x.tile.eq(x.start)]
                            with m.If(~rows.last):
                                rows.step()
                                m.d.sync += [y.now.eq(y.next), y.tile.eq(y.next)]
                            with m.Else():
                                rows.restart()
                                groups.step()
                                address = (y.start.address + machine.lanes)[:address_width]
                                m.d.sync += group.eq(group + 1)
                                for place in (y.now, y.tile, y.start):
                                    m.d.sync += [place.eq(y.start), place.address.eq(address)]
                                with m.If(groups.last):
                                    m.next = "IDLE"
        return m

    def _load(self, m, x, y, columns, rows, groups):
        """Set the cursors and counters to the start of a run."""
        run, width, pool = self.run.payload, self.output.width, self.pool
        x.load(pooled=run.pooled, kernel=pool.kernel_x, stride=pool.stride_x, padding=pool.left,
               windows=pool.width, size=width, base=0)
        y.load(pooled=run.pooled, kernel=pool.kernel_y, stride=pool.stride_y, padding=pool.top,
               windows=pool.rows, size=run.rows, base=run.base)
        columns.load((width - 1)[:12] >> run.winograd)
        rows.load((run.rows - 1)[:10] >> run.winograd)
        groups.load((run.channels - 1)[exact_log2(self.machine.lanes):12])

    def _slices(self, m, groups, tile):
        """Count the slices of a vector's lane group; return its end, and the register of its last channel."""
        machine, o = self.machine, self.o
        slices, lanes = machine.lanes // machine.post_lanes, exact_log2(machine.post_lanes)
        tail = Signal(range(machine.lanes))  # channels of the last lane group, less one
        last_slice = Mux(groups.last, tail[lanes:], slices - 1)
        end = Signal()
        m.d.comb += [
            end.eq(o.payload.slice == last_slice),
            o.payload.count.eq(Mux(end & groups.last, tail[:lanes] + 1, machine.post_lanes)),
        ]
        if slices > 1:
            counter = Signal.like(o.payload.slice, name="slice")
            m.d.comb += o.payload.slice.eq(counter)
            with m.If(o.valid & o.ready):
                m.d.sync += counter.eq(Mux(end, 0, counter + 1))
        return end, tail
