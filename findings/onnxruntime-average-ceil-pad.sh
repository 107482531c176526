#!/usr/bin/env bash
# ONNX Runtime's fused AveragePool divides by cells that lie beyond the padded image.
#
# Surprise: with ceil_mode=1 and count_include_pad=1 the last window may reach beyond the padding. The standard, and ONNX
# Runtime's own float kernel, divide its sum by the cells within the padded image. QLinearAveragePool, into which
#   DequantizeLinear -> AveragePool -> QuantizeLinear   is fused, divides by the whole window.
# On a 5x5 image with 2x2 windows of stride 2 the corner's window holds one pixel: its average is that pixel, and fused a
# quarter of it.
# Why one guesses wrong: the default session fuses without a word, both settings alone are right when fused, and a quantised
# operator is expected to be within a level of the float one.
# Who meets it: exports of PyTorch's AvgPool2d(ceil_mode=True), whose count_include_pad is True unless said otherwise.
# Versions: onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6, CPUExecutionProvider, default session options.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
cat > "$folder/average.py" <<'PYTHON'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

SCALE = np.float32(.02)
LEVEL = 100
"""Of every pixel: each average is level 100 too, or a part of it."""


def model(ceil_mode, count_include_pad):
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
        helper.make_node("AveragePool", ["xd"], ["a"], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=ceil_mode,
                         count_include_pad=count_include_pad),
        helper.make_node("QuantizeLinear", ["a", "s", "z"], ["y"])]
    side = 3 if ceil_mode else 2
    graph = helper.make_graph(
        nodes, "average", [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 1, 5, 5))],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, (1, 1, side, side))],
        [numpy_helper.from_array(np.asarray(SCALE), "s"), numpy_helper.from_array(np.asarray(np.uint8(0)), "z")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    onnx.checker.check_model(made, full_check=True)
    return made


def last_level(made, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return int(session.run(None, {"x": IMAGE})[0][0, 0, -1, -1])


IMAGE = np.full((1, 1, 5, 5), LEVEL * SCALE, np.float32)
levels = onnxruntime.GraphOptimizationLevel
print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
for ceil_mode, count_include_pad in ((0, 1), (1, 0), (1, 1)):
    made = model(ceil_mode, count_include_pad)
    fused, unfused = (last_level(made, level) for level in (levels.ORT_ENABLE_ALL, levels.ORT_DISABLE_ALL))
    standard = int(ReferenceEvaluator(made).run(None, {"x": IMAGE})[0][0, 0, -1, -1])
    print(f"ceil_mode={ceil_mode}, count_include_pad={count_include_pad}: the corner is level {fused} fused, "
          f"{unfused} unfused, {standard} by onnx.reference")
    if (unfused, standard) != (LEVEL, LEVEL):
        sys.exit(f"changed: {LEVEL} was expected unfused and of onnx.reference")
    if fused != (LEVEL // 4 if ceil_mode and count_include_pad else LEVEL):
        sys.exit("changed: the fused result is another one")
PYTHON
"$folder/venv/bin/python" "$folder/average.py"
echo "as described: the fused operator divides by the whole window"
