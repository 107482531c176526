"""Events of the units in one word, from which a simulator knows when each command begins and ends.

A coprocessor has this component only if a simulator asks for it. It holds no register, and no unit looks at it.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol

from amaranth import Cat, Module, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out

from tilewright.rtl.port.dispatcher import QUEUED_UNITS, Dispatcher
from tilewright.rtl.stream.commands import Command, is_command, views

__all__ = ["CommandEvents", "CommandWatch", "ObservedUnit"]


class CommandEvents(data.Struct):
    """Events of a cycle; sim/verilator/harness/commands.h reads them in this order.

    Work of a unit goes through it in pieces: segments of the load, steps of post-processing, runs of the store. A
    command ends with its last piece, and pieces end in the order in which they began.
    """

    offered: 1                  # the host offers a command, ...
    sent: 1                     # ... and it goes to its unit's queue; a fence passes
    code: 6                     # of that command: funct3 and variant
    taken: len(QUEUED_UNITS)    # a unit takes a command from its queue, in the order of QUEUED_UNITS
    array_begins: 1             # the array begins with the oldest command that it has taken
    array_ends: 1               # it issues the last slot of the command that it has begun
    segment_queued: 1           # load: a segment is asked for, ...
    segment_ends_command: 1     # ... the last one of its command
    segment_written: 1          # the last bytes of the oldest segment are written
    step_issued: 1              # post-processing: a step begins, ...
    step_ends_command: 1        # ... the last one of its command
    step_written: 1             # the oldest step ends
    run_queued: 1               # store: a run is asked for, ...
    run_ends_command: 1         # ... the last one of its command
    run_to_memory: 1            # ... in words for memory, else to be copied to the activation buffer
    record_begins: 1            # a status record is asked for
    word_sent: 1                # a word has left for memory: of a run or a record
    run_copied: 1               # the oldest run that is copied has been
    run_words: 16


class ObservedUnit(Protocol):
    """A unit whose elaboration leaves members of `CommandEvents` in ``observed``."""

    observed: Mapping[str, Value]


class CommandWatch(wiring.Component):
    """Collect the events of a cycle, in that cycle.

    It must be elaborated behind the units, which say what there is to be seen when they are.

    Parameters
    ----------
    dispatcher : Dispatcher
    units : sequence of ObservedUnit

    Members
    -------
    events : ``Out(CommandEvents)``
        A fence with ``notify``, which holds nothing up, is none of the commands.
    """

    def __init__(self, dispatcher: Dispatcher, *units: ObservedUnit) -> None:
        self._dispatcher, self._units = dispatcher, units
        super().__init__({"events": Out(CommandEvents)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        dispatcher, events = self._dispatcher, self.events
        commands = dispatcher.commands
        command: Command = commands.payload
        counts = ~(is_command(command, "sta", "fence") & views(command, "sta", "fence")[0].notify)
        queues = [getattr(dispatcher, unit) for unit in QUEUED_UNITS]
        m.d.comb += [
            events.offered.eq(commands.valid & counts),
            events.sent.eq(commands.valid & commands.ready & counts),
            events.code.eq(Cat(command.variant, command.funct3)),
            events.taken.eq(Cat(queue.valid & queue.ready for queue in queues)),
            *(getattr(events, name).eq(value) for name, value in self._seen()),
        ]
        return m

    def _seen(self) -> Iterator[tuple[str, Value]]:
        for unit in self._units:
            yield from unit.observed.items()
