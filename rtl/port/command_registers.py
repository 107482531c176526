"""The AXI4-Lite command port: a write of an instruction word becomes a command, for hosts without CV-X-IF."""

from amaranth import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from tilewright.isa.command_port import ADDRESS_BITS, BY_REGISTER, REGISTERS
from tilewright.isa.encoding import CUSTOM_0
from tilewright.isa.machine import DEFAULT_MACHINE, PRESETS, Machine
from tilewright.rtl.bus.axi_channels import OKAY, SLVERR, axi4_lite_signature
from tilewright.rtl.port.dispatcher import legal
from tilewright.rtl.stream.commands import Command, is_command, views
from tilewright.rtl.stream.queues import dequeue

__all__ = ["CommandRegisters"]


class _Write:
    """Address, data and strobes of the write under way, each once its channel has brought it."""

    def __init__(self) -> None:
        # Under names of their own, by which the proof finds them.
        self.address, self.has_address = Signal(ADDRESS_BITS, name="write_address"), Signal(name="has_address")
        self.data, self.strobes = Signal(32, name="write_data"), Signal(4, name="write_strobes")
        self.has_data = Signal(name="has_data")

    def at(self, register: str) -> Value:
        """Return whether it is to the register of that name."""
        return self.address[2:] == BY_REGISTER[register].offset // 4


class CommandRegisters(wiring.Component):
    """Take commands as writes to the registers of `isa.command_port`, and tell of faults.

    A write to ``command`` with an instruction that the machine has puts it into a queue of ``depth``, in order and
    once. While the queue is full, its response is held back, and nothing else: reads go on. A word that is no
    instruction of the machine, one written in parts, a write to a register that cannot be written and any access where
    there is none are answered with SLVERR, change nothing, and, if they write, are remembered in ``refused``.

    A fence is a command like others: ``pending`` in ``result`` is high until it and all before it have left the queue,
    and then the fault code stands beside it. So nothing on the bus waits longer than the units keep a queue full, and
    the watchdog sees a command that waits.

    One write in two cycles, and one read in two cycles.

    Parameters
    ----------
    machine : Machine
        Says which instructions there are.
    depth : int
        Commands that the queue holds.

    Members
    -------
    s_axi : ``In(axi4_lite_signature(ADDRESS_BITS))``
        The registers.
    commands : ``Out(stream.Signature(Command))``
        To the coprocessor's command port.
    idle : ``In(1)``
        The coprocessor has nothing to do.
    fault : ``In(1)``, fault_code : ``In(4)``, fault_address : ``In(32)``
        The coprocessor's.
    """

    s_axi: In(axi4_lite_signature(ADDRESS_BITS))
    commands: Out(stream.Signature(Command))
    idle: In(1)
    fault: In(1)
    fault_code: In(4)
    fault_address: In(32)

    def __init__(self, machine: Machine = PRESETS[DEFAULT_MACHINE], depth: int = 8) -> None:
        self.machine = machine
        self.depth = depth
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.queue = queue = SyncFIFO(width=Command.as_shape().size, depth=self.depth)
        dequeue(m, queue, self.commands)
        operands = {name: Signal(32, name=name) for name in ("rs1", "rs2")}
        refused = self._write(m, queue, operands)
        self._read(m, queue, operands, refused)
        return m

    def _write(self, m: Module, queue: SyncFIFO, operands: dict[str, Signal]) -> Signal:
        """Carry out writes; return whether one was refused."""
        axi, write = self.s_axi, _Write()
        right, sends, refused = Signal(), Signal(), Signal()
        done = Signal()  # the write is carried out in this cycle
        m.d.comb += [
            axi.awready.eq(~write.has_address),
            axi.wready.eq(~write.has_data),
            done.eq(write.has_address & write.has_data & (~axi.bvalid | axi.bready) & (~sends | queue.w_rdy)),
        ]
        with m.If(axi.awvalid & axi.awready):
            m.d.sync += [write.address.eq(axi.awaddr), write.has_address.eq(1)]
        with m.If(axi.wvalid & axi.wready):
            m.d.sync += [write.data.eq(axi.wdata), write.strobes.eq(axi.wstrb), write.has_data.eq(1)]
        with m.If(axi.bready):
            m.d.sync += axi.bvalid.eq(0)
        aborts = self._send(m, queue, operands, write, sends)
        m.d.comb += [queue.w_en.eq(done & sends), right.eq(sends | Cat(write.at(name) for name in operands).any())]
        with m.If(done):
            m.d.sync += [
                write.has_address.eq(0), write.has_data.eq(0),
                axi.bvalid.eq(1), axi.bresp.eq(Mux(right, OKAY, SLVERR)),
                refused.eq((refused & ~(sends & aborts)) | ~right),
            ]
            for name, operand in operands.items():
                for place in range(4):
                    with m.If(write.at(name) & write.strobes[place]):
                        m.d.sync += operand.word_select(place, 8).eq(write.data.word_select(place, 8))
        return refused

    def _send(self, m: Module, queue: SyncFIFO, operands: dict[str, Signal], write: _Write, sends: Signal) -> Value:
        """Offer the command that the write stands for to the queue; return whether it is an abort."""
        word, command = write.data, Signal(Command)
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
            "status": {"ready": queue.w_rdy, "idle": self.idle & ~queue.r_rdy, "fault": self.fault},
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
                        if isinstance(value, dict):
                            m.d.sync += [axi.rdata[field.low:field.low + field.width].eq(value[field.name])
                                         for field in register.fields]
                        else:
                            m.d.sync += axi.rdata.eq(value)
                with m.Default():
                    m.d.sync += axi.rresp.eq(SLVERR)
