"""Predicted flip-flops of a machine's blocks: one line per block, fitted to elaborated machines.

``python -m tilewright.energy.register_fit`` elaborates machines drawn at random from the whole space, which takes half
an hour, and writes energy/register_fit.toml again, with the largest error of each block, the machine left out of the
fit.
"""

import random
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from math import log2
from pathlib import Path
from typing import Any

from tilewright.isa.machine import EXTRA_UNITS, LIMITS, PRESETS, Machine
from tilewright.sim.verilog.energy_blocks import ENERGY_BLOCKS, count_registers

__all__ = ["draw_machine", "features", "fitted", "main", "predicted_registers"]

_TABLE = Path(__file__).with_name("register_fit.toml")
_MACHINES = 24
_MOST = {"lanes": 16, "clusters": 16, "bus_bytes": 16, "post_lanes": 8, "activation_bytes": 1 << 18,
         "weight_bytes": 1 << 18, "result_bytes": 1 << 17}
"""Of machines that are elaborated for the fit: larger ones take minutes each, and lie on the same lines."""
_YOUNGER = ("channel_kernels", "integer_requantise", "wide_words", "four_patches", "float_requantise")
"""Parameters that came after the fit, whose draws stay as they were."""
_HEAD = """\
# Flip-flops of each block, in bits, as a line through elaborated machines; made by python -m
# tilewright.energy.register_fit. `error` is the largest relative error of a machine that was left out of the fit.
"""


def predicted_registers(machine: Machine) -> dict[str, int]:
    """Return the flip-flops of each block of `ENERGY_BLOCKS`, in bits, as the fit predicts them."""
    found = {}
    for block, line in _table().items():
        having = features(block, machine)
        found[block] = max(0, round(sum(line["terms"].get(name, 0.0) * value for name, value in having.items())))
    return found


def features(block: str, machine: Machine) -> dict[str, float]:
    """Return the features of a machine to which each block's registers are fitted: counts, and widths of addresses."""
    lanes, clusters, post = float(machine.lanes), float(machine.clusters), float(machine.post_lanes)
    bus = float(machine.bus_bytes)
    width = {name: log2(getattr(machine, name)) for name in LIMITS}
    rows: dict[str, dict[str, float]] = {
        "array": {"lanes": lanes, "clusters": clusters, "lane_tiles": lanes * width["tiles"], "tiles": width["tiles"]},
        "sequencer": {"post_lanes": post, "tiles": width["tiles"], "lanes": width["lanes"],
                      "result": width["result_bytes"], "activation": width["activation_bytes"]},
        "activation_buffer": {"activation": width["activation_bytes"], "written": float(machine.written_bytes)},
        "weight_buffer": {"clusters": clusters, "clusters_words": clusters * log2(machine.weight_words),
                          "clusters_bus": clusters * bus},
        "post_processing": {"post_lanes": post, "post_width": width["post_lanes"], "result": width["result_bytes"],
                            "parameters": width["parameter_channels"], "bus": bus, "bus_width": width["bus_bytes"],
                            "queue": width["queue_depth"]},
        "load": {"bus": bus, "bus_width": width["bus_bytes"]},
        "store": {"bus": bus, "bus_width": width["bus_bytes"]},
        "control": {"queue": width["queue_depth"], "bus": bus, "lanes": width["lanes"], "tiles": width["tiles"],
                    "activation": width["activation_bytes"], "result": width["result_bytes"]},
    }
    return {"one": 1.0, **rows[block]}


def fitted(block: str, machines: Sequence[Machine], counts: Sequence[int]) -> dict[str, float]:
    """Return the terms of a block's line by least squares of relative errors."""
    import numpy as np  # here, because a prediction needs none

    rows = [features(block, machine) for machine in machines]
    names = list(rows[0])
    matrix = np.array([[row[name] for name in names] for row in rows])
    target = np.array(counts, dtype=float)
    terms = np.linalg.lstsq(matrix / target[:, None], np.ones(len(target)), rcond=None)[0]
    return dict(zip(names, map(float, terms), strict=True))


def draw_machine(chance: random.Random) -> Machine:
    """Return a machine drawn from those that a fit elaborates; none has a row unit, whose registers are counted."""
    while (found := _draw(chance)) is None:
        pass
    return found

def _draw(chance: random.Random) -> Machine | None:
    values: dict[str, Any] = {}
    for name, (low, high) in LIMITS.items():
        values[name] = 1 << chance.randint(low.bit_length() - 1, min(high, _MOST.get(name, high)).bit_length() - 1)
    values["post_lanes"] = min(values["post_lanes"], values["lanes"])
    shared = min(values["lanes"], 1 << chance.randint(0, values["tiles"].bit_length() - 1))
    values["clusters"] = values["lanes"] // shared
    values |= {field.name: chance.random() < 0.75 for field in fields(Machine)
               if field.type is bool and field.name not in _YOUNGER}
    try:
        return Machine(**values | dict.fromkeys(EXTRA_UNITS, False))
    except ValueError:      # its buffers do not fit its lanes
        return None


@cache
def _table() -> dict[str, dict[str, dict[str, float]]]:
    return tomllib.loads(_TABLE.read_text(encoding="utf-8"))


def _text(machines: Sequence[Machine], counts: Sequence[dict[str, int]]) -> str:
    sections = []
    for block in ENERGY_BLOCKS:
        found = [count[block] for count in counts]
        error = 0.0
        for out in range(len(machines)):
            rest = [place for place in range(len(machines)) if place != out]
            line = fitted(block, [machines[place] for place in rest], [found[place] for place in rest])
            guess = sum(line[name] * value for name, value in features(block, machines[out]).items())
            error = max(error, abs(guess / found[out] - 1))
        terms = fitted(block, machines, found)
        sections.append("\n".join([f"[{block}]", f"error = {error:.4f}", "", f"[{block}.terms]",
                                   *(f"{name} = {value:.6g}" for name, value in terms.items())]))
    return _HEAD + "\n" + "\n\n".join(sections) + "\n"


def main() -> None:
    """Elaborate machines, fit them, and write the table."""
    from tilewright.sim.verilog.elaborate import coprocessor_rtlil

    chance = random.Random(1)
    machines = [*PRESETS.values(), *(draw_machine(chance) for _ in range(_MACHINES))]
    counts = []
    for machine in machines:
        counts.append(count_registers(coprocessor_rtlil(machine)))
        print(machine, counts[-1], file=sys.stderr)
    _TABLE.write_text(_text(machines, counts), encoding="utf-8")


if __name__ == "__main__":
    main()
