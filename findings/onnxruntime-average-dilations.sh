#!/usr/bin/env bash
# ONNX Runtime refuses a valid quantised model whose AveragePool has dilations; without its optimisations it runs it.
#
# Surprise: since opset 19 AveragePool has dilations. A session with default options fuses
#   DequantizeLinear -> AveragePool -> QuantizeLinear   into   com.microsoft.QLinearAveragePool,
# hands it the attribute, which that operator does not have, and then calls the model, which is valid, an invalid graph.
# Why one guesses wrong: the message names an operator and an attribute that together stand nowhere in the file, so one
# looks for the fault in the exporter; and an optimisation is expected to leave alone what it cannot express.
# Who meets it: quantised networks with dilated averages. ORT_ENABLE_BASIC or the unquantised model runs.
# Versions: onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6, CPUExecutionProvider.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
cat > "$folder/dilated.py" <<'PYTHON'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
    helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
    helper.make_node("AveragePool", ["xd"], ["a"], kernel_shape=[2, 2], dilations=[2, 2]),
    helper.make_node("QuantizeLinear", ["a", "s", "z"], ["yq"]),
    helper.make_node("DequantizeLinear", ["yq", "s", "z"], ["y"])]
graph = helper.make_graph(
    nodes, "dilated", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 1, 6, 6))],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 1, 4, 4))],
    [numpy_helper.from_array(np.asarray(np.float32(.02)), "s"), numpy_helper.from_array(np.asarray(np.uint8(128)), "z")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
onnx.checker.check_model(model, full_check=True)


def outcome(level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as refusal:  # its classes are private to the package
        return f"refused: {refusal}"
    return f"runs, shape {session.run(None, {'x': np.zeros((1, 1, 6, 6), np.float32)})[0].shape}"


levels = onnxruntime.GraphOptimizationLevel
print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
by_default, unfused = outcome(levels.ORT_ENABLE_ALL), outcome(levels.ORT_DISABLE_ALL)
print("default session:", by_default)
print("ORT_DISABLE_ALL:", unfused)
if unfused != "runs, shape (1, 1, 4, 4)":
    sys.exit("changed: without optimisations it was expected to run")
if not (by_default.startswith("refused") and "QLinearAveragePool" in by_default and "dilations" in by_default):
    sys.exit("changed: a refusal that names QLinearAveragePool and dilations was expected")
PYTHON
"$folder/venv/bin/python" "$folder/dilated.py"
echo "as described: an optimisation makes a valid model invalid"
