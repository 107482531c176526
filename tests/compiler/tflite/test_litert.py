"""Every operator of a .tflite file computes what LiteRT's default session does, to the bit, and so do networks."""

import numpy as np
import pytest

from tests.support.litert_results import committed_results, feeds, fingerprint, fingerprints
from tests.support.tflite_cases import CASES, content_of
from tests.support.tflite_files import TfliteFile
from tilewright.compiler.network.memory_map import root_of
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.onnx.reader import read_model
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.compiler.tflite.flat_file import read_file
from tilewright.models import FOLDER, PUBLISHED
from tilewright.runtime.oracle.conversion import dequantise_output, quantise_input
from tilewright.runtime.oracle.inputs import node_arg
from tilewright.runtime.oracle.onnx_runtime import session
from tilewright.runtime.session import InferenceSession

RESULTS = committed_results()

ONE_OFF = {"batch product", "batch product of four axes", "bilinear by 3", "mul by channels", "prelu", "rsqrt",
           "squared difference"}
"""Those that the note on reading names: their numbers have no form that is LiteRT's."""


@pytest.mark.parametrize("name", CASES)
def test_an_operator_computes_what_litert_does(name):
    content = content_of(name)
    model = read_file(content, name)
    given = feeds(model)
    network = compile_network(content)
    named = {model.tensors[index].name: values for index, values in given.items()}
    computed = run_network(network, {info.name: quantise_input(info, named[node_arg(info).name])
                                     for info in network.inputs})
    found = {node_arg(info).name: dequantise_output(info, computed[info.name]) for info in network.outputs}
    for number, index in enumerate(model.outputs):
        theirs = RESULTS[f"{name}/{number}"].astype(int)
        ours = np.asarray(found[model.tensors[index].name]).reshape(theirs.shape).astype(int)
        assert np.abs(ours - theirs).max() <= (name in ONE_OFF)


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_tensor_of_a_network_is_litert_s(name):
    content = (FOLDER / f"{name}.tflite").read_bytes()
    model = read_file(content, name)
    session = InferenceSession(FOLDER / f"{name}.tflite", keep_tensors=True)
    session.run(None, {model.tensors[index].name: values for index, values in feeds(model).items()})
    compared = set()
    for tensor, theirs in fingerprints()[name].items():
        if tensor in session.tensors:
            ours = session.tensors[tensor]
            assert fingerprint(np.moveaxis(ours, -3, -1) if ours.ndim > 2 else ours) == theirs, tensor
            compared.add(tensor)
    # Convolutions that an addition ends, and views of a tensor, have no tensor of their own.
    infos = session.tensor_infos
    stored = {name for name, info in infos.items() if root_of(info) == name}
    assert len(compared) >= len(stored & fingerprints()[name].keys()) >= len(model.operators) - 6


def test_a_product_beside_a_half_is_litert_s():
    """15 · 9 and 47 · 45 are 1.4999999 and 23.499998 levels, and halves in ONNX Runtime, which adds -128 before."""
    file = TfliteFile()
    x, z, y = (file.tensor((1, 1, 1, 2), *numbers) for numbers in (
        (0.07691357, 3), (0.081185944, 0), (0.5619871, -128)))
    file.operator("MUL", [x, z], [y], FusedActivationFunction=0)
    content = file.content([x, z], [y])
    inputs = {info.name: np.array(given, np.int8).reshape(1, 1, 1, 2) for info, given in zip(
        read_file(content, "product").tensors, ((18, 50), (9, 45)), strict=False)}
    (found,) = session(read_model(content).SerializeToString()).run(None, inputs)
    assert found.ravel().tolist() == [-127, -105]   # of LiteRT 2.3
