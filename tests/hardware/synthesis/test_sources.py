"""Modules for ECP5 have the ports of the modules whose place they take."""

import re
from dataclasses import replace
from pathlib import Path

import tilewright.hardware.synthesis.sources as sources
from tilewright.isa.machine import PRESETS
from tilewright.sim.verilog.elaborate import coprocessor_rtlil
from tilewright.sim.verilog.energy_blocks import modules

PORT = re.compile(r"^  wire width \d+ (?:signed )?(?:input|output) \d+(?: signed)? +\\(\w+)$", re.MULTILINE)
VERILOG_MODULE = re.compile(r"^module (\w+) \((.*?)\);", re.MULTILINE | re.DOTALL)
VERILOG_PORT = re.compile(r"^ +(?:input|output)\b.*?(\w+)(?:,|$| *//)", re.MULTILINE)


def test_multipliers_for_ecp5_have_the_ports_of_those_elaborated():
    text = Path(sources.__file__).with_name("ecp5_multipliers.v").read_text(encoding="utf-8")
    known = {name: set(VERILOG_PORT.findall(ports)) for name, ports in VERILOG_MODULE.findall(text)}
    every = replace(PRESETS["nano"], integer_requantise=True, wide_words=True, row_unit=True, coded_weights=True,
                    channel_kernels=True)
    machines = (PRESETS["nano"], every, *(replace(PRESETS["nano"], array=array, lanes=2)
                                   for array in ("inner", "winograd_inner")))
    found = {"multipliers": 0, "pairs": 0, "tile_factors": 0, "_product": 0}
    for module in (each for machine in machines for each in modules(coprocessor_rtlil(machine))):
        for end, replacement in (("multipliers", "ecp5_multipliers"), ("pairs", "ecp5_pairs"),
                                 ("tile_factors", "ecp5_tile_factors"), ("_product", "ecp5_product")):
            if module.name.endswith(end):
                assert set(PORT.findall(module.text)) == known[replacement], module.name
                found[end] += 1
    assert all(found.values())
