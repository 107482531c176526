#!/usr/bin/env bash
# onnx.reference, the standard's own evaluator, computes batch norms of opsets before 14 as in training, and five operators besides.
#
# Surprise: whoever doubts a runtime asks the evaluator that comes with the standard. For a plain CNN of opset 9 to 13 it
# mixes each batch's mean and variance into the stored ones, so that a sample's result depends on its neighbours. Softmax before
# opset 13 is taken over one axis, where it is to be over all later ones. LRN normalises as many channels as the batch has
# images, so one of one image. MaxPool with SAME_LOWER and a stride looks at other windows. LSTM, GRU and RNN ignore the
# lengths of sequences and clip. Resize with align_corners misses the far corner where the scale leaves a fraction of a pixel,
# as of 15 pixels by 1.5. Nothing of it is said, and ONNX Runtime agrees with the standard's formulas in all of them.
# Why one guesses wrong: the same operators are right in the neighbouring case: batch norm from opset 14, Softmax from 13, LRN
# of as many images as channels, MaxPool with SAME_UPPER, AveragePool with SAME_LOWER, sequences of full length, factors that
# leave no fraction. Such are the cases of onnx's own node tests.
# Who meets it: tests that hold a compiler, a quantiser or a device to onnx.reference.
# Versions: onnx 1.23.2, onnxruntime 1.32.0, numpy 2.4.6.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
cat > "$folder/rules.py" <<'PYTHON'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

RNG = np.random.default_rng(0)


def draw(*shape):
    return RNG.uniform(.5, 2, shape).astype(np.float32) * RNG.choice([-1, 1], shape).astype(np.float32)


IMAGE, STEPS, HIDDEN = draw(1, 4, 6, 6), draw(5, 2, 3), 4
STORED = {name: np.abs(draw(4)) for name in ("scale", "bias", "mean", "var")}
CELL = {"w": draw(1, 4 * HIDDEN, 3), "r": draw(1, 4 * HIDDEN, HIDDEN)}


def batch_norm(x):
    scale, bias, mean, var = (STORED[name].reshape(1, 4, 1, 1) for name in ("scale", "bias", "mean", "var"))
    return scale * (x - mean) / np.sqrt(var + 1e-5) + bias


def softmax(x, axes):
    powers = np.exp(x - x.max(axes, keepdims=True))
    return powers / powers.sum(axes, keepdims=True)


def response_norm(x):
    squares = np.stack([(x[:, max(0, i - 1):i + 2]**2).sum(1) for i in range(x.shape[1])], 1)
    return x / (1 + .5 / 3 * squares)**.75


def max_pool(x, before):
    """Windows of 3x3 by 2, with this many rows and columns of padding in front of the first."""
    places = [(max(0, 2 * i - before), 2 * i - before + 3) for i in range(x.shape[2] // 2)]
    return np.array([[x[0, :, top:bottom, left:right].max((1, 2)) for left, right in places]
                     for top, bottom in places]).transpose(2, 0, 1)[None]


def resize(x, after):
    """Linear, along the last axis, the first pixel on the first and the last on the last."""
    return np.interp(np.linspace(0, x.shape[-1] - 1, after), np.arange(x.shape[-1]), x.ravel())


def node(operator, inputs, **attributes):
    return helper.make_node(operator, inputs, ["y"], **attributes)


NORM = node("BatchNormalization", ["x", *STORED])
SCALED = node("Resize", ["x", "", "factors"], mode="linear", coordinate_transformation_mode="align_corners")
ROW = draw(1, 1, 1, 15)
POOL = {"kernel_shape": [3, 3], "strides": [2, 2]}
CASES = {
    "BatchNormalization, opset 13": (NORM, 13, IMAGE, STORED, batch_norm, False),
    "BatchNormalization, opset 14": (NORM, 14, IMAGE, STORED, batch_norm, True),
    "Softmax of axis 1, opset 12": (node("Softmax", ["x"], axis=1), 12, IMAGE, {}, lambda x: softmax(x, (1, 2, 3)), False),
    "Softmax of axis 1, opset 13": (node("Softmax", ["x"], axis=1), 13, IMAGE, {}, lambda x: softmax(x, 1), True),
    "LRN, one image": (node("LRN", ["x"], size=3, alpha=.5), 13, IMAGE, {}, response_norm, False),
    "LRN, four images": (node("LRN", ["x"], size=3, alpha=.5), 13, draw(4, 4, 6, 6), {}, response_norm, True),
    "MaxPool, SAME_LOWER": (node("MaxPool", ["x"], auto_pad="SAME_LOWER", **POOL), 13, IMAGE, {},
                            lambda x: max_pool(x, 1), False),
    "MaxPool, SAME_UPPER": (node("MaxPool", ["x"], auto_pad="SAME_UPPER", **POOL), 13, IMAGE, {},
                            lambda x: max_pool(x, 0), True),
    "Resize, 15 by 1.5": (SCALED, 13, ROW, {"factors": np.array([1, 1, 1, 1.5], np.float32)},
                          lambda x: resize(x, 22), False),
    "Resize, 15 by 2": (SCALED, 13, ROW, {"factors": np.array([1, 1, 1, 2], np.float32)}, lambda x: resize(x, 30), True),
    "LSTM, lengths 5 and 3": (node("LSTM", ["x", "w", "r", "", "lengths"], hidden_size=HIDDEN), 14, STEPS,
                              {**CELL, "lengths": np.array([5, 3], np.int32)}, None, False),
    "LSTM, lengths 5 and 5": (node("LSTM", ["x", "w", "r", "", "lengths"], hidden_size=HIDDEN), 14, STEPS,
                              {**CELL, "lengths": np.array([5, 5], np.int32)}, None, True),
    "LSTM, clip": (node("LSTM", ["x", "w", "r"], hidden_size=HIDDEN, clip=.5), 14, STEPS, CELL, None, False)}
"""By name: node, opset, x, constants, the formula (None: too long for here), and whether onnx.reference follows it."""


def model(case):
    made, opset, x, constants, _, _ = case
    graph = helper.make_graph(
        [made], "rule", [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * 4)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()])
    complete = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    onnx.checker.check_model(complete, full_check=True)
    return complete


def distance(one, other):
    return float(np.abs(one - other).max())


print("onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__, "numpy", np.__version__)
changed = False
for name, case in CASES.items():
    made, x, formula, follows = model(case), case[2], case[4], case[5]
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    runtime, standard = session.run(None, {"x": x})[0], ReferenceEvaluator(made).run(None, {"x": x})[0]
    away = distance(standard, runtime)
    print(f"{name}: onnx.reference is {away:.3g} from ONNX Runtime", end="")
    if formula:
        near = distance(runtime, formula(x))
        print(f", which is {near:.3g} from the formula", end="")
        if near > 1e-4:
            print("\nCHANGED: ONNX Runtime does not follow the formula", end="")
            changed = True
    print()
    if (away < 1e-4) != follows or .01 > away > 1e-4:
        print("CHANGED: of onnx.reference the contrary was expected")
        changed = True
if changed:
    sys.exit(1)
PYTHON
"$folder/venv/bin/python" "$folder/rules.py"
echo "as described: onnx.reference has rules of its own for six kinds of operators"
