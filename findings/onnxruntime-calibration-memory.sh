#!/usr/bin/env bash
# ONNX Runtime's quantiser forgets images that it calibrated with, when it is told how many to hold at once.
#
# Surprise: CalibMaxIntermediateOutputs = N is the option against running out of memory; after N images, says its description, a
# range is computed in between. The images are thrown away and nothing is computed. What is left is the rest of the division: of
# 8 images with N = 5 the last three count, with N = 7 the last one; with N = 4 nothing is left, and the message says that no
# data was collected. Another option beside it, CalibMovingAverageConstant, has no effect: CalibMovingAverage takes the plain mean
# of all images whatever the constant is. CalibStridedMinMax, an option of the same kind, does both: it holds few images, the
# range is that of all, and the constant counts.
# Why one guesses wrong: the name and the description promise a bound on memory, and the log is the same as without the option;
# the result is a valid model whose scales are only too small, and its accuracy changes with the number of images as if more of
# them were worse.
# Versions: onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6, CPUExecutionProvider.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
cat > "$folder/images.py" <<'PYTHON'
import logging
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static

logging.disable(logging.WARNING)
FLOAT_FILE, QUANTISED_FILE = (f"{sys.argv[1]}/{name}.onnx" for name in ("float", "quantised"))
random = np.random.default_rng(0)
PEAKS = (2, 16, 3, 8, 1, 6, 5, 4)
IMAGES = [(random.uniform(-1, 1, (1, 3, 16, 16)) * peak).astype(np.float32) for peak in PEAKS]
for image, peak in zip(IMAGES, PEAKS):
    image[0, 0, 0, :2] = -peak, peak  # image K has values from -PEAKS[K] to PEAKS[K]


class Images(CalibrationDataReader):
    def __init__(self):
        self.rest = iter(IMAGES)

    def __len__(self):
        return len(IMAGES)

    def set_range(self, start_index, end_index):
        self.rest = iter(IMAGES[start_index:end_index])

    def get_next(self):
        image = next(self.rest, None)
        return None if image is None else {"x": image}


def write_model():
    weights = random.normal(size=(4, 3, 3, 3)).astype(np.float32)
    graph = helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"])], "conv",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 14, 14])],
                              [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, FLOAT_FILE)


def largest(**options):
    """Return the largest value of x that the scale written for it holds, or the error."""
    try:
        quantize_static(FLOAT_FILE, QUANTISED_FILE, Images(), activation_type=QuantType.QInt8,
                        extra_options={"CalibTensorRangeSymmetric": True, **options})
    except ValueError as error:
        return str(error)
    constants = {one.name: numpy_helper.to_array(one) for one in onnx.load(QUANTISED_FILE).graph.initializer}
    return round(constants["x_scale"].item() * 127.5, 3)


print(f"onnxruntime {onnxruntime.__version__}, onnx {onnx.__version__}, numpy {np.__version__}; peaks of the images: {PEAKS}")
write_model()
AVERAGE = {"CalibMovingAverage": True}
EXPECTED = {"no option": ({}, max(PEAKS)),
            "hold 3": ({"CalibMaxIntermediateOutputs": 3}, max(PEAKS[6:])),
            "hold 4": ({"CalibMaxIntermediateOutputs": 4}, "No data is collected."),
            "hold 5": ({"CalibMaxIntermediateOutputs": 5}, max(PEAKS[5:])),
            "hold 7": ({"CalibMaxIntermediateOutputs": 7}, PEAKS[7]),
            "hold 9": ({"CalibMaxIntermediateOutputs": 9}, max(PEAKS)),
            "strides of 4": ({"CalibStridedMinMax": 4}, max(PEAKS)),
            "average": (AVERAGE, sum(PEAKS) / 8),
            "average, constant 0": ({**AVERAGE, "CalibMovingAverageConstant": 0.0}, sum(PEAKS) / 8),
            "average, constant 1": ({**AVERAGE, "CalibMovingAverageConstant": 1.0}, sum(PEAKS) / 8),
            "average, constant 0, strides of 1": (
                {**AVERAGE, "CalibMovingAverageConstant": 0.0, "CalibStridedMinMax": 1}, PEAKS[0]),
            "average, constant 1, strides of 1": (
                {**AVERAGE, "CalibMovingAverageConstant": 1.0, "CalibStridedMinMax": 1}, PEAKS[7])}
wrong = []
for name, (options, expected) in EXPECTED.items():
    found = largest(**options)
    print(f"{name:34} largest value: {found}")
    if found != expected:
        wrong.append(f"{name}: {expected} was expected")
if wrong:
    sys.exit("CHANGED: " + "; ".join(wrong))
print("STILL SO: images are forgotten, and the constant of the moving average has no effect without strides.")
PYTHON
"$folder/venv/bin/python" "$folder/images.py" "$folder"
