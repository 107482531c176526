"""Open dimensions take the extents that a user gives, by input or by symbol; what contradicts the model is refused."""

import onnx
import pytest

from tests.support.float_models import FloatBuilder
from tilewright.compiler.onnx.given_shapes import fix_shapes, open_shape
from tilewright.compiler.onnx.reader import load
from tilewright.errors import InputError


def opened(*shape: int | str) -> onnx.ModelProto:
    builder = FloatBuilder()
    return builder.finish(builder.node("Relu", builder.conv(builder.input(shape), 3, 4)))


def shape_of(model: onnx.ModelProto) -> tuple[int, ...]:
    return tuple(extent.dim_value for extent in model.graph.input[0].type.tensor_type.shape.dim)


@pytest.mark.parametrize("given", [
    {"image": (1, 3, 8, 6)}, {"h": (8,), "w": (6,)}, {"image": (1, 3, 8, 6), "h": (8,)},
])
def test_shapes_and_symbols_fix_what_is_open(given):
    model = opened("n", 3, "h", "w")
    if "h" in given and len(given) == 2 and "image" in given:
        with pytest.raises(InputError, match="must name an input"):
            fix_shapes(model, given)
        return
    fix_shapes(model, given)
    assert shape_of(model)[1:] == (3, 8, 6)
    graph = load(model.SerializeToString())
    assert graph.tensors[graph.outputs[0]].shape == (1, 4, 8, 6)


def test_a_batch_may_be_fixed_too():
    model = opened("n", 3, 8, 6)
    fix_shapes(model, {"n": (2,)})
    assert shape_of(model) == (2, 3, 8, 6)


@pytest.mark.parametrize("batch", ["N", "", 0, -1])
def test_an_open_batch_is_one(batch):
    model = opened("n", 3, 8, 6)
    extent = model.graph.input[0].type.tensor_type.shape.dim[0]
    extent.Clear()
    if isinstance(batch, int):
        extent.dim_value = batch
    elif batch:
        extent.dim_param = batch
    assert load(model.SerializeToString()).tensors["image"].shape == (1, 3, 8, 6)


@pytest.mark.parametrize(("given", "match"), [
    ({"picture": (1, 3, 8, 6)}, "must name an input"), ({"depth": (3,)}, "must name an input"),
    ({"image": (1, 4, 8, 6)}, "suits n,3,h,w"), ({"image": (3, 8, 6)}, "suits n,3,h,w"),
])
def test_what_contradicts_the_model_is_refused(given, match):
    with pytest.raises(InputError, match=match):
        fix_shapes(opened("n", 3, "h", "w"), given)


def test_open_dimensions_are_shown_by_their_names():
    assert open_shape(opened("n", 3, "h", 6).graph.input[0].type.tensor_type) == "n,3,h,6"
