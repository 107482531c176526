"""Movements between integers, of every kind and rank: addresses or copies, nothing on the host core."""

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.fuzz.oracle import judge
from tests.support.onnx_models import ModelBuilder, Value
from tilewright.compiler.passes.pass_order import compile_network


class Movements(ModelBuilder):
    """Adds movements of floats that nothing quantises, by name."""

    def moves(self, op: str, *inputs: str | np.ndarray, **attributes: object) -> str:
        """Add a movement; arrays are constants."""
        names = [each if isinstance(each, str) else self.constant(each) for each in inputs]
        return self.node(op, names, f"moved{len(self.nodes)}", **attributes)

    def ended(self, name: str, shape: tuple[int, ...]) -> bytes:
        """Return the model with a float tensor as its output."""
        self.outputs.append(self.float_output(name, shape))
        proto = self.proto()
        proto = onnx.shape_inference.infer_shapes(proto)
        return proto.SerializeToString()

    def requantised(self, name: str, like: Value, shape: tuple[int, ...], factor: float = 1.0) -> Value:
        """Quantise a float tensor, at the scale of another one times ``factor``."""
        value = Value(f"again{len(self.nodes)}", shape, np.float32(like.scale * factor), like.zero_point)
        self.quantised(name, value)
        return value


def ints(*values: int) -> np.ndarray:
    """Return a constant list."""
    return np.array(values, np.int64)


def nothing_on_the_core(model: bytes, floats: int = 0) -> None:
    """Check that the model is right, and that the host core computes nothing of it."""
    verdict, _ = judge(model)
    assert verdict.mismatches == []
    assert not verdict.refused
    assert verdict.graphs == 1
    assert [name for name in verdict.layers if name.startswith("core")] == []


def shuffle_by_gather(model: Movements, x: Value) -> str:
    a = model.moves("Reshape", model.dequantised(x), ints(4, 2, 48))
    b = model.moves("Reshape", model.moves("Transpose", a, perm=(1, 0, 2)), ints(2, 1, 4, 6, 8))
    halves = [model.requantised(model.moves("Gather", b, np.int64(i), axis=0), x, (1, 4, 6, 8)) for i in (0, 1)]
    return model.moves("Concat", *(model.dequantised(model.conv(each, 4, kernel=1, zero_point=each.zero_point))
                                   for each in halves[:1]), axis=1)


def shuffle_of_joined(model: Movements, x: Value) -> str:
    y = model.conv(x, 8, kernel=1)
    c = model.concat([x, y], y.scale)
    a = model.moves("Reshape", model.dequantised(c), ints(1, 2, 8, 6, 8))
    b = model.moves("Reshape", model.moves("Transpose", a, perm=(0, 2, 1, 3, 4)), ints(1, 16, 6, 8))
    half = model.requantised(model.moves("Slice", b, ints(0), ints(8), ints(1)), c, (1, 8, 6, 8))
    return model.dequantised(model.conv(half, 4, kernel=1))


def head_of_two(model: Movements, x: Value) -> str:
    parts = []
    for channels in (8, 12):
        # Quantisers give what is joined one scale.
        y = model.conv(x, channels, kernel=1)
        same = Value(y.name, y.shape, np.float32(0.05), y.zero_point)
        model.nodes[-1].input[1] = model.constant(same.scale)
        t = model.moves("Transpose", model.dequantised(same), perm=(0, 2, 3, 1))
        parts.append(model.moves("Reshape", t, ints(1, -1, 4)))
    return model.moves("Concat", *parts, axis=1)


def anchors_last(model: Movements, x: Value) -> str:
    y = model.conv(x, 18, kernel=1)
    a = model.moves("Reshape", model.dequantised(y), ints(1, 3, 6, 6, 8))
    return model.moves("Reshape", model.moves("Transpose", a, perm=(0, 1, 3, 4, 2)), ints(1, -1, 6))


def focus(model: Movements, x: Value) -> str:
    real = model.dequantised(x)
    parts = [model.moves("Slice", real, ints(i, j), ints(99, 99), ints(2, 3), ints(2, 2))
             for j in (0, 1) for i in (0, 1)]
    y = model.requantised(model.moves("Concat", *parts, axis=1), x, (1, 32, 3, 4))
    return model.dequantised(model.conv(y, 4))


def space_to_depth(model: Movements, x: Value) -> str:
    a = model.moves("SpaceToDepth", model.dequantised(x), blocksize=2)
    order = np.random.default_rng(0).permutation(32)
    y = model.requantised(model.moves("Gather", a, order, axis=1), x, (1, 32, 3, 4))
    return model.dequantised(model.conv(y, 4, kernel=1))


def pixel_shuffle_last(model: Movements, x: Value) -> str:
    return model.moves("DepthToSpace", model.dequantised(x), blocksize=2, mode="CRD")


def another_scale_behind(model: Movements, x: Value) -> str:
    a = model.moves("Reshape", model.moves("Transpose", model.dequantised(x), perm=(0, 2, 3, 1)), ints(1, 48, 8))
    return model.dequantised(model.requantised(a, x, (1, 48, 8), 1.7))


def tiled(model: Movements, x: Value) -> str:
    return model.moves("Tile", model.dequantised(x), ints(1, 2, 1, 3))


def expanded(model: Movements, x: Value) -> str:
    y = model.average(x)
    return model.moves("Expand", model.dequantised(y), ints(1, 8, 5, 4))


def parts_of_vectors(model: Movements, x: Value) -> str:
    flat = model.moves("Flatten", model.dequantised(x))
    part = model.moves("Slice", flat, ints(5), ints(300), ints(1), ints(2))
    return model.moves("Unsqueeze", part, ints(0, 3))


_GRAPHS: tuple[Callable[[Movements, Value], str], ...] = (
    shuffle_by_gather, shuffle_of_joined, head_of_two, anchors_last, focus, space_to_depth, pixel_shuffle_last,
    another_scale_behind, tiled, expanded, parts_of_vectors)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("build", _GRAPHS)
def test_the_core_moves_nothing(build, dtype):
    model = Movements("qdq", seed=5, dtype=dtype, zero_point=3 if dtype is np.int8 else 131)
    output = build(model, model.conv(model.input((1, 3, 8, 10)), 8))
    shapes = onnx.shape_inference.infer_shapes(helper.make_model(
        helper.make_graph(model.nodes, "g", model.inputs, [onnx.ValueInfoProto(name=output)], model.initializers),
        opset_imports=model.proto().opset_import))
    shape = next(each for each in shapes.graph.output if each.name == output).type.tensor_type.shape
    nothing_on_the_core(model.ended(output, tuple(each.dim_value for each in shape.dim)))


def test_batches_of_images_are_no_rows_of_elements():
    model = Movements("qdq", seed=6)
    x = model.conv(model.input((1, 3, 1, 9)), 7, kernel=1)
    joined = model.moves("Concat", model.dequantised(x), model.dequantised(x), axis=0)
    shaped = model.requantised(model.moves("Reshape", joined, ints(3, 2, 1, 21)), x, (3, 2, 1, 21))
    last = model.moves("Reshape", model.dequantised(shaped), ints(1, 1, 6, 21))
    verdict, _ = judge(model.ended(last, (1, 1, 6, 21)))
    assert verdict.mismatches == []


@pytest.mark.parametrize("joined", [1, 2])
def test_a_concatenation_of_one_scale_is_no_layer(joined: int) -> None:
    """Q, Concat, Q of the same parameters, behind a Resize too: the parts are stored where they belong."""
    model = Movements("qdq", seed=5)
    x = model.conv(model.input((1, 8, 6, 8)), 16, kernel=1)
    y = model.conv(model.max_pool(x, strides=(2, 2)), 8, kernel=1)
    parts = [model.requantised(model.dequantised(y), x, y.shape, 1.5)]
    widened = model.moves("Resize", model.dequantised(parts[0]), "", np.float32([1, 1, 2, 2]), mode="nearest",
                          nearest_mode="floor", coordinate_transformation_mode="asymmetric")
    wide = model.requantised(widened, parts[0], (1, 8, 6, 8))
    other = model.requantised(model.dequantised(x), wide, x.shape)
    c = model.concat([wide, other], wide.scale)
    for _ in range(1, joined):
        c = model.concat([c, wide], c.scale)
    made = model.finish(model.conv(c, 8))
    nothing_on_the_core(made)
    kinds = [layer.kind for layer in compile_network(made).layers]
    # Passes are the maximum and the other tensor at the scale of both; a part that is there twice is copied.
    assert kinds.count("pass") == 1 + joined
