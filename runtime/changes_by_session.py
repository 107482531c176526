"""Sentences on what ONNX Runtime's session changes in the user's file by itself, and how far its outputs are off then.

The reference does not change it (`runtime.oracle.session_changes`), so the file's meaning is what is compared.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import onnxruntime

from tilewright.runtime.model_source import ModelSource
from tilewright.runtime.oracle.comparison import Output, judge
from tilewright.runtime.oracle.onnx_runtime import ONNX_RUNTIME_ERRORS, Reference, changes_by_session
from tilewright.runtime.oracle.session_changes import Change

__all__ = ["changes_said"]

_MOST_NAMES = 3


def changes_said(source: ModelSource, inputs: Mapping[str, np.ndarray], outputs: Sequence[Output],
                 expected: Mapping[str, np.ndarray]) -> tuple[str, ...]:
    """Return a sentence for each kind of change that moves an output; none of a file in which a session changes none.

    Parameters
    ----------
    source : ModelSource
        Its own file is what a session is given.
    inputs : mapping of str to ndarray
        The model's, of one image.
    outputs : sequence of Output
        Names and scales of the model's outputs.
    expected : mapping of str to ndarray
        The outputs of the reference for these inputs.
    """
    changes = changes_by_session(source.own_file)
    if not changes or not expected:
        return ()
    kinds = dict.fromkeys(each.what for each in changes)
    try:
        found = Reference(source.own_file, mended=False).run(inputs)
    except (*ONNX_RUNTIME_ERRORS, ValueError):
        # A file that had to be changed to be read may not run as it is.
        return tuple(f"{_subject(changes, kind)}; by how much is not known, as it does not run the file as it is"
                     for kind in kinds)
    off = []
    for output in outputs:
        if output.name in found and output.name in expected and found[output.name].size == expected[output.name].size:
            theirs = expected[output.name].reshape(found[output.name].shape)
            verdict, _ = judge(found[output.name], theirs, scale=output.scale)
            if verdict.kind == "differs":
                off.append(f"output {output.name} is {verdict}")
    if not off:
        return ()
    return tuple(f"{_subject(changes, kind)}: its {'; '.join(off)}; the file's meaning is computed and compared here"
                 for kind in kinds)


def _subject(changes: Sequence[Change], what: str) -> str:
    """Return the beginning of the sentence about one kind of change."""
    names = [f"{each.node} ({each.operator})" for each in changes if each.what == what]
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return (f"ONNX Runtime {onnxruntime.__version__} by itself {what} of {', '.join(names[:_MOST_NAMES])}{more}, which "
            "the file does not say")
