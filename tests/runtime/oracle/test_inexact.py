"""What is rounded in float by ONNX Runtime is followed through all that is computed of it, in memory or on chip."""

import numpy as np

from tilewright.compiler.network.layers import TensorInfo
from tilewright.runtime.oracle.inexact import inexact_tensors

LAYERS = [(["in"], ["first"], True), (["first"], ["second"], False), (["second"], ["third"], True),
          (["in"], ["fourth"], True)]


def info(name):
    return TensorInfo(name=name, shape=(4, 2, 2), scale=np.float32(1), zero_point=0)


def test_what_follows_from_a_rounding_in_float_is_inexact():
    infos = {name: info(name) for name in ("in", "first", "second", "third", "fourth")}
    assert inexact_tensors(LAYERS, infos) == {"second", "third"}


def test_tensors_that_stay_on_chip_pass_it_on():
    infos = {name: info(name) for name in ("in", "third", "fourth")}
    assert inexact_tensors(LAYERS, infos) == {"second", "third"}
