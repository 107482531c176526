"""The command ``machine``: a design as a table and as JSON."""

import json

import pytest

from tests.cli.test_app import invoke, refused
from tilewright.cli.design.show_machine import derived
from tilewright.isa.machine import LIMITS, PRESETS


@pytest.mark.parametrize("name", PRESETS)
def test_the_json_states_every_parameter(name, tmp_path):
    path = tmp_path / "design.json"
    shown = invoke("machine", name, "--clock", "80MHz", "--memory", "latency=60", "--json", str(path)).stdout
    content = json.loads(path.read_text())
    for key, (low, high) in LIMITS.items():
        assert content["machine"][key] == getattr(PRESETS[name], key)
        assert content["limits"][key] == [low, high]
        assert f"machine.{key}" in shown
    assert content["clock"] == {"mhz": 80.0}
    assert content["memory"] == {"latency_cycles": 60, "bytes_per_cycle": PRESETS[name].bus_bytes}


def test_what_follows_from_the_parameters():
    base = PRESETS["base"]
    assert base.peak_macs == {"conv": 128, "conv23": 288}
    assert derived(base)["buffer_bytes"] == 128 * 1024 + 64 * 1024 * 9 // 8 + 32 * 1024


@pytest.mark.parametrize("words", [["huge"], ["base,lanes=3"], ["base", "--clock", "never"],
                                   ["base", "--memory", "latency=no"], ["base", "--technology", "moon"]])
def test_what_is_no_design_is_refused(words):
    assert words[-1].split("=")[-1] in refused(2, "machine", *words)
