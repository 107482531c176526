#!/usr/bin/env bash
# onnxoptimizer's default passes take a Pad of zeros in front of a MaxPool for the pool's own padding: values below 0 come through.
#
# Surprise: optimize(model) without a list of passes moves a Pad into the pooling behind it. A MaxPool pads with nothing (-inf), so
# that a window whose values are all negative gives its largest one instead of the Pad's 0. Behind a ReLU the two are the same;
# behind a Conv, as in ResNetV2 of Keras (zero padding, then pooling, and the activation after), borders are wrong. The sum of the
# paddings gives an AveragePool with ceil_mode another shape, and an AveragePool that leaves its own padding out of the average
# (count_include_pad 0) counts it. A Reshape with a 0, which copies an extent of what it reads, is joined with a Reshape in
# front of it, and copies an extent of something else. onnxsim, which carries a copy of these passes, has the shape alone.
# Why one guesses wrong: the passes are the default ones, which are to keep the result; the model passes the checker, and the
# difference is at the border of an image, in the values that are negative there.
# Versions: onnxoptimizer 0.4.2, onnxsim 0.8.1, onnx 1.23.2, onnxruntime 1.32.0, numpy 2.4.6, CPUExecutionProvider.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check onnxoptimizer==0.4.2 onnxsim==0.8.1 onnx==1.23.2 \
    onnxruntime==1.32.0 numpy==2.4.6
cat > "$folder/passes.py" <<'PYTHON'
import sys
from importlib.metadata import version

import numpy as np
import onnx
import onnxoptimizer
import onnxruntime
import onnxsim
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(0)
IMAGE = random.normal(-2, 1, (1, 2, 8, 8)).astype(np.float32)
PADS = np.array([0, 0, 1, 1, 0, 0, 1, 1])
POOL = {"kernel_shape": [3, 3], "strides": [2, 2]}


def padded(kind, bound=False, **attributes):
    """Return a Pad of zeros and a pooling, with a ReLU in front if ``bound``."""
    nodes = [helper.make_node("Relu", ["x"], ["r"])] if bound else []
    nodes += [helper.make_node("Pad", ["r" if bound else "x", "pads"], ["padded"]),
              helper.make_node(kind, ["padded"], ["y"], **POOL, **attributes)]
    return nodes, {"pads": PADS}


def reshaped(first, second):
    nodes = [helper.make_node("Reshape", ["x", "first"], ["r"]), helper.make_node("Reshape", ["r", "second"], ["y"])]
    return nodes, {"first": np.array(first), "second": np.array(second)}


CASES = {
    "MaxPool": (padded("MaxPool"), True, False),
    "MaxPool behind a ReLU": (padded("MaxPool", bound=True), False, False),
    "AveragePool": (padded("AveragePool"), False, False),
    "AveragePool, its own padding apart": (padded("AveragePool", pads=[1] * 4, count_include_pad=0), True, False),
    "AveragePool, ceil_mode": (padded("AveragePool", pads=[1] * 4, count_include_pad=1, ceil_mode=1), True, True),
    "Reshape, Reshape": (reshaped([2, 8, 8], [2, 64]), False, False),
    "Reshape, Reshape with a 0": (reshaped([2, 8, 8], [0, -1]), True, False)}
"""By name: nodes and constants, whether onnxoptimizer changes the result, and whether onnxsim does."""


def result(model):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": IMAGE})[0]


def made(nodes, constants):
    def build(shape):
        graph = helper.make_graph(nodes, "passes", [helper.make_tensor_value_info("x", TensorProto.FLOAT, IMAGE.shape)],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
                                  [numpy_helper.from_array(value, name) for name, value in constants.items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    model = build(result(build(None)).shape)
    onnx.checker.check_model(model, full_check=True)
    return model


def difference(model, before):
    """Return what a tool did to the result; nothing if it is the same."""
    after = result(model)
    if after.shape != before.shape:
        return f"shape {list(after.shape)} instead of {list(before.shape)}"
    apart = np.abs(after - before)
    return f"{(apart > 1e-5).sum()} of {apart.size} elements differ, by up to {apart.max():.2f}" if apart.max() > 1e-5 else ""


print({name: version(name) for name in ("onnxoptimizer", "onnxsim", "onnx", "onnxruntime", "numpy")})
wrong = []
for name, ((nodes, constants), *expected) in CASES.items():
    model = made(nodes, constants)
    before = result(model)
    tools = {"onnxoptimizer": onnxoptimizer.optimize(model), "onnxsim": onnxsim.simplify(model)[0]}
    for (tool, optimised), changes in zip(tools.items(), expected):
        told = difference(optimised, before)
        print(f"{name:35} {tool:14} {' '.join(node.op_type for node in optimised.graph.node):16} {told or 'the same result'}")
        if bool(told) != changes:
            wrong.append(f"{name}: {tool} {'keeps' if changes else 'changes'} the result")
if wrong:
    sys.exit("CHANGED: " + "; ".join(wrong))
print("STILL SO: the default passes change what the model computes.")
PYTHON
"$folder/venv/bin/python" "$folder/passes.py" 2> "$folder/errors" || { cat "$folder/errors" >&2; exit 1; }
