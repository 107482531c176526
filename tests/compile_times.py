"""Seconds that compiling takes: ``python -m tests.compile_times [FILES]``, or ``make compile-times``.

Without files: 20,000 Relu in a row, which must take at most 30 s, and NanoDet-m, at most 20 s, where
``../shared/networks`` has it. Exit status 1 if one takes longer. Times are of a process, on a quiet machine.
"""

import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import onnx
from onnx import TensorProto, helper

from tilewright.compiler.compile import compile_file
from tilewright.errors import Error
from tilewright.isa.machine import PRESETS
from tilewright.runtime.model_source import find_model
from tilewright.tools.progress import Silence

__all__ = ["main", "relus"]

_NANODET = Path(__file__).resolve().parents[2] / "shared" / "networks" / "nanodet_m_320.onnx"
_MOST = {"relus": 30.0, _NANODET.stem: 20.0}
"""Seconds, by the name of the file."""

_RELUS = 20_000


def relus(count: int) -> onnx.ModelProto:
    """Return a model of so many Relu in a row."""
    names = ["x", *(f"r{number}" for number in range(count - 1)), "y"]
    nodes = [helper.make_node("Relu", [before], [after]) for before, after in pairwise(names)]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 4, 8, 8)) for name in ("x", "y")]
    return helper.make_model(helper.make_graph(nodes, "relus", ends[:1], ends[1:]), ir_version=8,
                             opset_imports=[helper.make_opsetid("", 17)])


def _seconds(path: Path) -> tuple[float, str]:
    """Return how long compiling a file took, quantised first if it is float, and what became of it."""
    start = time.process_time()
    try:
        source = find_model(str(path), Silence())
        result = f"{len(compile_file(source.path, PRESETS['base']).network.layers)} layers"
    except Error as error:
        result = f"refused: {error}"
    return time.process_time() - start, result


def main(arguments: list[str]) -> int:
    """Print a line for each file; return the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(each) for each in arguments]
        if not files:
            row = Path(folder) / "relus.onnx"
            onnx.save(relus(_RELUS), row)
            files = [row, *([_NANODET] if _NANODET.exists() else [])]
        late = False
        for path in files:
            seconds, result = _seconds(path)
            most = _MOST.get(path.stem)
            late |= most is not None and seconds > most
            print(f"{path.stem:32} {seconds:7.1f} s{'' if most is None else f' of {most:.0f}'}   {result}")
    return int(late)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
