"""Render the manual page docs/operators.md: which ONNX operators run where, within which limits, and how exactly."""

from pathlib import Path

from tilewright.compiler.control.step_limit import MOST_NODES
from tilewright.compiler.kernels.registry import KERNELS
from tilewright.compiler.passes.coverage import DATAPATH, RUNS_ON
from tilewright.tools.templates import render

__all__ = ["page"]

_EXPANDED = ("QLinearMul", "QLinearConcat", "QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax")
"""Operators on integers that the datapath has none of the same name for."""

_TEMPLATE = Path(__file__).with_name("operators_page.md.j2")


def page() -> str:
    """Return the page's text."""
    return render(_TEMPLATE, runs_on=RUNS_ON, datapath=DATAPATH, kernels=KERNELS.values(), expanded=_EXPANDED,
                  most_nodes=MOST_NODES)


if __name__ == "__main__":
    print(page(), end="")
