"""Generated pages say what made them, and none is older than what it describes: what is quickly made again agrees.

A page that is out of date is made again by its own command, all of them by ``make pages``.
"""

import re

import pytest

from tests.docs.pages import ROOT, read
from tests.support.markdown_tables import number, numbers, rows
from tilewright.bench.toolchains.tool_list import read_tools
from tilewright.bench.zoo.zoo_list import read_list
from tilewright.hardware.area_model.predicted_area import predict_area
from tilewright.hardware.proofs.properties import PROPERTIES
from tilewright.hardware.synthesis.area_page import CASES, FAMILIES
from tilewright.isa.machine import preset
from tilewright.runtime.card.model_card import CardRequest, card_of
from tilewright.runtime.design.design_flags import design_of
from tilewright.runtime.model_source import find_model
from tilewright.runtime.predicted_network import PredictedNetwork
from tilewright.tools.page_origin import with_origin
from tilewright.tools.progress import Silence

GENERATED = ("area", "batches", "benchmarks", "coverage", "dram", "energy", "families", "machines", "peers",
             "proofs", "toolchains", "zoo")
TOLERANCE = 0.02
"""Of cycles: what the schedule may gain before a page is out of date."""

_ORIGIN = re.compile(r"\A# [^\n]+\n\nMade by `([^`]+)` from (?:commit [0-9a-f]{7,40} of \d{4}-\d\d-\d\d|"
                     r"Tilewright [\d.]+)(?:, with changes,)? on [^\n]+, \d+ cores\.\n")


def page(name: str) -> str:
    return read(ROOT / "docs" / f"{name}.md")


@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_page_names_command_sources_and_computer(name):
    command = _ORIGIN.match(page(name))[1]
    targets = set(re.findall(r"^([a-z-]+):", read(ROOT / "Makefile"), re.MULTILINE))
    assert command.startswith("tilewright bench ") or command.split()[1] in targets


def test_the_origin_stands_below_the_title():
    assert _ORIGIN.match(with_origin("# Title\n\nText.\n", "make zoo"))[1] == "make zoo"


@pytest.mark.parametrize(("name", "title", "table", "row", "column", "network", "machine"), [
    ("benchmarks", "Simulation", 0, {"network, input": "lenet5, 1×32×32", "machine": "base"}, "cycles, fast", "lenet5",
     "base"),
    ("dram", "What it costs", 0, {"network": "lenet5", "machine": "nano"}, "fixed latency", "lenet5", "nano"),
    ("batches", "Predicted", 0, {"network": "mlperf-ad"}, "N = 1", "mlperf-ad", "base")])
def test_cycles_are_those_of_today(name, title, table, row, column, network, machine):
    (found,) = (each for each in rows(page(name), title, table) if row.items() <= each.items())
    assert numbers(found[column])[0] == pytest.approx(predicted(network, machine), rel=TOLERANCE)


def predicted(network: str, machine: str) -> int:
    """Return the cycles of a network with all tensors stored, as the fast engine predicts them."""
    return PredictedNetwork.named(network, steps=Silence()).predict(design_of(machine)).cycles


def test_peers_have_our_cycles_of_today():
    (cells,) = re.findall(r"^\| mlperf-ad \|.*\| base \| ([\d,]+) \|", page("peers"), re.MULTILINE)
    assert number(cells) == pytest.approx(predicted("mlperf-ad", "base"), rel=TOLERANCE)


def test_the_zoo_has_its_list_and_cycles_of_today():
    first, *_ = costs = rows(page("zoo"), "What they cost")
    (cost,) = card_of(find_model("lenet5", Silence()), CardRequest(designs=("base",)), Silence()).costs
    assert number(first["cycles, base"]) == pytest.approx(cost.cycles, rel=TOLERANCE)
    listed = tuple(each.name for each in read_list(ROOT / "docs" / "zoo.toml").networks)
    assert [each["network"] for each in costs if not each["network"].startswith(listed)] == []




def test_proofs_are_of_the_properties_that_there_are():
    text = page("proofs")
    assert [each.name for each in PROPERTIES if f"## {each.name}\n\n{each.claim}" not in text] == []


def test_tool_chains_are_those_of_the_list():
    headings = re.findall(r"^## (.*)$", page("toolchains"), re.MULTILINE)
    assert [tool.name for tool in read_tools() if tool.name not in headings] == []


@pytest.mark.parametrize("machine", ["nano", "base"])
def test_area_is_of_the_cases_that_there_are_and_of_gateware_of_today(machine):
    summary, *_ = page("area").split("\n## ")
    table = re.findall(r"^\| (\S+)(?: with (CV32E40X))? \| ([a-z0-9-]+) \|[^|]*\| ([\d,]+) \| (\S+) \|", summary,
                       re.MULTILINE)
    left_out = re.findall(r"[^ ,]+@[a-z0-9-]+", summary)
    assert sorted([f"{name}{'+core' * bool(core)}@{target}" for name, core, target, *_ in table] + left_out) == sorted(
        case.name for case in CASES)
    flip_flops, multipliers = (number(cell) for cell in next(
        row[3:] for row in table if row[0] == machine and row[2].startswith("ecp5")))
    today = predict_area(preset(machine), "ecp5-85k")
    assert multipliers == today.total("DSP")
    assert flip_flops == pytest.approx(today.total("FF"), rel=today.errors["FF"].worst)


def test_families_are_those_of_the_list_and_of_gateware_of_today():
    (table,) = re.findall(r"(?:^\|.*\n)+", page("families"), re.MULTILINE)
    shown = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    left_out = re.findall(r"(\w+)@[a-z0-9-]+", page("families").partition("\n| ")[0])
    assert sorted([*(row[0] for row in shown), *left_out]) == sorted(case.machine for case in FAMILIES)
    for name, ecp5 in ((row[0], row) for row in shown if "ECP5" in row[1]):
        today = predict_area(preset(name), "ecp5-85k")
        assert number(ecp5[4]) == today.total("DSP")
        # The area model counts the logic of collisions, 7 to 9 % of flip-flops, which the page's memories lack.
        assert 0.88 * today.total("FF") < number(ecp5[3]) < today.total("FF")


@pytest.mark.parametrize("machine", ["base", "base,array=winograd"])
def test_results_cite_the_area_page(machine):
    ((lut, fmax),) = re.findall(rf"^\| {machine} \| ecp5-85k \| ([\d,]+) LUT \|(?:[^|]*\|){{4}} ([\d.]+) \|",
                                page("area"), re.MULTILINE)
    cited = page("results").partition("**Area.**")[2]
    assert f"{lut} LUT4" in cited
    assert f"{fmax} MHz" in cited
