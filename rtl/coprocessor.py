"""The coprocessor: four units, their queues, semaphores and counters, one AXI4 master; independent of the host core."""

from collections.abc import Callable, Mapping
from typing import ClassVar

from amaranth import Cat, Module, Mux, ResetInserter, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.isa.counters import (
    READ_ERROR,
    READ_OUTSIDE,
    SEMAPHORE_OVERFLOW,
    STOPPED,
    STRAY_RESPONSE,
    WRITE_ERROR,
    WRITE_OUTSIDE,
    ZERO_COUNT,
)
from tilewright.isa.erasure import ERASED_ALWAYS
from tilewright.isa.machine import Machine
from tilewright.isa.memory import WINDOWS
from tilewright.rtl.array.mac import MacUnit
from tilewright.rtl.array.sequencer.sequencer import MacState
from tilewright.rtl.buffers.activation_port import ActivationPort
from tilewright.rtl.bus.axi import AxiMaster
from tilewright.rtl.bus.axi_channels import axi4_signature
from tilewright.rtl.load.eraser import Eraser
from tilewright.rtl.load.load import LoadUnit
from tilewright.rtl.port.command_watch import CommandEvents, CommandWatch
from tilewright.rtl.port.dispatcher import QUEUED_UNITS, Dispatcher
from tilewright.rtl.port.fault_control import FaultControl
from tilewright.rtl.port.performance_counters import Counters
from tilewright.rtl.port.semaphores import NAMES, SIGNALLERS, WAITERS, Semaphores
from tilewright.rtl.port.window_check import MemoryWindow, WindowCheck
from tilewright.rtl.post.post import PostUnit
from tilewright.rtl.store.store import StoreUnit
from tilewright.rtl.stream.commands import Command

__all__ = ["Coprocessor", "Status"]

_LATE_EVENTS = ("activation_written", "result_read", "result_written")
"""Events that are known late in a cycle: they count in the next."""

_HALTED = ("load", "store")
"""Units with a halt, whose end leaves them as after reset."""


class Status(data.Struct):
    """The state of every unit: for a debugger, or a simulator that must say why nothing moves."""

    mac_state: MacState
    busy: len(QUEUED_UNITS)     # in the order of QUEUED_UNITS
    queued: len(QUEUED_UNITS)   # a command waits for the unit
    semaphores: len(NAMES)      # above zero


class Coprocessor(wiring.Component):
    """Carry out commands; semantics in docs/datapath.md.

    One command per cycle is taken while the queues have room. A fault stops all units, ends what the bus has begun, and
    resets everything but the counters. From then on commands are taken and dropped, so that the host never hangs; but
    `sta.status` stores fault and counters, a fence waits for that, and an abort forgets the fault.

    Parameters
    ----------
    machine : Machine
    watched : bool
        Whether it has ``events``, as a simulator asks for; no hardware needs them.

    Members
    -------
    commands : ``In(stream.Signature(Command))``
        The command port.
    windows : ``In(MemoryWindow).array(4)``
        Windows that the bus master may access, set by the host, not by the program, before the first command.
    m_axi : ``Out(axi4_signature(bus_bytes))``
        The bus.
    stop_request : ``In(1)``
        A fault from outside, to stop the coprocessor alone. ``rst`` is for when the bus is reset too.
    abort_request : ``In(1)``
        An abort that waits for no command: a pulse or longer. Commands offered after it are carried out after it.
    erase_request : ``In(1)``
        With ``abort_request``: all buffers are erased, if the machine has erasure.
    waits : ``In(1)``
        The host cannot go on, though it offers no command: the watchdog counts.
    idle : ``Out(1)``
        Nothing is left to do, and memory has acknowledged every write; low after a fault.
    passes : ``Out(1)``
        A fence would be taken now.
    irq : ``Out(1)``
        A fence with ``notify`` was taken, and a fence would be taken now: high until one is, or an abort.
    fault : ``Out(1)``, fault_code : ``Out(4)``, fault_address : ``Out(32)``
        The first fault, its code in `isa.counters.FAULTS` and its address; until an abort or reset.
    status : ``Out(Status)``
    progress : ``Out(1)``
        Some unit has worked in this cycle.
    events : ``Out(CommandEvents)``
        As of `CommandWatch`.
    """

    UNITS: ClassVar[Mapping[str, Callable[[Machine], wiring.Component]]] = {
        "load": LoadUnit, "mac": MacUnit, "post": PostUnit, "store": StoreUnit}

    def __init__(self, machine: Machine, *, watched: bool = False) -> None:
        self.machine = machine
        self.watched = watched
        super().__init__({
            "commands": In(stream.Signature(Command)),
            "windows": In(MemoryWindow).array(WINDOWS),
            "m_axi": Out(axi4_signature(machine.bus_bytes)),
            "stop_request": In(1),
            "abort_request": In(1),
            "erase_request": In(1),
            "waits": In(1),
            "idle": Out(1),
            "passes": Out(1),
            "irq": Out(1),
            "fault": Out(1),
            "fault_code": Out(4),
            "fault_address": Out(32),
            "status": Out(Status),
            "progress": Out(1),
            **({"events": Out(CommandEvents)} if watched else {}),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        machine = self.machine
        m.submodules.control = self._control = control = FaultControl(machine.watchdog_cycles, machine.command_cycles)
        self._cleared = cleared = ResetInserter(control.clear)
        m.submodules.dispatcher = self._dispatcher = cleared(Dispatcher(machine))
        m.submodules.semaphores = self._semaphores = cleared(Semaphores())
        self._units: dict[str, wiring.Component] = {
            name: kind(machine) if name in _HALTED else cleared(kind(machine)) for name, kind in self.UNITS.items()}
        for name, unit in self._units.items():
            m.submodules[name] = unit
        m.submodules.axi = self._axi = AxiMaster(machine.bus_bytes, prot=machine.axi_prot)
        self._write_idle = Signal()  # no write anywhere behind the store unit

        self._connect_commands(m)
        self._connect_semaphores(m)
        self._connect_buffers(m)
        self._connect_memory(m)
        self._connect_counters(m)
        if self.watched:
            m.submodules.watch = watch = CommandWatch(self._dispatcher, *self._units.values())
            m.d.comb += self.events.eq(watch.events)
        return m

    def _connect_commands(self, m: Module) -> None:
        dispatcher, units = self._dispatcher, self._units
        connect(m, flipped(self.commands), dispatcher.commands)
        for name, unit in units.items():
            if name != "load" or not self.machine.erasure:
                connect(m, getattr(dispatcher, name), unit.commands)
        if self.machine.erasure:
            self._connect_eraser(m)
        m.d.comb += [
            dispatcher.busy.eq(Cat(unit.busy for unit in units.values()).any() | ~self._write_idle),
            dispatcher.drop.eq(self.fault & ~self._control.aborting),  # what follows an abort waits for its end
            dispatcher.hold.eq(self._control.hold),
            dispatcher.dead.eq(self._control.dead),
            self._control.works.eq(~dispatcher.idle),
            self.passes.eq((dispatcher.idle & ~self._control.hold) | self._control.dead),
            self.idle.eq(dispatcher.idle & ~self._control.hold & ~self.fault),
            self.status.mac_state.eq(units["mac"].state),
            self.status.busy.eq(Cat(units[name].busy for name in QUEUED_UNITS)),
            self.status.queued.eq(Cat(getattr(dispatcher, name).valid for name in QUEUED_UNITS)),
            self.status.semaphores.eq(Cat(getattr(self._semaphores, f"{name}_available") for name in NAMES)),
        ]

        if self.machine.command_cycles:
            queues = [getattr(dispatcher, name) for name in QUEUED_UNITS]
            m.d.sync += self._control.begins.eq(Cat(queue.valid & queue.ready for queue in queues).any())

        # Not reset by a fault: the host, asleep, learns of it.
        self._armed = Signal()
        with m.If(dispatcher.notify_taken | dispatcher.fence_taken):
            m.d.sync += self._armed.eq(dispatcher.notify_taken)
        m.d.sync += self.irq.eq(self._armed & self.passes & ~dispatcher.fence_taken)

    def _connect_eraser(self, m: Module) -> None:
        """Put the eraser between dispatcher and load unit."""
        control, load = self._control, self._units["load"]
        m.submodules.eraser = eraser = Eraser(self.machine)
        always = self.machine.erasure == ERASED_ALWAYS
        asks = self._dispatcher.erase_taken | (self.erase_request & self.abort_request)
        m.d.comb += [
            control.erase_request.eq(control.abort_request if always else asks),
            control.erased.eq(eraser.done),
            eraser.erase.eq(control.erasing & ~control.clear),
            eraser.busy.eq(load.busy),
            load.erases.eq(control.erasing),
        ]
        connect(m, self._dispatcher.load, eraser.i)
        connect(m, eraser.o, load.commands)

    def _connect_semaphores(self, m: Module) -> None:
        semaphores = self._semaphores
        for name in NAMES:
            (waiter,) = (self._units[unit] for unit in WAITERS[name])
            m.d.comb += [
                getattr(semaphores, f"{name}_signal").eq(
                    Cat(getattr(self._units[unit], f"{name}_signal") for unit in SIGNALLERS[name])),
                getattr(semaphores, f"{name}_take").eq(getattr(waiter, f"{name}_take")),
                getattr(waiter, f"{name}_available").eq(getattr(semaphores, f"{name}_available")),
            ]

    def _connect_buffers(self, m: Module) -> None:
        load, mac, post, store = (self._units[name] for name in QUEUED_UNITS)
        if self.machine.chaining:
            m.submodules.activation_port = port = self._cleared(ActivationPort(self.machine))
            connect(m, load.activation_write, port.load)
            connect(m, store.activation_write, port.store)
            connect(m, port.o, mac.activation_write)
        else:
            connect(m, load.activation_write, mac.activation_write)
        connect(m, load.weight_write, mac.weight_write)
        connect(m, load.parameter_write, post.parameter_write)
        connect(m, load.table_write, post.table_write)
        connect(m, load.residual_write, post.residual_write)
        connect(m, store.store_read, post.store_read)
        connect(m, post.store_data, store.store_data)
        m.d.comb += [
            post.sums_available.eq(mac.sums_available),
            mac.sums_request.valid.eq(post.sums_request.valid),
            *[getattr(mac.sums_request, name).eq(getattr(post.sums_request.payload, name))
              for name in ("tile", "pixel", "slice", "winograd")],
            post.sums_response.valid.eq(mac.sums_response.valid),
            post.sums_response.payload.as_value().eq(mac.sums_response.values.as_value()),
            mac.sums_done.eq(post.sums_done),
        ]
        if self.machine.takes_whole_tiles:
            m.d.comb += [mac.drain_begins.eq(post.drain_begins), mac.drain_steady.eq(post.drain_steady)]

    def _connect_memory(self, m: Module) -> None:
        axi, load, store, control = self._axi, self._units["load"], self._units["store"], self._control
        read_check, write_check = (
            self._cleared(WindowCheck(self.machine.bus_bytes, is_write=is_write, windows=WINDOWS))
            for is_write in (False, True))
        m.submodules.read_check, m.submodules.write_check = read_check, write_check
        for check, request, target in ((read_check, load.read_request, axi.read),
                                       (write_check, store.write_request, axi.write)):
            connect(m, request, check.i)
            connect(m, check.o, target)
            for inner, outer in zip(check.windows, self.windows, strict=True):
                m.d.comb += inner.eq(outer)
            m.d.comb += check.halt.eq(control.halt)
        connect(m, axi.read_data, load.read_data)
        connect(m, store.write_data, axi.write_data)
        connect(m, axi.m_axi, flipped(self.m_axi))
        m.d.comb += self._write_idle.eq(axi.write_idle & ~write_check.busy)
        m.d.comb += [*(self._units[name].halt.eq(control.halt & ~control.clear) for name in _HALTED),
                     store.writer_idle.eq(self._write_idle)]
        m.d.comb += [axi.halt.eq(control.halt), axi.clear.eq(control.clear),
                     control.quiet.eq(~axi.read_asks & ~read_check.busy & self._write_idle)]

        faults = (  # the first in this list wins if two come in one cycle
            (READ_OUTSIDE, read_check.fault, read_check.fault_address),
            (WRITE_OUTSIDE, write_check.fault, write_check.fault_address),
            (READ_ERROR, axi.read_error, axi.read_error_address),
            (WRITE_ERROR, axi.write_error, axi.write_error_address),
            (SEMAPHORE_OVERFLOW, self._semaphores.overflow, self._semaphores.overflow_index),
            (STRAY_RESPONSE, axi.stray, 0),
            (ZERO_COUNT, self._dispatcher.zero_count, self._dispatcher.zero_code),
            (STOPPED, self.stop_request, 0),
        )
        for code, raised, address in reversed(faults):
            with m.If(raised):
                m.d.comb += [control.raised.eq(1), control.code.eq(code), control.address.eq(address)]
        channels = (self.m_axi.arready, self.m_axi.rvalid, self.m_axi.awready, self.m_axi.wready, self.m_axi.bvalid)
        asked = (self.m_axi.arvalid, self.m_axi.rready, self.m_axi.awvalid, self.m_axi.wvalid, self.m_axi.bready)
        m.d.comb += [
            control.abort_request.eq(self._dispatcher.abort_taken | self.abort_request),
            control.moves.eq(self.progress | (Cat(channels) & Cat(asked)).any()),
            # A command that is offered waits, or is taken, which is progress.
            control.waits.eq(self.waits | self.commands.valid | (self._armed & ~self.passes)),
            control.state.eq(self.status.as_value()),
            self.fault.eq(control.fault),
            self.fault_code.eq(control.fault_code),
            self.fault_address.eq(control.fault_address),
        ]

    def _connect_counters(self, m: Module) -> None:
        load, mac, post, store = (self._units[name] for name in QUEUED_UNITS)
        m.submodules.counters = counters = ResetInserter(self._control.clear_counters)(Counters(self.machine))
        m.d.comb += [
            counters.state.eq(mac.state),
            counters.load_busy.eq(load.busy),
            counters.post_busy.eq(post.busy),
            counters.store_busy.eq(store.busy),
            store.fault.eq(self.fault_code),
            store.fault_address.eq(self.fault_address),
        ]
        connect(m, store.counters, counters.walk)
        events = {
            "tile_slots": mac.tile_slots,
            "requantized": post.requantized,
            "residual_added": post.residual_added,
            "table_read": post.table_read,
            "activation_read": mac.activation_read_bytes,
            "activation_written": mac.activation_written_bytes,
            "weight_read": mac.weight_read_bytes,
            "weight_written": load.weight_written_bytes,
            "result_read": post.result_read_bytes,
            "result_written": post.result_written_bytes,
            "memory_read": Mux(self._axi.read_data.valid & self._axi.read_data.ready, self.machine.bus_bytes, 0),
            "memory_written": store.memory_written_bytes,
            "commands": self._dispatcher.taken,
        }
        for name, event in events.items():
            counted = Signal.like(getattr(counters, name), name=f"{name}_counted")
            m.d.comb += getattr(counters, name).eq(counted)
            if name in _LATE_EVENTS:
                m.d.sync += counted.eq(event)
            else:
                m.d.comb += counted.eq(event)
        works = Cat(mac.tile_slots.any(), mac.sums_response.valid, load.activation_write.valid, load.weight_write.valid,
                    load.parameter_write.valid, load.table_write.valid, self._dispatcher.taken)
        if self.machine.normalises_rows:
            works = Cat(works, post.requantized.any())  # rows take long without a sum
        worked = Signal.like(works)
        m.d.sync += worked.eq(works)
        m.d.comb += self.progress.eq(worked.any())
