#!/usr/bin/env bash
# ONNX Runtime fuses a layer whose activations have a scale per channel, and then refuses what it made.
#
# Surprise: QuantizeLinear and DequantizeLinear take a scale for each channel of any tensor, activations too, and a plain
# session of uint8 levels folds them into QLinearConv, QLinearAveragePool and QLinearSigmoid, whose kernels take one scale.
# The pool and the table end the session when it is made; the convolution only when it is run. Addition, maximum and
# concatenation of the same levels are left alone and run. With the optimisation off all of them run, with the file's
# meaning.
# Why one guesses wrong: an optimisation is expected to leave alone what it cannot improve, as the other three do, and a
# session that could be made is expected to run.
# Who meets it: quantisers that give depthwise layers a scale per channel of their input or output.
# Versions: onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6, CPUExecutionProvider.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
cat > "$folder/scales.py" <<'PYTHON'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

CHANNELS = 4
IMAGE = np.random.default_rng(1).standard_normal((1, CHANNELS, 8, 8)).astype(np.float32)
LAYERS = {"Conv": {"pads": [1] * 4}, "AveragePool": {"kernel_shape": [3, 3]}, "Sigmoid": {},
          "Add": {}, "MaxPool": {"kernel_shape": [3, 3]}, "Concat": {"axis": 2}}


def model(operator, several):
    scale = np.linspace(.01, .04, CHANNELS, dtype=np.float32) if several else np.float32(.04)
    zero = np.full(np.shape(scale), 128, np.uint8)
    weights = np.random.default_rng(0).integers(-50, 50, (CHANNELS, CHANNELS, 3, 3)).astype(np.int8)
    constants = {"s": scale, "z": zero, "so": np.float32(.04), "zo": np.uint8(128), "w": weights,
                 "sw": np.full(CHANNELS, .01, np.float32), "zw": np.zeros(CHANNELS, np.int8)}
    read = {"Conv": ["xd", "wd"], "Add": ["xd", "xd"], "Concat": ["xd", "xd"]}.get(operator, ["xd"])
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"], axis=1),
             helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xd"], axis=1),
             helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["wd"], axis=0),
             helper.make_node(operator, read, ["f"], **LAYERS[operator]),
             helper.make_node("QuantizeLinear", ["f", "so", "zo"], ["yq"]),
             helper.make_node("DequantizeLinear", ["yq", "so", "zo"], ["y"])]
    graph = helper.make_graph(
        nodes, "scales", [helper.make_tensor_value_info("x", TensorProto.FLOAT, IMAGE.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["a", "b", "c", "d"])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(made, full_check=True)
    return made.SerializeToString()


def outcome(operator, several, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = level, 4
    try:
        session = onnxruntime.InferenceSession(model(operator, several), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return f"not made: {type(error).__name__}"
    try:
        session.run(None, {"x": IMAGE})
    except Exception as error:
        return f"not run: {type(error).__name__}"
    return "runs"


OFF, ALL = (onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL)
print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
found = {}
for operator in LAYERS:
    found[operator] = outcome(operator, True, ALL)
    print(f"{operator:12} one scale, optimised: {outcome(operator, False, ALL)}; one per channel, not optimised: "
          f"{outcome(operator, True, OFF)}; one per channel, optimised: {found[operator]}")
checks = {
    "all run with one scale": all(outcome(each, False, ALL) == "runs" for each in LAYERS),
    "all run when nothing is optimised": all(outcome(each, True, OFF) == "runs" for each in LAYERS),
    "Conv is made and not run": found["Conv"].startswith("not run"),
    "AveragePool and Sigmoid are not made": all(found[each].startswith("not made") for each in ("AveragePool", "Sigmoid")),
    "Add, MaxPool and Concat run": all(found[each] == "runs" for each in ("Add", "MaxPool", "Concat")),
}
for name, holds in checks.items():
    print("still so:" if holds else "CHANGED:", name)
sys.exit(0 if all(checks.values()) else 1)
PYTHON
"$folder/venv/bin/python" "$folder/scales.py"
