"""Which tensors need not be ONNX Runtime's: what it rounds in float, and what follows from that."""

from collections.abc import Iterable, Mapping, Sequence

from tilewright.compiler.network.layers import TensorInfo
from tilewright.compiler.network.memory_map import root_of


def inexact_tensors(layers: Iterable[tuple[Sequence[str], Sequence[str], bool]],
                    infos: Mapping[str, TensorInfo]) -> frozenset[str]:
    """Return the integer tensors that may be some levels off, and everything computed of them.

    Floats alone are not among them: a kernel's are near ONNX Runtime's, and can be held to that. What they are
    rounded to is.

    Parameters
    ----------
    layers : iterable of (sequence of str, sequence of str, bool)
        Tensors that each reads and writes, and whether ONNX Runtime's result is reproducible; in execution order.
    infos : mapping of str to TensorInfo
        Of all tensors in memory by name. Parts of a tensor count as the whole. Others stay on chip: int8, and whole.
    """
    found: set[str] = set()
    near: set[str] = set()
    for inputs, outputs, exact in layers:
        read, written = ({root_of(infos[name]) if name in infos else name for name in names}
                         for names in (inputs, outputs))
        floats = outputs[0] in infos and infos[outputs[0]].dtype == "float32"
        if read & found or (not floats and (not exact or read & near)):
            found |= written
        elif not exact or read & near:
            near |= written
    return frozenset(name for name, info in infos.items() if root_of(info) in found) | (found - infos.keys())
