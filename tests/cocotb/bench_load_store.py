"""Random commands of every variant through the load and the store unit, against docs/datapath.md byte for byte.

Run by tests/cocotb/test_load_store.py on both units and the port they share; it sets ``BUS_BYTES``.
"""

import os
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

from tests.support.load_store import BUFFER_BYTES, random_load_commands, random_store_commands
from tests.support.load_store_drivers import Driver, LoadDriver, StoreDriver

BUS_BYTES = int(os.environ["BUS_BYTES"])


class CocotbWires:
    """The ports of the Verilator model."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.handles = {}

    def _handle(self, name: str):
        if name not in self.handles:
            self.handles[name] = getattr(self.dut, name)
        return self.handles[name]

    def get(self, name: str) -> int:
        return int(self._handle(name).value)

    def set(self, name: str, value: int) -> None:
        self._handle(name).value = value


def drivers(dut, stall: float, *, groups: int) -> tuple[LoadDriver, StoreDriver]:
    wires = CocotbWires(dut)
    activations = bytearray(BUFFER_BYTES)
    loads = random_load_commands(random.Random(BUS_BYTES), groups, BUS_BYTES)
    stores = random_store_commands(random.Random(BUS_BYTES), groups)
    return (LoadDriver(wires, BUS_BYTES, loads, activations, stall=stall, seed=1),
            StoreDriver(wires, BUS_BYTES, stores, activations, stall=stall, seed=2))


async def reset(dut) -> None:
    Clock(dut.clk, 2, unit="ns").start()
    dut.rst.value = 1
    for _ in range(3):
        await RisingEdge(dut.clk)
    dut.rst.value = 0


async def run(dut, *drivers: Driver, deadline: int = 200_000) -> None:
    """Let the drivers act in every cycle until all have been finished, and memory too, for a while."""
    quiet = 0
    while quiet < 5:
        await RisingEdge(dut.clk)
        for driver in drivers:
            driver.cycle()
        quiet = quiet + 1 if all(driver.finished() for driver in drivers) else 0
        assert drivers[0].cycles < deadline, [f"{d.sent} of {len(d.commands)} commands taken" for d in drivers]


@cocotb.test()
@cocotb.parametrize(stall=[0.0, 0.4, 0.8])
async def loads_and_stores(dut, stall):
    load, store = drivers(dut, stall, groups=80)
    await reset(dut)
    await run(dut, load, store)
    load.check_end()
    store.check_end()
    cocotb.log.info("%s cycles, %s beats read, %s written", load.cycles, len(load.beats), len(store.beats))


@cocotb.test()
@cocotb.parametrize(seed=range(12))
async def halts(dut, seed):
    """Commands go on being taken, words asked for are taken, bursts begun get their words, and nothing else moves."""
    rng = random.Random(seed)
    load, store = drivers(dut, rng.choice([0.0, 0.5]), groups=10)
    await reset(dut)
    for _ in range(rng.randrange(20, 500)):
        await RisingEdge(dut.clk)
        load.cycle()
        store.cycle()
    load.halt()
    store.halt()
    for _ in range(2):  # one more edge passes what is on its way
        await RisingEdge(dut.clk)
        load.cycle()
        store.cycle()
    written, to_activations, to_memory = load.written, store.to_activations, store.to_memory
    await run(dut, load, store)
    assert (load.written, store.to_activations) == (written, to_activations)
    assert store.to_memory <= to_memory + BUS_BYTES  # the word that was being offered
