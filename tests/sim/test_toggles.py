"""Toggles that the simulator counts: those of every register in a waveform of the same run, block by block."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.sim.test_rtl import EVERYWHERE, LOAD_TWO_ROWS, NANO, PRELUDE, RECORD
from tests.support.firmware import compile_program
from tilewright.isa.machine import PRESETS
from tilewright.sim.blocks import BLOCKS, block_of, modules
from tilewright.sim.elaborate import coprocessor_rtlil
from tilewright.sim.registers import count_fresh, registers_of
from tilewright.sim.rtl import run_rtl
from tilewright.sim.verilator import build_simulator

BODY = LOAD_TWO_ROWS.format(address="0x80000000u") + f"""
    for (int i = 0; i < 32; ++i) memory[i] = 0x9e3779b9u * (i + 1);
    tw_sta_fence();
    tw_lda_linear(TW_LDA_LINEAR_SIGNAL_ACT_READY, 0x80000000u, 0, 2, 0);
    tw_sta_fence();
    tw_sta_status({RECORD}u);
    tw_lda_linear(TW_LDA_LINEAR_SIGNAL_ACT_READY, 0x80000000u, 0, 2, 0);
    tw_sta_fence();
    return 0;
"""
SCOPE = "coprocessor"
_SLICE = re.compile(r"^(\S+) \[(\d+)(?::(\d+))?\]$")


def waveform(path: Path) -> tuple[dict[tuple[str, str], str], dict[str, list[int]]]:
    """Return the codes of a VCD file's variables by scope and name, and the values that each code takes in turn."""
    codes: dict[tuple[str, str], str] = {}
    values: dict[str, list[int]] = {}
    scopes: list[str] = []
    for line in path.read_text().splitlines():
        words = line.split()
        if line.lstrip().startswith("$scope"):
            scopes.append(words[2])
        elif line.lstrip().startswith("$upscope"):
            scopes.pop()
        elif line.lstrip().startswith("$var"):
            codes[".".join(scopes), words[4].split("[")[0]] = words[3]
            values[words[3]] = []
        elif line[:1] in "01" and line[1:] in values:
            values[line[1:]].append(int(line[0]))
        elif line[:1] == "b" and words[1] in values:
            values[words[1]].append(int(words[0][1:], 2))
    return codes, values


def toggles_in(path: Path, rtlil: str) -> dict[str, int]:
    """Return the bits of each block's registers that change in a VCD file."""
    codes, values = waveform(path)
    (root,) = {scope for scope, _ in codes if scope.split(".")[-1] == SCOPE and scope.split(".")[-2] != SCOPE}
    counted = dict.fromkeys(BLOCKS, 0)
    for module in modules(rtlil):
        scope = root + "." + module.name.removeprefix(SCOPE).lstrip(".") if "." in module.name else root
        for register in module.registers:
            match = _SLICE.match(register.held)
            name, high, low = match.groups() if match else (register.held, str(register.width - 1), "0")
            seen = values[codes[scope, name.lstrip("\\")]]
            shift = int(low or high)
            cut = [value >> shift & (1 << register.width) - 1 for value in seen]
            counted[block_of(module.name)] += sum((a ^ b).bit_count() for a, b in pairwise(cut))
    return counted


@pytest.mark.slow
def test_counted_toggles_are_those_of_the_waveform(tmp_path):
    elf = compile_program(f"{PRELUDE}\nint main(void) {{ {BODY} }}\n", tmp_path)
    counting = run_rtl(NANO, elf, windows=EVERYWHERE, count_toggles=True).require_exit()
    shown = run_rtl(NANO, elf, windows=EVERYWHERE, wave=tmp_path / "run.vcd").require_exit()
    assert counting.cycles == shown.cycles
    until_record, total = counting.toggles
    assert total == toggles_in(tmp_path / "run.vcd", coprocessor_rtlil(NANO))
    assert all(0 <= until_record[block] <= total[block] for block in BLOCKS)
    assert until_record["load"] < total["load"]
    assert not shown.toggles


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESETS)
def test_the_committed_registers_are_those_of_the_hardware(name):
    assert registers_of(PRESETS[name]) == count_fresh(PRESETS[name]), "run python -m tilewright.sim.registers"


def test_activity_of_a_core_alone_is_refused():
    with pytest.raises(ValueError, match=r"^Activity must be counted with a machine, not of a core alone$"):
        build_simulator(None, activity=True)


@pytest.mark.parametrize(("module", "block"), [
    ("coprocessor", "control"), ("coprocessor.adapter.committed", "control"), ("coprocessor.coprocessor", "control"),
    ("coprocessor.coprocessor.counters$354", "control"), ("coprocessor.coprocessor.load.writer", "load"),
    ("coprocessor.coprocessor.loader", "control"), ("coprocessor.coprocessor.store.record$99", "store"),
    ("coprocessor.coprocessor.mac", "sequencer"), ("coprocessor.coprocessor.mac.sequencer.walker", "sequencer"),
    ("coprocessor.coprocessor.mac.buffer", "activation_buffer"), ("coprocessor.coprocessor.mac.transform", "array"),
    ("coprocessor.coprocessor.mac.cluster_3.lane_2.multipliers", "array"),
    ("coprocessor.coprocessor.mac.cluster_3.weights", "weight_buffer"),
    ("coprocessor.coprocessor.post.requantize_0", "post_processing"),
])
def test_modules_belong_to_blocks(module, block):
    assert block_of(module) == block
