"""Progress of a simulation, as shown on a terminal and elsewhere."""

import io

import pytest
from rich.console import Console

from tilewright.tools import progress
from tilewright.tools.progress import Silence, Steps

LAYERS = [("conv1", 1000), ("conv2", 3000), ("fc", 10)]


def shown(cycles, *, terminal):
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=200, color_system=None)
    with Steps(console).simulation("Simulating net", LAYERS) as show:
        show(cycles, None)
    return out.getvalue()


@pytest.mark.parametrize(("cycles", "layer"),
                         [(0, "conv1"), (999, "conv1"), (1000, "conv2"), (4005, "fc"), (9999, "fc")])
def test_a_terminal_shows_layer_cycles_and_time_left(cycles, layer):
    text = shown(cycles, terminal=True)
    assert f"Simulating net: {layer}" in text
    assert f"{cycles:,} cycles, " in text
    assert " per second" in text
    assert "left:" in text


def test_elsewhere_only_what_took_long_leaves_a_line(monkeypatch):
    assert shown(10, terminal=False) == ""
    monkeypatch.setattr(progress, "WORTH_MENTIONING", 0.0)
    assert shown(10, terminal=False) == "Simulating net: 0.0 s\n"


def test_a_library_is_silent(capsys):
    with Silence().simulation("Simulating net", LAYERS) as show:
        show(10, None)
    assert capsys.readouterr() == ("", "")
