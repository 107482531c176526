"""Space files: what they state, and what is refused."""

import random
from pathlib import Path

import pytest

from tilewright.bench.exploration.area_prediction import AreaTarget
from tilewright.bench.exploration.design_cost import measures_of
from tilewright.bench.exploration.design_limits import limit_of
from tilewright.bench.exploration.space import LANES_PER_CLUSTER
from tilewright.bench.exploration.space_file import SpaceError, default_space, read_space

EXAMPLES = sorted((Path(__file__).parents[3] / "examples/spaces").glob("*.toml"))


def read(tmp_path, text):
    path = tmp_path / "space.toml"
    path.write_text(text)
    return read_space(path)


def test_values_are_one_a_list_or_a_range(tmp_path):
    space = read(tmp_path, """
        target = "sky130"
        objectives = ["energy"]
        limits = ["mm2<=1"]
        [networks]
        lenet5 = 2.0
        [machine]
        preset = "nano"
        lanes = [1, 2]
        activation_bytes = { min = "4 KiB", max = "16 KiB" }
        queue_depth = 8
        [memory]
        latency_cycles = 60
        [clock]
        mhz = 50
        [energy]
        technology = "sky130"
    """)
    assert space.name == "space"
    assert space.axes == {"lanes": (1, 2), "activation_bytes": (4096, 8192, 16384)}
    assert (space.target, space.objectives, space.limits, space.networks) == (
        "sky130", ("energy",), ("mm2<=1",), {"lenet5": 2.0})
    design = space.design({"lanes": 2, "activation_bytes": 8192})
    assert (design.machine.queue_depth, design.machine.bus_bytes, design.timing.latency_cycles) == (8, 4, 60)
    assert (design.pricing.technology, design.pricing.clock_mhz) == ("sky130", 50.0)


def test_every_choice_of_the_default_space_is_a_design():
    space = default_space()
    assert space.size > 1000
    assert LANES_PER_CLUSTER in space.axes
    for lanes in space.axes["lanes"]:
        for shared in space.axes[LANES_PER_CLUSTER]:
            smallest = {key: values[0] for key, values in space.axes.items()}
            largest = {key: values[-1] for key, values in space.axes.items()}
            for choice in (smallest, largest):
                space.design({**choice, "lanes": lanes, LANES_PER_CLUSTER: shared})


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_have_designs_within_their_limits_and_beyond(path):
    space, rng = read_space(path), random.Random(1)
    area = AreaTarget(space.target)
    limits = [limit_of(text, measures_of((*space.networks,), area)) for text in space.limits]
    within = 0
    for number in range(60):
        choice = {key: rng.choice(values) for key, values in space.axes.items()}
        measures = area.predict(space.design(choice, f"trial-{number}").machine)
        within += all(limit.violation(measures) <= 0 for limit in limits)
    assert space.networks
    assert 0 < within < 60


@pytest.mark.parametrize(("text", "named"), [
    ("[machine]\nlains = [1, 2]", "lains"), ("[machine]\nlanes = [1, 3]", "machine.lanes"),
    ("[machine]\nlanes = []", "machine.lanes"), ("[machine]\nlanes = [1, 1]", "machine.lanes"),
    ("[machine]\nlanes = { min = 3, max = 8 }", "machine.lanes"), ("[machine]\nlanes = { min = 1 }", "machine.lanes"),
    ("[machine]\nlanes = ['a', 'b']", "machine.lanes"), ("[machine]\nlanes = 1000000", "machine.lanes"),
    ("[machine]\npreset = 'huge'", "huge"), ("[machine]\nlanes = 4", "more than one"),
    ("[machine]\nlanes = [1, 2]\nclusters = 1\nlanes_per_cluster = 1", "clusters"),
    ("[machine]\nlanes = [1, 2]\n[clock]\nmhz = 'fast'", "mhz"),
    ("[machine]\nlanes = [1, 2]\n[clock]\nmhz = -1", "mhz"),
    ("[networks]\nlenet5 = -1", "networks.lenet5"), ("nonsense", "TOML"), ("[energy]\ntechnology = 'moon'", "moon"),
    ("[colour]\nred = 1", "colour"), ("[memory]\ndram = ['sdr-133x16', 'ddr9']", "ddr9"),
    ("[memory]\ndram = ['sdr-133x16', 'ddr3l-1600x16']\nlatency_cycles = 4", "memory.latency_cycles"),
])
def test_what_is_wrong_is_named(tmp_path, text, named):
    with pytest.raises(SpaceError) as caught:
        read(tmp_path, text)
    assert named in str(caught.value)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(SpaceError):
        read_space(tmp_path / "none.toml")
