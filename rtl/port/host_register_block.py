"""The registers for the host: windows with a lock, the interrupt's causes and what the hardware is."""

from amaranth import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.isa.command_port import ADDRESS_BITS, PortRegister
from tilewright.isa.machine import Machine
from tilewright.isa.memory import WINDOWS
from tilewright.isa.registers.capability import capability
from tilewright.isa.registers.host_registers import (
    BY_HOST_REGISTER,
    HOST_REGISTERS,
    WINDOW_PARTS,
    window_register,
)
from tilewright.rtl.port.window_check import MemoryWindow

__all__ = ["HostRegisters"]

_RESET = {"interrupt_enable": BY_HOST_REGISTER["interrupt_enable"].field("done").mask}
"""Of registers that can be written; 0 of all others."""


class HostRegisters(wiring.Component):
    """Keep the registers of `isa.registers.host_registers`, which the command port reads and writes.

    A write is carried out in the cycle in which ``write`` is high, or not at all. An abort changes none of them.

    Parameters
    ----------
    machine : Machine
        Whose capability is told.

    Members
    -------
    write : ``In(1)``, write_address : ``In(ADDRESS_BITS - 2)``, write_data : ``In(32)``
        A whole word is written there; the address, in words, and data may stand before ``write``.
    write_right : ``Out(1)``
        There is a register that can be written now.
    read_address : ``In(ADDRESS_BITS - 2)``, read_data : ``Out(32)``, read_right : ``Out(1)``
        The register at an address, in words, and whether there is one.
    windows : ``Out(MemoryWindow).array(WINDOWS)``
    done, fault : ``In(1)``
        The causes of an interrupt.
    irq : ``Out(1)``
        One that is enabled, a cycle later.
    """

    write: In(1)
    write_address: In(ADDRESS_BITS - 2)
    write_data: In(32)
    write_right: Out(1)
    read_address: In(ADDRESS_BITS - 2)
    read_data: Out(32)
    read_right: Out(1)
    windows: Out(MemoryWindow).array(WINDOWS)
    done: In(1)
    fault: In(1)
    irq: Out(1)

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        super().__init__()

    def elaborate(self, platform: object) -> Module:
        m = Module()
        values: dict[str, Value | int] = {**capability(self.machine), "interrupt_cause": Cat(self.done, self.fault)}
        kept = {register.name: Signal(_width(register), name=register.name, init=_RESET.get(register.name, 0))
                for register in HOST_REGISTERS if register.access == "RW"}
        values |= kept
        locked = kept["lock"]
        with m.Switch(self.write_address):
            for name, signal in kept.items():
                with m.Case(BY_HOST_REGISTER[name].offset // 4):
                    m.d.comb += self.write_right.eq(~locked if name.startswith("window") else 1)
                    with m.If(self.write & self.write_right):
                        m.d.sync += signal.eq(signal | self.write_data if name == "lock" else self.write_data)
        with m.Switch(self.read_address):
            for register in HOST_REGISTERS:
                with m.Case(register.offset // 4):
                    m.d.comb += [self.read_right.eq(1), self.read_data.eq(values[register.name])]
        for index, window in enumerate(self.windows):
            base, limit, rights = (kept[window_register(index, part)] for part in WINDOW_PARTS)
            m.d.comb += [window.base.eq(base), window.limit.eq(limit),
                         Cat(window.readable, window.writable).eq(rights)]
        m.d.sync += self.irq.eq((kept["interrupt_enable"] & values["interrupt_cause"]).any())
        return m


def _width(register: PortRegister) -> int:
    return max((field.low + field.width for field in register.fields), default=32)
