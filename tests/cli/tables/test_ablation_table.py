"""Tables of an ablation fit a terminal of 80 columns, name every unit, and state each machine's areas once."""

import io

import pytest
from rich.console import Console

from tilewright.bench.ablation.ablation import Ablation, AblationRow, InferenceCost
from tilewright.cli.tables.ablation_table import print_ablation

LARGE = InferenceCost(cycles=123_456_789, bytes=987_654_321, energy_uj=123_456.0)


def row(model, machine, unit, without=LARGE, reason=""):
    """Return a row with figures as wide as they come."""
    return AblationRow(model=model, machine=machine, unit=unit, instructions=(), having=LARGE, without=without,
                       reason=reason,
                       area_with={"ecp5-85k": {"LUT": 83_000.0, "DSP": 156.0, "BRAM": 208.0},
                                  "sky130": {"area": 12_345_678.0, "memory": 23_456_789.0}},
                       area_without={"ecp5-85k": {"LUT": 72_000.0, "DSP": 155.6, "BRAM": 208.0},
                                     "sky130": {"area": 11_345_678.0, "memory": 23_456_789.0}})


@pytest.fixture
def printed() -> list[str]:
    found = Ablation((
        *(row(model, machine, unit) for model in ("lenet5", "vgg16-32") for machine in ("nano", "base")
          for unit in ("residual adder", "max pooling")),
        row("other", "nano", "residual adder"),
        row("other", "nano", "max pooling", without=None, reason="no unit computes MaxPool.")))
    text = io.StringIO()
    print_ablation(found, Console(file=text, width=80))
    return text.getvalue().splitlines()


def test_no_unit_and_no_figure_is_cut(printed):
    assert not [line for line in printed if "…" in line or len(line) > 80]
    assert len([line for line in printed if "residual adder" in line]) == 2 + 5
    assert len([line for line in printed if "123,456,789" in line and "residual" in line]) == 5


def test_areas_stand_once_for_each_machine(printed):
    assert [line.strip() for line in printed if line.strip().startswith("Area of")] == [
        "Area of nano, and what each unit takes of it", "Area of base, and what each unit takes of it"]
    assert len([line for line in printed if "-11,000" in line and "-1,000,000" in line]) == 2 * 2


def test_a_network_that_does_not_compile_says_so(printed):
    assert [line for line in printed if "max pooling" in line and "refused" in line]
    assert "Without max pooling: no unit computes MaxPool." in [line.strip() for line in printed]
