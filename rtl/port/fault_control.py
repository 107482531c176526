"""Faults, abort and two watchdogs: when the units stop, when the bus is idle, and when everything is reset."""

from amaranth import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.enum import Enum
from amaranth.lib.wiring import In, Out

from tilewright.isa.counters import COMMAND_CYCLES, FAULTS, WATCHDOG

__all__ = ["FaultControl", "Phase"]

_CODE = range(max(FAULTS) + 1)


class Phase(Enum, shape=2):  # type: ignore[call-arg]
    """RUN: units work. STOP: they are halted, and what the bus has begun ends. CLEAR: one cycle of reset."""

    RUN = 0
    STOP = 1
    CLEAR = 2
    DEAD = 3


class FaultControl(wiring.Component):
    """Take the machine from a fault or an abort back to where it takes commands.

    A fault halts the units; writes that the bus has begun end, and reads are forgotten; then everything is reset but
    the counters and the fault. From there on the units work again, but the dispatcher passes only `sta.status`, until
    an abort or reset. A further fault does the same again, and the first one stays on record. An abort goes the same
    way, resets the counters too, and forgets the fault.

    The watchdog counts cycles in which the host waits and nothing moves, each a cycle later; ``watchdog_cycles`` of
    them are a fault. If the bus does not come to rest in that time, the machine is dead: only reset helps. The watchdog
    of commands counts cycles in which units work and take no further command; ``command_cycles`` are a fault.

    Parameters
    ----------
    watchdog_cycles, command_cycles
        Powers of two, or 0: no such watchdog.

    Members
    -------
    raised : ``In(1)``, code : ``In(...)``, address : ``In(32)``
        Somebody reports a fault; it may stay until ``clear``.
    abort_request : ``In(1)``
        Abort, in any cycle; a pulse or longer.
    quiet : ``In(1)``
        The bus master has no write under way, is asking for nothing, and there is no request before it.
    moves : ``In(1)``
        Something moved on in this cycle or just before.
    waits : ``In(1)``
        The host cannot go on.
    works : ``In(1)``, begins : ``In(1)``
        A unit has a command, or takes one from its queue.
    fault : ``Out(1)``, fault_code : ``Out(...)``, fault_address : ``Out(32)``
        The first fault since reset or abort. Of the watchdog the address is ``state``.
    state : ``In(32)``
        State of the units.
    erase_request : ``In(1)``
        With ``abort_request``: erase the buffers too, before commands are passed on.
    erased : ``In(1)``
        That has ended.
    aborting : ``Out(1)``
        An abort has been asked for and not yet ended.
    erasing : ``Out(1)``
        The load unit erases the buffers, between two resets.
    halt : ``Out(1)``
        Units stop.
    hold : ``Out(1)``
        No command is passed on.
    clear : ``Out(1)``
        Everything is reset in this cycle but the counters.
    clear_counters : ``Out(1)``
        The counters are too.
    dead : ``Out(1)``
        The bus does not answer.
    """

    def __init__(self, watchdog_cycles: int, command_cycles: int = 0) -> None:
        self.watchdog_cycles, self.command_cycles = watchdog_cycles, command_cycles
        super().__init__({
            "raised": In(1), "code": In(_CODE), "address": In(32),
            "abort_request": In(1), "erase_request": In(1), "erased": In(1), "quiet": In(1),
            "moves": In(1), "waits": In(1), "works": In(1), "begins": In(1), "state": In(32),
            "fault": Out(1), "fault_code": Out(_CODE), "fault_address": Out(32),
            "aborting": Out(1), "erasing": Out(1), "halt": Out(1), "hold": Out(1), "clear": Out(1),
            "clear_counters": Out(1), "dead": Out(1),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        phase = Signal(Phase)
        expired, endless = self._watchdog(m), self._endless(m)
        wants_erasure = Signal()
        m.d.comb += [
            self.halt.eq(self.hold & ~self.erasing),
            self.clear_counters.eq(self.clear & self.aborting),
        ]
        with m.If((phase == Phase.RUN) & ~self.fault):
            with m.If(self.raised):
                m.d.sync += [self.fault.eq(1), self.fault_code.eq(self.code), self.fault_address.eq(self.address)]
            for happens, code in ((endless, COMMAND_CYCLES), (expired, WATCHDOG)):
                with m.Elif(happens):
                    m.d.sync += [self.fault.eq(1), self.fault_code.eq(code), self.fault_address.eq(self.state)]
        # Registers of their own: they go everywhere.
        with m.Switch(phase):
            with m.Case(Phase.RUN):
                with m.If(self.raised | endless | expired | self.abort_request):
                    m.d.sync += [phase.eq(Phase.STOP), self.hold.eq(1)]
            with m.Case(Phase.STOP):
                with m.If(Mux(self.erasing, self.erased, self.quiet)):
                    m.d.sync += [phase.eq(Phase.CLEAR), self.clear.eq(1)]
                with m.Elif(expired):
                    m.d.sync += [phase.eq(Phase.DEAD), self.dead.eq(1), self.fault.eq(1)]
                    with m.If(~self.fault):  # while aborting
                        m.d.sync += [self.fault_code.eq(WATCHDOG), self.fault_address.eq(self.state)]
            with m.Case(Phase.CLEAR):
                m.d.sync += [phase.eq(Phase.RUN), self.hold.eq(0), self.clear.eq(0)]
                m.d.sync += [wants_erasure.eq(0), self.erasing.eq(0)]
                with m.If(self.abort_request | wants_erasure):  # as another ends, or behind the first reset
                    m.d.sync += [phase.eq(Phase.STOP), self.hold.eq(1)]
                with m.If(wants_erasure):
                    m.d.sync += self.erasing.eq(1)
                with m.Elif(self.aborting):
                    m.d.sync += [self.aborting.eq(0), self.fault.eq(0), self.fault_code.eq(0), self.fault_address.eq(0)]
        with m.If(self.abort_request):
            m.d.sync += self.aborting.eq(1)
            with m.If(self.erase_request):
                m.d.sync += wants_erasure.eq(1)
        return m

    def _watchdog(self, m: Module) -> Signal:
        """Return whether nothing has moved for too long, while the host waits or the units stop."""
        expired = Signal()
        if self.watchdog_cycles:
            still = Signal(range(self.watchdog_cycles + 1))
            moved, waited = Signal(name="moved"), Signal(name="waited")  # both come late
            m.d.comb += expired.eq(still[-1])
            m.d.sync += [moved.eq(self.moves), waited.eq(self.waits)]
            # Not from zero again where the host leaves for an interrupt: it would never end under a fast timer.
            with m.If(moved | self.clear | expired | self.erasing):
                m.d.sync += still.eq(0)
            with m.Elif(waited | self.hold):
                m.d.sync += still.eq(still + 1)
        return expired

    def _endless(self, m: Module) -> Signal:
        """Return whether units work on what they have taken for too long; after a fault they have only records."""
        endless = Signal()
        if self.command_cycles:
            spent = Signal(range(self.command_cycles + 1))
            m.d.comb += endless.eq(spent[-1])
            with m.If(self.begins | ~self.works | self.hold | self.fault):
                m.d.sync += spent.eq(0)
            with m.Else():
                m.d.sync += spent.eq(spent + 1)
        return endless
