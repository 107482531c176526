"""Progress of a simulation, as shown on a terminal and elsewhere."""

import io
import threading
import time

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


@pytest.mark.parametrize(("kind", "words"), [
    ("step", ("Building …", "s so far")), ("detail", ("Building: place and route …",)),
    ("count", ("Building …", "1 of 4", "left")), ("simulation", ("Building: conv2 …", "2,005 cycles", "50 %", "left"))])
def test_long_work_tells_where_it_is_where_there_is_no_terminal(monkeypatch, kind, words):
    monkeypatch.setattr(progress, "WORTH_MENTIONING", 0.0)
    monkeypatch.setattr(progress, "FIRST_LINE", 0.1)
    monkeypatch.setattr(progress, "EVERY", 0.05)
    out = io.StringIO()
    steps = Steps(Console(file=out, width=60))
    doing = {"step": steps.step, "detail": steps.step, "count": lambda text: steps.count(text, 4),
             "simulation": lambda text: steps.simulation(text, LAYERS)}[kind]
    with doing("Building") as show:
        {"step": lambda: None, "detail": lambda: show("place and route"), "count": lambda: show(),
         "simulation": lambda: show(2005, None)}[kind]()
        time.sleep(0.4)
    lines = out.getvalue().splitlines()
    assert len(lines) >= 3, "some on the way, and one at the end"
    assert all(word in lines[0] for word in words), lines
    assert ("of" in lines[0].split()) == (kind == "count")
    assert lines[-1].startswith("Building: ")


def test_what_is_told_ends_with_an_error(monkeypatch):
    monkeypatch.setattr(progress, "FIRST_LINE", 0.05)
    monkeypatch.setattr(progress, "WORTH_MENTIONING", 0.05)
    out, before = io.StringIO(), threading.active_count()
    with pytest.raises(ValueError, match="broken"), Steps(Console(file=out)).step("Building"):
        raise ValueError("broken")
    assert threading.active_count() == before
