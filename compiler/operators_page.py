"""Render the manual page docs/operators.md: which ONNX operators run where, within which limits, and how exactly."""

import json
from pathlib import Path

from tilewright.compiler.control.step_limit import MOST_NODES
from tilewright.compiler.kernels.registry import KERNELS
from tilewright.compiler.passes.coverage import DATAPATH, RUNS_ON
from tilewright.tools.templates import render

__all__ = ["page"]

_EXPANDED = ("QLinearMul", "QLinearConcat", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax")
"""Operators on integers that the datapath has none of the same name for."""

_TEMPLATE = Path(__file__).with_name("operators_page.md.j2")
_ZOO = Path(__file__).resolve().parents[1] / "docs" / "zoo.json"
"""Findings of `bench.zoo`: the networks that the core is busy with, and why."""


def page() -> str:
    """Return the page's text."""
    busy = json.loads(_ZOO.read_text(encoding="utf-8"))["over_a_tenth"] if _ZOO.exists() else []
    return render(_TEMPLATE, runs_on=RUNS_ON, datapath=DATAPATH, kernels=KERNELS.values(), expanded=_EXPANDED,
                  busy=busy, most_nodes=MOST_NODES)


if __name__ == "__main__":
    print(page(), end="")
