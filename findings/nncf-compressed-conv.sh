#!/usr/bin/env bash
# NNCF compresses the weights of a convolution into a model that no ONNX Runtime runs.
#
# Surprise: compress_weights (weights alone, int8) takes an ONNX model with a Conv, reports "int8_sym, per-channel,
#   100 %", and the model that it returns passes ONNX's checker. But the DequantizeLinear of the kernel has a scale of three
#   dimensions, (outputs, 1, 1), beside the attribute axis; ONNX wants a vector there, and ONNX Runtime stops as it computes.
# Why one guesses wrong: a MatMul in the place of the Conv gets a vector of scales and runs, and neither NNCF nor the checker, whose
#   shape inference does not look at the rank of a scale, says anything.
# Who meets it: whoever compresses the weights of a CNN in ONNX, which NNCF offers as its step without data.
# Versions: nncf 3.4.0, onnx 1.23.2, onnxruntime 1.32.0, numpy 2.4.6, CPUExecutionProvider.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check nncf==3.4.0 onnx==1.23.2 onnxruntime==1.32.0 numpy==2.4.6
cat > "$folder/conv.py" <<'PYTHON'
import logging
import sys

import nncf
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper


def model(kernel):
    """Return a Conv of 64 channels by a window of ``kernel``, with float weights."""
    weights = np.random.default_rng(0).standard_normal((64, 64, kernel, kernel)).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], "conv", kernel_shape=[kernel, kernel])
    ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 64, 8, 8)),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 64, 9 - kernel, 9 - kernel))]
    graph = helper.make_graph([node], "conv", ends[:1], ends[1:], [numpy_helper.from_array(weights, "w")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    return made


def outcome(content):
    try:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        session.run(None, {"x": np.ones((1, 64, 8, 8), np.float32)})
        return "runs"
    except Exception as error:
        return "fails: " + str(error).split("Status Message: ")[-1].splitlines()[0][-120:]


nncf.set_log_level(logging.ERROR)
print("nncf", nncf.__version__, "onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)
changed = False
for kernel in (1, 3):
    made = nncf.compress_weights(model(kernel), mode=nncf.CompressWeightsMode.INT8_SYM)
    (dequantise,) = (node for node in made.graph.node if node.op_type == "DequantizeLinear")
    scale = next(tensor.dims for tensor in made.graph.initializer if tensor.name == dequantise.input[1])
    try:
        onnx.checker.check_model(made, full_check=True)
        checked = "valid"
    except Exception as error:
        checked = "invalid: " + str(error).splitlines()[0][:100]
    found = outcome(made.SerializeToString())
    print(f"{kernel}x{kernel} kernel: scale of shape {list(scale)}; the checker: {checked}; ONNX Runtime: {found}")
    changed |= found == "runs"
sys.exit("changed: it was expected to fail" if changed else 0)
PYTHON
cd "$folder"
"$folder/venv/bin/python" "$folder/conv.py" 2> "$folder/said" || { status=$?; tail -n 3 "$folder/said" >&2; exit $status; }
echo "as described: the compressed convolution does not run"
