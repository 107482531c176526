#!/usr/bin/env bash
# torch's exporters drop the divisor of an AvgPool2d: a sum of windows leaves as an average.
#
# Surprise: AvgPool2d(2, divisor_override=1) adds four numbers, and torch computes it so. Both exporters, the older one and that
# of dynamo, write AveragePool with nothing beside it, which divides by four, and neither warns. What sums pixels this way is four
# or nine times too small.
# Why one guesses wrong: both exporters refuse what ONNX has no operator for, such as FractionalMaxPool2d, and this is one Mul
# away; count_include_pad and ceil_mode of the same module arrive.
# Who meets it: saliency maps, pixel counts and box filters built of AvgPool2d.
# Versions: torch 2.13.0, onnx 1.23.2, onnxscript 0.7.2, onnxruntime 1.32.0, numpy 2.4.6, CPUExecutionProvider.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check torch==2.13.0 onnx==1.23.2 onnxscript==0.7.2 \
    onnxruntime==1.32.0 numpy==2.4.6
cat > "$folder/divisor.py" <<'PYTHON'
import logging
import sys
import warnings

import numpy as np
import onnx
import onnxruntime
import torch

logging.disable(logging.ERROR)
WINDOWS = {"2x2, divisor 1": (torch.nn.AvgPool2d(2, divisor_override=1), 4), "3x3, divisor 4": (
    torch.nn.AvgPool2d(3, divisor_override=4), 9 / 4), "3x3": (torch.nn.AvgPool2d(3), 1), "3x3, padding not counted": (
    torch.nn.AvgPool2d(3, padding=1, count_include_pad=False), 1)}
"""By name: a module, and how many times what the exported file computes its result is."""
IMAGE = torch.rand(1, 2, 9, 9, generator=torch.Generator().manual_seed(0)) + 1

print("torch", torch.__version__, "onnx", onnx.__version__, "onnxruntime", onnxruntime.__version__)
changed = False
for name, (module, wanted) in WINDOWS.items():
    for dynamo in (False, True):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            torch.onnx.export(module.eval(), (IMAGE,), "pool.onnx", dynamo=dynamo, opset_version=18, input_names=["x"],
                              **({"verbose": False} if dynamo else {}))
        operators = [node.op_type for node in onnx.load("pool.onnx").graph.node]
        session = onnxruntime.InferenceSession("pool.onnx", providers=["CPUExecutionProvider"])
        (found,) = session.run(None, {"x": IMAGE.numpy()})
        ratio = module(IMAGE).numpy() / found
        warned = any("divisor" in str(each.message) for each in said)
        print(f"{name}, dynamo {dynamo}: {operators}, torch's result is {ratio.mean():.3f} times the file's"
              f"{', with a warning' if warned else ''}")
        if operators != ["AveragePool"] or not np.allclose(ratio, wanted, rtol=1e-4) or warned:
            print("CHANGED: expected was one AveragePool, without a warning, and", wanted)
            changed = True
if changed:
    sys.exit(1)
PYTHON
cd "$folder"
"$folder/venv/bin/python" divisor.py
echo "as described: the divisor is lost"
