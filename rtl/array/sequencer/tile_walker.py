"""Lists the tiles of a command ahead of the multipliers, one per cycle, and keeps the next tile groups ready."""

from amaranth import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib.data import Struct
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import Component, In, Out

from tilewright.isa.machine import Machine

__all__ = ["RING", "LoopCounter", "TileGroup", "TileLocation", "TileWalk", "TileWalker"]

RING = 16
"""Tiles kept: what a LUT RAM holds."""


class TileWalk(Struct):
    """The tiles of a command; names and meanings are those of the operands of `conv`."""

    base: unsigned(20)
    tiles_x: unsigned(12)
    tiles_y: unsigned(10)
    groups: unsigned(12)
    x_step: unsigned(20)
    y_step: unsigned(20)
    y_half: unsigned(1)
    winograd: unsigned(1)
    reuse: unsigned(1)


class TileLocation(Struct):
    """Location of a tile.

    Attributes
    ----------
    address
        Byte address; of a patch, of its block's word for channel 0.
    half_x, half_y
        The patch starts at column, row 2 of its block.
    reuse
        The tile in the slot before is its left neighbour.
    """

    address: unsigned(20)
    half_x: unsigned(1)
    half_y: unsigned(1)
    reuse: unsigned(1)


class TileGroup(Struct):
    """A tile group: its last tile and last slot (both at least 0), and whether it ends a lane group, a command."""

    last_tile: unsigned(2)
    last_slot: unsigned(2)
    ends_lanes: unsigned(1)
    ends_command: unsigned(1)


class LoopCounter:
    """A loop that counts its turns down, with a register that says whether the turn is the last.

    So a nest of loops costs one gate per level and no comparison. ``once``: the loop has a single turn, which is the
    last whenever the loop begins.
    """

    def __init__(self, name: str, width: int) -> None:
        self._again = Signal(width, name=f"{name}_again", reset_less=True)
        self._left = Signal(width, name=f"{name}_left", reset_less=True)
        self.once = Signal(name=f"{name}_once", reset_less=True)
        self.last = Signal(name=f"{name}_last", reset_less=True)

    def load(self, m: Module, turns: Value, *, even: Value | None = None) -> Value:
        """Begin a loop of ``turns`` turns, at least one; with ``even`` one more if they are odd.

        Return whether it has one turn alone.
        """
        again, once = turns - 1, turns == 1
        if even is not None:
            again, once = again | even, once & ~even
        m.d.sync += [self._again.eq(again), self._left.eq(again), self.once.eq(once), self.last.eq(once)]
        return once

    def restart(self, m: Module) -> None:
        """Begin the same loop again."""
        m.d.sync += [self._left.eq(self._again), self.last.eq(self.once)]

    @property
    def next_last(self) -> Value:
        """Whether the turn behind this one is the last."""
        return self._left == 1

    def step(self, m: Module) -> None:
        """Go on to the next turn."""
        m.d.sync += [self._left.eq(self._left - 1), self.last.eq(self.next_last)]


class TileWalker(Component):
    """List the tiles of a command in order, in groups; up to ``RING`` tiles ahead of their use.

    One tile per cycle, beginning with the cycle after ``start``. A group of one lane group may be used
    (``group_valid``) two cycles after its last tile was listed; from then on groups follow each other
    without a gap as long as each is used for no less cycles than it has tiles. Tiles of lane groups are
    listed anew for each.

    Parameters
    ----------
    machine : Machine

    Members
    -------
    start : ``In(1)``
        Take ``walk``; only while not ``busy``.
    walk : ``In(TileWalk)``
    busy : ``Out(1)``
        There are tiles yet to be listed.
    group, group_valid : ``Out(TileGroup)``, ``Out(1)``
        The oldest group.
    group_done : ``In(1)``
        It is no longer needed; ``tile`` still belongs to it.
    slot : ``In(2)``
    tile : ``Out(TileLocation)``
        The tile of the oldest group in ``slot``, without delay.
    """

    def __init__(self, machine: Machine) -> None:
        self.winograd, self.reuses_columns = machine.winograd, machine.reuses_columns
        self.tiles = machine.tiles
        self.least_slots = machine.fetch_slots
        self.tile_bits = (machine.tiles - 1).bit_length()
        super().__init__({
            "start": In(1),
            "walk": In(TileWalk),
            "busy": Out(1),
            "group": Out(TileGroup),
            "group_valid": Out(1),
            "group_done": In(1),
            "slot": In(2),
            "tile": Out(TileLocation),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        tile = Signal(TileLocation)  # now listed
        group = Signal(TileGroup)    # complete with this tile
        advance = Signal()
        complete = Signal()
        slot = Signal(2)
        ends_lanes, ends_command = self._walk(m, tile, advance, slot)
        m.d.comb += [
            complete.eq((slot == self.tiles - 1) | ends_lanes),
            group.last_tile.eq(slot),
            group.last_slot.eq(Mux(slot < self.least_slots - 1, self.least_slots - 1, slot)),
            group.ends_lanes.eq(ends_lanes),
            group.ends_command.eq(ends_command),
        ]
        with m.If(advance):
            m.d.sync += slot.eq(Mux(complete, 0, slot + 1))
        self._keep(m, tile, group, advance, complete, slot)
        return m

    def _walk(self, m: Module, tile: TileLocation, advance: Value, slot: Value) -> tuple[Value, Value]:
        """Make ``tile``, and step it with ``advance``; return whether it ends its lane group, its command."""
        walk = Signal(TileWalk, reset_less=True)
        columns, rows, groups = LoopCounter("columns", 12), LoopCounter("rows", 10), LoopCounter("groups", 12)
        row_address = Signal(20, reset_less=True)
        first = Signal(reset_less=True)  # in its row
        ends_lanes = columns.last & rows.last
        ends_command = ends_lanes & groups.last
        winograd = walk.winograd if self.winograd else Const(0)
        if self.reuses_columns:
            m.d.comb += tile.reuse.eq(walk.reuse & ~first & (slot != 0))

        # The next tile: beside this one, below the row's first, or the first of all.  Patches lie two to a block.
        next_address = Signal(20)
        from_address = Mux(columns.last, row_address, tile.address)
        moves = ~winograd | Mux(columns.last, tile.half_y, tile.half_x) if self.winograd else 1
        by = Mux(moves, Mux(columns.last, walk.y_step, walk.x_step), 0)
        m.d.comb += next_address.eq(Mux(ends_lanes, walk.base, from_address + by))
        address, half_x, half_y = (Signal.like(signal, reset_less=True, name=name) for signal, name in (
            (tile.address, "address"), (tile.half_x, "half_x"), (tile.half_y, "half_y")))
        m.d.comb += [tile.address.eq(address), tile.half_x.eq(half_x), tile.half_y.eq(half_y)]
        with m.If(self.start):
            given = self.walk
            m.d.sync += [
                walk.eq(given),
                address.eq(given.base),
                row_address.eq(given.base),
                *([half_x.eq(0), half_y.eq(given.y_half & given.winograd)] if self.winograd else []),
                first.eq(1),
                self.busy.eq(1),
            ]
            columns.load(m, given.tiles_x)
            rows.load(m, given.tiles_y)
            groups.load(m, given.groups)
        with m.Elif(advance):
            columns.step(m)
            m.d.sync += [
                address.eq(next_address),
                *([half_x.eq(winograd & ~half_x & ~columns.last)] if self.winograd else []),
                first.eq(columns.last),
            ]
            with m.If(columns.last):
                columns.restart(m)
                rows.step(m)
                m.d.sync += [
                    row_address.eq(next_address),
                    *([half_y.eq(winograd & Mux(ends_lanes, walk.y_half, ~half_y))] if self.winograd else []),
                ]
            with m.If(ends_lanes):
                rows.restart(m)
                groups.step(m)
            with m.If(ends_command):
                m.d.sync += self.busy.eq(0)
        return ends_lanes, ends_command

    def _keep(self, m: Module, tile: TileLocation, group: TileGroup, advance: Signal, complete: Value,
              slot: Value) -> None:
        """Write tiles and groups to rings; the oldest group is in a register."""
        rings = RING // self.tiles
        m.submodules.tiles = tiles = Memory(shape=TileLocation, depth=RING, init=[])
        m.submodules.groups = groups = Memory(shape=TileGroup, depth=rings, init=[])
        writing, loading, current = (Signal(range(rings), name=name) for name in ("writing", "loading", "current"))
        kept = Signal(range(rings + 1))
        waiting = Signal(range(rings + 1))  # not yet in the register
        push = Signal()
        load = Signal()
        drop = Signal()
        m.d.comb += [
            advance.eq(self.busy & (kept != rings)),
            push.eq(advance & complete),
            drop.eq(self.group_done),
            load.eq((waiting != 0) & (~self.group_valid | drop)),
        ]
        m.d.sync += [kept.eq(kept + push - drop), waiting.eq(waiting + push - load)]
        tile_write, tile_read = tiles.write_port(), tiles.read_port(domain="comb")
        group_write, group_read = groups.write_port(), groups.read_port(domain="comb")
        m.d.comb += [
            tile_write.addr.eq(Cat(slot[:self.tile_bits], writing)),
            tile_write.data.eq(tile),
            tile_write.en.eq(advance),
            tile_read.addr.eq(Cat(self.slot[:self.tile_bits], current)),
            self.tile.eq(tile_read.data),
            group_write.addr.eq(writing),
            group_write.data.eq(group),
            group_write.en.eq(push),
            group_read.addr.eq(loading),
        ]
        with m.If(push):
            m.d.sync += writing.eq(writing + 1)
        with m.If(load):
            m.d.sync += [
                self.group.eq(group_read.data),
                self.group_valid.eq(1),
                current.eq(loading),
                loading.eq(loading + 1),
            ]
        with m.Elif(drop):
            m.d.sync += self.group_valid.eq(0)
