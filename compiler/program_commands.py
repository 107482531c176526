"""The commands of a program: those of all layers in order, and before them the loads of the first call alone.

These data stay on the chip (`compiler.schedule.rings`), so that later calls begin behind the loads. A record of the
counters behind them tells what they have taken.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tilewright.compiler.network.memory_map import MemoryPlan
from tilewright.compiler.plan.planner import LayerPlan
from tilewright.compiler.schedule import step_commands as commands
from tilewright.compiler.schedule.accesses import Access, Draft
from tilewright.compiler.schedule.rings import Piece, Region, pieces_of
from tilewright.compiler.schedule.scheduler import ProgramScheduler
from tilewright.compiler.schedule.steps import CoreCall
from tilewright.compiler.schedule.synchronisation import synchronise
from tilewright.compiler.schedule.weight_image import BlockImage
from tilewright.isa.counters import RECORD_WORDS
from tilewright.isa.machine import Machine
from tilewright.isa.program import Call, Issue

__all__ = ["ProgramCommands", "schedule"]


@dataclass(frozen=True, slots=True)
class ProgramCommands:
    """Commands and calls by layer, with those behind the last; ``opening`` is for the first call, before the others.

    ``kept`` are the layers whose weights stay between calls, all of them.
    """

    layers: list[tuple[int, Issue | Call]]
    opening: tuple[Issue | Call, ...] = ()
    kept: frozenset[int] = frozenset()


def schedule(plans: Mapping[int, LayerPlan], calls: Mapping[int, CoreCall],
             images: Mapping[int, tuple[BlockImage, ...]], memory: MemoryPlan, machine: Machine) -> ProgramCommands:
    """Return the program with its semaphores; its last command is a fence.

    Weights stay between calls if ``memory`` has a place for the record of their loads.
    """
    scheduler = ProgramScheduler(machine, plans, calls, images, memory)
    loads = list(_opening(scheduler))
    opening = [*loads, Draft("sta", "fence"), _record(memory.opening)] if loads and memory.opening else []
    drafts = scheduler.run()
    layers = [layer for layer, _ in drafts] + [len(plans) + len(calls)]
    program = synchronise([draft for _, draft in drafts] + [Draft("sta", "fence")])
    resident = {need.layer for need, _ in scheduler.weights.resident}
    loaded = {need.layer for need in scheduler.weights.needs}
    return ProgramCommands(list(zip(layers, program, strict=True)), tuple(synchronise(opening)),
                           frozenset(resident - loaded))


def _record(address: int) -> Draft:
    """Return the command that stores the counters."""
    return Draft("sta", "status", {"address": address},
                 (Access("memory", address, address + 4 * RECORD_WORDS, write=True),))


def _opening(scheduler: ProgramScheduler) -> Iterator[Draft]:
    """Yield the loads of what stays, each once."""
    machine, address = scheduler.machine, scheduler.memory.weights
    places: dict[tuple[str, Region], BlockImage] = {}
    for loaded in (scheduler.weights, scheduler.parameters, scheduler.tables):
        for need, region in loaded.resident:
            places.setdefault((need.kind, region), scheduler.images[need.layer][need.block])
    for (kind, region), image in places.items():
        if kind == "weights":
            for piece in pieces_of(image, region, machine):
                rest: Piece | None = piece
                while rest is not None:
                    part, _, rest = rest.cut(machine.weight_bytes, machine)
                    yield from commands.load_weights(part.kind, part.source, address, part.target, machine)
        elif kind == "parameters":
            yield from commands.load_weights(kind, image.parameters, address,
                                             Region(8 * region.start, 8 * region.stop), machine)
        else:
            yield from commands.load_weights(kind, image.table, address, region, machine)
