"""The load and the store unit with the port to the activation buffer that they share, and a run of commands."""

from collections.abc import Sequence
from functools import lru_cache

from amaranth import Module, Value
from amaranth.lib.wiring import Component, Out, Signature, connect, flipped

from tests.support.load_store import BUFFER_BYTES
from tests.support.load_store_drivers import LoadDriver, StoreDriver
from tests.support.streams import simulate
from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.coded.weight_code import WeightCode
from tilewright.isa.machine import Machine
from tilewright.rtl.buffers.activation_buffer import activation_write_signature
from tilewright.rtl.buffers.activation_port import ActivationPort
from tilewright.rtl.load.load import LoadUnit
from tilewright.rtl.store.store import StoreUnit


class LoadStore(Component):
    """Both units and the port; the other ports of each unit under its name."""

    def __init__(self, machine):
        self.machine = machine
        self.units = {"load": LoadUnit(machine), "store": StoreUnit(machine)}
        others = {name: {key: member for key, member in unit.signature.members.items() if key != "activation_write"}
                  for name, unit in self.units.items()}
        super().__init__({
            **{name: Out(Signature(members)) for name, members in others.items()},
            "activation_write": Out(activation_write_signature(machine)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.port = port = ActivationPort(self.machine)
        for name, unit in self.units.items():
            m.submodules[name] = unit
            ours = getattr(self, name)
            for key, member in ours.signature.members.items():
                inner, outer = getattr(unit, key), getattr(ours, key)
                if not member.is_port:
                    connect(m, inner, flipped(outer))
                elif member.flow is Out:
                    m.d.comb += outer.eq(inner)
                else:
                    m.d.comb += inner.eq(outer)
            connect(m, unit.activation_write, getattr(port, name))
        connect(m, port.o, flipped(self.activation_write))
        return m


class AmaranthWires:
    """The ports of ``dut`` in Amaranth's simulator, by their names in Verilog."""

    def __init__(self, ctx, dut) -> None:
        self.ctx = ctx
        ports = [("__".join(map(str, path)), member.flow, Value.cast(value))
                 for path, member, value in dut.signature.flatten(dut)]
        self.ports = {name: value for name, _, value in ports}
        self.outputs = {name: value for name, flow, value in ports if flow is Out}
        self.seen: dict[str, int] = {}

    async def tick(self) -> None:
        """Keep all outputs as they are, and pass the clock edge."""
        self.seen = {name: self.ctx.get(value) for name, value in self.outputs.items()}
        await self.ctx.tick()

    def get(self, name: str) -> int:
        return self.seen[name]

    def set(self, name: str, value: int) -> None:
        self.ctx.set(self.ports[name], value)


@lru_cache(maxsize=8)
def _units(machine: Machine) -> LoadStore:
    return LoadStore(machine)


def carry_out(
    machine: Machine,
    *,
    loads: Sequence[EncodedCommand] = (),
    stores: Sequence[EncodedCommand] = (),
    stall: float = 0.0,
    memory_stall: float | None = None,
) -> tuple[LoadDriver, StoreDriver]:
    """Run commands through both units in Amaranth's simulator, check the outcome, return what was seen.

    Memory takes words to write with a probability of 1 - ``memory_stall``; ``stall`` where it is not given.
    """
    dut = _units(machine)
    drivers = []

    async def testbench(ctx):
        wires = AmaranthWires(ctx, dut)
        activations = bytearray(BUFFER_BYTES)
        drivers.append(LoadDriver(wires, machine.bus_bytes, list(loads), activations, stall=stall, seed=1,
                                  code=WeightCode.of(machine) if machine.coded_weights else None))
        drivers.append(StoreDriver(wires, machine.bus_bytes, list(stores), activations, stall=stall, seed=2))
        if memory_stall is not None:
            drivers[1].memory_stall = memory_stall
        quiet = 0
        while quiet < 5:
            await wires.tick()
            for driver in drivers:
                driver.cycle()
            quiet = quiet + 1 if all(driver.finished() for driver in drivers) else 0
        for driver in drivers:
            driver.check_end()

    simulate(dut, testbench)
    return tuple(drivers)
