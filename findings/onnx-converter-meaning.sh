#!/usr/bin/env bash
# onnx's version converter moves the pixels of an upsampling, and ONNX Runtime's quantiser calls it unasked.
#
# Surprise: convert_version makes of a linear Upsample (opset 7 to 9) or Resize (10) a Resize of opset 11 or later without
# coordinate_transformation_mode. Up to opset 10 pixels are scaled from the corner (asymmetric), and since then the attribute's
# default is half_pixel: the image moves by a quarter of a pixel, and each value with it. Converted down, a Softmax of one axis
# (opset 13) keeps its axis and becomes one over all later axes (12). Up, a Hardmax without an axis is over another one. The
# result passes onnx's checker, and nothing is said. quantize_static, which wants opset 11, converts an older model
# this way first, so that its quantised model is 6 dB from the float one, for 34 of the same network written in opset 13.
# Why one guesses wrong: converting is what the function is for, it refuses what it cannot do ("No Adapter"), and for Softmax
# upwards it takes pains to insert a Flatten. Nearest neighbours with whole factors come out right.
# Who meets it: networks for segmentation and detection that were exported in opset 9 or 10.
# Versions: onnx 1.23.2, onnxruntime 1.32.0, numpy 2.4.6, CPUExecutionProvider.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
cat > "$folder/convert.py" <<'PYTHON'
import logging
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper, version_converter
from onnxruntime.quantization import CalibrationDataReader, quantize_static

logging.disable(logging.WARNING)
RNG = np.random.default_rng(0)
IMAGE = (1, 4, 6, 6)
SAMPLES = RNG.standard_normal((8, *IMAGE)).astype(np.float32)
SCALES = np.array([1, 1, 2, 2], np.float32)
CASES = {
    "Upsample, linear": (["Upsample", ["x", "s"], {"mode": "linear"}], 9, 11, True),
    "Upsample, nearest": (["Upsample", ["x", "s"], {"mode": "nearest"}], 9, 11, False),
    "Resize, linear": (["Resize", ["x", "s"], {"mode": "linear"}], 10, 11, True),
    "Resize, nearest": (["Resize", ["x", "s"], {"mode": "nearest"}], 10, 11, False),
    "Softmax of axis 1": (["Softmax", ["x"], {"axis": 1}], 13, 12, True),
    "Softmax up": (["Softmax", ["x"], {"axis": 1}], 12, 13, False),
    "Hardmax": (["Hardmax", ["x"], {}], 12, 13, True)}
"""By name: a node, from which opset to which, and whether its values change."""


class Samples(CalibrationDataReader):
    def __init__(self):
        self.left = [{"x": sample} for sample in SAMPLES]

    def get_next(self):
        return self.left.pop() if self.left else None


def model(nodes, opset, constants):
    graph = helper.make_graph(
        nodes, "image", [helper.make_tensor_value_info("x", TensorProto.FLOAT, IMAGE)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    made = onnx.shape_inference.infer_shapes(made)
    onnx.checker.check_model(made, full_check=True)
    return made


def values(made):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return np.array([session.run(None, {"x": sample})[0] for sample in SAMPLES])


def converted(name):
    (operator, inputs, attributes), old, new, changes = CASES[name]
    before = model([helper.make_node(operator, inputs, ["y"], **attributes)], old, {"s": SCALES} if "s" in inputs else {})
    after = version_converter.convert_version(before, new)
    onnx.checker.check_model(after, full_check=True)
    largest = float(np.abs(values(before) - values(after)).max())
    print(f"{name}, opset {old} to {new}: values differ by up to {largest:.3g}")
    return (largest > .1) == changes


def quantised(opset):
    """How far the quantised model is from the float one, in dB, written in this opset."""
    if opset < 10:
        scale = helper.make_node("Upsample", ["h", "s"], ["u"], mode="linear")
    else:
        scale = helper.make_node("Resize", ["h", "", "s"], ["u"], mode="linear", coordinate_transformation_mode="asymmetric")
    weights = np.random.default_rng(1).standard_normal((2, 4, 4, 3, 3)).astype(np.float32) * .2
    nodes = [helper.make_node("Conv", ["x", "w"], ["h"], pads=[1] * 4), scale, helper.make_node("Conv", ["u", "v"], ["y"])]
    made = model(nodes, opset, {"w": weights[0], "v": weights[1], "s": SCALES})
    onnx.save(made, "float.onnx")
    quantize_static("float.onnx", "quantised.onnx", Samples())
    signal, other = values(made), values(onnx.load("quantised.onnx"))
    found = 10 * np.log10((signal**2).sum() / ((signal - other)**2).sum())
    print(f"quantize_static of a network written in opset {opset}: {found:.1f} dB from float, "
          f"opset {onnx.load('quantised.onnx').opset_import[0].version}")
    return found


print("onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__, "numpy", np.__version__)
checks = {name: converted(name) for name in CASES}
checks["quantize_static from opset 9"] = quantised(9) < 15
checks["quantize_static from opset 13"] = quantised(13) > 25
for name, holds in checks.items():
    if not holds:
        print("CHANGED:", name)
sys.exit(0 if all(checks.values()) else 1)
PYTHON
cd "$folder"
"$folder/venv/bin/python" convert.py 2>/dev/null
echo "as described: the converter changes what a model computes"
