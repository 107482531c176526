"""Errors of compiler/, word by word; docs/errors.md has those of broken models."""

import numpy as np
import pytest

from tests.support.core_networks import NETWORKS
from tests.support.wording import raised_by
from tilewright.compiler.batch.in_batch import in_batch
from tilewright.compiler.graph.integer_operators import QAverage
from tilewright.compiler.kernels.language.expression import constant, variable
from tilewright.compiler.network.options import Options
from tilewright.compiler.network.parts.part_of_network import slice_network
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.models import builtin

SENTENCES = {
    "TypeError: Window of a QAverage must be resolved to numbers, and is still as the model states it":
        lambda: QAverage().exact_window,
    "TypeError: Operands of an expression must both be float32, not int8: cast one":
        lambda: constant(1, "float32") + variable("x", "int8"),
    "ValueError: Option winograd must be one of auto, never, not 'always'": lambda: Options(winograd="always"),
    "ValueError: Option batch must be a number of images in 1..1024, not 0": lambda: Options(batch=0),
    "UnsupportedModelError: Input 'y' must have a first dimension of 1 for a batch of 3, not the shape (2, 3); run one "
    "image after the other": lambda: in_batch(NETWORKS["floats alone"](), 3),
    "ValueError: Layers must be a range inside 0:5 with one layer or more, not 2:2":
        lambda: slice_network(compile_network(builtin("lenet5")), 2, 2),
    "ValueError: Input 'image_QuantizeLinear_Output' must be int8 (1, 32, 32), not int16 (2,)":
        lambda: run_network(compile_network(builtin("lenet5")), {"image_QuantizeLinear_Output": np.zeros(2, np.int16)}),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_wording(sentence):
    assert raised_by(SENTENCES[sentence]) == tuple(sentence.split(": ", 1))
