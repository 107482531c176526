"""The Verilog package at its pins, by a bench that knows nothing of the gateware's source."""

import pytest

from tests.support.bench import run_bench
from tests.support.machines import MACHINES
from tilewright.hardware.package.package import write_verilog
from tilewright.hardware.package.top import TOP


@pytest.mark.slow
def test_programs_at_the_pins_of_the_package_are_exact_after_stops_breaches_refusals_and_resets(tmp_path):
    write_verilog(MACHINES["nano"], tmp_path, port="axi4lite")
    text = "".join((tmp_path / name).read_text() for name in (tmp_path / "tilewright.f").read_text().split())
    run_bench(text, module="tests.cocotb.package.bench_package", toplevel=TOP,
              environment={"COPROCESSOR_MACHINE": "nano", "PROGRAMS": 12})
