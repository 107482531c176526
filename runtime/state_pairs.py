"""Pairs of an input and an output that carry state from one call to the next: given by a user, or found by name."""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from tilewright.compiler.emit.kept_state import start_value
from tilewright.compiler.network.layers import TensorInfo
from tilewright.errors import InputError, nearest
from tilewright.runtime.oracle.inputs import NodeArg

__all__ = ["check_state", "first_state", "kept_bytes", "proposed_state", "state_remarks", "state_sentences"]

_DECORATION = re.compile(r"(?<![a-z])(in|out|input|output|new|next|prev|previous|initial|final|0|n|t|1)(?![a-z])")
"""Parts of names by which exporters tell the two ends of a state apart, between letters that are none."""

_LISTED = 3
"""Pairs that a sentence lists at most."""


def proposed_state(inputs: Sequence[NodeArg], outputs: Sequence[NodeArg]) -> dict[str, str]:
    """Return the outputs that seem to be what inputs are in the next call, by input.

    Both have one shape and type, and one name but for what tells ends apart: h and hn, h0 and hn, state and stateN,
    cache_in and cache_out.
    """
    found: dict[str, str] = {}
    for each in inputs:
        alike = [output.name for output in outputs if output.name not in found.values() and _stem(output.name) == _stem(
            each.name) and (output.shape, output.type) == (each.shape, each.type)]
        if len(alike) == 1:
            found[each.name] = alike[0]
    return found


def state_remarks(inputs: Sequence[NodeArg], outputs: Sequence[NodeArg]) -> tuple[str, ...]:
    """Return a sentence that says what seems to be state, and how it is kept between calls; none without."""
    pairs = proposed_state(inputs, outputs)
    if not pairs:
        return ()
    listed = ", ".join(f"input {name!r} the output {output!r}" for name, output in pairs.items())
    how = f"{_options(pairs)} keeps it, in Python session.carry({pairs!r})"
    return (f"state by its names and shapes: {listed} of the call before; {how}",)


def _options(pairs: Mapping[str, str]) -> str:
    """Return the options that state pairs, as one types them."""
    return " ".join(f"--state {name}={output}" for name, output in pairs.items())


def kept_bytes(state: Mapping[str, str], inputs: Sequence[TensorInfo]) -> int:
    """Return the bytes that are kept from call to call, as memory has them; ``inputs`` are ``Network.inputs``."""
    return sum(each.bytes for each in inputs if each.onnx_name in state)


def state_sentences(state: Mapping[str, str], inputs: Sequence[TensorInfo]) -> tuple[str, ...]:
    """Return a sentence on the state that is kept from call to call; none without."""
    if not state:
        return ()
    listed = ", ".join(f"input {name!r} is output {output!r}" for name, output in state.items()) \
        if len(state) <= _LISTED else f"{len(state)} inputs are outputs"
    return (f"state: {listed} of the call before; {kept_bytes(state, inputs):,} bytes are kept between calls",)


def _stem(name: str) -> str:
    """Return a name without what tells the ends of a state apart."""
    words = re.sub(r"([a-z])([A-Z0-9])", r"\1_\2", name).lower()
    words = re.sub(r"(?<![a-z])([hc])n(?![a-z])", r"\1", words)
    return re.sub(r"[^a-z]", "", _DECORATION.sub("", words)) or name


def check_state(state: Mapping[str, str], inputs: Sequence[NodeArg], outputs: Sequence[NodeArg], *,
                batch: int = 1) -> None:
    """Refuse a state that is none, or that is asked for in a ``batch`` of images.

    Raises
    ------
    InputError
        If it is no mapping of names, a name is none of the model's, an output is there twice, the two differ in
        shape or type, or there is a batch.
    """
    if not isinstance(state, Mapping) or not all(isinstance(each, str) for pair in state.items() for each in pair):
        raise InputError("State must map names of inputs to names of outputs, as {'h': 'hn'} does, not "
                         f"{state!r:.60}")
    if state and batch > 1:
        raise InputError(f"State goes from one call to the next, and a batch of {batch} images is one call; leave out "
                         "--batch")
    known, made = ({each.name: each for each in some} for some in (inputs, outputs))
    for name, output in state.items():
        if name not in known:
            raise InputError(f"State must name an input ({', '.join(known) or 'none'}), not {name!r}"
                             f"{nearest(name, known)}")
        if output not in made:
            raise InputError(f"State of input {name!r} must name an output ({', '.join(made)}), not {output!r}"
                             f"{nearest(output, made)}")
        if list(state.values()).count(output) > 1:
            raise InputError(f"State must name each output once, and {output!r} is there for several inputs")
        before, after = known[name], made[output]
        if (before.shape, before.type) != (after.shape, after.type):
            raise InputError(f"State must be of one shape and type, and input {name!r} is {before.type} of shape "
                             f"{before.shape}, output {output!r} {after.type} of shape {after.shape}; name the output "
                             "that becomes that input")


def first_state(state: Mapping[str, str], inputs: Sequence[NodeArg],
                tensors: Sequence[TensorInfo]) -> dict[str, np.ndarray]:
    """Return the state before the first call: zeros, and of quantised integers their zero points.

    ``tensors`` are ``Network.inputs``, which stand for some of ``inputs``.
    """
    starts = {each.onnx_name: start_value(each) for each in tensors}
    return {each.name: np.full(each.shape, starts.get(each.name, 0), each.dtype) for each in inputs
            if each.name in state}
