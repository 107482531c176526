"""The counting semaphores between the units; the instruction table defines who signals and who waits."""

from amaranth import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.isa.encoding import INSTRUCTIONS, SEMAPHORE_WIDTH, SEMAPHORES, UNITS

__all__ = ["NAMES", "SIGNALLERS", "WAITERS", "Semaphores"]

NAMES = tuple(semaphore.name for semaphore in SEMAPHORES)


def _units(action: str, name: str) -> tuple[str, ...]:
    """Return the units that have a variant with the flag ``action`` on the semaphore ``name``."""
    found = {variant.unit for instruction in INSTRUCTIONS for variant in instruction.variants
             for flag in variant.flags if flag is not None and (flag.action, flag.semaphore) == (action, name)}
    return tuple(unit for unit in UNITS if unit in found)


SIGNALLERS = {name: _units("signal", name) for name in NAMES}
"""Units that signal a semaphore, in the order of `isa.encoding.UNITS`."""

WAITERS = {name: _units("wait", name) for name in NAMES}
"""Units that wait for a semaphore; the hardware is built for one each."""

_MOST = (1 << SEMAPHORE_WIDTH) - 1

assert all(len(units) == 1 for units in WAITERS.values())


class Semaphores(wiring.Component):
    """Count events: every signal adds one, every take subtracts one; zero after reset.

    Any number of signals and a take may come in one cycle; they show in ``available`` ``LATENCY`` cycles later. A take
    while the semaphore is not available does nothing. A count that would pass its maximum stays there, and
    ``overflow`` tells the host that the program is not one the compiler could have made.

    Members
    -------
    NAME_signal : ``In(number of signallers)``
        One bit per unit of ``SIGNALLERS[NAME]``; a pulse per event.
    NAME_take : ``In(1)``
        The waiting unit takes one.
    NAME_available : ``Out(1)``
        The semaphore is above zero.
    overflow : ``Out(1)``
        An event was lost, two cycles ago or earlier; stays high until reset.
    overflow_index : ``Out(4)``
        Index of the semaphore that lost it first, in the order of `isa.encoding.SEMAPHORES`.
    """

    LATENCY = 1

    def __init__(self) -> None:
        members = {"overflow": Out(1), "overflow_index": Out(4)}
        for name in NAMES:
            members[f"{name}_signal"] = In(len(SIGNALLERS[name]))
            members[f"{name}_take"] = In(1)
            members[f"{name}_available"] = Out(1)
        super().__init__(members)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        losing = Signal(len(NAMES))
        lost = Signal(len(NAMES))
        m.d.sync += lost.eq(losing)
        for index, name in enumerate(NAMES):
            count = Signal(SEMAPHORE_WIDTH, name=f"{name}_count")
            following, remains = Signal(SEMAPHORE_WIDTH, name=f"{name}_following"), Signal(name=f"{name}_remains")
            available = getattr(self, f"{name}_available")
            events = getattr(self, f"{name}_signal")
            taken = getattr(self, f"{name}_take") & available
            # Events and takes come late: they only select.
            with m.Switch(Cat(events, taken)):
                for case in range(2 << len(events)):
                    takes, signalled = divmod(case, 1 << len(events))
                    more = signalled.bit_count() - takes
                    total = count + more
                    too_many = total > _MOST if more > 0 else Const(0)
                    with m.Case(case):
                        m.d.comb += [
                            following.eq(Mux(too_many, _MOST, total)),
                            remains.eq(total != 0),
                            losing[index].eq(too_many),
                        ]
            m.d.sync += [count.eq(following), available.eq(remains)]  # available begins long paths
        with m.If(lost.any() & ~self.overflow):
            m.d.sync += self.overflow.eq(1)
            for index in reversed(range(len(NAMES))):
                with m.If(lost[index]):
                    m.d.sync += self.overflow_index.eq(index)
        return m
