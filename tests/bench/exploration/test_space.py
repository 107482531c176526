"""Designs of choices, and which choices are the same design."""

import pytest

from tests.bench.exploration.synthetic import space_of
from tilewright.bench.exploration.space import LANES_PER_CLUSTER
from tilewright.isa.dram.dram import DramTiming, dram_named
from tilewright.runtime.design.design_file import read_design
from tilewright.runtime.design.design_text import design_text


def test_post_lanes_and_clusters_follow_the_lanes():
    space = space_of(lanes=(1, 2, 16), post_lanes=(1, 8), **{LANES_PER_CLUSTER: (1, 4)})
    machines = [space.design(choice).machine for choice in space.choices()]
    assert len(machines) == space.size == 12
    assert all(each.post_lanes <= each.lanes for each in machines)
    assert {(each.lanes, each.clusters) for each in machines} == {(1, 1), (2, 2), (2, 1), (16, 16), (16, 4)}


def test_a_bus_is_no_wider_than_its_clusters_take():
    space = space_of(lanes=(1, 4), bus_bytes=(16, 32, 64), **{LANES_PER_CLUSTER: (1, 2)})
    found = {(each.clusters, each.bus_bytes) for each in (space.design(choice).machine for choice in space.choices())}
    assert found == {(1, 16), (2, 16), (2, 32), (4, 16), (4, 32), (4, 64)}


def test_choices_of_one_design_have_one_key():
    space = space_of(lanes=(1, 2), post_lanes=(1, 2, 4), clusters=(1,))
    assert len(space.keys) == 3
    assert space.key({"lanes": 1, "post_lanes": 2, "clusters": 1}) == space.key(
        {"lanes": 1, "post_lanes": 4, "clusters": 1})


def test_a_choice_that_is_no_machine_has_a_key_and_no_design():
    space = space_of(lanes=(1, 16), clusters=(1, 4))
    impossible = {"lanes": 16, "clusters": 1}
    assert space.key(impossible).startswith("no design")
    with pytest.raises(ValueError, match="cluster"):
        space.design(impossible)


def test_dram_is_an_axis_at_each_clock():
    space = space_of(dram=("sdr-133x16", "ddr3l-1600x16"), mhz=(50, 100))
    design = space.design({"dram": "sdr-133x16", "mhz": 100}, "mine")
    assert design.memory == DramTiming.of(dram_named("sdr-133x16", 100))
    keys = {space.key({"dram": part, "mhz": mhz}) for part in space.axes["dram"] for mhz in space.axes["mhz"]}
    assert len(keys) == 4


def test_memory_and_clock_are_axes_too(tmp_path):
    space = space_of(lanes=(4,), latency_cycles=(20, 60), bytes_per_cycle=(4,), mhz=(50, 80.5))
    design = space.design({"lanes": 4, "latency_cycles": 60, "bytes_per_cycle": 4, "mhz": 80.5}, "mine")
    assert (design.timing.latency_cycles, design.timing.bytes_per_cycle, design.pricing.clock_mhz) == (60, 4, 80.5)
    path = tmp_path / "mine.toml"
    path.write_text(design_text(design, "a remark\nof two lines"))
    assert read_design(path).to_json() == design.to_json()
