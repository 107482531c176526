"""Put the steps of all layers into one program: each computes while the next one's data are loaded.

The program runs each step's mac, act and store commands, then loads for the step behind it. The units' queues do the
rest: loads overtake the computation as far as the buffers have room. While the array works on a step, the time that the
bus has left goes to the weights of later steps, piece by piece: these come before the input of the next layer, which
has to wait for this step's results, and behind the input of the next tile, which has not.

A call of the host core stands behind a fence if commands under way may touch the same tensors: then the
coprocessor is idle, and memory has all of its writes. Weights of later layers may come in meanwhile.

Layers of a chain (compiler/schedule/chaining.py) hand their results over in the activation buffer.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from tilewright.compiler.errors import CompileError
from tilewright.compiler.network.memory_map import MemoryPlan
from tilewright.compiler.plan.cost import input_cycles, output_cycles
from tilewright.compiler.plan.footprint import (
    TOKEN_WORDS,
    held_bytes,
    input_bytes,
    parameter_unit,
    part_bytes,
    resident_parameters,
    resident_words,
    result_bytes,
    table_bytes,
    usable_words,
)
from tilewright.compiler.plan.planner import LayerPlan
from tilewright.compiler.plan.tiles import block_rows, strip, whole_tile
from tilewright.compiler.schedule import groups, on_chip
from tilewright.compiler.schedule import step_commands as commands
from tilewright.compiler.schedule.accesses import Access, Draft, MemoryTouches
from tilewright.compiler.schedule.kept_inputs import lay_out
from tilewright.compiler.schedule.rings import (
    LEAST_PIECE,
    LoadedRegions,
    Piece,
    Region,
    Ring,
    content_of,
    pieces_of,
    units_of,
    with_lasting,
)
from tilewright.compiler.schedule.steps import CoreCall, Kind, Need, TileStep, block_of, needs_of, steps_of, tile_of
from tilewright.compiler.schedule.stretch_commands import in_stretches
from tilewright.compiler.schedule.weight_image import BlockImage, Span, computed_spans, written_before
from tilewright.isa.counters import RECORD_WORDS
from tilewright.isa.machine import TABLE_BYTES, TABLE_SLOTS, TILE_BYTES, Machine
from tilewright.isa.program import Call

__all__ = ["ProgramScheduler"]


@dataclass(slots=True)
class ProgramScheduler:
    """Writes the program; ``drafts`` are (layer, command) in order.

    Every layer has either a plan or a call. ``kept`` is where the inputs of chained layers lie, by layer, and ``late``
    those at whose place something else may lie. ``tokens`` are the places of the words that tell of early loads, by the
    first layer of a group. ``opened`` are the layers with computed weights whose first data are loaded.
    """

    machine: Machine
    plans: Mapping[int, LayerPlan]
    calls: Mapping[int, CoreCall]
    images: Mapping[int, tuple[BlockImage, ...]]
    memory: MemoryPlan
    drafts: list[tuple[int, Draft | Call]] = field(default_factory=list)
    touched: MemoryTouches = field(default_factory=MemoryTouches)
    configuration: dict[tuple[str, str], Draft] = field(default_factory=dict)
    steps: tuple[TileStep, ...] = field(init=False)
    first_steps: dict[int, int] = field(init=False)
    padding: on_chip.MissingPadding = field(init=False)
    inputs: LoadedRegions = field(init=False)
    weights: LoadedRegions = field(init=False)
    parameters: LoadedRegions = field(init=False)
    tables: LoadedRegions = field(init=False)
    results: Ring = field(init=False)
    reserved: dict[int, Region] = field(default_factory=dict)
    kept: dict[int, Region] = field(default_factory=dict)
    late: list[int] = field(default_factory=list)
    pieces: deque[Piece] = field(default_factory=deque)
    strips: dict[int, int] = field(default_factory=dict)
    opened: set[int] = field(default_factory=set)
    spent: int = 0
    tokens: dict[int, Region] = field(default_factory=dict)

    def __post_init__(self) -> None:
        machine = self.machine
        self.steps = steps_of(self.plans, len(self.plans) + len(self.calls))
        self.padding = on_chip.MissingPadding(self.plans, machine)
        self.first_steps = {step.layer: step.index for step in reversed(self.steps)}

        def loaded(kind: Kind, size: int, alignment: int) -> LoadedRegions:
            needs = needs_of(kind, self.steps, self.plans)
            if kind == "input":
                return LoadedRegions(Ring(size, alignment), needs)
            found = with_lasting(needs, lambda need: content_of(need, self.plans[need.layer], self.images[need.layer]),
                                 lambda need: -(-self.units(need) // alignment) * alignment, size,
                                 between_calls=self.memory.opening is not None)
            return LoadedRegions(Ring(found.left, alignment), found.needs,
                                 lasting={index: Region(*place) for index, place in found.places.items()},
                                 resident=[(need, Region(*place)) for need, place in found.resident])

        self.inputs = loaded("input", machine.activation_bytes, machine.input_unit)
        self.weights = loaded("weights", usable_words(machine), 8)
        self.parameters = loaded("parameters", machine.parameter_channels, parameter_unit(machine))
        self.tables = loaded("table", TABLE_SLOTS * TABLE_BYTES, TABLE_BYTES)
        self.results = Ring(machine.result_bytes, TILE_BYTES)

    def run(self) -> list[tuple[int, Draft | Call]]:
        """Return the whole program."""
        first = self.steps[0]
        if first.layer in self.plans:
            self.load_weights(first, 0)
            self.load_data(first)
        for step in self.steps:
            following = self.steps[step.index + 1] if step.index + 1 < len(self.steps) else None
            if step.layer in self.calls:
                self.call(step)
            else:
                self.compute(step)
            for loaded in (self.inputs, self.weights, self.parameters, self.tables):
                loaded.release(step.index)
            if step.last and step.layer in self.kept:
                self.inputs.ring.release(self.kept.pop(step.layer))
                if groups.ends_bands(self.plans, step.layer):
                    self.weights.ring.release(self.tokens.pop(groups.home(self.plans, step.layer)))
            if following is None:
                break
            self.spent = 0
            self.load_early(step, following)
            if following.layer in self.calls:
                continue
            if following.first and self.plans[following.layer].layer.factor is not None:
                self.open(following)
                continue
            self.load_weights(following, step.layer)
            free = self.free_bytes(step, following)
            if following.first:
                self.fetch_ahead(step.layer, free)
            self.load_data(following)
            if not following.first:
                self.fetch_ahead(step.layer, free)
        return self.drafts

    def emit(self, layer: int, drafts: Iterator[Draft]) -> None:
        """Append ``drafts``, without settings that the unit has already."""
        for draft in drafts:
            if draft.configures:
                key = draft.mnemonic, draft.variant
                if self.configuration.get(key) == draft:
                    continue
                self.configuration[key] = draft
            elif draft.mnemonic != "ldw" and draft.variant != "status":
                self.touched.add(draft.accesses)
            self.drafts.append((groups.home(self.plans, layer), draft))

    # ---- load

    def open(self, step: TileStep) -> None:
        """Load the first data and weights of a layer with computed weights, behind a load of data that waits for these.

        An earlier load may have waited for them. Else the residual's load waits, so that the weights come before the
        input: all of them, if that has to wait for what comes later.
        """
        layer, plan = step.layer, self.plans[step.layer]
        written = computed_spans(plan.layer, self.images[layer], self.memory.weights)
        late = not self.touched.there(written)
        if late and plan.layer.residual is not None and not plan.blocks[0].holds:
            self.load_residual(step, written)
            late = False
        if late:
            self.load_input(step, written)
            self.load_residual(step)
        self.opened.add(layer)
        self.load_weights(step, layer)
        if not late:
            start = self.memory.tensors.get(plan.layer.input, 0)
            if plan.chip.input or not self.touched.there([(start, start + plan.layouts.input.span)]):
                self.load_product(layer, layer)
            self.load_data(step)

    def load_weights(self, step: TileStep, layer: int) -> None:
        """Load weights, parameters and table of ``step``, if they are not there, in the function of ``layer``."""
        if self.weights.due(step.index):
            self.flush(layer)
            if not self.begin_block():
                self.required(None, "weight")
        if self.weights.loaded and self.weights.needs[self.weights.loaded - 1].first <= step.index:
            self.flush(layer)
        if self.parameters.due(step.index):
            self.load_parameters(layer)
        if self.tables.due(step.index):
            self.load_table(layer)

    def free_bytes(self, step: TileStep, following: TileStep) -> int:
        """Return the bytes that the bus can move during ``step``, besides those that ``following`` needs."""
        if step.layer in self.calls:
            return 0
        plan, tile = self.plans[following.layer], tile_of(following, self.plans)
        time = step.cycles(self.plans, self.machine)
        time -= sum(on_chip.padding_cycles(self.plans[index], self.machine, rows)
                    for index, rows in self.to_fill(following))
        if not following.first:
            block, problem = block_of(following, self.plans), plan.problem(self.machine)
            if plan.stays:
                rows = self.missing_rows(following)
                tile_in = strip(plan.work, tile.columns, rows) if rows else None
            else:
                tile_in = tile if self.inputs.due(following.index) else None
            if tile_in:
                time -= input_cycles(problem, tile_in)
            time -= output_cycles(problem, tile, block.channels, stored=plan.chip.stored)
        return max(0, time - self.spent) * self.machine.bus_bytes

    def fetch_ahead(self, layer: int, free: int) -> None:
        """Load up to ``free`` bytes of weights of later steps, as far as there is room."""
        while free >= LEAST_PIECE:
            if not self.pieces and not self.begin_block(ahead=True):
                return
            if not self.pieces[0].fits(free, self.machine):
                return
            free -= self.load_piece(layer, free)

    def begin_block(self, *, ahead: bool = False) -> bool:
        """Make the next block of weights the one to load piece by piece; tell whether there is room for it."""
        if self.weights.next_layer() is None:
            return False
        need = self.weights.needs[self.weights.loaded]
        plan, image = self.plans[need.layer], self.images[need.layer][need.block]
        if plan.layer.factor is not None and need.layer not in self.opened:
            return False
        if need.among and plan.bands is not None and plan.bands.place == need.block == 0:
            self.weights.ring.make_room(resident_words(groups.parts(self.plans, need.layer), self.machine),
                                        self.weights.recent)
            token = self.weights.ring.allocate(TOKEN_WORDS)
            if token is None:
                return False
            self.tokens[need.layer] = token
        words = self.units(need)
        if need.block == 0 and len(plan.blocks) > 1:
            self.weights.ring.begin_turns(words)
        if not need.among and self.weights.loaded + 1 < len(self.weights.needs):
            self.weights.ring.move_up(words, self.units(self.weights.needs[self.weights.loaded + 1]))
        region = self.weights.take(words, ahead=ahead)
        if region is None:
            if need.layer in self.tokens and need.block == 0:
                self.weights.ring.release(self.tokens.pop(need.layer))
            return False
        self.pieces += pieces_of(image, region, self.machine)
        return True

    def units(self, need: Need) -> int:
        """Return the words, channels or bytes that a need takes of its buffer."""
        return units_of(need, self.plans[need.layer], self.machine)

    def load_piece(self, layer: int, most: int) -> int:
        """Load at most ``most`` bytes of the next piece, or a coded block; return how many bytes take as long."""
        piece, moved, rest = self.pieces.popleft().cut(most, self.machine)
        if rest is not None:
            self.pieces.appendleft(rest)
        self.emit(layer, commands.load_weights(piece.kind, piece.source, self.memory.weights, piece.target,
                                               self.machine))
        return moved

    def flush(self, layer: int) -> None:
        """Load what is left of the block that was begun."""
        while self.pieces:
            self.spent += self.load_piece(layer, self.machine.weight_bytes) // self.machine.bus_bytes

    def load_parameters(self, layer: int) -> None:
        """Load the next block of parameters."""
        need = self.parameters.needs[self.parameters.loaded]
        plan = self.plans[need.layer]
        if need.among and plan.bands is not None and plan.bands.place == need.block == 0:
            self.parameters.ring.make_room(resident_parameters(groups.parts(self.plans, need.layer), self.machine),
                                           self.parameters.recent)
        region = self.required(self.parameters.take(self.units(need)),
                               "parameter")
        source = self.images[need.layer][need.block].parameters
        self.emit(layer, commands.load_weights("parameters", source, self.memory.weights,
                                               Region(8 * region.start, 8 * region.stop), self.machine))

    def load_table(self, layer: int) -> None:
        """Load the next value table."""
        need = self.tables.needs[self.tables.loaded]
        region = self.required(self.tables.take(table_bytes(self.plans[need.layer].layer)), "table")
        self.emit(layer, commands.load_weights("table", self.images[need.layer][need.block].table, self.memory.weights,
                                               region, self.machine))

    def load_data(self, step: TileStep) -> None:
        """Load the input tile and the residual of ``step``, if they are not there.

        In the last step of a layer one of them waits for a product's computed weights, which come behind it.
        """
        product = self.weights.next_layer() if step.last else None
        written = [] if product is None or product in self.opened else written_before(
            product, step.layer - 1, self.plans, self.images, self.memory)
        self.load_input(step, written)
        self.load_residual(step, [] if self.touched.there(written) else written)
        if product is not None and written and self.touched.there(written):
            self.opened.add(product)
            self.load_product(product, step.layer)

    def load_product(self, product: int, layer: int) -> None:
        """Load the computed weights of ``product``, if they come next and have room, in the function of ``layer``."""
        while self.weights.next_layer() == product and self.begin_block(ahead=True):
            self.flush(layer)

    def load_input(self, step: TileStep, behind: Sequence[tuple[int, int]] = ()) -> None:
        """Load the input tile of ``step``, if it is not there, once memory ``behind`` is written."""
        plan, tile, block = self.plans[step.layer], tile_of(step, self.plans), block_of(step, self.plans)
        if step.first and plan.chip.output and not plan.chip.input:
            self.begin_chain(step.layer)
        for index, rows in self.to_fill(step):
            border = self.padding.write(index, rows, self.kept[index])
            self.emit(step.layer, border if plan.bands is None else commands.early(border))
        if plan.bands is not None:
            if plan.bands.place == 0 and self.inputs.due(step.index):
                self.load_banded(step)
        elif plan.stays:
            self.load_strip(step, self.memory.tensors[plan.layer.input])
        elif self.inputs.due(step.index):
            tensor = self.memory.tensors[plan.layer.input]
            if plan.holds and step.tile % plan.holds == 0:
                held = plan.tiles[step.tile:step.tile + plan.holds]
                self.inputs.ring.make_room(held_bytes(held, plan.layer, plan.nest, self.machine), self.inputs.recent)
            size = part_bytes(block, tile, plan.layer, plan.nest) if plan.splits_input \
                else input_bytes(tile, plan.layer, plan.nest)
            region = self.required(self.inputs.take(size, around=True), "activation")
            drafts = commands.load_part(plan, tile, block, tensor, region) if plan.splits_input \
                else commands.load_planes(plan, tile, self.memory.tensors, region)
            self.emit(step.layer, commands.behind(drafts, behind))

    def load_residual(self, step: TileStep, behind: Sequence[tuple[int, int]] = ()) -> None:
        """Load the residual of ``step``, if it has one that is not there, once memory ``behind`` is written."""
        plan, tile, block = self.plans[step.layer], tile_of(step, self.plans), block_of(step, self.plans)
        if plan.layer.residual and not block.holds and step.index not in self.reserved:
            region = self.required(self.results.allocate(result_bytes(tile, plan.layer, block.channels)), "result")
            self.reserved[step.index] = region
            tensor = self.memory.tensors[plan.layer.residual.tensor]
            self.emit(step.layer, commands.behind(commands.load_residual(plan, tile, block, tensor, region), behind))

    def load_early(self, step: TileStep, following: TileStep) -> None:
        """Load the first input of the next band when ``step`` ends a band of the first layer of its group."""
        bands = self.plans[step.layer].bands if step.layer in self.plans else None
        if bands is None or bands.place or following.layer == step.layer \
                or self.inputs.loaded == len(self.inputs.needs):
            return
        need = self.inputs.needs[self.inputs.loaded]
        # Padding below the image goes where rows lie that are needed until just before that band.
        if need.layer == step.layer and not groups.bottoms(self.plans, need.layer, need.tile):
            self.load_banded(self.steps[need.first], around=True)

    def load_banded(self, step: TileStep, *, around: bool = False) -> None:
        """Load the input of ``step``, of the first layer of a group, and the word whose load tells the array of it.

        With ``around`` it is left for later if there is no room.
        """
        plan, tile = self.plans[step.layer], tile_of(step, self.plans)
        region = self.inputs.take(input_bytes(tile, plan.layer, plan.nest), around=True)
        if region is None and around:
            return
        place = self.required(region, "activation")
        for index in groups.bottoms(self.plans, step.layer, step.tile):
            self.emit(step.layer, commands.early(on_chip.fill_bottom(self.plans[index], self.kept[index])))
        self.emit(step.layer, commands.early(
            commands.load_input(plan, tile, self.memory.tensors[plan.layer.input], place)))
        word = TILE_BYTES * self.machine.clusters
        first, target = self.images[step.layer][0].main.start, self.tokens[step.layer]
        size = max(word, self.machine.padded_bytes)
        self.emit(step.layer, commands.load_weights("main", Span(first, first + size), self.memory.weights,
                                                    Region(target.start * word, target.stop * word), self.machine))

    def load_strip(self, step: TileStep, tensor: int) -> None:
        """Load those block rows of an input that stays which ``step`` is the first to need."""
        plan, tile = self.plans[step.layer], tile_of(step, self.plans)
        rows = self.missing_rows(step)
        if self.inputs.due(step.index):
            whole = whole_tile(plan.work, tile.columns)
            self.required(self.inputs.take(input_bytes(whole, plan.work, plan.nest), around=True), "activation")
        if rows:
            region = self.required(self.inputs.current(step.index), "activation")
            part = strip(plan.work, tile.columns, rows)
            self.emit(step.layer, commands.load_input(plan, part, tensor, region, rows.start))
            self.strips[step.layer] = rows.stop

    def missing_rows(self, step: TileStep) -> range:
        """Return the block rows of an input that stays which ``step`` needs and which have not been loaded."""
        rows = block_rows(tile_of(step, self.plans))
        return range(self.strips.get(step.layer, 0), rows.stop)

    def begin_chain(self, head: int) -> None:
        """Make room for the inputs of all layers chained to layer ``head``."""
        ring, chained = self.inputs.ring, groups.chained_to(self.plans, head)
        places = lay_out([self.plans[index] for index in (head, *chained)], self.machine)
        ring.make_room(places.size, self.inputs.recent)
        whole = self.required(ring.allocate(places.size), "activation")
        ring.release(whole)
        ring.cursor = whole.start + places.head
        for index, each in zip(chained, places.inputs, strict=True):
            self.kept[index] = Region(whole.start + each.start, whole.start + each.stop)
            self.padding.begin(index, bare=each.fresh)
            if each.late:
                self.late.append(index)
            else:
                ring.take(self.kept[index])

    def to_fill(self, step: TileStep) -> list[tuple[int, range | None]]:
        """Return the layers whose padding must be written before the data of ``step``, and in which rows; None for all.

        While padding is written, nothing is loaded or stored. So it is spread over the inputs of the chain's first
        layer, to hide behind the computation. The padding of the layers that read its results comes before its first
        input, or, if nothing is computed yet, row by row before the inputs whose results lie beside it, that of all
        other layers before the further inputs, about as much before each.
        """
        plan = self.plans[step.layer]
        if not plan.chip.output or plan.chip.input:
            return []
        padding, chained = self.padding, groups.chained_to(self.plans, step.layer)
        if plan.bands is not None:
            return padding.whole(chained) if step.first else []
        soon = [step.layer + feed.ahead for feed in plan.chip.feeds]
        if not self.inputs.due(step.index):
            return padding.whole(soon) if step.first else []
        inputs = sum(need.layer == step.layer for need in self.inputs.needs[self.inputs.loaded:])
        if inputs == 1:
            return padding.whole(chained)
        first = self.first_steps[step.layer]
        hidden = (first > 0 and self.steps[first - 1].layer in self.plans) or plan.holds or plan.stays
        now = padding.whole(soon) if hidden else padding.beside(soon, tile_of(step, self.plans).rows.out)
        return now if step.first else now + padding.share([each for each in chained if each not in soon], inputs)

    # ---- compute and store

    def compute(self, step: TileStep) -> None:
        """Run ``step`` and store its results."""
        plan, tile, block = self.plans[step.layer], tile_of(step, self.plans), block_of(step, self.plans)
        parameters = self.required(self.parameters.current(step.index), "parameter")
        table = self.tables.current(step.index)
        source = self.required(self.kept.get(step.layer) or self.inputs.current(step.index), "activation")
        computed, there, place = on_chip.block_on_chip(plan, block, source)
        sums = commands.compute(computed, tile, there, self.machine, place, self.weights.current(step.index),
                                parameters, table)
        if block.holds:
            self.emit(step.layer, sums if not block.beyond else in_stretches(
                computed, tile, there, self.machine, list(sums), ()))
            return
        region = self.reserved.pop(step.index, None) or self.required(
            self.results.allocate(result_bytes(tile, plan.layer, block.channels)), "result")
        results = commands.finish(plan, tile, block, self.machine, parameters, table, region)
        self.emit(step.layer, chain(sums, results) if not block.beyond else in_stretches(
            computed, tile, there, self.machine, list(sums), list(results)))
        if plan.layer.rows is not None:
            self.emit(step.layer, commands.normalise(plan, tile, block, self.machine, parameters, table, region))
        for feed in plan.chip.feeds:
            reader = step.layer + feed.ahead
            if reader in self.late:
                self.inputs.ring.take(self.kept[reader])
                self.late.remove(reader)
            self.emit(step.layer, on_chip.keep(plan, tile, block, self.plans[reader], self.kept[reader], region,
                                               feed.channel))
        for name, layout in zip(plan.layer.writes, plan.layouts.outputs, strict=True) if plan.chip.stored else ():
            self.emit(step.layer, commands.store(plan, tile, block, self.memory.tensors[name], layout,
                                                 commands.plane_of(plan, tile, block, name, region)))
        self.results.release(region)
        if step.last:
            self.store_record(step.layer)

    def call(self, step: TileStep) -> None:
        """Let the host core compute ``step`` when its inputs are complete, while weights of later layers are loaded."""
        core = self.calls[step.layer]
        if any(self.touched.in_use(operand.address, operand.address + operand.span_bytes, write=operand is call.output)
               for call in core.calls for operand in call.operands):
            self.emit(step.layer, iter([Draft("sta", "fence")]))
            self.touched.fence()
        self.fetch_ahead(step.layer, core.cycles * self.machine.bus_bytes)
        self.drafts += [(step.layer, call) for call in core.calls]
        self.store_record(step.layer)

    def store_record(self, layer: int) -> None:
        """Store the counters at the end of ``layer``."""
        record = self.memory.records[layer]
        written = Access("memory", record, record + 4 * RECORD_WORDS, write=True)
        self.emit(layer, iter([Draft("sta", "status", {"address": record}, (written,))]))

    def required(self, region: Region | None, buffer: str) -> Region:
        """Return ``region``; the planner has seen to it that there is one."""
        if region is None:
            raise CompileError(f"The plan needs more of the {buffer} buffer than there is; this is a bug of the "
                               "compiler, please report it with the model")
        return region
