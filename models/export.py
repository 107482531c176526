"""Float ONNX → int8: one float network in, one quantised ONNX file out, by ONNX Runtime's quantiser.

The QDQ form is symmetric: zero points are 0 and ReLU stays a node of its own. The QOperator form is
asymmetric: each ReLU becomes the lower clamp of the operator before it, so all nodes are integer operators
with zero points.
"""

import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import QuantFormat
from onnxruntime.quantization.shape_inference import quant_pre_process

from tilewright.models.static_quantiser import SampleReader, quantise_file

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
        quantise_file(prepared, target, SampleReader({INPUT: image[np.newaxis]} for image in calibration), form=form)
    onnx.checker.check_model(onnx.load(target), full_check=True)


def logits(model: Path | onnx.ModelProto, images: np.ndarray) -> np.ndarray:
    """Run ``model`` on each of ``images`` in ONNX Runtime; float32 of shape (n, classes)."""
    options = onnxruntime.SessionOptions()
    # Without this entry, half of a signed QDQ network silently runs in float32 on x86.
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    content = model.read_bytes() if isinstance(model, Path) else model.SerializeToString()
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return np.concatenate([session.run([OUTPUT], {INPUT: image[np.newaxis]})[0] for image in images])
