"""A bias of floats that are whole steps of a product's sums is levels, as in the file that states it as int32."""

import numpy as np
import pytest

from tests.compiler.normal.graphs import computed, model, node, scalar, zero
from tests.support.exactness import assert_layers
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.normal.rules.legal import faults
from tilewright.compiler.normal.rules.normal_form import normalise
from tilewright.isa.machine import preset
from tilewright.runtime.execution.job import job_of_compiled
from tilewright.runtime.execution.prediction import predict_report

_RNG = np.random.default_rng(8)
_LEVELS = _RNG.integers(-9000, 9000, 6).astype(np.int32)
_OF_CHANNELS = np.linspace(.003, .02, 6, dtype=np.float32)


def _product(op, scales, bias, constants, **attributes):
    """Return a product whose result stays float, and a softmax of it."""
    shape, weights = ((1, 4, 6, 6), (6, 4, 3, 3)) if op == "Conv" else ((1, 24), (6, 24))
    axis = {"axis": 0} if scales.ndim else {}
    constants = {"xs": scalar(.07), "z": zero(3), "w": np.random.default_rng(1).integers(-127, 128, weights).astype(
        np.int8), "ws": scales, "wz": np.zeros(scales.shape, np.int8), **constants}
    nodes = [node("QuantizeLinear", ["x", "xs", "z"], "q"), node("DequantizeLinear", ["q", "xs", "z"], "d"),
             node("DequantizeLinear", ["w", "ws", "wz"], "wd", **axis),
             node("DequantizeLinear", ["levels", "steps"], "b", **axis) if "levels" in constants else None,
             node(op, ["d", "wd", bias], "s", **({} if op == "Conv" else {"transB": 1}), **attributes),
             node("Softmax", ["s"], "y", axis=1)]
    return model([each for each in nodes if each is not None], constants, shape)


def _cycles(proto):
    compiled = compile_layers(assert_layers(proto.SerializeToString()), preset("base"))
    return predict_report(job_of_compiled(compiled, "biases")).cycles


@pytest.mark.parametrize("op", ["Conv", "Gemm"])
@pytest.mark.parametrize("scales", [scalar(.01), _OF_CHANNELS], ids=["of one scale", "of one per channel"])
@pytest.mark.parametrize("side", [0, 1], ids=["of the product", "of its neighbour"])
def test_a_bias_of_floats_that_are_steps_is_levels(op, scales, side):
    steps = np.asarray(np.float32(.07) * scales, np.float32)
    steps = np.nextafter(steps, np.float32(1)) if side else steps
    plain = _product(op, scales, "b", {"levels": _LEVELS, "steps": steps})
    floats = _product(op, scales, "f", {"f": _LEVELS.astype(np.float32) * steps})
    form = normalise(floats)
    assert form.counts["biases"] == 1
    assert list(faults(form.proto)) == []
    assert np.array_equal(computed(form.proto)[0], computed(floats)[0])
    assert np.array_equal(computed(plain)[0], computed(floats)[0])
    assert _cycles(floats) == _cycles(plain)


@pytest.mark.parametrize("floats", [_LEVELS * np.float32(.0007) + np.float32(1e-5), _LEVELS * np.float32(.7 * 2**14)],
                         ids=["between steps", "too many steps"])
def test_a_bias_of_other_floats_stays(floats):
    assert "biases" not in normalise(_product("Conv", scalar(.01), "f", {"f": floats})).counts


def test_a_bias_that_a_factor_scales_stays():
    steps = scalar(np.float32(.07) * np.float32(.01))
    form = normalise(_product("Gemm", scalar(.01), "f", {"f": _LEVELS * steps}, beta=.3))
    assert "biases" not in form.counts
