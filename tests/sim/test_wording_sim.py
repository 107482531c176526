"""Errors of sim/, word by word."""

from pathlib import Path

import numpy as np
import pytest

from tests.support.wording import raised_by
from tilewright.isa.machine import preset
from tilewright.isa.memory import MAIN_BASE, AddressWindow
from tilewright.sim.values.main_memory import MainMemory
from tilewright.sim.verilator.build import build_simulator
from tilewright.sim.waves.wave import Wave, read_span

SENTENCES = {
    "ValueError: Memory has 64 bytes from 0x80000000, not the 8 at 0x8000003c":
        lambda: MainMemory(64).put(MAIN_BASE + 60, bytes(8)),
    "ValueError: Window must lie in [0x80000000, 0x100000000) and not be empty, not [0x80000000, 0x80000000)":
        lambda: MainMemory(64, [AddressWindow(MAIN_BASE, MAIN_BASE)]),
    "WindowError: A DMA request must stay inside a window (0x80000000..0x80000020), not write outside the windows "
    "at 0x80000020": lambda: MainMemory(64, [AddressWindow(MAIN_BASE, MAIN_BASE + 32)]).write_strided(
        MAIN_BASE + 32, np.zeros((1, 1, 8), np.int8), (0, 0), 8),
    "ValueError: Activity can be counted only on a machine, not on a core alone":
        lambda: build_simulator(None, activity=True),
    "ValueError: Core of a machine with a coprocessor must be one of cv32e40x, ibex, not 'cv32e40p'":
        lambda: build_simulator(preset("base"), core="cv32e40p"),
    "ValueError: Core without a coprocessor must be one of cv32e40x, cv32e40p, not 'ibex'":
        lambda: build_simulator(None, core="ibex"),
    "InputError: Option --wave-cycles must be A:B, two numbers of which either may be left out, not '3'":
        lambda: read_span("3", "--wave-cycles"),
    "InputError: Option --wave-layers must be A:B with A below B, not '9:9'": lambda: read_span("9:9", "--wave-layers"),
    "InputError: Waveform must be a file that ends in .fst or .vcd, not 'run.ghw'": lambda: Wave(Path("run.ghw")),
    "InputError: Scope of a waveform must be of overview, core, port, load, array, post, store, bus, counters, all, "
    "not 'mac'": lambda: Wave(Path("run.fst"), scope=("load", "mac")),
    "InputError: Waveform must be of cycles or of layers, not of both":
        lambda: Wave(Path("run.fst"), range(9), range(2)),
    "InputError: Waveform must be a .fst file to be of some layers or units, not 'run.vcd': VCD has every signal":
        lambda: Wave(Path("run.vcd"), layers=range(2)),
    "InputError: Layers of the waveform must be of the network's 5, 0 to 4, not 3:6":
        lambda: Wave(Path("run.fst"), layers=range(3, 6)).require_layers(5),
    "InputError: Window of the waveform must begin before the run ends, in cycle 100, not in cycle 100: 'run.vcd' "
    "would show nothing": lambda: Wave(Path("run.vcd"), range(100, 200)).require_shown(100),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_wording(sentence):
    assert raised_by(SENTENCES[sentence]) == tuple(sentence.split(": ", 1))
