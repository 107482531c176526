"""Sparse constants, shapes and MediaPipe's transposed convolution are read as what they stand for."""

import numpy as np
import pytest

from tests.support.tflite_files import TfliteFile
from tilewright.compiler.errors import BadModelError
from tilewright.compiler.onnx.reader import read_model
from tilewright.compiler.tflite.flat_file import read_file
from tilewright.runtime.oracle.onnx_runtime import session

ROWS = np.array([0, 2, 2, 3, 5]), np.array([1, 3, 0, 2, 3])
"""Places of five elements in four rows of four."""


def sparse(values, order, blocks, levels, shape=(4, 4)):
    """Return a dense layer whose weights are sparse."""
    file = TfliteFile()
    x, y = file.tensor((1, shape[1]), dtype="float32", name="x"), file.tensor((1, shape[0]), dtype="float32", name="y")
    stored = file.tensor(shape, dtype="float32", data=np.asarray(values, np.float32),
                         sparsity=file.sparsity(order, blocks, levels), name="stored")
    weights = file.tensor(shape, dtype="float32")
    file.operator("DENSIFY", [stored], [weights])
    file.operator("FULLY_CONNECTED", [x, weights, -1], [y])
    return file.content([x], [y])


def weights_of(content):
    return next(tensor.data for tensor in read_file(content, "net").tensors if tensor.name == "stored")


def test_a_sparse_constant_is_read_whole():
    whole = [[0, 1, 0, 2], [0, 0, 0, 0], [3, 0, 0, 0], [0, 0, 4, 5]]
    content = sparse(range(1, 6), (0, 1), (), (4, ROWS))
    assert weights_of(content).tolist() == whole
    model = read_model(content)
    given = np.arange(4, dtype=np.float32)[None]
    (found,) = session(model.SerializeToString()).run(None, {"x": given})
    assert np.array_equal(found, given @ np.array(whole, np.float32).T)


def test_columns_may_be_traversed_before_rows():
    turned = weights_of(sparse(range(1, 6), (1, 0), (), (4, ROWS)))
    assert np.array_equal(turned.T, weights_of(sparse(range(1, 6), (0, 1), (), (4, ROWS))))


def test_what_is_not_zero_may_lie_in_blocks():
    """Blocks of 1x2: row 0 has the second, row 1 both."""
    found = weights_of(sparse(range(1, 7), (0, 1, 2), (1,), (2, (np.array([0, 1, 3]), np.array([1, 0, 1])), 2), (2, 4)))
    assert found.tolist() == [[0, 0, 1, 2], [3, 4, 5, 6]]


@pytest.mark.parametrize(("values", "order", "levels"), [
    (range(4), (0, 1), (4, ROWS)),
    (range(5), (0, 0), (4, ROWS)),
    (range(5), (0, 1), (5, ROWS)),
    (range(5), (0, 1), (4, (ROWS[0], ROWS[1] + 9))),
    (range(5), (0, 1), (4, (ROWS[0][::-1], ROWS[1]))),
    (range(5), (0, 1), (2**30, 2**30)),
])
def test_places_that_contradict_the_tensor_are_refused(values, order, levels):
    with pytest.raises(BadModelError, match=r"stored.*sparse"):
        read_model(sparse(values, order, (), levels))


def test_a_shape_is_known():
    file = TfliteFile()
    x, y = file.tensor((1, 4, 6), 0.1, name="x"), file.tensor((1, 24), 0.1, name="y")
    shape, first = file.tensor((3,), dtype="int32"), file.tensor((), dtype="int32")
    file.operator("SHAPE", [x], [shape])
    file.operator("STRIDED_SLICE", [shape, *(file.constant(np.array([each], np.int32)) for each in (0, 1, 1))],
                  [first], ShrinkAxisMask=1)
    packed = file.tensor((2,), dtype="int32")
    file.operator("PACK", [first, file.constant(np.array(24, np.int32))], [packed], ValuesCount=2, Axis=0)
    file.operator("RESHAPE", [x, packed], [y])
    model = read_model(file.content([x], [y]))
    assert "Shape" not in {node.op_type for node in model.graph.node}


def test_mediapipe_s_transposed_convolution_adds_its_bias():
    file, rng = TfliteFile(), np.random.default_rng(3)
    x = file.tensor((1, 3, 4, 2), dtype="float32", name="x")
    y = file.tensor((1, 6, 8, 1), dtype="float32", name="y")
    weights, bias = rng.normal(size=(1, 2, 2, 2)).astype(np.float32), np.array([0.5], np.float32)
    file.operator("custom Convolution2DTransposeBias", [x, file.constant(weights), file.constant(bias)], [y],
                  custom=np.array([1, 2, 2], "<i4").tobytes())
    given = rng.normal(size=(1, 3, 4, 2)).astype(np.float32)
    (found,) = session(read_model(file.content([x], [y])).SerializeToString()).run(None, {"x": given})
    wanted = np.einsum("nhwc,opqc->nhpwqo", given, weights).reshape(1, 6, 8, 1) + 0.5
    assert np.allclose(found, wanted, atol=1e-6)
