#!/usr/bin/env bash
# ONNX Runtime's fused Softmax multiplies by a whole number: a probability of 1 with the scale 1/255 becomes level 254.
#
# Surprise: DequantizeLinear -> Softmax -> QuantizeLinear is fused into QLinearSoftmax, which multiplies by
#   floor(1 / output scale)   in place of dividing by the output scale.
# The float32 nearest to 1/255 is a little above it, its reciprocal a little below 255, and floor makes 254 of that. So the
# scale that every quantiser writes for values from 0 to 1 loses its top level, and with a scale of 0.6 half of each result.
# Why one guesses wrong: unfused (ORT_DISABLE_ALL) the same file gives 255; the other fused operators divide by the scale, and
# are at most one level from the unfused ones; 1/256, which looks like the unusual choice, is exact.
# Who meets it: attention, and classifiers whose Softmax is quantised. A quantiser may choose 1/256, or a scale 1/k for which
# floor(1 / float32(1/k)) is k.
# Versions: onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6, CPUExecutionProvider, default session options.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
cat > "$folder/softmax.py" <<'PYTHON'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

WANTED = {1 / 255: (254, 255), 1 / 256: (255, 255), 0.6: (1, 2)}
"""By output scale: the level of a probability of 1 with fused and with unfused operators."""


def model(scale):
    constants = {"xs": np.float32(.05), "xz": np.uint8(128), "ys": np.float32(scale), "yz": np.uint8(0)}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
        helper.make_node("Softmax", ["xd"], ["p"], axis=-1),
        helper.make_node("QuantizeLinear", ["p", "ys", "yz"], ["y"])]
    graph = helper.make_graph(
        nodes, "softmax", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 8))],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, (1, 8))],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    return made.SerializeToString()


def top_level(content, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    row = np.full((1, 8), -6, np.float32)
    row[0, 0] = 6.3  # the others' share is 3e-5: the first is 1 for any of these scales
    return int(session.run(None, {"x": row})[0][0, 0])


levels = onnxruntime.GraphOptimizationLevel
print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
for scale, wanted in WANTED.items():
    found = tuple(top_level(model(scale), level) for level in (levels.ORT_ENABLE_ALL, levels.ORT_DISABLE_ALL))
    print(f"scale {scale:.8f}: a probability of 1 is level {found[0]} fused, {found[1]} unfused")
    if found != wanted:
        sys.exit(f"changed: {wanted} were expected")
PYTHON
"$folder/venv/bin/python" "$folder/softmax.py"
echo "as described: the fused operator multiplies by floor(1 / output scale)"
