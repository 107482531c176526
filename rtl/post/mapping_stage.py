"""The value tables among the stages of post-processing: what they map, where it comes from, and how it goes on."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib.data import View
from amaranth.lib.wiring import PureInterface

from tilewright.rtl.post.extension_stage import ExtensionStage, take_settings
from tilewright.rtl.post.requantise_stage import byte_of
from tilewright.rtl.post.row_stage import NoRows, RowStage
from tilewright.rtl.post.value_table import ValueTables
from tilewright.rtl.stream.stages import Pipeline, announced_flow

__all__ = ["MappingStage", "NoMapping"]


class NoMapping:
    """The stage of a machine without value tables: everything goes on as it is."""

    def look_up(self, value: Value, comes: Value, sums: PureInterface | None) -> None:
        """Look nothing up."""

    def values(self, value: Value) -> Value:
        """Return what goes to the pool."""
        return value

    def own(self, value: Value) -> Value:
        """Return what a residual is added to."""
        return value

    def sums(self, sums: PureInterface) -> PureInterface:
        """Return what goes from the residual add to the result buffer."""
        return sums


class MappingStage:
    """`ValueTables`, and in front of them a unit of an extension where a program asks for it.

    A run's ``kind`` says what it maps: values, before the pool or before a residual is added, or the sums of that.
    """

    def __init__(self, m: Module, kind: View, tables: ValueTables, rows: RowStage | NoRows) -> None:
        self._m = m
        self._kind = kind
        self._rows = rows
        m.submodules.tables = self._tables = tables
        self._mapped: Value = Cat(tables.o)

    def write(self, write: PureInterface) -> None:
        """Fill the tables."""
        tables = self._tables
        self._m.d.comb += [tables.write.valid.eq(write.valid), tables.write.payload.eq(write.payload)]

    def extend(self, stage: ExtensionStage, commands: PureInterface, allowed: Value, write: PureInterface,
               value: Value, comes: Value) -> None:
        """Let the unit of an extension map values in place of the tables, where its settings say so."""
        m, kind = self._m, self._kind
        m.submodules.extension = stage
        on = take_settings(m, stage, commands, allowed)
        m.d.comb += [stage.write.valid.eq(write.valid), stage.write.payload.eq(write.payload),
                     stage.slot.eq(kind.table_slot), Cat(stage.i.payload).eq(value),
                     stage.i.valid.eq(comes & kind.table & ~kind.residual & on)]
        self._mapped = Mux(on, Cat(stage.o), self._mapped)

    def bend(self, words: Value, lower: Value, comes: Value) -> None:
        """Let ``words`` that are results follow the curve as they come; their ``lower`` or upper bytes leave."""
        m, kind, tables = self._m, self._kind, self._tables
        pipe = Pipeline(m, comes, prefix="curve_", lower=lower)
        for _ in range(tables.CURVE_LATENCY):
            pipe.step()
        m.d.comb += [tables.curved.eq(kind.wide & kind.table), Cat(tables.given).eq(words)]
        self._mapped = Mux(kind.wide, Cat(byte_of(each, kind.wide, pipe.lower) for each in tables.bent), self._mapped)

    def look_up(self, value: Value, comes: Value, sums: PureInterface | None) -> None:
        """Look up ``value`` as it ``comes``, or the ``sums`` of the residual add, if there is one."""
        m, kind, tables = self._m, self._kind, self._tables
        valid, values = comes & kind.maps_values, value
        if sums is not None:
            valid |= sums.valid & kind.maps_sums
            values = Mux(kind.maps_sums, Cat(sums.payload.data), value)
        m.d.comb += tables.slot.eq(kind.table_slot)
        self._rows.look_up(m, tables, valid, values)

    def values(self, value: Value) -> Value:
        """Return what goes to the pool."""
        return Mux(self._kind.table, self._mapped, value)

    def own(self, value: Value) -> Value:
        """Return what a residual is added to."""
        return Mux(self._kind.table_first, Cat(self._tables.o), value)

    def sums(self, sums: PureInterface) -> PureInterface:
        """Return what goes from the residual add to the result buffer: the sums, or what the tables make of them."""
        m, kind, tables = self._m, self._kind, self._tables
        mapped = Signal(name="sums_mapped")  # a copy near the sums
        m.d.sync += mapped.eq(kind.maps_sums)
        late = Pipeline(m, sums.valid & mapped, prefix="mapping_", slot=sums.payload.slot)
        for _ in range(tables.LATENCY - 1):
            late.step()
        added = announced_flow(sums.payload.shape()).create(path=("added",))
        m.d.comb += added.next.eq(Mux(mapped, late.valid, sums.next))
        late.step()
        m.d.comb += [added.valid.eq(Mux(mapped, late.valid, sums.valid)), added.payload.eq(sums.payload)]
        with m.If(mapped):
            m.d.comb += [added.payload.slot.eq(late.slot), added.payload.data.eq(tables.o)]
        return added
