"""``compare`` names the layer, element, address and instruction of a fault that a test has put into the engine."""

import json
import re
from dataclasses import replace

import numpy as np
import onnx
import pytest

from tests.cli.test_app import invoke, refused
from tests.support.float_models import FloatBuilder, classifier
from tests.support.onnx_models import ModelBuilder
from tilewright.cli.tables.comparison_tables import summary
from tilewright.compiler.compile import compile_file
from tilewright.compiler.emit.c import program_text
from tilewright.compiler.network.layers import CoreLayer
from tilewright.compiler.network.reference import run_layer, run_network
from tilewright.compiler.onnx.reader import read_model
from tilewright.isa.machine import PRESETS
from tilewright.models import builtin
from tilewright.runtime.compare import layer_report as layer_comparison
from tilewright.runtime.compare.last_writer import find_writer
from tilewright.runtime.compare.layer_report import compare_layers
from tilewright.runtime.compare.three_ways import element_address, side_by_side
from tilewright.runtime.execution.engines import to_memory
from tilewright.runtime.execution.job import job_of_compiled
from tilewright.runtime.model_source import ModelSource, choose_inputs
from tilewright.runtime.oracle.conversion import quantise_input
from tilewright.runtime.oracle.onnx_runtime import Reference
from tilewright.sim import fast_engine as fast
from tilewright.sim.values.executor import Executor
from tilewright.sim.values.main_memory import MainMemory
from tilewright.tools.progress import Silence

BASE, NANO = PRESETS["base"], PRESETS["nano"]


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path_factory):
    """Quantise in a cache of the test's own."""
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path_factory.mktemp("cache")))


def model_of_strips(tmp_path):
    """Return a model whose first layer is stored in a loop: its rows do not fit the buffers of nano at once."""
    builder = ModelBuilder("qdq", seed=4)
    x = builder.conv(builder.input((1, 8, 40, 40)), 24, kernel=3, pads=(1, 1, 1, 1))
    builder.output(builder.conv(x, 8, kernel=3, pads=(1, 1, 1, 1)))
    (tmp_path / "strips.onnx").write_bytes(builder.finish())
    return tmp_path / "strips.onnx"


def prepared(model, machine):
    """Return network, job and quantised inputs of a model compiled with every tensor kept."""
    compiled = compile_file(model, machine, keep_tensors=True)
    network = compiled.network
    arrays = choose_inputs(network.inputs, ModelSource.of(model), None).arrays
    return network, job_of_compiled(compiled, model.stem), {
        info.name: quantise_input(info, arrays[info.onnx_name]) for info in network.inputs}, arrays


def spoil(monkeypatch, address):
    """Make the fast engine, and it alone, flip a bit of the byte at an address whenever it is stored."""
    class Broken(MainMemory):
        def write_strided(self, start, data, steps, bus_bytes):
            before = self.get(address, 1)
            super().write_strided(start, data, steps, bus_bytes)
            after = self.get(address, 1)
            if after != before:
                self.put(address, bytes([after[0] ^ 0x40]))

    monkeypatch.setattr(fast, "MainMemory", Broken)


@pytest.mark.parametrize(("make", "machine", "layer", "index"), [
    (lambda _: builtin("lenet5"), BASE, 1, (7, 3, 2)),
    (lambda _: builtin("lenet5_qoperator"), NANO, 3, (50, 0, 0)),
    (model_of_strips, NANO, 0, (17, 33, 21)),
])
def test_a_flipped_bit_is_traced_to_its_instruction(monkeypatch, tmp_path, make, machine, layer, index):
    model = make(tmp_path)
    network, job, tensors, _ = prepared(model, machine)
    tensor = network.layers[layer].output
    right = int(run_network(network, tensors)[tensor][index])
    assert right != 0, "a byte that is not written looks like one of zero"
    address = element_address(job, tensor, index)
    spoil(monkeypatch, address)

    comparison = compare_layers(ModelSource.of(model), machine, "fast", None, steps=Silence())
    found, writer = comparison.found.divergence, comparison.writer
    assert not comparison.matches
    assert [row.engine for row in comparison.found.rows] == ["equal"] * layer + ["differs"]
    assert (found.layer, found.tensor, found.index, found.address) == (layer, tensor, index, address)
    assert found.between == ("engine", "integer reference")
    assert (found.onnx_runtime, found.reference, found.count) == (right, right, 1)
    assert found.engine == np.int8(np.uint8(right % 256) ^ np.uint8(0x40))
    assert (writer.function_index, writer.value) == (layer, right)
    check_writer(job, tensors, address, right, writer)


def check_writer(job, tensors, address, right, writer):
    """The byte becomes right with that very command; the line of the C code has its operands."""
    memory = MainMemory(job.memory_bytes, job.windows)
    for start, content in job.images:
        memory.put(start, content)
    for name, array in tensors.items():
        memory.put(job.tensors[name][1], to_memory(array, job.tensors[name][0]))
    executor = Executor(job.machine, memory)
    bytes_after = []
    for _, command in job.program.actions():
        executor.execute(command)
        bytes_after.append(memory.get(address, 1)[0])
    assert bytes_after[writer.command - 1] == 0
    assert set(bytes_after[writer.command:]) == {right % 256}

    lines = program_text(job.program, job.name).splitlines()
    assert lines[writer.line - 1].strip() in writer.text
    function = next(number for number, line in enumerate(lines) if f" {writer.function}(void)" in line)
    assert not any(line.startswith("}") for line in lines[function:writer.line])
    name, arguments = re.fullmatch(r"tw_(\w+)\((.*)\);", writer.text).groups()
    assert name == "sta_memory"
    assert writer.instruction.startswith("sta.memory ")
    said = dict(re.findall(r"(\w+) (0x[0-9a-f]+|-?\d+)", writer.instruction))
    values = [eval(argument, {}, dict(writer.variables)) for argument in arguments.split(", ")[1:]]
    assert values == [int(value, 0) for value in said.values()]


def test_the_loop_variables_of_the_store_are_told(tmp_path):
    _, job, tensors, _ = prepared(model_of_strips(tmp_path), NANO)
    tensor = job.layers[0].output
    writers = [find_writer(job, tensors, element_address(job, tensor, (0, row, 0))) for row in range(40)]
    looped = [writer for writer in writers if writer.variables]
    assert len({(writer.line, *writer.variables.items()) for writer in looped}) > 2
    (variable,) = looped[-1].variables
    assert f"model.c line {looped[-1].line}, {variable} = {looped[-1].variables[variable]}" in str(looped[-1])


def test_a_later_layer_that_overwrites_is_named(monkeypatch, tmp_path):
    model = builtin("lenet5")
    network, job, tensors, _ = prepared(model, BASE)
    first = network.layers[0].output
    written = tuple(map(int, np.argwhere(run_network(network, tensors)[first])[0]))
    writer = find_writer(job, tensors, job.tensors[network.layers[1].output][1])
    assert writer.function_index == 1
    monkeypatch.setattr(layer_comparison, "find_writer", lambda *_: writer)
    spoil(monkeypatch, element_address(job, first, written))
    lines = summary(compare_layers(ModelSource.of(model), BASE, "fast", None, steps=Silence()))
    assert f"which belongs to another layer: {writer.function} has overwritten it" in lines


def test_an_address_that_nothing_writes_has_no_writer():
    network, job, tensors, _ = prepared(builtin("lenet5"), BASE)
    assert find_writer(job, tensors, job.tensors[network.inputs[0].name][1]) is None


def test_a_call_of_the_host_core_is_named(tmp_path):
    builder = FloatBuilder()
    x = builder.node("Relu", builder.input((1, 2, 3, 4)))
    onnx.save(builder.finish(builder.node("Neg", builder.node("Add", x, x))), tmp_path / "core.onnx")
    network, job, tensors, _ = prepared(tmp_path / "core.onnx", BASE)
    assert [layer.op for layer in network.layers] == ["Relu", "Add", "Neg"]
    writer = find_writer(job, tensors, element_address(job, network.layers[1].output, (0, 1, 2, 3)))
    assert writer.instruction.startswith("call of Add to 0x")
    assert (writer.function_index, writer.line > 0) == (1, True)
    lines = program_text(job.program, job.name).splitlines()
    assert lines[writer.line - 1].strip() == writer.text
    assert re.match(r"layer1_\w*add\w*\(\(const float \*\)", writer.text)
    done = invoke("compare", tmp_path / "core.onnx", "--float")
    assert done.exit_code == 0, done.output


# ---- where ONNX Runtime itself computes in float


def off_by(levels, *, exact):
    """Compare LeNet-5 with an ONNX Runtime whose second layer is off by some levels, and all that follows from it."""
    model = builtin("lenet5")
    network, job, tensors, arrays = prepared(model, BASE)
    layers = [replace(layer, exact=exact) if index == 1 else layer for index, layer in enumerate(network.layers)]
    network = replace(network, layers=tuple(layers))
    ours, theirs = run_network(network, tensors), Reference(model).run(arrays)
    second = layers[1].output
    theirs[second] = theirs[second].copy()
    theirs[second].flat[17:20] += np.int8(levels)
    for layer in layers[2:]:
        assert not isinstance(layer, CoreLayer)
        value = run_layer(layer, theirs[layer.input].reshape(layer.in_shape))
        theirs[layer.output] = value.reshape(theirs[layer.output].shape)
    return side_by_side(network, job, theirs, ours, ours)


def test_a_layer_that_onnx_runtime_computes_in_float_may_be_one_level_off_and_the_rest_goes_on():
    found = off_by(1, exact=False)
    assert found.divergence is None
    assert [row.onnx_runtime for row in found.rows][:2] == ["equal", "near"]
    assert found.rows[1].off == 3
    assert "alone" in {row.onnx_runtime for row in found.rows[2:]} <= {"alone", "equal"}


@pytest.mark.parametrize(("levels", "exact"), [(1, True), (2, False)])
def test_but_no_more_and_no_other(levels, exact):
    found = off_by(levels, exact=exact).divergence
    assert (found.layer, found.between, found.count) == (1, ("integer reference", "ONNX Runtime"), 3)
    assert found.index == (0, 3, 2)
    assert found.onnx_runtime == found.reference + levels
    assert found.engine == found.reference


def test_a_fault_behind_such_a_layer_is_still_found():
    network, job, tensors, arrays = prepared(builtin("lenet5"), BASE)
    network = replace(network, layers=(replace(network.layers[0], exact=False), *network.layers[1:]))
    ours, theirs = run_network(network, tensors), Reference(builtin("lenet5")).run(arrays)
    first, third = network.layers[0].output, network.layers[2].output
    theirs |= {first: theirs[first].copy(), third: theirs[third].copy()}
    theirs[first].flat[0] ^= np.int8(1)
    theirs[third].flat[5] ^= np.int8(1)
    found = side_by_side(network, job, theirs, ours, ours).divergence
    assert (found.layer, found.index) in {(1, (0, 0, 0)), (2, (5, 0, 0))}


# ---- the command


def test_the_command_shows_every_layer_and_how_onnx_runtime_ran(tmp_path):
    done = invoke("compare", "lenet5", "--json", tmp_path / "found.json")
    assert done.exit_code == 0, done.output
    assert done.stdout.count("✓") == 2 * 5 + 2  # two of the legend
    assert "session.qdqisint8allowed = 1" in done.stdout
    assert re.search(r"ONNX Runtime \d+\.\d+\.\d+: CPUExecutionProvider", done.stdout)
    assert "5 layers: the engine equals the integer reference in every one" in done.stdout
    found = json.loads((tmp_path / "found.json").read_text())
    assert (found["matches"], found["divergence"], found["writer"], found["quantisation"]) == (True, None, None, None)
    assert [row["onnx_runtime"] for row in found["layers"]] == ["equal"] * 5


def test_a_difference_ends_in_status_1_and_names_all(monkeypatch, tmp_path):
    network, job, *_ = prepared(builtin("lenet5"), BASE)
    address = element_address(job, network.layers[0].output, (2, 5, 6))
    spoil(monkeypatch, address)
    done = invoke("compare", "lenet5", "--json", tmp_path / "found.json")
    assert done.exit_code == 1
    assert f"at (2, 5, 6) (channel, row, column), address {address:#x}, is " in done.stdout
    assert "written by sta.memory " in done.stdout
    assert "tw_sta_memory(" in done.stdout
    assert "the program alone, replayed, writes the byte " in done.stdout
    found = json.loads((tmp_path / "found.json").read_text())
    assert (found["matches"], len(found["layers"]), found["layers_in_all"]) == (False, 1, 5)
    assert found["divergence"]["index"] == [2, 5, 6]
    assert found["writer"]["function_index"] == 0


def test_what_quantisation_costs_is_told_of_a_float_model(tmp_path):
    onnx.save(classifier(seed=2), tmp_path / "net.onnx")
    rng = np.random.default_rng(0)
    np.save(tmp_path / "samples.npy", rng.normal(0, 1, (40, 3, 12, 10)).astype(np.float32))
    done = invoke("compare", tmp_path / "net.onnx", "--calibrate", tmp_path / "samples.npy", "--json",
                  tmp_path / "found.json")
    assert done.exit_code == 0, done.output
    assert "quantised here, ranges from 40 samples of samples.npy" in done.stdout
    assert "over 32 calibration samples: top-1 agrees in " in done.stdout
    found = json.loads((tmp_path / "found.json").read_text())
    ratios = [row["sqnr_db"] for row in found["layers"]]
    # About 6 dB a bit, less what the largest of many values stands above their deviation.
    assert all(20 < ratio < 50 for ratio in ratios)
    names = {row["name"]: row["sqnr_db"] for row in found["layers"]}
    assert [names[each] for each in found["quantisation"]["worst"]] == sorted(ratios)[:3]
    assert found["quantisation"]["samples"] == found["quantisation"]["top1_answers"] == 32
    assert found["quantisation"]["top1_agreeing"] >= 28


def test_the_noise_measured_is_that_of_the_definition(tmp_path):
    from tilewright.runtime.quantise.quantisation_error import quantisation_error
    from tilewright.runtime.quantise.quantiser import quantise

    onnx.save(classifier(seed=2), tmp_path / "net.onnx")
    quantised = quantise(read_model(tmp_path / "net.onnx"), tmp_path / "net.onnx", None, Silence())
    network, *_ = prepared(quantised.model, BASE)
    error = quantisation_error(quantised, network, Silence())
    assert error.samples == 16
    last = network.outputs[0]
    exact, rounded = [], []
    for feed in quantised.feeds():
        exact.append(layer_comparison.onnx_reference.FloatReference(quantised.float_model, []).run(feed))
        rounded.append(Reference(quantised.model).run(feed))
    (name,) = exact[0]
    signal, other = (np.stack([each[name] for each in runs]).astype(np.float64) for runs in (exact, rounded))
    expected = 10 * np.log10(np.sum(signal**2) / np.sum((signal - other)**2))
    assert {each.tensor: each.sqnr for each in error.layers}[last.name] == pytest.approx(expected, abs=1e-3)
    assert error.agreeing == np.count_nonzero(signal.argmax(axis=2) == other.argmax(axis=2))


def test_the_bytes_of_a_result_in_float_are_no_levels(tmp_path):
    from tilewright.runtime.quantise.quantisation_error import quantisation_error
    from tilewright.runtime.quantise.quantiser import quantise

    builder = FloatBuilder(seed=6)
    x = builder.conv(builder.input((1, 3, 8, 8)), 3, 8)
    onnx.save(builder.finish(builder.node("HardSigmoid", x)), tmp_path / "net.onnx")
    quantised = quantise(read_model(tmp_path / "net.onnx"), tmp_path / "net.onnx", None, Silence())
    network, *_ = prepared(quantised.model, BASE)
    assert any(info.place is not None and network.tensors[info.place.parent].dtype == "float32"
               for info in network.tensors.values())
    assert [each.layer for each in quantisation_error(quantised, network, Silence()).layers] == [
        network.layers[0].name]


def test_of_a_part_of_a_concatenation_the_noise_is_that_of_its_channels(tmp_path):
    from tilewright.runtime.quantise.quantisation_error import quantisation_error
    from tilewright.runtime.quantise.quantiser import quantise

    builder = FloatBuilder(seed=6)
    x = builder.input((1, 3, 8, 8))
    joined = builder.node("Concat", builder.conv(x, 3, 5), builder.node("Relu", builder.conv(x, 3, 7)), axis=1)
    onnx.save(builder.finish(builder.conv(joined, 12, 4)), tmp_path / "net.onnx")
    quantised = quantise(read_model(tmp_path / "net.onnx"), tmp_path / "net.onnx", None, Silence())
    network, *_ = prepared(quantised.model, BASE)
    ratios = {each.layer: each.sqnr for each in quantisation_error(quantised, network, Silence()).layers}
    signal, noise = np.zeros(2), np.zeros(2)
    for feed in quantised.feeds():
        exact = layer_comparison.FloatReference(quantised.float_model, [joined]).run(feed)[joined][0]
        rounded = Reference(quantised.model).run(feed)[f"{joined}_QuantizeLinear_Output"][0]
        scale = np.float64(network.tensors[f"{joined}_QuantizeLinear_Output"].scale)
        for part, channels in enumerate((slice(0, 5), slice(5, 12))):
            signal[part] += np.sum(exact[channels].astype(np.float64)**2)
            noise[part] += np.sum((exact[channels] - rounded[channels] * scale)**2)
    expected = 10 * np.log10(signal / noise)
    written = {name: layer.name for layer in network.layers for name in layer.writes}
    for name, info in network.tensors.items():
        if info.place is not None:
            part = 0 if info.place.offset == 0 else 1
            assert ratios[written[name]] == pytest.approx(expected[part], abs=1e-3)
    assert sum(info.place is not None for info in network.tensors.values()) >= 2


def test_an_output_that_is_a_tensor_under_another_shape_is_compared(tmp_path):
    builder = FloatBuilder()
    x = builder.node("GlobalAveragePool", builder.conv(builder.input((1, 3, 8, 8)), 3, 8))
    x = builder.node("Reshape", builder.node("Softmax", x, axis=1), builder.constant(np.array([1, 8], np.int64)))
    onnx.save(builder.finish(x), tmp_path / "soft.onnx")
    done = invoke("compare", tmp_path / "soft.onnx", "--json", tmp_path / "found.json")
    assert done.exit_code == 0, done.output
    *_, last = json.loads((tmp_path / "found.json").read_text())["layers"]
    assert (last["by"], last["exact"]) == ("core", False)
    assert last["onnx_runtime"] in ("equal", "alone", "near")


def test_of_a_model_kept_in_float_every_tensor_is_compared(tmp_path):
    onnx.save(classifier(), tmp_path / "net.onnx")
    done = invoke("compare", tmp_path / "net.onnx", "--float", "--json", tmp_path / "found.json")
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "found.json").read_text())
    assert {row["by"] for row in found["layers"]} == {"core"}
    assert {row["onnx_runtime"] for row in found["layers"]} <= {"equal", "alone", "near"}


def test_bad_input_is_refused(tmp_path):
    assert "Machine must be one of" in refused(2, "compare", "lenet5", "--machine", "huge")
    (tmp_path / "net.onnx").write_bytes(b"nothing")
    assert "must be an ONNX file" in refused(2, "compare", tmp_path / "net.onnx")
