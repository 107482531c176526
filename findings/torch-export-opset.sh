#!/usr/bin/env bash
# torch's newer exporter is asked for opset 11, 12 or 13 and writes 18.
#
# Surprise: torch.onnx.export(dynamo=True, opset_version=13) makes a model of opset 18, then converts it. Where onnx's converter
# fails the model is returned as it was: the call succeeds, and the file is of opset 18. A Conv and a Relu do so for 11 to 13, with
# a traceback in the log ("No Adapter From Version $14 for Relu"), while 14 and 17 are written as asked. The older exporter writes
# each of them as asked.
# Why one guesses wrong: an argument that cannot be obeyed is usually refused, and for neighbouring numbers it is obeyed.
# Who meets it: exports for engines that take opset 11 or 13, which then refuse the file or read it by other rules.
# Versions: torch 2.13.0, onnx 1.23.2, onnxscript 0.7.2, numpy 2.4.6.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check torch==2.13.0 onnx==1.23.2 onnxscript==0.7.2 numpy==2.4.6
cat > "$folder/asked.py" <<'PYTHON'
import logging
import sys
import warnings

import onnx
import onnxscript
import torch

logging.disable(logging.ERROR)
warnings.simplefilter("ignore")
WRITTEN = {11: (11, 18), 12: (12, 18), 13: (13, 18), 14: (14, 14), 17: (17, 17), 18: (18, 18), 20: (20, 20)}
"""By the opset that is asked for: that of the file of the older exporter, and of the newer one."""

print("torch", torch.__version__, "onnx", onnx.__version__, "onnxscript", onnxscript.__version__)
network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 1), torch.nn.ReLU()).eval()
changed = False
for asked, wanted in WRITTEN.items():
    found = []
    for dynamo in (False, True):
        torch.onnx.export(network, (torch.zeros(1, 3, 8, 8),), "net.onnx", dynamo=dynamo, opset_version=asked,
                          **({"verbose": False} if dynamo else {}))
        found.append(next(each.version for each in onnx.load("net.onnx").opset_import if not each.domain))
    print(f"asked for opset {asked}: the older exporter wrote {found[0]}, the newer one {found[1]}")
    if tuple(found) != wanted:
        print("CHANGED: expected were", wanted)
        changed = True
if changed:
    sys.exit(1)
PYTHON
cd "$folder"
"$folder/venv/bin/python" asked.py
echo "as described: opsets up to 13 are asked for in vain"
