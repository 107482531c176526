"""act.rows with norm against isa.rows.row_norm, element by element, and that against ONNX Runtime's float operators."""

from dataclasses import replace

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.support.coprocessor_state import engine_of, run
from tilewright.isa.machine import preset
from tilewright.isa.rows.row_norm import LEAST_NORM_ROW, MAX_NORM_LENGTH, NormRefused, RowNorm, norm_row
from tilewright.isa.semantics.act_rows import NormNumbers, norm_rows
from tilewright.runtime.oracle.onnx_runtime import session as onnx_session
from tilewright.sim.values.executor import CommandFailedError

X_ZERO, Y_ZERO, EPSILON = -6, -3, 1e-5
LAYER, ROOT = "LayerNormalization", "RMSNormalization"


def float_operator(op, scale, bias, x_scale, y_scale):
    """Return ONNX Runtime's session of a normalisation of int8 (n, length) between two quantisations."""
    numbers = {"xs": x_scale, "xz": np.int8(X_ZERO), "ys": y_scale, "yz": np.int8(Y_ZERO), "scale": scale, "bias": bias}
    given = ["f", "scale"] + (["bias"] if op == LAYER else [])
    nodes = [helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["f"]),
             helper.make_node(op, given, ["g"], axis=-1, epsilon=EPSILON),
             helper.make_node("QuantizeLinear", ["g", "ys", "yz"], ["y"])]
    values = [helper.make_tensor_value_info(name, TensorProto.INT8, ["n", len(scale)]) for name in "xy"]
    graph = helper.make_graph(nodes, "one", values[:1], values[1:],
                              [numpy_helper.from_array(np.asarray(each), name) for name, each in numbers.items()])
    return onnx_session(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 23)])
                        .SerializeToString())


def norm_of(op, scale, bias, x_scale, y_scale):
    """Return the same operator in integers."""
    shifts = bias if op == LAYER else np.zeros_like(bias)
    return RowNorm.of(scale.astype(float) / float(y_scale), shifts.astype(float) / float(y_scale),
                      EPSILON / float(x_scale)**2, zero_point=Y_ZERO, about=X_ZERO if op == ROOT else None)


def as_machine(norm, x):
    """Return the levels that the machine makes of rows."""
    return norm_rows(x, NormNumbers.of(norm), (norm.mantissa, norm.shift), (norm.zero_point, norm.low, norm.high))


def case_of(rng, length):
    """Return scale and bias."""
    return rng.uniform(0.4, 1.6, length).astype(np.float32), rng.normal(0, 0.3, length).astype(np.float32)


def levels_of(rng, count, length, widest):
    """Return rows of int8 of many means and deviations."""
    means, deviations = rng.normal(0, 10, (count, 1)), rng.uniform(1, widest, (count, 1))
    return np.clip(np.rint(rng.normal(means, deviations, (count, length))), -128, 127).astype(np.int8)


@pytest.mark.parametrize("op", [LAYER, ROOT])
@pytest.mark.parametrize("length", [LEAST_NORM_ROW, 128, 400, 514, 768, MAX_NORM_LENGTH])
def test_whole_arrays_are_computed_as_single_rows(op, length):
    rng = np.random.default_rng(length)
    norm = replace(norm_of(op, *case_of(rng, length), np.float32(0.035), np.float32(0.02)), low=-20, high=90)
    x = levels_of(rng, 6, length, 45)
    x[0], x[1], x[2] = 5, rng.choice((-128, 127), length), -128
    np.testing.assert_array_equal(as_machine(norm, x), [norm_row(row.tolist(), norm) for row in x])


def loaded(name, norm, base):
    """Return an engine whose tables and parameters are those of ``norm``, and the settings of its commands."""
    engine = engine_of(replace(preset(name), row_unit=True))
    engine.state.tables.reshape(-1).view("<u4")[:] = norm.table
    engine.state.parameters[8 * base:8 * (base + norm.length)].view("<u8")[:] = norm.parameters
    settings = {"extra": norm.extra, "offset": norm.offset, "parameter_base": base, "centred": int(norm.centred),
                "fine": int(norm.fine)}
    return engine, (("act.set_clamp", {"zero_point": norm.zero_point, "low": norm.low, "high": norm.high}),
                    ("act.set_rows", {"mantissa": norm.mantissa, "shift": norm.shift}), ("act.set_norm", settings))


@pytest.mark.parametrize("name", ["nano", "large"])
@pytest.mark.parametrize("op", [LAYER, ROOT])
def test_rows_are_normalised_where_they_lie(name, op):
    rng = np.random.default_rng(2)
    norm = norm_of(op, *case_of(rng, 96), np.float32(0.035), np.float32(0.02))
    engine, settings = loaded(name, norm, 64)
    x = levels_of(rng, 5, 96, 45)
    engine.state.results[37:37 + x.size] = x.ravel()
    run(engine, *settings, ("act.rows", {"base": 37, "length": 96, "rows": 5, "norm": 1}))
    np.testing.assert_array_equal(engine.state.results[37:37 + x.size].reshape(x.shape), as_machine(norm, x))


@pytest.mark.parametrize(("changed", "length", "word"), [
    ({}, MAX_NORM_LENGTH + 1, str(MAX_NORM_LENGTH)),
    ({"parameter_base": 480}, 96, "parameters"),
    ({"extra": (1 << 32) - 1, "fine": 1}, 96, "24 bits"),
    ({"offset": -60_000, "centred": 0, "extra": 0}, 96, "24 bits"),
])
def test_what_no_hardware_could_normalise_is_refused(changed, length, word):
    rng = np.random.default_rng(2)
    engine, settings = loaded("nano", norm_of(LAYER, *case_of(rng, 96), np.float32(0.035), np.float32(0.02)), 64)
    engine.state.results[:] = -128
    settings[2][1].update(changed)
    with pytest.raises(CommandFailedError, match=word):
        run(engine, *settings, ("act.rows", {"base": 0, "length": length, "rows": 1, "norm": 1}))


@pytest.mark.parametrize(("length", "factor", "epsilon"), [
    (LEAST_NORM_ROW - 1, 1.0, 1.0), (MAX_NORM_LENGTH + 1, 1.0, 1.0), (128, 1e30, 1.0), (128, 1.0, 1e9),
    (128, float("nan"), 1.0),
])
def test_numbers_that_the_unit_has_not_are_refused(length, factor, epsilon):
    with pytest.raises(NormRefused):
        RowNorm.of(np.full(length, factor), np.zeros(length), epsilon, zero_point=0)


def compared(op, elements):
    """Return how many elements are a level beside ONNX Runtime's, of how many; none is further off."""
    off, seen, rng = 0, 0, np.random.default_rng(7)
    for length in (32, 96, 128, 192, 384, 480, 768):
        for x_scale in map(np.float32, (0.004, 0.035, 0.4)):
            for y_scale in map(np.float32, (0.02, 0.03)):
                scale, bias = case_of(rng, length)
                session, norm = (make(op, scale, bias, x_scale, y_scale) for make in (float_operator, norm_of))
                for widest in (8, 45):
                    x = levels_of(rng, max(2, elements // length), length, widest)
                    difference = np.abs(as_machine(norm, x).astype(int) - session.run(None, {"x": x})[0])
                    assert difference.max() <= 1
                    off, seen = off + int(np.count_nonzero(difference)), seen + difference.size
    return off, seen


@pytest.mark.parametrize("op", [LAYER, ROOT])
def test_at_most_five_hundred_in_a_million_are_a_level_beside_onnx_runtime_s(op):
    off, seen = compared(op, 8_000)
    assert seen > 500_000
    assert 0 < off <= 500e-6 * seen


@pytest.mark.slow
@pytest.mark.parametrize("op", [LAYER, ROOT])
def test_at_most_five_hundred_in_a_million_of_fifteen_million(op):
    off, seen = compared(op, 215_000)
    assert seen > 15_000_000
    assert 0 < off <= 500e-6 * seen
