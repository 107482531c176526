"""The board's main memory in Verilator, between an AXI4 master and a core."""

from pathlib import Path

import pytest
from amaranth import ClockSignal, Instance, Module, ResetSignal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tests.support.bench import ROOT, run_bench
from tilewright.rtl.bus.axi_channels import axi4_signature
from tilewright.tools.files import write_if_changed
from tilewright.tools.toolchain import cache_folder

MEMORY_BYTES = 16 * 1024
SOURCES = [ROOT / "hardware" / "board" / "rtl" / f"{name}.sv" for name in ("board_ram", "board_main_memory")]


class BoardMemory(wiring.Component):
    """The SystemVerilog module with all signals of AXI4, of which it needs a part."""

    def __init__(self, data_bytes: int, contents: Path):
        self.data_bytes, self.contents = data_bytes, contents
        super().__init__({
            "s_axi": In(axi4_signature(data_bytes)),
            "core_use": In(1), "core_write": In(1), "core_address": In(32), "core_strobe": In(4), "core_wdata": In(32),
            "core_data": Out(32),
        })

    def elaborate(self, platform):
        m = Module()
        bus = {}
        for name in ("arvalid", "araddr", "arlen", "rready", "awvalid", "awaddr", "wvalid", "wdata", "wstrb", "wlast",
                     "bready"):
            bus[f"i_{name}"] = getattr(self.s_axi, name)
        for name in ("arready", "rvalid", "rdata", "rlast", "awready", "wready", "bvalid"):
            bus[f"o_{name}"] = getattr(self.s_axi, name)
        m.submodules.memory = Instance(
            "board_main_memory", p_BUS_BYTES=self.data_bytes, p_BYTES=MEMORY_BYTES, p_CONTENTS=str(self.contents),
            i_clk=ClockSignal(), i_rst_n=~ResetSignal(), **bus,
            i_core_use=self.core_use, i_core_write=self.core_write, i_core_address=self.core_address,
            i_core_strobe=self.core_strobe, i_core_wdata=self.core_wdata, o_core_data=self.core_data)
        return m


@pytest.mark.parametrize("data_bytes", [4, 8])
def test_board_memory(data_bytes):
    contents = cache_folder() / "bench" / f"zeros_{data_bytes}.hex"
    write_if_changed(contents, f"{0:0{2 * data_bytes}x}\n" * (MEMORY_BYTES // data_bytes))
    run_bench(BoardMemory(data_bytes, contents), module="tests.cocotb.bench_board_memory",
              toplevel=f"board_memory_{data_bytes}", sources=SOURCES,
              environment={"AXI_DATA_BYTES": data_bytes, "MEMORY_BYTES": MEMORY_BYTES}, seed=1)
