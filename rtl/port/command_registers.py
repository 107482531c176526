"""The AXI4-Lite command port: a write of an instruction word becomes a command, for hosts without CV-X-IF."""

from amaranth import Cat, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.data import View
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from tilewright.isa.command_port import ADDRESS_BITS, BY_REGISTER, REGISTERS
from tilewright.isa.encoding import CUSTOM_0
from tilewright.isa.machine import DEFAULT_MACHINE, PRESETS, Machine
from tilewright.isa.memory import WINDOWS
from tilewright.isa.registers.host_registers import WindowPins
from tilewright.rtl.bus.axi_channels import OKAY, SLVERR, axi4_lite_signature
from tilewright.rtl.port.dispatcher import legal
from tilewright.rtl.port.host_register_block import HostRegisters
from tilewright.rtl.port.window_check import MemoryWindow
from tilewright.rtl.stream.commands import Command, is_command, views
from tilewright.rtl.stream.queues import dequeue

__all__ = ["CommandRegisters"]


class _Write:
    """Address, data and strobes of a write, each once its channel has brought it."""

    def __init__(self, prefix: str = "") -> None:
        # Under names of their own, by which the proof finds them.
        self.address = Signal(ADDRESS_BITS, name=f"{prefix}write_address")
        self.has_address = Signal(name=f"{prefix}has_address")
        self.data, self.strobes = Signal(32, name=f"{prefix}write_data"), Signal(4, name=f"{prefix}write_strobes")
        self.has_data = Signal(name=f"{prefix}has_data")

    @property
    def whole(self) -> Value:
        """Whether all of it is there."""
        return self.has_address & self.has_data

    def at(self, register: str) -> Value:
        """Return whether it is to the register of that name."""
        return self.address[2:] == BY_REGISTER[register].offset // 4

    def controls(self, machine: Machine) -> Value:
        """Return whether it is a right write to ``control``, all of which is there."""
        refused = 0 if machine.erasure else self.data[BY_REGISTER["control"].field("erase").low]
        return self.whole & self.at("control") & self.strobes.all() & ~Value.cast(refused)

    def take(self, axi: wiring.PureInterface, *, address: Value, data: Value) -> list[object]:
        """Return the statements that take what the channels bring, where ``address`` and ``data`` are high."""
        return [
            *(register.eq(Mux(address, value, register))
              for register, value in ((self.address, axi.awaddr), (self.has_address, 1))),
            *(register.eq(Mux(data, value, register))
              for register, value in ((self.data, axi.wdata), (self.strobes, axi.wstrb), (self.has_data, 1))),
        ]

    def move(self, other: "_Write") -> list[object]:
        """Return the statements that make it ``other``, which is gone then."""
        return [
            *(getattr(self, name).eq(getattr(other, name))
              for name in ("address", "has_address", "data", "strobes", "has_data")),
            other.has_address.eq(0), other.has_data.eq(0),
        ]


class CommandRegisters(wiring.Component):
    """Take commands as writes to the registers of `isa.command_port`, and tell of faults.

    A write to ``command`` with an instruction that the machine has puts it into a queue of ``depth``, in order and
    once. While the queue is full, its response is held back, and nothing else: reads go on, and one write more is
    taken, which has its effect at once if it is to ``control``, and its response in turn. A word that is no
    instruction of the machine, one written in parts, a write to a register that cannot be written and any access where
    there is none are answered with SLVERR, change nothing, and, if they write, are remembered in ``refused``.

    A fence is a command like others: ``pending`` in ``result`` is high until it and all before it have left the queue,
    and then the fault code stands beside it. So nothing on the bus waits longer than the units keep a queue full, and
    the watchdog sees a command that waits.

    An abort, by ``command`` or by ``control``, enters no queue: it empties that, forgets a command whose write is held
    up, which is answered, and goes to the coprocessor at once.

    One write in two cycles, and one read in two cycles.

    Parameters
    ----------
    machine : Machine
        Says which instructions there are.
    depth : int
        Commands that the queue holds.
    windows : str
        ``registers``: it has those of `HostRegisters` too. ``pins``: it has not.

    Members
    -------
    s_axi : ``In(axi4_lite_signature(ADDRESS_BITS))``
        The registers.
    commands : ``Out(stream.Signature(Command))``
        To the coprocessor's command port.
    stop, abort, erase : ``Out(1)``
        A stop, or an abort, in this cycle, one that erases; an abort may leave nothing of a command that is offered.
    idle, quiet : ``In(1)``
        The coprocessor has nothing to do; a fence would be taken.
    fault : ``In(1)``, fault_code : ``In(4)``, fault_address : ``In(32)``
        The coprocessor's.
    windows : ``Out(MemoryWindow).array(WINDOWS)``, done : ``In(1)``, irq : ``Out(1)``
        Of `HostRegisters`, if it has them; ``done`` is the coprocessor's ``irq``.
    """

    def __init__(self, machine: Machine = PRESETS[DEFAULT_MACHINE], depth: int = 8, *,
                 windows: WindowPins = "pins") -> None:
        self.machine = machine
        self.depth = depth
        self.host = HostRegisters(machine) if windows == "registers" else None
        super().__init__({
            "s_axi": In(axi4_lite_signature(ADDRESS_BITS)),
            "commands": Out(stream.Signature(Command)),
            "stop": Out(1),
            "abort": Out(1),
            "erase": Out(1),
            "idle": In(1),
            "quiet": In(1),
            "fault": In(1),
            "fault_code": In(4),
            "fault_address": In(32),
            **({} if self.host is None else {"windows": Out(MemoryWindow).array(WINDOWS), "done": In(1),
                                             "irq": Out(1)}),
        })

    def elaborate(self, platform: object) -> Module:
        m = Module()
        queue = SyncFIFO(width=Command.as_shape().size, depth=self.depth)
        m.submodules.queue = ResetInserter(self.abort)(queue)
        dequeue(m, queue, self.commands)
        operands = {name: Signal(32, name=name) for name in ("rs1", "rs2")}
        if self.host is not None:
            self._connect_host(m, self.host)
        refused = self._write(m, queue, operands)
        self._read(m, queue, operands, refused)
        return m

    def _connect_host(self, m: Module, host: HostRegisters) -> None:
        m.submodules.host = host
        m.d.comb += [host.read_address.eq(self.s_axi.araddr[2:]), host.done.eq(self.done), host.fault.eq(self.fault),
                     self.irq.eq(host.irq), *(outer.eq(inner) for outer, inner in zip(self.windows, host.windows,
                                                                                      strict=True))]

    def _write(self, m: Module, queue: SyncFIFO, operands: dict[str, Signal]) -> Signal:
        """Carry out writes; return whether one was refused."""
        axi, write, following = self.s_axi, _Write(), _Write("following_")
        right = Signal()
        refused = Signal()
        sends = Signal()  # a command
        done = Signal()  # the write is carried out in this cycle
        held = Signal()  # a command waits for room
        stale = Signal()  # an abort has overtaken it, or it was one
        aborts = self._send(m, queue, operands, write, sends)
        m.d.comb += [
            held.eq(write.whole & sends & ~aborts & ~stale & ~queue.w_rdy),
            axi.awready.eq(~write.has_address | (held & ~following.has_address)),
            axi.wready.eq(~write.has_data | (held & ~following.has_data)),
            done.eq(write.whole & (~axi.bvalid | axi.bready) & ~held),
            queue.w_en.eq(done & sends & ~aborts & ~stale & ~self.abort),
            right.eq(self._or_host(m, sends | write.controls(self.machine)
                                   | Cat(write.at(name) for name in operands).any(), write, done)),
        ]
        m.d.sync += [
            *write.take(axi, address=axi.awvalid & ~write.has_address, data=axi.wvalid & ~write.has_data),
            *following.take(axi, address=axi.awvalid & axi.awready & write.has_address,
                            data=axi.wvalid & axi.wready & write.has_data),
        ]
        with m.If(axi.bready):
            m.d.sync += axi.bvalid.eq(0)
        operand = views(Command(queue.w_data), "sta", "fence")[0]
        self._control(m, write, following, operand, done=done, aborts=sends & aborts)
        with m.If(self.abort & write.whole & sends):
            m.d.sync += stale.eq(1)
        with m.If(done):
            m.d.sync += [
                *write.move(following),
                stale.eq(0),
                axi.bvalid.eq(1), axi.bresp.eq(Mux(right, OKAY, SLVERR)),
            ]
            for name, operand in operands.items():
                for place in range(4):
                    with m.If(write.at(name) & write.strobes[place]):
                        m.d.sync += operand.word_select(place, 8).eq(write.data.word_select(place, 8))
        with m.If(self.abort):
            m.d.sync += [refused.eq(0), *(operand.eq(0) for operand in operands.values())]
        with m.Elif(done & ~right):
            m.d.sync += refused.eq(1)
        return refused

    def _or_host(self, m: Module, right: Value, write: _Write, done: Value) -> Value:
        """Offer the write to the host's registers, if there are any; return whether it is right, or right there."""
        host = self.host
        if host is None:
            return right
        m.d.comb += [host.write.eq(done & write.strobes.all()), host.write_address.eq(write.address[2:]),
                     host.write_data.eq(write.data)]
        return right | (host.write_right & write.strobes.all())

    def _control(self, m: Module, write: _Write, following: _Write, operand: View, *, done: Value,
                 aborts: Value) -> None:
        """Stop and abort, once for a write, in the first cycle in which all of it is there."""
        acted = Signal()
        acts = Signal()
        follows, controls = following.controls(self.machine), Signal(name="controls")
        data, field = Mux(follows, following.data, write.data), BY_REGISTER["control"].field
        chosen = {name: data[field(name).low] for name in ("stop", "abort", "erase")}
        erases = operand.erase
        m.d.comb += [
            controls.eq(write.controls(self.machine) | follows),
            acts.eq((controls | (write.whole & aborts)) & ~acted),
            self.stop.eq(acts & controls & chosen["stop"]),
            self.abort.eq(acts & Mux(controls, chosen["abort"], 1)),
            self.erase.eq(self.abort & Mux(controls, chosen["erase"], erases)),
        ]
        with m.If(acts):
            m.d.sync += acted.eq(1)
        with m.If(done & ~follows):
            m.d.sync += acted.eq(0)

    def _send(self, m: Module, queue: SyncFIFO, operands: dict[str, Signal], write: _Write, sends: Signal) -> Value:
        """Offer the command that the write stands for to the queue; return whether it is an abort."""
        word, command = write.data, Signal(Command, name="command")
        m.d.comb += [
            command.funct3.eq(word[12:15]),
            command.variant.eq(word[29:32]),
            command.flags.eq(word[25:29]),
            command.rs1.eq(operands["rs1"]),
            command.rs2.eq(operands["rs2"]),
            queue.w_data.eq(command),
            sends.eq(write.at("command") & write.strobes.all() & (word[0:7] == CUSTOM_0)
                     & legal(word[12:15], word[25:32], self.machine)),
        ]
        return is_command(command, "sta", "fence") & views(command, "sta", "fence")[0].abort

    def _read(self, m: Module, queue: SyncFIFO, operands: dict[str, Signal], refused: Signal) -> None:
        """Answer reads."""
        axi = self.s_axi
        values: dict[str, Value | dict[str, Value]] = {
            **operands,
            "result": {"fault_code": self.fault_code, "refused": refused, "pending": queue.r_rdy},
            "status": {"ready": queue.w_rdy, "idle": self.idle & ~queue.r_rdy, "fault": self.fault,
                       "quiet": self.quiet & ~queue.r_rdy},
            "fault_address": self.fault_address,
        }
        m.d.comb += axi.arready.eq(~axi.rvalid)
        with m.If(axi.rready):
            m.d.sync += axi.rvalid.eq(0)
        with m.If(axi.arvalid & axi.arready):
            m.d.sync += [axi.rvalid.eq(1), axi.rdata.eq(0), axi.rresp.eq(OKAY)]
            with m.Switch(axi.araddr[2:]):
                for register in REGISTERS:
                    with m.Case(register.offset // 4):
                        value = values.get(register.name, {})
                        fields = value if isinstance(value, dict) else {}
                        m.d.sync += axi.rdata.eq(0 if isinstance(value, dict) else value)
                        m.d.sync += [axi.rdata[field.low:field.low + field.width].eq(fields[field.name])
                                     for field in register.fields if field.name in fields]
                with m.Default():
                    if self.host is None:
                        m.d.sync += axi.rresp.eq(SLVERR)
                    else:
                        m.d.sync += [axi.rdata.eq(self.host.read_data),
                                     axi.rresp.eq(Mux(self.host.read_right, OKAY, SLVERR))]
