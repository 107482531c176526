"""Design files: what they state, and what is said of those that cannot be."""

from dataclasses import asdict, fields, replace
from pathlib import Path

import pytest

from tilewright.isa.dram.dram import DramTiming, dram_named
from tilewright.isa.machine import INTEGRATION, LIMITS, PRESETS, SWITCHES, Machine
from tilewright.runtime.design.design_error import DesignError
from tilewright.runtime.design.design_file import MOST_BYTES, read_design
from tilewright.runtime.design.design_text import design_text

EXAMPLES = sorted((Path(__file__).parents[3] / "examples" / "designs").glob("*.toml"))


def written(folder: Path, text: str) -> Path:
    path = folder / "design.toml"
    path.write_text(text)
    return path


def test_an_empty_file_is_the_base_machine(tmp_path):
    design = read_design(written(tmp_path, ""))
    assert design.machine.same_as(PRESETS["base"])
    assert design.machine.name == "design"
    assert (design.timing.latency_cycles, design.timing.bytes_per_cycle) == (20, 8)
    assert design.pricing.clock_mhz is None


def test_every_value_is_taken(tmp_path):
    design = read_design(written(tmp_path, """
        name = "mine"
        [machine]
        preset = "large"
        lanes = 8
        clusters = 2
        activation_bytes = "64 KiB"
        weight_bytes = 32768
        [memory]
        latency_cycles = 60
        [clock]
        mhz = 80.5
        [energy]
        technology = "sky130"
        dram = "lpddr4"
        gated = false
        """))
    expected = Machine(**{**asdict(PRESETS["large"]), "name": "mine", "lanes": 8, "clusters": 2,
                          "post_lanes": 8, "activation_bytes": 65536, "weight_bytes": 32768})
    assert design.machine == expected
    assert (design.timing.latency_cycles, design.timing.bytes_per_cycle) == (60, 16)
    assert design.pricing.technology == "sky130"
    assert design.pricing.clock(design.pricing.load()).mhz == 80.5


def test_what_depends_on_the_lanes_fits_them(tmp_path):
    few = read_design(written(tmp_path, "[machine]\nlanes = 2")).machine
    assert (few.post_lanes, few.clusters) == (2, 1)
    many = read_design(written(tmp_path, "[machine]\nlanes = 16")).machine
    assert many.lanes_per_cluster <= 2 * many.tiles     # of inner products two lanes are fetched at a time


def test_a_technology_file_lies_beside_the_design(tmp_path):
    from tilewright.energy.technology_text import FOLDER

    text = (FOLDER / "generic45.toml").read_text().replace('name = "generic45"', 'name = "mine45"')
    (tmp_path / "mine.toml").write_text(text)
    design = read_design(written(tmp_path, '[energy]\ntechnology = "mine.toml"'))
    assert design.pricing.load().name == "mine45"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_are_read(path):
    assert read_design(path).machine.name == path.stem


@pytest.mark.parametrize(("text", "facts"), [
    ("lanes = 4", ("lanes", "machine")),
    ("[machine]\nlanse = 4", ("machine.lanse", "lanes")),
    ("[machine]\nlanes = 3", ("lanes", "3")),
    ("[machine]\narray = 'systolic'", ("array", "systolic", "plain, winograd")),
    ("[machine]\nvalue_tables = 1", ("value_tables", "1", "true or false")),
    ("[machine]\nlanes = 4096", ("lanes", "4096", str(LIMITS["lanes"][1]))),
    ("[machine]\nlanes = 4.0", ("machine.lanes", "4.0")),
    ("[machine]\nlanes = true", ("machine.lanes", "True")),
    ("[machine]\nlanes = 'many'", ("machine.lanes", "'many'")),
    ("[machine]\nlanes = -4", ("lanes", "-4")),
    ("[machine]\nclusters = 4\nlanes = 2", ("clust",)),
    ("[machine]\npost_lanes = 8\nlanes = 4", ("post_lanes", "8")),
    ("[machine]\npreset = 'huge'", ("huge", "nano")),
    ("machine = 3", ("machine", "table", "3")),
    ("[memory]\nlatency_cycles = 0", ("latency_cycles", "0")),
    ("[memory]\ndram = 'ddr9'", ("dram", "ddr9", "ddr3l-1600x16")),
    ("[memory]\ndram = 3", ("memory.dram", "3", "text")),
    ("[memory]\ndram = 'sdr-133x16'\nlatency_cycles = 9", ("latency_cycles", "9", "dram")),
    ("[memory]\nstall_percent = 100", ("stall_percent", "100", "90")),
    ("[memory]\nseed = 'x'", ("memory.seed", "'x'")),
    ("[memory]\nbytes = 8", ("memory.bytes", "bytes_per_cycle")),
    ("[clock]\nmhz = 0", ("clock.mhz", "0")),
    ("[clock]\nmhz = nan", ("clock.mhz", "nan")),
    ("[clock]\nmhz = '80'", ("clock.mhz",)),
    ("[energy]\ntechnology = 'moon'", ("moon", "sky130")),
    ("[energy]\ntechnology = 'moon.toml'", ("moon.toml",)),
    ("[energy]\ngated = 1", ("energy.gated", "1")),
    ("name = '../../x'", ("name", "../../x")),
    ("name = [", ("TOML",)),
    ("\0", ("TOML",)),
])
def test_wrong_files_are_refused_by_name_of_the_key(tmp_path, text, facts):
    with pytest.raises(DesignError) as error:
        read_design(written(tmp_path, text))
    said = str(error.value)
    assert "design.toml" in said
    assert "\n" not in said
    assert all(fact in said for fact in facts), said


def test_a_missing_a_binary_and_an_endless_file_are_refused(tmp_path):
    with pytest.raises(DesignError, match="nothing"):
        read_design(tmp_path / "nothing.toml")
    with pytest.raises(DesignError, match="within"):
        read_design(tmp_path.joinpath("design.toml", "within"))
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DesignError, match="binary"):
        read_design(binary)
    long = tmp_path / "long.toml"
    long.write_bytes(b"#" * (MOST_BYTES + 1))
    with pytest.raises(DesignError, match="long"):
        read_design(long)


def test_memory_may_be_dram_which_its_text_states_again(tmp_path):
    text = "[memory]\ndram = 'ddr3l-1600x16'\nstall_percent = 5\nseed = 7\n[clock]\nmhz = 80\n"
    design = read_design(written(tmp_path, text))
    assert design.memory == DramTiming.of(dram_named("ddr3l-1600x16", 80), stall_percent=5, seed=7)
    again = tmp_path / "again.toml"
    again.write_text(design_text(design))
    assert read_design(again) == replace(design, pricing=replace(design.pricing, clock_mhz=80.0))


def test_json_of_a_design_makes_the_same_file(tmp_path):
    """A report holds its design as a design file."""
    content = read_design(EXAMPLES[0]).to_json()
    lines = [f"name = {content['name']!r}"]
    for section in ("machine", "memory", "clock", "energy"):
        lines.append(f"[{section}]")
        lines += [f"{key} = {str(value).lower() if isinstance(value, bool) else repr(value)}"
                  for key, value in content[section].items()]
    again = read_design(written(tmp_path, "\n".join(lines)))
    assert again.to_json() == content


def test_the_limits_name_every_parameter():
    assert set(LIMITS) == {field.name for field in fields(Machine)} - {"name", "array", *SWITCHES, *INTEGRATION}


def test_a_file_leaves_out_units(tmp_path):
    machine = read_design(written(tmp_path, "[machine]\narray = 'plain'\nvalue_tables = false")).machine
    assert (machine.array, machine.value_tables, machine.chaining) == ("plain", False, True)
