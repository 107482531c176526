"""Errors of runtime/, word by word."""

from pathlib import Path

import numpy as np
import pytest

from tests.support.wording import raised_by
from tilewright.models import builtin
from tilewright.runtime.batches import require_batches
from tilewright.runtime.compared_run import require_folder
from tilewright.runtime.execution.records import RECORD_BYTES, read_record
from tilewright.runtime.model_source import find_model
from tilewright.runtime.oracle.inputs import NodeArg, check_inputs, read_inputs
from tilewright.runtime.ranges.compared_ranges import RangeRequest
from tilewright.runtime.ranges.ranges import parse_range
from tilewright.runtime.run_options import RunOptions
from tilewright.runtime.session import InferenceSession
from tilewright.tools.progress import Silence

IMAGE = NodeArg("image", (1, 1, 32, 32), "tensor(float)")
MASK = NodeArg("mask", (1, 2), "tensor(float)")
WRONG = np.zeros((1, 1, 32, 32))


def session():
    return InferenceSession(builtin("lenet5"))


SENTENCES = {
    "InputError: Inputs must be image, not none": lambda: check_inputs({}, [IMAGE]),
    "InputError: Input 'image' must be float32 of shape (1, 1, 32, 32), not float64 of shape (1, 1, 32, 32)":
        lambda: check_inputs({"image": WRONG}, [IMAGE]),
    "InputError: Input file must be an .npz with the arrays image, mask, not 'in.npy': an .npy holds one":
        lambda: read_inputs(Path("in.npy"), [IMAGE, MASK]),
    "InputError: Input file must end in .npz or .npy, not 'in.png'": lambda: read_inputs(Path("in.png"), [IMAGE]),
    "InputError: Input file '/none.npy' cannot be read: No such file or directory":
        lambda: read_inputs(Path("/none.npy"), [IMAGE]),
    "InputError: Layers must be A:B with 0 <= A < B <= 5, the number of layers, not '4:9'":
        lambda: parse_range("4:9", 5),
    "InputError: Jobs must be one or more, not 0": lambda: RangeRequest(jobs=0),
    "InputError: Compiled model must be a folder written by `tilewright compile`, not '/none'":
        lambda: require_folder(Path("/none")),
    "SimulationError: Status record of a layer must count cycles since reset, not 0: the program did not store it":
        lambda: read_record(bytes(RECORD_BYTES)),
    "InputError: Engine must be one of rtl, fast, not 'slow'":
        lambda: InferenceSession(builtin("lenet5"), engine="slow"),
    "InputError: Engine must be rtl for the host ibex, not 'fast'":
        lambda: InferenceSession(builtin("lenet5"), run_options=RunOptions(host="ibex")),
    "SimulationError: Session has a report only after a run": lambda: session().report,
    "InputError: Outputs must be of logits, not 'scores'": lambda: session().run(["scores"], {}),
    "InputError: Engine must be rtl to write waveforms, not 'fast'":
        lambda: session().run(None, {}, wave=Path("run.vcd")),
    ("InputError: Inputs must be of one image, not of 4, as output 'scores' of shape (10, 1) has no leading 1 to stack "
     "answers along; run one image after the other"): lambda: require_batches([NodeArg("scores", (10, 1), "")], 4),
    "InputError: Inputs must be of one image to write waveforms, not of 2":
        lambda: InferenceSession(builtin("lenet5"), engine="rtl").run(
            None, {"image": np.zeros((2, 1, 32, 32), np.float32)}, wave=Path("run.vcd")),
    "InputError: Option --calibrate needs a float model, and lenet5.onnx is already quantised":
        lambda: find_model("lenet5", Silence(), calibrate=Path("images.npz")),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_wording(sentence):
    assert raised_by(SENTENCES[sentence]) == tuple(sentence.split(": ", 1))
