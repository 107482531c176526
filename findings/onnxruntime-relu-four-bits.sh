#!/usr/bin/env bash
# ONNX Runtime leaves out a ReLU whose result is quantised to four bits or to float8: negative values go on as they are.
#
# Surprise: the default session takes a Relu away where the QuantizeLinear after it cuts off what is below 0 anyway. That holds
# if the zero point is the type's lowest level, and this is looked at for int8, uint8, int16 and uint16. For int4, uint4 and
# float8 the Relu is taken away whatever the zero point: a signed int4 tensor with zero point 0, the usual symmetric form, then
# holds -8 to 7 where the file says 0 to 7. A Clip between quantised tensors in its place makes the session fail: of a valid
# file it says "Unexpected data type for QuantizeLinear input y_zero_point".
# Why one guesses wrong: with ORT_DISABLE_ALL the values are right, and so are those of onnx.reference; int8 for int4 is
# right at every level; and an operator that no one replaces is not expected to be missing.
# Who meets it: activations of four bits (QAT with Brevitas or PyTorch, opset 21) and of float8.
# Versions: onnxruntime 1.32.0, onnx 1.23.2, ml_dtypes 0.6.0, numpy 2.4.6, CPUExecutionProvider, default session options.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check onnxruntime==1.32.0 onnx==1.23.2 ml_dtypes==0.6.0 numpy==2.4.6
cat > "$folder/relu.py" <<'PYTHON'
import sys

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

VALUES = np.array([-3, -2, -1, 0, 1, 2, 3], np.float32)
ZERO_POINTS = {
    "int8": np.zeros((), np.int8), "uint8": np.asarray(np.uint8(128)), "int16": np.zeros((), np.int16),
    "int4": np.zeros((), ml_dtypes.int4), "uint4": np.asarray(8).astype(ml_dtypes.uint4),
    "float8e4m3fn": np.zeros((), ml_dtypes.float8_e4m3fn)}
"""By type: its zero point, which stands in the middle of its levels."""

LOSES = {"int4", "uint4", "float8e4m3fn"}


def model(operator, zero_point):
    bounds = ["low", "high"] if operator == "Clip" else []
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "byte"], ["bytes"]),
        helper.make_node("DequantizeLinear", ["bytes", "scale", "byte"], ["given"]),
        helper.make_node(operator, ["given", *bounds], ["positive"]),
        helper.make_node("QuantizeLinear", ["positive", "scale", "zero"], ["levels"]),
        helper.make_node("DequantizeLinear", ["levels", "scale", "zero"], ["y"])]
    constants = {"scale": np.asarray(np.float32(1)), "byte": np.zeros((), np.int8), "zero": zero_point}
    if bounds:
        constants.update(low=np.asarray(np.float32(0)), high=np.asarray(np.float32(6)))
    graph = helper.make_graph(
        nodes, "relu", [helper.make_tensor_value_info("x", TensorProto.FLOAT, VALUES.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, VALUES.shape)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(made, full_check=True)
    return made


def run(made, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = level, 4
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": VALUES})[0]


def session_is_made(made, level):
    try:
        run(made, level)
    except Exception as error:
        print(f"    {type(error).__name__}: ... {str(error).strip()[-75:]}")
        return False
    return True


levels = onnxruntime.GraphOptimizationLevel
print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
print("x", VALUES.tolist())
changed = False
for kind, zero_point in ZERO_POINTS.items():
    relu, clip = model("Relu", zero_point), model("Clip", zero_point)
    fused, plain = run(relu, levels.ORT_ENABLE_ALL), run(relu, levels.ORT_DISABLE_ALL)
    standard = ReferenceEvaluator(relu).run(None, {"x": VALUES})[0]
    print(f"{kind}: Relu by default {fused.tolist()}, unfused {plain.tolist()}")
    wanted = {
        "unfused there is a Relu": np.array_equal(plain, np.maximum(VALUES, 0)),
        "by onnx.reference too": np.array_equal(standard, plain),
        "by default it is " + ("missing" if kind in LOSES else "there"):
            np.array_equal(fused, VALUES if kind in LOSES else plain),
        "a Clip unfused runs": session_is_made(clip, levels.ORT_DISABLE_ALL),
        "a Clip by default " + ("is refused" if kind in LOSES else "runs"):
            session_is_made(clip, levels.ORT_ENABLE_ALL) == (kind not in LOSES)}
    for text, holds in wanted.items():
        if not holds:
            print(f"CHANGED: {kind}: {text}")
            changed = True
if changed:
    sys.exit(1)
PYTHON
"$folder/venv/bin/python" "$folder/relu.py"
echo "as described: a Relu is missing in front of four bits and of float8"
