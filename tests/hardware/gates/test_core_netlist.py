"""The mapped RISC-V core does in every cycle what the RTL does; its waveforms are read as its netlist names them."""

import numpy as np
import pytest

from tests.support.firmware import compile_program
from tilewright.hardware.gates.cells.liberty import read_library
from tilewright.hardware.gates.core_netlist import CORES, core_verilog
from tilewright.hardware.gates.core_waves import SCOPE, counts_of, flattened
from tilewright.hardware.gates.electrical import electrical_of
from tilewright.hardware.gates.events import EventError, Stimulus, simulate
from tilewright.hardware.gates.mapping import map_verilog
from tilewright.hardware.gates.measure import Meter
from tilewright.hardware.gates.stimulus import stimulus_of
from tilewright.hardware.gates.waves import Waves, read_waves
from tilewright.sim.rtl_engine import Simulation, run_bare
from tilewright.tools.debian import debian_data
from tilewright.tools.toolchain import ToolMissingError

pytestmark = pytest.mark.slow  # reading and mapping two cores takes two minutes

PROGRAM = """
#include <stdint.h>
volatile int32_t values[6] = {3, -1, 4, 1, -5, 9};
int main(void)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < 6; i++) {
        values[i] = values[i] * (i + 1000);
        sum += values[i] / (i + 1000) + (values[i] >> 3);
    }
    return sum == 11 + 1377 ? 0 : 1;
}
"""
FIRST, CYCLES = 60, 60


@pytest.fixture(scope="module", params=CORES)
def core(request):
    """Return the name of a core."""
    return request.param


@pytest.fixture(scope="module")
def ran(core, tmp_path_factory):
    """Return what a small program did, and its waveform from the release of reset on."""
    folder = tmp_path_factory.mktemp("core")
    result = run_bare(compile_program(PROGRAM, folder), Simulation(wave=folder / "wave.vcd"), core=core).require_exit()
    return result, read_waves(folder / "wave.vcd", 0, result.cycles, f"{SCOPE}.")


def window(waves, first, cycles):
    """Return some cycles; what they begin with is what was last said."""
    state = {}
    for changes in waves.values[:first + 1]:
        state |= changes
    return Waves(waves.codes, (state, *waves.values[first + 1:first + cycles + 1]))


def test_every_instruction_of_the_program_is_counted_in_the_waveform(ran):
    result, waves = ran
    counted = counts_of(flattened(waves))
    assert counted.retired == pytest.approx(result.instructions, abs=1)  # the first cycle is not counted
    assert counted.accesses >= 6 * 4


REGISTER_FILES = {"cv32e40x": "core.register_file_wrapper_i.register_file_i.mem",
                  "cv32e40p": "core.id_stage_i.register_file_i.mem"}


def test_the_register_file_is_one_signal(ran, core):
    _, waves = ran
    flat = flattened(waves)
    inner = REGISTER_FILES[core]
    whole = flat.bits(f"{SCOPE}.{inner.replace('.', '_2e_')}")
    assert whole.shape == (waves.cycles, 1024)
    lowest = {"cv32e40x": 31, "cv32e40p": 0}[core]  # an array of words, the first highest; or bits, the first lowest
    if core == "cv32e40x":
        for register in (1, 2, 10, 31):
            one = waves.bits(f"{SCOPE}.{inner}_5b_{register}_5d_")
            assert (whole[:, 32 * (31 - register):32 * (32 - register)] == one).all()
    assert whole[:, 32 * abs(lowest - 2):32 * (abs(lowest - 2) + 1)].any()  # the stack pointer
    assert not whole[:, 32 * abs(lowest):32 * (abs(lowest) + 1)].any()  # zero


@pytest.fixture(scope="module")
def meter(core):
    try:
        path = debian_data("osu018_stdcells.lib")
    except ToolMissingError as error:
        pytest.skip(str(error))
    top = CORES[core].top
    return Meter(map_verilog(core_verilog(core), top, path, gated=False), top, read_library(path))


def test_the_mapped_core_gives_every_output_of_the_rtl(ran, meter, core):
    flat = window(flattened(ran[1]), FIRST, CYCLES)
    measured = meter.measure(flat, SCOPE)
    assert measured.cycles == CYCLES
    assert measured.register_cycles == CYCLES * measured.registers
    assert len(meter.netlist.outputs) >= 32 + 32 + 32 + 32 + 4  # addresses, data, program counter, byte enables
    assert 0 < measured.clock < measured.energy
    # The waveform's own count of the register file's toggles is in that of all registers.
    registers = flat.bits(f"{SCOPE}.{REGISTER_FILES[core].replace('.', '_2e_')}")
    assert 0 < np.abs(np.diff(registers.astype(int), axis=0)).sum() < measured.register_toggles


@pytest.mark.parametrize("port", ["instr_rdata", "data_rdata"])
def test_a_core_that_reads_something_else_is_found(ran, meter, port):
    netlist = meter.netlist
    driven = stimulus_of(netlist, window(flattened(ran[1]), FIRST, CYCLES), SCOPE)
    assert (driven.outputs >= 0).all()  # the waveform has every one
    columns = [index for index, (_, names) in enumerate(netlist.inputs) if any(name == port for name, _ in names)]
    assert len(columns) == 32
    inputs = driven.inputs.copy()
    inputs[:, columns] ^= 1
    with pytest.raises(EventError, match="outputs of the RTL"):
        simulate(netlist, Stimulus(inputs, driven.outputs, driven.registers), electrical_of(netlist))
