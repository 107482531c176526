"""Pictures show the figures that they are given: as many points, where the numbers say, and the same file each time."""

import csv
import json
from dataclasses import asdict

import pytest

pytest.importorskip("matplotlib")

from tilewright.bench.pictures.front_picture import front_picture
from tilewright.bench.pictures.front_picture import main as draw_front
from tilewright.bench.pictures.roofline_picture import layer_points, roofline_picture
from tilewright.bench.pictures.roofline_picture import main as draw_roofline
from tilewright.isa.machine import preset


def layer(algorithm, macs, cycles, read, written):
    return {"algorithm": algorithm, "macs": macs, "cycles": cycles, "bytes_read": read, "bytes_written": written}


MACHINE = {key: value for key, value in asdict(preset("base")).items() if key != "name"}
REPORT = {"model": "some", "machine": "base", "cycles": 1000, "design": {"machine": MACHINE}, "layers": [
    layer("conv23", 80_000, 400, 300, 100), layer("conv", 20_000, 200, 800, 200), layer("conv", 500, 100, 50, 50),
    layer("core", 0, 200, 100, 100), layer("conv", 1000, 100, 0, 0)]}
TRIALS = [{"cycles": str(100 * k), "energy": str(1000 // k), "front": str(k % 2)} for k in range(1, 8)]
FRONT = {"exploration": {"objectives": ["cycles", "energy"], "networks": {"lenet5": 1.0}}, "trials": 9}


def scattered(axes):
    return {each.get_label(): each.get_offsets().tolist() for each in axes.collections}


def test_a_roofline_has_each_layer_that_multiplies_and_moves_bytes():
    assert layer_points(REPORT) == [("conv23", 200.0, 200.0, 0.4), ("conv", 20.0, 100.0, 0.2), ("conv", 5.0, 5.0, 0.1)]
    (axes,) = roofline_picture([REPORT]).axes
    assert scattered(axes) == {"conv23 (1 layers)": [[200.0, 200.0]], "conv (2 layers)": [[20.0, 100.0], [5.0, 5.0]]}
    limits = {max(line.get_ydata()): line for line in axes.lines}
    assert sorted(limits) == [128, 288]
    assert min(limits[128].get_ydata()) == pytest.approx(8 * min(limits[128].get_xdata()))


def test_a_front_is_told_from_the_other_designs():
    (axes,) = front_picture(TRIALS, FRONT).axes
    assert scattered(axes) == {"other designs (3)": [[200, 500], [400, 250], [600, 166]],
                               "front (4)": [[100, 1000], [300, 333], [500, 200], [700, 142]]}


def test_three_objectives_are_two_parts_and_trials_without_figures_are_left_out():
    trials = [{**row, "area": "5"} for row in TRIALS] + [{"cycles": "", "energy": "", "area": "", "front": "0"}]
    front = {**FRONT, "exploration": {"objectives": ["cycles", "energy", "area"], "networks": {"lenet5": 1.0}}}
    assert [sum(map(len, scattered(axes).values())) for axes in front_picture(trials, front).axes] == [7, 7]


def test_files_are_the_same_each_time(tmp_path):
    (tmp_path / "report.json").write_text(json.dumps(REPORT))
    (tmp_path / "front.json").write_text(json.dumps(FRONT))
    with (tmp_path / "trials.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, TRIALS[0])
        table.writeheader()
        table.writerows(TRIALS)
    texts = []
    for _ in range(2):
        draw_roofline([str(tmp_path / "report.json"), str(tmp_path / "a.svg")])
        draw_front([str(tmp_path), str(tmp_path / "b.svg")])
        texts.append([(tmp_path / name).read_text() for name in ("a.svg", "b.svg")])
    assert texts[0] == texts[1]
    assert "some on base" in texts[0][0]
    assert "9 designs" in texts[0][1]
