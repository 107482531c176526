"""The multiply-accumulate unit: sequencer, activation buffer, input transform, clusters of lanes, finished sums."""

from collections.abc import Sequence

from amaranth import Cat, Module, Mux, Signal, Value, ValueLike
from amaranth.lib.data import ArrayLayout, View
from amaranth.lib.wiring import Component, In, Out, Signature, connect, flipped

from tilewright.isa.extension import unit_of
from tilewright.isa.machine import Machine
from tilewright.rtl.arithmetic.winograd import InputTransform
from tilewright.rtl.array.cluster import Cluster
from tilewright.rtl.array.extension_unit import ExtensionUnit
from tilewright.rtl.array.inner_lane import InnerLane, RunXiLane
from tilewright.rtl.array.inner_sums import RunSumsOut, TileSumsOut
from tilewright.rtl.array.lane import SUM, Lane
from tilewright.rtl.array.own_patches import OwnPatches
from tilewright.rtl.array.patch_pairs import PatchPairs
from tilewright.rtl.array.plain_lane import PlainLane
from tilewright.rtl.array.sequencer.sequencer import MacState, Sequencer
from tilewright.rtl.array.sequencer.slots import DEPTH, slot_of
from tilewright.rtl.array.winograd_inner_lane import TileXiLane, WinogradInnerLane
from tilewright.rtl.buffers.activation_buffer import ActivationBuffer, activation_write_signature
from tilewright.rtl.buffers.four_patch_buffer import activation_buffer
from tilewright.rtl.buffers.weight_buffer import weight_write_signature, written_bytes
from tilewright.rtl.stream.commands import is_command
from tilewright.rtl.stream.stages import Pipeline

__all__ = ["MacState", "MacUnit", "sums_request_signature", "sums_response_signature"]


def sums_request_signature(machine: Machine) -> Signature:
    """Return the request for the sums of ``post_lanes`` lanes: of a pixel of a tile, or of a tile's dot product.

    An array without transforms has dot products alone, and ignores ``pixel`` and ``winograd``.

    Slice s holds lanes s * post_lanes and up; lanes count through the clusters.
    """
    return Signature({
        "valid": Out(1),
        "tile": Out(2),
        "pixel": Out(2),
        "slice": Out(range(machine.lanes // machine.post_lanes)),
        "winograd": Out(1),
    })


def sums_response_signature(machine: Machine) -> Signature:
    """Return the answer: ``post_lanes`` signed 32-bit sums."""
    return Signature({"valid": Out(1), "values": Out(ArrayLayout(SUM, machine.post_lanes))})


class MacUnit(Component):
    """Take `conv23`, `conv` and `pool.sum` commands; keep finished sums until post-processing has read them.

    One tile slot per cycle, as `Sequencer` says: 16 multiplications in every lane. A slot that has been issued never
    waits; up to ``DEPTH // tiles`` tile groups of finished sums are kept.

    With ``drain_steady`` a group's last step begins before there is room for its sums. Groups of s slots have t <= s
    tiles; of n tiles that a command has in a lane group all groups but the last are full. They are issued s cycles
    apart at least, available A = latency + fetch_slots cycles behind their last slot, and taken in t cycles without a
    pause, from the first that is available on, and no more than ``COMMAND_GAP`` of `PostUnit` cycles behind
    ``drain_begins``. Sums of group n + DEPTH / tiles are written L = latency - 2 cycles behind their slots at the
    earliest, where those of group n were. Those have been read by then: a test goes through all sizes.

    An array of inner products computes xi of every tile beside its clusters, and subtracts it from the sums as they
    leave; eta of the weights stays in them, and biases are less by it (`isa.semantics.inner_product`). With transforms
    it takes channels in pairs (`PatchPairs`), and a command of conv23 an even number of them; its sums come a step
    later.

    From the issue of a tile group's last slot it takes ``latency + fetch_slots`` cycles until ``sums_available``: each
    lane is one cycle behind the one before.

    Parameters
    ----------
    machine : Machine

    Members
    -------
    commands, act_ready_available, ... , busy, state, tile_slots, ...
        As for `Sequencer`; ``busy`` lasts until all sums are finished or held.
    activation_write, weight_write
        Write ports of the buffers.
    sums_available : ``Out(1)``
        A complete tile group of one lane group waits.
    sums_request, sums_response
        Reads the oldest group; answered exactly ``sums_latency`` cycles later, one request per cycle.
    sums_done : ``In(1)``
        The oldest group is released. A request in the same cycle still reads it.
    drain_begins, drain_steady : ``In(1)``
        As for `Sequencer`, from the cycle on in which post-processing takes a command, or the next.
    activation_written_bytes, weight_written_bytes : ``Out``
        Events of a cycle.
    """

    LATENCY = Sequencer.LATENCY + ActivationBuffer.LATENCY + InputTransform.LATENCY + Lane.LATENCY + 1
    """With the transforms; other arrays have those below."""
    PLAIN_LATENCY = Sequencer.LATENCY + ActivationBuffer.LATENCY - 1 + PlainLane.LATENCY + 1
    INNER_LATENCY = PLAIN_LATENCY + InnerLane.LATENCY - PlainLane.LATENCY
    PAIRS_LATENCY = LATENCY + PatchPairs.LATENCY + WinogradInnerLane.LATENCY - Lane.LATENCY
    SUMS_LATENCY, PLAIN_SUMS_LATENCY = 5, 2
    INNER_SUMS_LATENCY = PLAIN_SUMS_LATENCY + RunSumsOut.LATENCY
    PAIRS_SUMS_LATENCY = PLAIN_SUMS_LATENCY + TileSumsOut.LATENCY

    @classmethod
    def latency_of(cls, machine: Machine) -> int:
        """Return ``latency``."""
        return {"winograd": cls.LATENCY, "plain": cls.PLAIN_LATENCY, "inner": cls.INNER_LATENCY,
                "winograd_inner": cls.PAIRS_LATENCY}[machine.array]

    @classmethod
    def sums_latency_of(cls, machine: Machine) -> int:
        """Return the cycles from ``sums_request`` to ``sums_response``."""
        return {"winograd": cls.SUMS_LATENCY, "plain": cls.PLAIN_SUMS_LATENCY,
                "inner": cls.INNER_SUMS_LATENCY, "winograd_inner": cls.PAIRS_SUMS_LATENCY}[machine.array]

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.sequencer = Sequencer(machine)
        self.unit = unit_of(machine)
        self._own: ExtensionUnit | None = None
        self.latency = self.latency_of(machine)
        self.sums_latency = self.sums_latency_of(machine)
        own = {
            "activation_write": In(activation_write_signature(machine)),
            "weight_write": In(weight_write_signature(machine)),
            "sums_available": Out(1),
            "sums_request": In(sums_request_signature(machine)),
            "sums_response": Out(sums_response_signature(machine)),
            "activation_written_bytes": Out(5),
            "weight_written_bytes": Out(max(5, written_bytes(machine).bit_length())),
        }
        shared = {name: member for name, member in self.sequencer.signature.members.items()
                  if name not in ("request", "fetch")}
        super().__init__(shared | own)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.sequencer = sequencer = self.sequencer
        m.submodules.buffer = buffer = activation_buffer(self.machine, slot_of(self.machine))
        if self.machine.winograd:
            m.submodules.transform = transform = InputTransform(slot_of(self.machine))
        clusters = [Cluster(self.machine, index) for index in range(self.machine.clusters)]
        for index, cluster in enumerate(clusters):
            m.submodules[f"cluster_{index}"] = cluster
        self._at_work, self._own_written = Signal(name="at_work"), Signal(3, name="own_written")
        m.d.comb += self.busy.eq(self._at_work)
        self._connect_sequencer(m, sequencer)
        connect(m, flipped(self.activation_write), buffer.write)
        patch = buffer.o.payload
        arrived: Value = buffer.o.valid
        if self.unit is None:
            connect(m, sequencer.request, buffer.i)
        else:
            self._own = ExtensionUnit(self.machine, self.unit, buffer.latency)
            arrived = arrived & ~self._share_buffer(m, self._own, buffer)
        valid, data, slot, delay = arrived, patch.patch, patch.meta, buffer.latency
        own = self._own_patches(m, arrived, patch)
        if self.machine.winograd:
            m.d.comb += [
                transform.i.valid.eq(arrived),
                transform.i.payload.patch.eq(patch.patch),
                transform.i.payload.present.eq(patch.present),
                transform.i.payload.dot.eq(patch.meta.dot),
                transform.i.payload.meta.eq(patch.meta),
            ]
            v = transform.o.payload
            valid, data, slot, delay = transform.o.valid, v.v, v.meta, delay + transform.LATENCY
        xi: RunXiLane | TileXiLane | None = None
        source = {"v": data, "slot": slot}
        if self.machine.pairs_channels:
            m.submodules.patches = pairs = PatchPairs(self.machine.tiles, slot_of(self.machine),
                                                      takes_four=own is not None)
            if own is not None:
                m.d.comb += pairs.four.eq(own.four)
            m.submodules.xi = xi = TileXiLane(self.machine.tiles, slot_of(self.machine))
            m.d.comb += [pairs.i.valid.eq(valid), pairs.i.payload.v.eq(data), pairs.i.payload.slot.eq(slot)]
            valid, delay = pairs.o.valid, delay + pairs.LATENCY
            source = {name: pairs.o.payload[name] for name in ("even", "odd", "slot")}
        elif self.machine.inner:
            m.submodules.xi = xi = RunXiLane(self.machine.tiles, slot_of(self.machine))
        if xi is not None:
            m.d.comb += [xi.i.valid.eq(valid), *(xi.i.payload[name].eq(each) for name, each in source.items())]
        fetch = Pipeline(m, sequencer.fetch.valid, prefix="fetch_", fetch=sequencer.fetch.payload)
        for _ in range(delay - clusters[0].fetch_to_slot):
            fetch.step()
        source["valid"] = valid
        for cluster in clusters:
            self._connect_cluster(m, cluster, fetch, source, own)
        self._serve_sums(m, clusters, xi)
        self._report(m, sequencer)
        return m

    @property
    def observed(self) -> dict[str, Value]:
        """Its members of `rtl.port.command_watch.CommandEvents`, once it has been elaborated."""
        found = self.sequencer.observed
        if self._own is not None:
            found = {name: value | self._own.observed[name] for name, value in found.items()}
        return found

    def _share_buffer(self, m: Module, unit: ExtensionUnit, buffer: ActivationBuffer) -> Value:
        """Let the unit of an extension read while the array is at rest; return whether what arrives is the unit's."""
        m.submodules.unit = unit
        sequencer, head = self.sequencer, self.commands.payload
        own = is_command(head, "extension", "run_unit")
        request = buffer.i.payload
        connect(m, unit.write, buffer.spare)
        m.d.comb += [
            unit.commands.payload.eq(head),
            unit.commands.valid.eq(self.commands.valid & own),
            sequencer.commands.payload.eq(head),
            sequencer.commands.valid.eq(self.commands.valid & ~own & ~unit.busy),
            self.commands.ready.eq(Mux(own, unit.commands.ready, sequencer.commands.ready & ~unit.busy)),
            unit.act_ready_available.eq(self.act_ready_available),
            self.act_ready_take.eq(sequencer.act_ready_take | unit.act_ready_take),
            unit.clear.eq(~self._at_work),
            unit.data.eq(buffer.o.payload.patch),
            self._own_written.eq(Mux(unit.write.valid & unit.write.ready, unit.write.payload.count, 0)),
            buffer.i.valid.eq(sequencer.request.valid | unit.read.valid),
            request.eq(sequencer.request.payload),
        ]
        with m.If(unit.read.valid):
            where = {"present": 1, "linear": 1, "right": 1, "diagonal": 1, "rotation": unit.read.payload[:4],
                     "word": unit.read.payload[4:]}
            m.d.comb += [request[name].eq(where.get(name, 0)) for name in request.shape().members if name != "meta"]
            m.d.comb += self.activation_read_bytes.eq(16)
        with m.If(unit.busy):
            m.d.comb += [self.busy.eq(1), self.state.eq(MacState.SETUP)]
        with m.Elif(unit.waits):
            m.d.comb += self.state.eq(MacState.WAIT_ACTIVATIONS)
        return unit.answers

    def _connect_cluster(self, m: Module, cluster: Cluster, fetch: Pipeline, source: dict[str, Value],
                         own: OwnPatches | None) -> None:
        connect(m, flipped(self.weight_write), cluster.weight_write)
        m.d.comb += [
            cluster.fetch.valid.eq(fetch.valid),
            cluster.fetch.payload.eq(fetch.fetch),
            cluster.i.valid.eq(source["valid"]),
            *(cluster.i.payload[name].eq(each) for name, each in source.items() if name != "valid"),
            *([cluster.own.eq(own.o)] if own is not None else []),
        ]

    def _own_patches(self, m: Module, arrived: Value, patch: View) -> OwnPatches | None:
        """Return the component that gives every lane but the first a patch of its own; None on other machines."""
        if not self.machine.takes_four_patches:
            return None
        m.submodules.own_patches = own = OwnPatches(self.machine)
        m.d.comb += [own.i.valid.eq(arrived & patch.present & patch.four), own.i.payload.eq(patch.others)]
        return own

    def _connect_sequencer(self, m: Module, sequencer: Sequencer) -> None:
        if self.unit is None:
            connect(m, flipped(self.commands), sequencer.commands)
        for name, member in sequencer.signature.members.items():
            if member.is_port and name != "busy":
                inner, outer = getattr(sequencer, name), getattr(self, name)
                m.d.comb += inner.eq(outer) if member.flow is In else outer.eq(inner)

    def _serve_sums(self, m: Module, clusters: Sequence[Cluster], xi: RunXiLane | TileXiLane | None) -> None:
        """Read finished sums of the oldest group."""
        machine = self.machine
        groups = DEPTH // machine.tiles
        tile_bits = (machine.tiles - 1).bit_length()
        waiting = Signal(range(groups + 1))
        following = Signal(range(groups + 1))
        oldest = Signal(range(groups))
        m.d.comb += following.eq(waiting + clusters[0].complete - self.sums_done)
        m.d.sync += [waiting.eq(following), self.sums_available.eq(following != 0)]
        with m.If(self.sums_done):
            m.d.sync += oldest.eq(oldest + 1)

        request, every = self.sums_request, range(machine.post_lanes)
        pipe = Pipeline(m, request.valid, prefix="sums_", pixel=request.pixel, slice=request.slice,
                        winograd=request.winograd)
        pipe.step(address=Cat(request.tile[:tile_bits], oldest))
        m.d.comb += [cluster.sums_address.eq(pipe.address) for cluster in clusters]
        # The address goes to every memory of sums there is: that takes most of a cycle.
        layout = ArrayLayout(clusters[0].sums.shape().elem_shape, machine.post_lanes)
        of_tile = {}
        if xi is not None:
            m.d.comb += xi.sums_address.eq(pipe.address)
            of_tile["xi"] = xi.sums if machine.pairs_channels else xi.sums[0]
        # A lane of two channels is the least that is chosen.
        least, part = (2, pipe.slice >> 1) if machine.pairs_channels and machine.post_lanes == 1 else (1, pipe.slice)
        pipe.step(sums=Cat(cluster.sums for cluster in clusters).word_select(part, layout.size * least), **of_tile)
        chosen = layout(pipe.sums[:layout.size])
        sums: list[ValueLike] = [chosen[lane][0] for lane in every]
        if machine.pairs_channels:
            sums = self._make_pixels(m, pipe)
        elif machine.winograd:
            sums = self._combine(pipe, chosen)
        elif xi is not None:
            sums = self._subtract(m, pipe, sums)
        assert pipe.depth == self.sums_latency
        m.d.comb += [
            self.sums_response.valid.eq(pipe.valid),
            *(self.sums_response.values[lane].eq(sums[lane]) for lane in every),
        ]

    def _make_pixels(self, m: Module, pipe: Pipeline) -> list[ValueLike]:
        """Append the stages that make pixels, or dot products, of what lanes hold; return them by lane."""
        m.submodules.sums_out = out = TileSumsOut(self.machine.post_lanes)
        m.d.comb += [
            out.i.valid.eq(pipe.valid),
            out.i.payload.sums.eq(pipe.sums),
            out.i.payload.second.eq(pipe.slice[0] if self.machine.post_lanes == 1 else 0),
            *(out.i.payload[name].eq(getattr(pipe, name)) for name in ("xi", "winograd", "pixel")),
        ]
        for _ in range(out.LATENCY):
            pipe.step()
        return [out.o.payload.values[lane] for lane in range(self.machine.post_lanes)]

    def _subtract(self, m: Module, pipe: Pipeline, sums: Sequence[Value]) -> list[ValueLike]:
        """Append the stage that takes xi off the sums; return them by lane."""
        m.submodules.sums_out = out = RunSumsOut(self.machine.post_lanes)
        m.d.comb += [
            out.i.valid.eq(pipe.valid),
            out.i.payload.xi.eq(pipe.xi),
            *(out.i.payload.sums[lane].eq(each) for lane, each in enumerate(sums)),
        ]
        pipe.step()
        return [out.o.payload.values[lane] for lane in range(self.machine.post_lanes)]

    def _combine(self, pipe: Pipeline, chosen: View) -> list[ValueLike]:
        """Append the stages that combine a tile's four sums to that of a pixel or a dot product; return it by lane."""
        every = range(self.machine.post_lanes)
        sums = [[chosen[lane][pixel] for pixel in range(4)] for lane in every]
        # A pixel is one sum; a dot product is y[0] - y[1] - y[2] + y[3] (see InverseTransform).
        first = {f"first_{lane}": Mux(pipe.winograd, Cat(y).word_select(pipe.pixel, SUM.width).as_signed(), y[0])
                 for lane, y in enumerate(sums)}
        others = {f"y{pixel}_{lane}": Mux(pipe.winograd, 0, y[pixel])
                  for lane, y in enumerate(sums) for pixel in (1, 2, 3)}
        pipe.step(**first, **others)
        values = [{name: getattr(pipe, f"{name}_{lane}") for name in ("first", "y1", "y2", "y3")} for lane in every]
        pipe.step(**{f"upper_{lane}": (values[lane]["first"] - values[lane]["y1"])[:32] for lane in every},
                  **{f"lower_{lane}": (values[lane]["y3"] - values[lane]["y2"])[:32] for lane in every})
        pipe.step(**{f"sum_{lane}": (getattr(pipe, f"upper_{lane}") + getattr(pipe, f"lower_{lane}"))[:32].as_signed()
                     for lane in every})
        return [getattr(pipe, f"sum_{lane}") for lane in every]

    def _weight_bytes(self) -> ValueLike:
        """Return the bytes of a write of weights."""
        machine = self.machine
        return Mux(self.weight_write.both, machine.decoded_bytes, machine.bus_bytes) if machine.decodes_two_words \
            else machine.bus_bytes

    def _report(self, m: Module, sequencer: Sequencer) -> None:
        """Count what is written, and how long slots are under way after they have left the sequencer."""
        longest = self.latency - Sequencer.LATENCY + self.machine.fetch_slots
        left = Signal(range(longest + 1))
        with m.If(sequencer.request.valid):
            m.d.sync += left.eq(longest)
        with m.Elif(left != 0):
            m.d.sync += left.eq(left - 1)
        m.d.comb += [
            self._at_work.eq(sequencer.busy | sequencer.request.valid | (left != 0)),
            self.activation_written_bytes.eq(Mux(self.activation_write.valid, self.activation_write.count, 0)
                                             + self._own_written),
            self.weight_written_bytes.eq(Mux(self.weight_write.valid, self._weight_bytes(), 0)),
        ]
