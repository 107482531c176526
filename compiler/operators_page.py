"""Render which ONNX operators run where, within what limits and how exactly, as the manual page docs/operators.md."""

from pathlib import Path

from tilewright.compiler.kernels.registry import KERNELS
from tilewright.compiler.passes.coverage import DATAPATH, RUNS_ON
from tilewright.compiler.passes.recognise.expand_qlinear import EXPANDED
from tilewright.tools.templates import render

__all__ = ["page"]

_TEMPLATE = Path(__file__).with_name("operators_page.md.j2")


def page() -> str:
    """Return the page's text."""
    return render(_TEMPLATE, runs_on=RUNS_ON, datapath=DATAPATH, kernels=KERNELS.values(), expanded=EXPANDED)


if __name__ == "__main__":
    print(page(), end="")
