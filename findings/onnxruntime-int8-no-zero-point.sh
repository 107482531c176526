#!/usr/bin/env bash
# ONNX Runtime refuses valid int8 models that leave out the zero points of their results, with a message about uint8.
#
# Surprise: the zero point of QuantizeLinear is optional, and is 0 of the output's own type. Symmetric int8 needs none: since
# opset 21 an attribute, output_dtype, says int8. A session with default options fuses additions, products, averages,
# concatenations, Softmax and tables into operators that want a zero point, invents one of uint8 for the one that is missing,
# and then calls the graph wrong: "bound to different types (tensor(int8) and tensor(uint8))". Convolutions, MatMul and MaxPool
# of the same kind run; so do all if only the DequantizeLinear of the inputs leave theirs out, or at ORT_DISABLE_ALL.
# Why one guesses wrong: the file holds no uint8, onnx's checker is content, the convolutions of a network run, and its first
# residual addition then fails on an operator that is not in the file. Writing zeros that mean nothing makes it run.
# Who meets it: whoever writes symmetric QDQ files of opset 21 or later, or trims zero points of 0, as the standard allows.
# Versions: onnxruntime 1.32.0, onnx 1.23.2, numpy 2.4.6, CPUExecutionProvider, default session options.
#
# Exit status: 0 if it still behaves so; not 0 if it has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6
cat > "$folder/zeros.py" <<'PYTHON'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

RNG = np.random.default_rng(0)
IMAGE, MATRIX = (1, 4, 6, 6), (6, 6)
OPERATORS = {
    "Add": ([IMAGE, IMAGE], {}), "Mul": ([IMAGE, IMAGE], {}), "Concat": ([IMAGE, IMAGE], {"axis": 1}),
    "AveragePool": ([IMAGE], {"kernel_shape": [2, 2]}), "GlobalAveragePool": ([IMAGE], {}), "Softmax": ([MATRIX], {}),
    "LeakyRelu": ([IMAGE], {}), "Sigmoid": ([IMAGE], {}), "Conv": ([IMAGE, (4, 4, 3, 3)], {}),
    "MatMul": ([MATRIX, MATRIX], {}), "MaxPool": ([IMAGE], {"kernel_shape": [2, 2]})}
"""By operator: the shapes of its inputs, all int8, and its attributes."""

RUN = {"Conv", "MatMul", "MaxPool"}


def model(operator, inputs_have_zero, output_has_zero):
    shapes, attributes = OPERATORS[operator]
    nodes, given = [], []
    for i, shape in enumerate(shapes):
        given.append(helper.make_tensor_value_info(f"x{i}", TensorProto.INT8, shape))
        nodes.append(helper.make_node("DequantizeLinear", [f"x{i}", "s"] + ["z"] * inputs_have_zero, [f"d{i}"]))
    nodes.append(helper.make_node(operator, [f"d{i}" for i in range(len(shapes))], ["r"], **attributes))
    if output_has_zero:
        nodes.append(helper.make_node("QuantizeLinear", ["r", "s", "z"], ["y"]))
    else:
        nodes.append(helper.make_node("QuantizeLinear", ["r", "s"], ["y"], output_dtype=TensorProto.INT8))
    constants = [numpy_helper.from_array(np.asarray(np.float32(1 / 16)), "s")]
    if inputs_have_zero or output_has_zero:
        constants.append(numpy_helper.from_array(np.zeros((), np.int8), "z"))
    rank = len(shapes[0])
    graph = helper.make_graph(
        nodes, operator, given, [helper.make_tensor_value_info("y", TensorProto.INT8, [None] * rank)], constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(made, full_check=True)
    return made, {f"x{i}": RNG.integers(-128, 128, shape).astype(np.int8) for i, shape in enumerate(shapes)}


def run(made, feeds, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level, options.log_severity_level = level, 4
    session = onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)[0].astype(int)


def outcome(made, feeds):
    """Whether it runs, or the last words of the error; and whether all that run agree with onnx.reference to a level."""
    levels = onnxruntime.GraphOptimizationLevel
    plain, standard = run(made, feeds, levels.ORT_DISABLE_ALL), ReferenceEvaluator(made).run(None, feeds)[0]
    agree = np.abs(plain - standard.astype(int)).max() <= 1
    try:
        fused = run(made, feeds, levels.ORT_ENABLE_ALL)
    except Exception as error:
        return " ".join(str(error).split())[-90:], agree
    return "runs", agree and np.abs(plain - fused).max() <= 1


print("onnxruntime", onnxruntime.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
changed = False
for operator in OPERATORS:
    for kept in ((True, True), (False, False), (True, False), (False, True)):
        found, agree = outcome(*model(operator, *kept))
        print(f"{operator}: zero points of inputs {'given' if kept[0] else 'left out'}, "
              f"of output {'given' if kept[1] else 'left out'}: {found}")
        if not agree:
            print("CHANGED: what runs is not as the standard has it")
            changed = True
        if (found == "runs") != (kept[1] or operator in RUN):
            print("CHANGED: another result was expected")
            changed = True
if changed:
    sys.exit(1)
PYTHON
"$folder/venv/bin/python" "$folder/zeros.py"
echo "as described: a zero point that is left out is taken for one of uint8"
