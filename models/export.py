"""Float ONNX → int8: one float network in, one quantised ONNX file out, by ONNX Runtime's quantiser.

int8 activations with one scale per tensor, symmetric int8 weights with one scale per output channel: the form
whose integer kernels in ONNX Runtime can be matched bit for bit (int32 sum, one float32 multiplication,
round half to even).

The QDQ form is symmetric: zero points are 0 and ReLU stays a node of its own. The QOperator form is
asymmetric: each ReLU becomes the lower clamp of the operator before it, so all nodes are integer operators
with zero points.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

__all__ = ["INPUT", "OPSET", "OUTPUT", "logits", "quantize"]

OPSET = 17
INPUT, OUTPUT = "image", "logits"


def quantize(model: onnx.ModelProto | Path, calibration: np.ndarray, target: Path,
             form: QuantFormat = QuantFormat.QDQ) -> None:
    """Write ``model``, or the one in that file, as int8 to ``target``, with ranges from ``calibration`` (nchw)."""
    with tempfile.TemporaryDirectory() as folder:
        plain, prepared = Path(folder, "float.onnx"), Path(folder, "prepared.onnx")
        if isinstance(model, Path):
            plain = model
        else:
            onnx.save(model, plain)
        quant_pre_process(plain, prepared)
        quantize_static(
            prepared, target, _Images(calibration), quant_format=form, per_channel=True,
            activation_type=QuantType.QInt8, weight_type=QuantType.QInt8,
            extra_options={"ActivationSymmetric": form is QuantFormat.QDQ, "WeightSymmetric": True})
    onnx.checker.check_model(onnx.load(target), full_check=True)


def logits(model: Path | onnx.ModelProto, images: np.ndarray) -> np.ndarray:
    """Run ``model`` on each of ``images`` in ONNX Runtime; float32 of shape (n, classes)."""
    options = onnxruntime.SessionOptions()
    # Without this entry, half of a signed QDQ network silently runs in float32 on x86.
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    content = model.read_bytes() if isinstance(model, Path) else model.SerializeToString()
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return np.concatenate([session.run([OUTPUT], {INPUT: image[np.newaxis]})[0] for image in images])


class _Images(CalibrationDataReader):
    """Hands the calibration images to ONNX Runtime one at a time."""

    def __init__(self, images: np.ndarray) -> None:
        self._rest: Iterator[np.ndarray] = iter(images)

    def get_next(self) -> dict[str, np.ndarray] | None:
        image = next(self._rest, None)
        return None if image is None else {INPUT: image[np.newaxis]}
