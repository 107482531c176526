#!/usr/bin/env bash
# ONNX Runtime's fused Gemm and Conv ignore the scale of a quantised bias.
#
# Surprise: in a QDQ model the bias has a DequantizeLinear with a scale of its own. Once ONNX Runtime has fused
#   DequantizeLinear -> Gemm -> QuantizeLinear   into   QGemm,
# it takes the bias's int32 levels as steps of input scale · weight scale and drops the scale that the file states.
# Why one guesses wrong: the same file, unfused (ORT_DISABLE_ALL), uses the stated scale, and so does every reading of the
# ONNX standard; no warning is printed, and nothing in the file is invalid.
# Who meets it: exporters that round the bias's scale, share one bias between two layers, or fold a factor into the weights.
# Versions: onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6, CPUExecutionProvider, default session options.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
cat > "$folder/bias.py" <<'PYTHON'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper


def model(factor):
    """Return Q(Gemm(DQ(x), DQ(w), DQ(b))) whose bias has the scale input scale · weight scale · factor."""
    constants = {
        "xs": np.float32(.02), "xz": np.uint8(128), "ws": np.float32(.01), "wz": np.int8(0), "ys": np.float32(.05),
        "yz": np.uint8(128), "w": np.eye(8, dtype=np.int8) * np.int8(50), "b": np.full(8, 1000, np.int32),
        "bs": np.float32(.02) * np.float32(.01) * np.float32(factor), "bz": np.int32(0)}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"]),
        helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["bd"]),
        helper.make_node("Gemm", ["xd", "wd", "bd"], ["g"]),
        helper.make_node("QuantizeLinear", ["g", "ys", "yz"], ["yq"]),
        helper.make_node("DequantizeLinear", ["yq", "ys", "yz"], ["y"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, 8)) for name in "xy"]
    graph = helper.make_graph(nodes, "bias", ends[:1], ends[1:],
                              [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    return made.SerializeToString()


def computed(content, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": np.linspace(-1, 1, 8, dtype=np.float32).reshape(1, 8)})[0]


levels = onnxruntime.GraphOptimizationLevel
print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
for factor in (1, 2, 4):
    apart = np.abs(computed(model(factor), levels.ORT_DISABLE_ALL) - computed(model(factor), levels.ORT_ENABLE_ALL)) / .05
    print(f"bias scale = {factor} x input scale x weight scale: fused and unfused are up to {apart.max():.1f} levels apart")
    expected = {1: 0, 2: 4, 4: 12}[factor]
    if abs(apart.max() - expected) > 1.01:
        sys.exit(f"changed: {expected} levels were expected")
PYTHON
"$folder/venv/bin/python" "$folder/bias.py"
echo "as described: the fused operator ignores the bias's own scale"
