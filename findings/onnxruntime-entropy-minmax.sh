#!/usr/bin/env bash
# ONNX Runtime's quantiser, asked to calibrate by entropy, gives the smallest and largest value: the method cuts nothing off.
#
# Surprise: CalibrationMethod.Entropy seeks the threshold between which 128 levels keep most of the distribution, and tries all
# widths from 128 bins up to the whole histogram. Its histogram has 128 bins by default too, so there is one width to try, the
# whole range, and the divergence decides nothing. quantize_static gives all images in one histogram, and has no option for the
# number of bins, so that its result is that of MinMax to the last bit, outliers and all. The option CalibTensorRangeSymmetric has
# no effect on it either. With 2,048 bins, which only create_calibrator lets one choose, the same data give a range a fifth as wide.
# Why one guesses wrong: it is the method named after TensorRT's, which exists to cut outliers off; it says that it seeks the best
# threshold for each tensor, and takes longer. A study that compares MinMax with Entropy finds "no difference" and believes it.
# Versions: onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6, CPUExecutionProvider.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
cat > "$folder/entropy.py" <<'PYTHON'
import contextlib
import io
import logging
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import (CalibrationDataReader, CalibrationMethod, QuantType, create_calibrator,
                                      quantize_static)

logging.disable(logging.WARNING)
FLOAT_FILE, QUANTISED_FILE, AUGMENTED_FILE = (f"{sys.argv[1]}/{name}.onnx" for name in ("float", "quantised", "augmented"))
random = np.random.default_rng(0)
IMAGES = [np.clip(random.normal(size=(1, 3, 16, 16)), -4, 4).astype(np.float32) for _ in range(8)]
IMAGES[2][0, 0, 0, 0], IMAGES[5][0, 0, 0, 0] = 40, -20  # two outliers among 6,144 values


class Images(CalibrationDataReader):
    def __init__(self, images):
        self.rest = iter(images)

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


def quantised(method, images=IMAGES, **options):
    """Return the scales and zero points of both tensors that quantize_static writes."""
    with contextlib.redirect_stdout(io.StringIO()):
        quantize_static(FLOAT_FILE, QUANTISED_FILE, Images(images), calibrate_method=method, activation_type=QuantType.QInt8,
                        extra_options=options)
    constants = {one.name: numpy_helper.to_array(one) for one in onnx.load(QUANTISED_FILE).graph.initializer}
    return {name: (constants[name + "_scale"].item(), constants[name + "_zero_point"].item()) for name in "xy"}


def calibrated(**options):
    """Return the range of x that the entropy calibrator alone finds."""
    with contextlib.redirect_stdout(io.StringIO()):
        calibrator = create_calibrator(FLOAT_FILE, augmented_model_path=AUGMENTED_FILE,
                                       calibrate_method=CalibrationMethod.Entropy, extra_options=options)
        calibrator.collect_data(Images(IMAGES))
        low, high = calibrator.compute_data()["x"].range_value
    return float(low), float(high)


print(f"onnxruntime {onnxruntime.__version__}, onnx {onnx.__version__}, numpy {np.__version__}")
write_model()
largest = quantised(CalibrationMethod.MinMax)
symmetric = quantised(CalibrationMethod.MinMax, CalibTensorRangeSymmetric=True)
cases = {"Entropy": quantised(CalibrationMethod.Entropy),
         "Entropy, images in reverse": quantised(CalibrationMethod.Entropy, IMAGES[::-1]),
         "Entropy, symmetric": quantised(CalibrationMethod.Entropy, CalibTensorRangeSymmetric=True)}
percentile = quantised(CalibrationMethod.Percentile, CalibPercentile=99.9)
few, many = calibrated(), calibrated(num_bins=2048)
for name, found in {"MinMax": largest, "MinMax, symmetric": symmetric, **cases, "Percentile 99.9": percentile}.items():
    print(f"{name:27} scale and zero point: x {found['x']}, y {found['y']}")
print(f"calibrator of its own: 128 bins, the default: x from {few[0]:.2f} to {few[1]:.2f}; "
      f"2,048 bins: {many[0]:.2f} to {many[1]:.2f}")
wrong = [f"{name} differs from MinMax" for name, found in cases.items() if found != largest]
if symmetric == largest:
    wrong.append("CalibTensorRangeSymmetric has no effect on MinMax")
if not percentile["x"][0] < largest["x"][0] / 4:
    wrong.append("Percentile does not cut the outliers off")
if few != (-20, 40):
    wrong.append("the calibrator's default range is not the smallest and largest value")
if not many[1] - many[0] < 15:
    wrong.append("2,048 bins do not cut the outliers off")
if wrong:
    sys.exit("CHANGED: " + "; ".join(wrong))
print("STILL SO: Entropy writes what MinMax writes.")
PYTHON
"$folder/venv/bin/python" "$folder/entropy.py" "$folder" 2> "$folder/errors" || { cat "$folder/errors" >&2; exit 1; }
