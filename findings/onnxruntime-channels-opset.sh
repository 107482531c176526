#!/usr/bin/env bash
# ONNX Runtime's quantiser writes scales by channel into a model of opset 11, which ONNX Runtime then refuses to load.
#
# Surprise: QuantizeLinear and DequantizeLinear have an axis since opset 13. quantize_static(per_channel=True) of a model of
# opset 11 or 12 writes the DequantizeLinear of its weights with an axis all the same, and returns. Neither a session nor onnx's
# checker takes the file. Without per_channel, and in the QOperator format with it, the same model loads.
# Why one guesses wrong: older models are converted to opset 11 by the same function, and a quantiser loads what it has written,
# when it calibrates; nothing raises until the file is used.
# Who meets it: exports of opset 11, which many detectors' scripts still write.
# Versions: onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6, CPUExecutionProvider.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
cat > "$folder/channels.py" <<'PYTHON'
import logging
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static

logging.disable(logging.ERROR)
RNG = np.random.default_rng(0)
SAMPLES = RNG.standard_normal((4, 1, 3, 8, 8)).astype(np.float32)
WEIGHTS, BIAS = RNG.standard_normal((4, 3, 3, 3)).astype(np.float32), np.ones(4, np.float32)


class Samples(CalibrationDataReader):
    def __init__(self):
        self.left = [{"x": sample} for sample in SAMPLES]

    def get_next(self):
        return self.left.pop() if self.left else None


def write(opset):
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w", "b"], ["y"], "conv")], "conv",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 8, 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 4, 6, 6))],
        [numpy_helper.from_array(WEIGHTS, "w"), numpy_helper.from_array(BIAS, "b")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), "float.onnx")


def loads(file):
    try:
        onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    except Exception as error:
        return "INVALID_GRAPH" if "INVALID_GRAPH" in str(error) else str(error)
    return "loads"


def is_valid(file):
    try:
        onnx.checker.check_model(file)
    except onnx.checker.ValidationError:
        return False
    return True


CASES = [(11, True, QuantFormat.QDQ, ("INVALID_GRAPH", False)), (12, True, QuantFormat.QDQ, ("INVALID_GRAPH", False)),
         (13, True, QuantFormat.QDQ, ("loads", True)), (11, False, QuantFormat.QDQ, ("loads", True)),
         (11, True, QuantFormat.QOperator, ("loads", True))]
"""Opset, whether each channel has a scale, the format, and what a session and onnx's checker say."""

print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
changed = False
for opset, per_channel, form, wanted in CASES:
    write(opset)
    quantize_static("float.onnx", "quantised.onnx", Samples(), quant_format=form, per_channel=per_channel)
    found = loads("quantised.onnx"), is_valid("quantised.onnx")
    print(f"opset {opset}, per channel {per_channel}, {form.name}: a session says {found[0]}, valid: {found[1]}")
    if found != wanted:
        print("CHANGED: expected was", wanted)
        changed = True
if changed:
    sys.exit(1)
PYTHON
cd "$folder"
"$folder/venv/bin/python" channels.py
echo "as described: scales by channel below opset 13 make a file that nothing loads"
