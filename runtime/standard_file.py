"""A user's ONNX file in standard form: shapes fixed as given, in forms that ONNX Runtime also runs.

What the reader changes (`compiler.onnx.reader.read_model`) is written to the cache, so that compiler, quantiser, oracle
and artefact see the same model; a file that needs no change is taken as it is.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from tilewright.compiler.onnx.ends.end_at import end_at
from tilewright.compiler.onnx.given_shapes import fix_shapes, fix_values
from tilewright.compiler.onnx.reader import read_model
from tilewright.compiler.onnx.reading_notes import notes_of
from tilewright.compiler.onnx.unrolling import unrolled
from tilewright.compiler.tflite.mark import EngineName
from tilewright.runtime.quantise.quantised_model import ReadModel
from tilewright.tools.files import write_file
from tilewright.tools.toolchain import cache_folder

__all__ = ["Shapes", "Values", "standard_file"]

Shapes = Mapping[str, Sequence[int]]


Values = Mapping[str, Sequence[float]]
"""Values of inputs that are always the same, by name: one for all elements, or one for each."""


def standard_file(model: Path, shapes: Shapes, values: Values | None = None, ends: Sequence[str] = (),
                  engine: EngineName = "litert") -> tuple[Path, ReadModel]:
    """Return the file to compile for ``model``, the file itself or a changed copy in the cache, and what it holds.

    Raises
    ------
    CompileError
        If the file is no valid model.
    InputError
        If the ``shapes``, the ``values`` or the ``ends`` do not go with the model.
    """
    proto = read_model(model, engine)
    if values:
        fix_values(proto, values)
    if shapes:
        fix_shapes(proto, shapes)
    proto, _ = unrolled(proto)
    if ends:
        end_at(proto, ends)
    if not shapes and not values and not ends and not notes_of(proto):
        return model, proto
    content = proto.SerializeToString(deterministic=True)
    target = cache_folder() / "read" / hashlib.sha256(content).hexdigest()[:16] / f"{model.stem}.onnx"
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        write_file(target, content)
    return target, proto
