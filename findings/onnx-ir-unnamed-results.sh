#!/usr/bin/env bash
# onnx-ir drops results without a name at the end of a node, also where their number says what the node does.
#
# Surprise: a model that onnx-ir reads and writes again, changing nothing, computes something else. A Split whose second
# half nobody reads may leave that result unnamed (""). Before opset 18 nothing but the number of its results says into how
# many parts it splits. Written again it has one result, and gives the whole tensor instead of the first half. onnx's checker
# accepts the model before and after, with full_check. A Loop whose last results are unnamed has fewer than its body then,
# and is no valid model any more; in front of a named one an unnamed result is kept.
# Why one guesses wrong: optional results at the end may be left out, and then nothing changes. Those of Split and Loop
# are of any number, and none of them is optional in this sense.
# Versions: onnx-ir 1.1.0, onnx 1.23.2, numpy 2.4.6.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check onnx-ir==1.1.0 onnx==1.23.2 numpy==2.4.6
cat > "$folder/unnamed.py" <<'PYTHON'
import sys

import numpy as np
import onnx
import onnx_ir
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

X = np.arange(4, dtype=np.float32)


def model(node, extent, constants=()):
    graph = helper.make_graph(
        [node], "unnamed", [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, extent)],
        [numpy_helper.from_array(values, name) for name, values in constants])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def loop():
    """Three steps add one; their squares, one for each step, are the last result, without a name."""
    scalar = [helper.make_tensor_value_info(name, kind, []) for name, kind in
              (("step", TensorProto.INT64), ("going", TensorProto.BOOL))]
    state = [helper.make_tensor_value_info(name, TensorProto.FLOAT, X.shape) for name in ("state", "next", "square")]
    goes_on = helper.make_tensor_value_info("goes_on", TensorProto.BOOL, [])
    body = helper.make_graph(
        [helper.make_node("Identity", ["going"], ["goes_on"]), helper.make_node("Add", ["state", "one"], ["next"]),
         helper.make_node("Mul", ["state", "state"], ["square"])],
        "body", [*scalar, state[0]], [goes_on, *state[1:]], [numpy_helper.from_array(np.float32(1), "one")])
    constants = (("count", np.array(3, np.int64)), ("go", np.array(True)))
    return model(helper.make_node("Loop", ["count", "go", "x"], ["y", ""], body=body), X.shape, constants)


def valid(made):
    try:
        onnx.checker.check_model(made, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        print("  the checker says:", str(error).strip().splitlines()[0][:150])
        return False
    return True


def again(made):
    return onnx_ir.to_proto(onnx_ir.from_proto(made))


def value(made):
    return ReferenceEvaluator(made).run(None, {"x": X})[0].tolist()


print("onnx-ir", onnx_ir.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
first = model(helper.make_node("Split", ["x"], ["y", ""], axis=0), ["extent"])
second = model(helper.make_node("Split", ["x"], ["", "y"], axis=0), ["extent"])
steps = loop()
for name, made in (("first half", first), ("second half", second), ("loop", steps)):
    print(name, list(made.graph.node[0].output), value(made), "written again:", list(again(made).graph.node[0].output))
checks = {
    "all three models are valid": all([valid(first), valid(second), valid(steps)]),
    "the first half is the whole tensor, in a valid model": value(first) == [0, 1] and value(again(first)) == [0, 1, 2, 3]
    and valid(again(first)),
    "the second half stays": value(second) == value(again(second)) == [2, 3],
    "the loop is not valid any more": not valid(again(steps)),
}
for name, holds in checks.items():
    print("still so:" if holds else "CHANGED:", name)
sys.exit(0 if all(checks.values()) else 1)
PYTHON
"$folder/venv/bin/python" "$folder/unnamed.py"
