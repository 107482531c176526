"""A model over a window of time as the model of its new frames, held to the whole window before it is compiled."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tilewright.compiler.onnx.reader import read_model
from tilewright.compiler.onnx.reading_notes import add_note
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.compiler.stream.streaming import StreamedNetwork, streamed
from tilewright.errors import InputError
from tilewright.runtime.model_source import ModelSource, choose_inputs
from tilewright.runtime.oracle.comparison import FLOAT_TOLERANCE
from tilewright.runtime.oracle.onnx_runtime import Reference
from tilewright.tools.files import write_file
from tilewright.tools.progress import Steps
from tilewright.tools.toolchain import cache_folder

__all__ = ["streamed_source"]


def streamed_source(source: ModelSource, axis: int, steps: Steps) -> ModelSource:
    """Return the source of a model's stream along an axis of its input, with its state.

    ONNX Runtime computes a window, once as a whole and once call by call; the results must be the same bits, of floats
    that are not quantised the same within `FLOAT_TOLERANCE`.

    Raises
    ------
    CompileError
        If the model is none.
    InputError
        If it cannot be a stream.
    """
    with steps.step(f"Making a stream of {source.path.name}"):
        found = streamed(read_model(source.path), axis)
        network = compile_network(source.path)
        given = choose_inputs(network.inputs, source, None, network.unread, network.defaults).arrays
        same = _require_same(source, found, given)
        add_note(found.proto, _sentence(found, same))
        content = found.proto.SerializeToString(deterministic=True)
        target = cache_folder() / "streams" / hashlib.sha256(content).hexdigest()[:16] / source.path.name
        if not target.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            write_file(target, content)
    return replace(ModelSource.of_model(target, read_model(target)), state=found.state)


def _sentence(stream: StreamedNetwork, same: str) -> str:
    """Return what a report says of a stream."""
    frames = "1 new frame" if stream.frames == 1 else f"{stream.frames} new frames"
    whole = f"; {', '.join(stream.whole)} and what follows read the whole window" if stream.whole else ""
    return (f"a stream along axis {stream.axis}: each call computes {frames} of a window of {stream.window}; call "
            f"{stream.calls} ends the first window, {same}{whole}")


def _require_same(source: ModelSource, stream: StreamedNetwork, given: Mapping[str, np.ndarray]) -> str:
    """Return how the stream's results were held to the window's; refuse a stream that has others."""
    ((name, frames),) = given.items()
    window, calls = Reference(source.path), Reference(stream.proto.SerializeToString())
    if window.untrusted or calls.untrusted:
        return "not compared with the whole window, as ONNX Runtime's sums are not exact here"
    shapes = {value.name: [each.dim_value for each in value.type.tensor_type.shape.dim]
              for value in stream.proto.graph.input}
    state = {each: np.zeros(shapes[each], np.float32) for each in stream.state}
    outputs = [value.name for value in stream.proto.graph.output if value.name not in stream.state.values()]
    made: dict[str, list[np.ndarray]] = {each: [] for each in outputs}
    for call in range(stream.calls):
        part = np.arange(call * stream.frames, (call + 1) * stream.frames).clip(max=stream.window - 1)
        found = calls.run({name: np.take(frames, part, stream.axis), **state})
        state = {each: found[output] for each, output in stream.state.items()}
        for each in outputs:
            made[each].append(found[each])
    whole = window.run(given)
    last = {each: _last(made[each], whole[each], stream.ends.get(each)) for each in outputs}
    exact = all(np.array_equal(last[each], whole[each]) for each in outputs)
    if not exact and not all(_near(last[each], whole[each]) for each in outputs):
        raise InputError(f"Model {source.path.name!r} cannot be a stream: its results call by call are not those of "
                         "the whole window, though each layer could be; please report the model")
    return "with the bits of the whole window in ONNX Runtime" if exact else \
        "near to the whole window in ONNX Runtime, which adds floats in another order"


def _last(calls: list[np.ndarray], window: np.ndarray, end: tuple[int, int] | None) -> np.ndarray:
    """Return what the calls have made of a window: the last results, or along an axis those up to an element."""
    if end is None:
        return calls[-1]
    axis, stop = end
    return np.concatenate(calls, axis).take(np.arange(stop - window.shape[axis], stop), axis)


def _near(made: np.ndarray, window: np.ndarray) -> bool:
    """Tell whether floats differ by what another order of sums may make of them."""
    return bool(np.allclose(made, window, rtol=0, atol=FLOAT_TOLERANCE * np.abs(window).max(initial=1e-9)))
