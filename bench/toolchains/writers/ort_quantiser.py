"""ONNX Runtime's own quantiser: static, QDQ or QOperator, and dynamic; and its sessions, which write what they fuse."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
from onnxruntime.quantization import (
    CalibrationDataReader,
    CalibrationMethod,
    QuantFormat,
    QuantType,
    quant_pre_process,
    quantize_dynamic,
    quantize_static,
)

from tilewright.bench.toolchains.writers.writer_job import Work, run

__all__ = ["quantised"]


class _Samples(CalibrationDataReader):
    def __init__(self, work: Work) -> None:
        self._left = [{"image": each} for each in work.batches]

    def get_next(self) -> dict[str, Any] | None:
        return self._left.pop() if self._left else None


def quantised(work: Work, target: Path) -> None:
    """Write a network through ``quantize_static``, or ``quantize_dynamic`` if ``dynamic`` is among the arguments."""
    given = dict(work.arguments)
    for key in ("optimised", "external"):
        given.pop(key, None)
    if opset := given.pop("opset", None):
        source = target.with_suffix(".opset.onnx")
        onnx.save(onnx.version_converter.convert_version(onnx.load(work.model), opset), source)
    else:
        source = work.model
    if given.pop("prepared", False):
        prepared = target.with_suffix(".prepared.onnx")
        quant_pre_process(str(source), str(prepared))
        source = prepared
    types = {key: QuantType[given.pop(key)] for key in ("activation_type", "weight_type") if key in given}
    if given.pop("dynamic", False):
        quantize_dynamic(source, target, **types, **given)
        return
    nodes = onnx.load(source).graph.node
    named = [node.name for node in nodes if node.op_type in ("Conv", "Gemm", "MatMul")]
    if given.pop("first_and_last_excluded", False):
        given["nodes_to_exclude"] = [named[0], named[-1]]
    if given.pop("middle_excluded", False):
        given["nodes_to_exclude"] = [named[len(named) // 2]]
    if left := given.pop("left", None):
        given["op_types_to_quantize"] = sorted({node.op_type for node in nodes} - set(left))
    quantize_static(source, target, _Samples(work), quant_format=QuantFormat[given.pop("quant_format", "QDQ")],
                    calibrate_method=CalibrationMethod[given.pop("calibrate_method", "MinMax")], **types, **given)


def _write(work: Work) -> None:
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder, "quantised.onnx")
        quantised(work, plain)
        if level := work.arguments.get("optimised"):
            options = onnxruntime.SessionOptions()
            options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_ENABLE_{level}")
            options.optimized_model_filepath = str(work.target)
            options.log_severity_level = 3
            onnxruntime.InferenceSession(plain, options, providers=["CPUExecutionProvider"])
        elif work.arguments.get("external"):
            onnx.save(onnx.load(plain), work.target, save_as_external_data=True, size_threshold=256,
                      location=work.target.with_suffix(".data").name)
        else:
            shutil.copy(plain, work.target)


if __name__ == "__main__":
    run(_write)
