"""``check`` tells before anything is built where nodes run, what they cost, what does not fit, what may go wrong."""

import json
import re
import time
from dataclasses import replace

import numpy as np
import onnx
import pytest

from tests.cli.test_app import invoke, refused
from tests.support.float_models import FloatBuilder, classifier
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler import compile as backend
from tilewright.compiler.compile import compile_file
from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.explain import explain
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.compiler.plan.planner import DoesNotFitError
from tilewright.isa.machine import PRESETS
from tilewright.models import builtin
from tilewright.runtime.check import model_check as check
from tilewright.runtime.check.model_check import check_model
from tilewright.runtime.check.warnings import listed, model_warnings
from tilewright.runtime.design.design import Design
from tilewright.runtime.model_source import ModelSource, find_model
from tilewright.tools.progress import Silence

BASE = PRESETS["base"]
DESIGN = Design(machine=BASE)


def mixed(tmp_path):
    """Return a model with an average, an addition, a pooling of its own and a Softmax."""
    builder = ModelBuilder("qdq", seed=2)
    x = builder.conv(builder.input((1, 8, 12, 12)), 8, kernel=3, pads=(1, 1, 1, 1))
    y = builder.max_pool(builder.add(x, builder.conv(x, 8, kernel=1)))
    builder.outputs.append(onnx.helper.make_tensor_value_info("soft", onnx.TensorProto.FLOAT, (1, 8, 1, 1)))
    builder.node("Softmax", [builder.dequantised(builder.average(y))], "soft", axis=1)
    builder.output(y)
    (tmp_path / "mixed.onnx").write_bytes(builder.proto().SerializeToString())
    return tmp_path / "mixed.onnx"


# ---- what is told


def test_the_plan_is_that_of_the_compiled_model(tmp_path):
    model = mixed(tmp_path)
    found, compiled = check_model(ModelSource(model), DESIGN), compile_file(model, BASE)
    plan = explain(compiled)
    assert [layer.fused for layer in found.layers if not layer.reason] == [
        layer.fused for layer in plan.layers if layer.algorithm != "core"]
    assert found.memory.total == plan.memory_bytes == compiled.memory_bytes
    assert found.memory.weights == sum(len(content) for _, content in compiled.images)
    assert sum(layer.share for layer in found.layers) == pytest.approx(1 - found.tail_cycles / found.cycles)
    assert found.compiles


def test_every_node_is_told_where_it_runs_and_the_core_why(tmp_path):
    found = check_model(ModelSource(mixed(tmp_path)), DESIGN)
    kinds = {node.partition("0")[0].rstrip("123456789"): layer.runs_on
             for layer in found.layers for node in layer.onnx_nodes}
    assert {kinds[op] for op in ("Conv", "MaxPool")} <= {"conv", "conv23", "act"}
    assert kinds["GlobalAveragePool"] == "pool"
    assert kinds["Softmax"] == "core"
    assert all(bool(layer.reason) == (layer.runs_on == "core") for layer in found.layers)


def test_nothing_is_built(monkeypatch, tmp_path):
    monkeypatch.setattr(backend, "compile_elf", lambda *_: pytest.fail("built"), raising=False)
    assert check_model(ModelSource(mixed(tmp_path)), DESIGN).compiles


def test_the_command_shows_it(tmp_path):
    done = invoke("check", mixed(tmp_path), "--json", tmp_path / "check.json")
    assert done.exit_code == 0, done.output
    for text in ("mixed for base", "runs on", "core", "main memory: ", "it fits", "it can be compiled"):
        assert text in done.stdout
    found = json.loads((tmp_path / "check.json").read_text())
    assert set(found) == {"model", "machine", "compiles", "predicted_cycles", "tail_cycles", "layers", "refusals",
                          "warnings", "notes", "memory", "core_share", "milliseconds", "design"}
    assert (found["compiles"], found["refusals"], found["memory"]["fits"]) == (True, [], True)
    assert found["predicted_cycles"] == found["tail_cycles"] + sum(layer["cycles"] for layer in found["layers"])


def test_a_float_model_is_checked_as_it_would_be_quantised(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path / "cache"))
    onnx.save(classifier(), tmp_path / "net.onnx")
    done = invoke("check", tmp_path / "net.onnx")
    assert done.exit_code == 0, done.output
    assert "warning: QUICK LOOK: ranges come from noise" in done.stdout
    done = invoke("check", tmp_path / "net.onnx", "--float", "--json", tmp_path / "check.json")
    assert done.exit_code == 0, done.output
    assert {layer["runs_on"] for layer in json.loads((tmp_path / "check.json").read_text())["layers"]} == {"core"}
    assert done.stdout.startswith("Core: 100 % of ")
    assert "(Conv): " in done.stdout


def test_memory_that_does_not_suffice_is_told():
    needed = check_model(ModelSource(builtin("lenet5")), DESIGN).memory.total
    assert check_model(ModelSource(builtin("lenet5")), DESIGN, needed).compiles
    assert not check_model(ModelSource(builtin("lenet5")), DESIGN, needed - 1).compiles
    done = invoke("check", "lenet5", "--capacity", "0.05")
    assert done.exit_code == 2
    assert "52,428 are available: it does NOT fit" in done.stdout
    assert "does not fit the memory" in done.stdout
    assert "--capacity" in refused(2, "check", "lenet5", "--capacity", "0")


@pytest.mark.slow
def test_resnet50_takes_less_than_twelve_seconds():
    source = find_model("resnet50-224", Silence())
    started = time.process_time()  # the machine may have other things to do
    found = check_model(source, DESIGN)
    assert time.process_time() - started < 12
    assert len(found.layers) == 55


# ---- what is refused


def test_every_refusal_is_listed_with_a_way_out(tmp_path):
    builder = FloatBuilder()
    x = builder.input((1, 4, 6, 6))
    onnx.save(builder.finish(builder.node("Det", builder.node("Relu", x)), builder.node("Det", x)),
              tmp_path / "det.onnx")
    done = invoke("check", tmp_path / "det.onnx", "--float", "--json", tmp_path / "check.json")
    assert done.exit_code == 2
    refusals = json.loads((tmp_path / "check.json").read_text())["refusals"]
    assert [each["op"] for each in refusals] == ["Det", "Det"]
    assert len({each["node"] for each in refusals}) == 2
    assert all(each["reason"] and each["way_out"] for each in refusals)
    assert "2 refusals: it cannot be compiled" in done.stdout
    assert "Traceback" not in done.output


def test_every_layer_that_does_not_fit_is_listed(monkeypatch):
    # What a machine has no room for is cut, or goes to the host core, so a layer that fits nowhere is hard to find.
    def refuse(layer, machine, **_):
        if "conv" in layer.name:
            raise DoesNotFitError(f"The smallest tile of layer {layer.name!r} needs much: take a larger machine")

    def fit(network, machine, *_):
        for layer in network.layers:
            refuse(layer, machine)

    monkeypatch.setattr(check, "plan_layer", refuse)
    monkeypatch.setattr(check, "fit_network", fit)
    found = check_model(ModelSource(builtin("lenet5")), DESIGN)
    assert not found.compiles
    assert [each.node for each in found.refusals] == ["/conv1/Conv", "/conv2/Conv", "/conv3/Conv"]
    assert found.refusals[1].reason == "The smallest tile of layer '/conv2/Conv' needs much"
    assert found.refusals[1].way_out == "take a larger machine, or compute that layer outside of the model"


def test_refusals_of_one_error_are_all_shown(monkeypatch):
    first, second = (UnsupportedNodeError(name, "Op", f"reason {name}", "go away") for name in "ab")
    first.others = (second, second)

    def refuse(*_):
        raise first

    monkeypatch.setattr(check, "compile_network", refuse)
    assert [each.node for each in check_model(ModelSource(builtin("lenet5")), DESIGN).refusals] == ["a", "b"]


@pytest.mark.parametrize(("command", "option"), [
    ("check", "--json"), ("run", "--json"), ("run", "--html"), ("run", "--trace"), ("compare", "--html"),
    ("compile", "--json"), ("evaluate", "--json"),
])
def test_nothing_that_is_read_is_written_over(tmp_path, command, option):
    model = mixed(tmp_path)
    content = model.read_bytes()
    link = tmp_path / "link.json"
    link.symlink_to(model)
    more = ("-o", tmp_path / "out") if command == "compile" else ()
    for path in (model, link):
        assert "must not be written over" in refused(2, command, model, option, path, *more)
    samples = tmp_path / "samples.npy"
    samples.write_bytes(b"x")
    assert "must not be written over" in refused(2, command, model, "--calibrate", samples, option, samples, *more)
    assert model.read_bytes() == content


def test_a_model_without_layers_is_refused(tmp_path):
    builder = ModelBuilder("qdq")
    builder.output(builder.input((1, 2, 4, 4)))
    (tmp_path / "none.onnx").write_bytes(builder.finish())
    assert "must have a layer to compile, and has none" in refused(2, "check", tmp_path / "none.onnx")
    assert "must have a layer to compile, and has none" in refused(2, "compare", tmp_path / "none.onnx")


def test_what_is_no_model_is_refused_in_a_sentence(tmp_path):
    (tmp_path / "net.onnx").write_bytes(b"nothing")
    assert refused(2, "check", tmp_path / "net.onnx").startswith("Model 'net.onnx' must be an ONNX file, and this ")


# ---- what is warned of


def lenet(**changes):
    """Return LeNet-5 with its second layer changed."""
    network = compile_network(builtin("lenet5"))
    layers = list(network.layers)
    layers[1] = replace(layers[1], **changes)
    return replace(network, layers=tuple(layers))


def second():
    return compile_network(builtin("lenet5")).layers[1]


def weights(change):
    changed = second().weights.copy()
    change(changed)
    return changed


def scales(factor):
    requantisation = second().requantisation
    changed = requantisation.scale.copy()
    changed[3] *= np.float32(factor)
    return replace(requantisation, scale=changed)


@pytest.mark.parametrize(("changes", "warning"), [
    (lambda: {"requantisation": scales(1000)},
     r"The scales of a layer's channels are far apart, .*: /conv2/Conv \([\d,]+ to 1\)"),
    (lambda: {"weights": weights(lambda w: w.__setitem__(2, w[2] // 8))},
     r"Weights use less than a quarter of their int8 range, .*: /conv2/Conv \(1 of 16 channels within ±1\d\)"),
    (lambda: {"weights": weights(lambda w: w.__setitem__(slice(5, 7), 0))},
     r"All weights of a channel are zero: /conv2/Conv \(2 of 16 channels\)"),
    (lambda: {"requantisation": scales(2000)},
     r"Outputs are quantised more finely than their sums, .*: /conv2/Conv \([\d.]+ levels per unit\)"),
    (lambda: {"bias": np.full(16, 2**31 - 5, np.int32)},
     r"Sums can overflow 32 bits for some inputs: /conv2/Conv \(16 of 16 channels\)"),
    (lambda: {"exact": False},
     "ONNX Runtime computes these layers in float, so they may be one level off: /conv2/Conv"),
])
def test_risks_of_a_layer_are_told(changes, warning):
    found = model_warnings(lenet(**changes()))
    assert any(re.fullmatch(warning, each) for each in found), found
    assert not model_warnings(lenet())


@pytest.mark.parametrize(("scale", "said"), [(1e3, "The range is huge"), (1e-9, "The range is almost zero")])
def test_unlikely_ranges_are_told(scale, said):
    network = lenet()
    name = network.layers[2].output
    tensors = dict(network.tensors) | {name: replace(network.tensors[name], scale=np.float32(scale))}
    (warning,) = model_warnings(replace(network, tensors=tensors))
    assert warning.startswith(said)
    assert name in warning


def test_names_are_listed_up_to_three():
    assert listed("ab") == "a, b"
    assert listed("abcde") == "a, b, c and 2 more"
