"""Softmax and normalisation on the row unit: the reference's bits in the predicted cycles, below `base`'s goals."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.core_networks import CoreStack, inputs_of
from tests.support.execute import execute as execute_fast
from tests.support.machines import MORE_UNITS
from tests.support.onnx_models import ModelBuilder
from tilewright.compiler.compile import compile_layers, emit_elf, fit_network
from tilewright.compiler.kernels.ways_out import way_out
from tilewright.compiler.network.layers import CoreLayer, Layer
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.network.rows.row_layers import NO_UNIT, longest_row, with_row_layers
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.isa.machine import Machine, MemoryTiming, preset
from tilewright.runtime.execution.accounting import account
from tilewright.runtime.execution.engines import execute
from tilewright.runtime.execution.job import job_of_compiled
from tilewright.tools.progress import Silence

BASE = replace(preset("base"), name="base with rows", row_unit=True)
SMALL = Machine(name="small", lanes=2, clusters=1, post_lanes=1, bus_bytes=4, activation_bytes=8192, weight_bytes=8192,
                result_bytes=2048, parameter_channels=512, array="plain", row_unit=True)
ATTRS = {"scale_value": float(np.float32(0.05)), "y_scale": 1 / 256, "y_zero_point": -128}


def norm(length, **others):
    """Return the attributes of a LayerNormalization of rows of ``length``."""
    rng = np.random.default_rng(length)
    return {"kind": "LayerNormalization", "scale_value": 0.035, "y_scale": 0.03, "y_zero_point": -3, "epsilon": 1e-5,
            "gains": rng.uniform(0.4, 1.6, length).tolist(), "shifts": rng.normal(0, 0.3, length).tolist(), **others}


def softmaxes(*cases):
    """Return a network of operators side by side, each of dims, the axis, and perhaps other attributes.

    Those with a kind are normalisations.
    """
    stack = CoreStack((1, 1, 1), seed=1)
    del stack.tensors["input"]
    for number, (dims, axis, *more) in enumerate(cases):
        stack.tensor(f"x{number}", dims, "int8")
        stack.handed_in.append(f"x{number}")
        attrs = ATTRS | {"axis": axis, "opset": 13} | (more[0] if more else {})
        op = "NormalisationOfLevels" if "kind" in attrs else "SoftmaxOfLevels"
        stack.handed_out.append(stack.core(op, (f"x{number}",), dims, "int8", attrs))
    return stack.network("softmaxes")


ROOT = {"kind": "RMSNormalization", "zero_point_value": -11}
NORMS = (((1, 39, 128), 2, norm(128)), ((3, 2, 33), -1, norm(33, low=-20)), ((40, 96), 1, norm(96)),
         ((3, 200), 1, norm(200, y_scale=0.5)), ((9, 64), -1, norm(64, **ROOT)), ((1, 30, 12), 2, norm(12)))
LONG = ((1, 5, 768), 2, norm(768)), ((6, 640), 1, norm(640, **ROOT)), ((3, 1600), 1, {"y_scale": 2.0**-14})
CASES = (((1, 65, 4, 13), 1), ((1, 100), 1), ((2, 3, 40), -1), ((1, 33, 1, 7), 1), ((1, 3, 64, 8), 1), ((5, 7, 300), 2),
         ((2, 21, 10), 1), ((1, 4, 20, 3), 2), ((1, 3, 2, 50), 3))      # of the last three, no row lies in one run


@pytest.mark.parametrize("machine", [*(pytest.param(each, marks=pytest.mark.slow) for each in (BASE, SMALL)),
                                     MORE_UNITS], ids=lambda machine: machine.name)
def test_rows_in_rtl(machine, tmp_path):
    check_in_rtl(softmaxes(*CASES, *NORMS, *(LONG if machine != SMALL else ())), machine, tmp_path)


def behind_a_product(op):
    """Return a quantised model of two products, with rows of 40 elements between them."""
    model = ModelBuilder("qdq", seed=4)
    x = model.conv(model.input((1, 8, 9, 7)), 40, kernel=1) if op == "Softmax" else \
        model.matmul(model.input((1, 19, 32)), 40)
    gain = [model.constant(np.linspace(0.5, 1.5, 40).astype(np.float32))] if op == "LayerNormalization" else []
    out = model.value(x.shape, np.float32(1 / 256 if op == "Softmax" else 1 / 40), -128 if op == "Softmax" else 3)
    model.quantised(model.node(op, [model.dequantised(x), *gain], "rows", axis=1 if op == "Softmax" else -1), out)
    return model.finish(model.conv(out, 4, kernel=1) if op == "Softmax" else model.matmul(out, 6))


@pytest.mark.parametrize("op", ["Softmax", "LayerNormalization"])
def test_rows_behind_the_product_that_makes_them_in_rtl(op, tmp_path):
    network = compile_network(behind_a_product(op))
    compiled = check_in_rtl(network, MORE_UNITS, tmp_path)
    assert [(layer.kind, layer.rows is not None) for layer in compiled.network.layers] == [
        ("conv", True), ("conv", False)]
    homes = {name: info.place.parent if info.place else name for name, info in compiled.network.tensors.items()}
    assert set(homes.values()) == {homes[name] for name in (network.inputs[0].name, *(
        each.output for each in compiled.network.layers))}      # and none that nothing writes


def test_the_array_goes_on_while_a_few_rows_are_normalised():
    model = ModelBuilder("qdq", seed=4)
    x = model.matmul(model.matmul(model.input((1, 65, 64)), 256), 64)
    out = model.value(x.shape, np.float32(1 / 40), 3)
    gain = model.constant(np.linspace(0.5, 1.5, 64).astype(np.float32))
    model.quantised(model.node("LayerNormalization", [model.dequantised(x), gain], "rows", axis=-1), out)
    network = compile_network(model.finish(model.matmul(out, 6)))
    compiled, timing = compile_layers(network, BASE), MemoryTiming.default(BASE)
    job, inputs = job_of_compiled(compiled, network.name), inputs_of(network)
    execution = execute(job, "fast", inputs, job.lasting, timing, steps=Silence())
    (output,) = network.outputs
    np.testing.assert_array_equal(execution.tensors[output.name],
                                  run_network(compiled.network, inputs)[output.name])
    assert compiled.network.layers[1].rows is not None
    assert account(job, "fast", timing, execution).cycles <= 20_000


def of_channels(dims, groups=0, **others):
    """Return dims and attributes of a normalisation of an image's channels, or of groups of them."""
    kind = {"kind": "GroupNormalization", "num_groups": groups} if groups else {"kind": "InstanceNormalization"}
    given = norm(dims[1], **kind, **others)
    given["gains"][3], given["shifts"][5] = -given["gains"][3], 0.0
    return dims, 1, given


@pytest.mark.parametrize("machine", [preset("nano"), pytest.param(preset("base"), marks=pytest.mark.slow)],
                         ids=lambda machine: machine.name)
def test_normalisations_of_channels_in_rtl(machine, tmp_path):
    network = softmaxes(of_channels((1, 12, 33, 35)), of_channels((1, 40, 8, 9), groups=5, low=-20))
    compiled = check_in_rtl(network, machine, tmp_path, core=2)
    assert [layer.op for layer in compiled.network.layers if isinstance(layer, CoreLayer)] == ["ParametersOfSums"] * 2


def test_a_normalisation_of_channels_is_a_level_beside_the_host_core_s_at_most():
    network = softmaxes(*(of_channels((1, 24, 40, 50), groups) for groups in (0, 0, 6, 2)))
    inputs = inputs_of(network)
    ours, theirs = run_network(with_row_layers(network, BASE), inputs), run_network(network, inputs)
    difference = np.concatenate([np.abs(ours[output.name].astype(int) - theirs[output.name]).ravel()
                                 for output in network.outputs])
    assert difference.max() == 1
    assert np.count_nonzero(difference) <= 0.002 * difference.size     # either is beside ONNX Runtime's in half of that


def class_maps(*cases):
    """Return a network of ArgMax side by side, each of dims and the axis."""
    stack = CoreStack((1, 1, 1), seed=1)
    del stack.tensors["input"]
    for number, (dims, axis) in enumerate(cases):
        stack.tensor(f"x{number}", dims, "int8")
        stack.handed_in.append(f"x{number}")
        out = tuple(1 if each == axis else extent for each, extent in enumerate(dims))
        stack.handed_out.append(stack.core("ArgMax", (f"x{number}",), out, "int64", {"axis": axis, "keepdims": 1}))
    return stack.network("class maps")


MAPS = ((1, 21, 9, 11), 1), ((1, 37, 30), 2)


def test_class_maps_in_rtl(tmp_path):
    check_in_rtl(class_maps(*MAPS), MORE_UNITS, tmp_path)


@pytest.mark.parametrize("levels", [256, 5, 1])
def test_class_maps_are_the_host_core_s(levels):
    network = class_maps(*MAPS, ((1, 200, 5, 6), 1), ((1, 129, 4, 4), 1), ((3, 50, 256), 2), ((1, 4, 30, 7), 1))
    inputs = {name: (values // max(1, 256 // levels) if levels > 1 else values * 0).astype(np.int8)
              for name, values in inputs_of(network).items()}       # few levels: several elements are the largest
    rows = with_row_layers(network, BASE)
    assert not any(isinstance(layer, CoreLayer) for layer in rows.layers)
    ours, theirs = run_network(rows, inputs), run_network(network, inputs)
    for output in network.outputs:
        np.testing.assert_array_equal(ours[output.name], theirs[output.name].reshape(ours[output.name].shape))


def check_in_rtl(network, machine, tmp_path, core=0):
    """Compare a network's outputs on both engines with the reference's, and their cycles; return it compiled.

    Of its layers, ``core`` are the host core's.
    """
    timing = MemoryTiming.default(machine)
    compiled, inputs = compile_layers(network, machine, keep_tensors=True), inputs_of(network)
    assert sum(isinstance(layer, CoreLayer) for layer in compiled.network.layers) == core
    job = replace(job_of_compiled(compiled, network.name), elf=emit_elf(compiled, network.name, tmp_path))
    expected, cycles = run_network(compiled.network, inputs), {}
    for engine in ("rtl", "fast"):
        execution = execute(job, engine, inputs, job.lasting, timing, steps=Silence())
        for output in network.outputs:
            found = execution.tensors[output.name]
            np.testing.assert_array_equal(found, expected[output.name], err_msg=f"{engine} {output.name}")
            assert len(np.unique(found)) > 10
        cycles[engine] = account(job, engine, timing, execution).cycles
    assert abs(cycles["fast"] / cycles["rtl"] - 1) <= 0.02, cycles
    return compiled


def test_the_host_core_is_a_level_beside_at_most():
    network = softmaxes(*CASES)
    inputs = inputs_of(network)
    ours = execute_fast(compile_layers(network, BASE, keep_tensors=True), inputs)
    theirs = run_network(network, inputs)
    for output in network.outputs:
        difference = np.abs(ours[output.name].astype(int) - theirs[output.name])
        assert difference.max() <= 1
        assert np.count_nonzero(difference) <= 2


def test_a_normalisation_is_a_level_beside_the_host_core_s_at_most():
    network = softmaxes(((1, 400, 128), -1, norm(128)), ((200, 200), -1, norm(200)), ((300, 96), -1, norm(96, **ROOT)),
                        ((1, 7, 8, 6), -3, norm(336)))     # an image, whose channels lie last
    inputs = inputs_of(network)
    ours = execute_fast(compile_layers(network, BASE, keep_tensors=True), inputs)
    theirs = run_network(network, inputs)
    difference = np.concatenate([np.abs(ours[output.name].astype(int) - theirs[output.name]).ravel()
                                 for output in network.outputs])
    assert difference.max() == 1
    assert np.count_nonzero(difference) <= 0.002 * difference.size     # either is beside ONNX Runtime's in half of that


@pytest.mark.parametrize(("dims", "axis", "length"), [
    ((1, 300, 16), -1, 16), ((200, 24), -1, 24), ((6, 40, 7), 2, 7), ((1, 90, 2), -1, 2), ((4, 50, 31), -1, 31),
    ((1, 32), -1, 32), ((1, 4), -1, 4)])
def test_short_rows_are_normalised_several_times_over(dims, axis, length):
    network = softmaxes((dims, axis, norm(length)))
    compiled, inputs = compile_layers(network, BASE, keep_tensors=True), inputs_of(network)
    assert all(isinstance(layer, Layer) for layer in compiled.network.layers)
    (output,) = network.outputs
    difference = np.abs(execute_fast(compiled, inputs)[output.name].astype(int)
                        - run_network(network, inputs)[output.name])
    assert difference.max() <= 1
    assert np.count_nonzero(difference) <= 0.002 * difference.size


@pytest.mark.parametrize(("length", "most"), [(65, 0.65), (197, 0.45), (128, 0.50), (192, 0.46)])
def test_the_cycles_of_an_element_on_base(length, most):
    cycles = cycles_of(softmaxes(((1, length, 4, length), 1)) if length % 2 else
                       softmaxes(((4 * length, length), 1, norm(length))))
    assert cycles <= most * 4 * length * length


@pytest.mark.parametrize(("case", "most"), [(((1, 32), 1, norm(32)), 500), (((1, 16), 1, norm(16)), 850),
                                            (((1, 4), 1, norm(4)), 1100), (((1, 32), 1), 450), (((1, 4), 1), 450)])
def test_a_row_of_few_elements_takes_fewer_cycles_than_on_the_host_core(case, most):
    cycles = cycles_of(softmaxes(case))
    assert cycles <= most
    assert cycles < cycles_of(softmaxes(case), replace(BASE, row_unit=False))


def cycles_of(network, machine=BASE):
    """Return the cycles of a network on the fast engine."""
    compiled, timing = compile_layers(network, machine), MemoryTiming.default(machine)
    job = job_of_compiled(compiled, network.name)
    return account(job, "fast", timing, execute(job, "fast", inputs_of(network), job.lasting, timing,
                                                steps=Silence())).cycles


@pytest.mark.parametrize(("case", "words"), [
    (((1, longest_row(BASE) + 1, 1, 5), 1), (f"{longest_row(BASE)}", f"{longest_row(BASE) + 1}", "4088")),
    (((3, 514), 1, norm(514)), ("512", "514", "1016")),
    (((1, 3), 1), ("few",)),
    (((1, 65, 4, 13), 1, {"y_scale": 1.5}), ("larger",)),
])
def test_other_rows_stay_on_the_host_core_with_a_reason(case, words):
    network, _ = fit_network(softmaxes(case), BASE)
    (layer,) = network.layers
    assert isinstance(layer, CoreLayer)
    assert all(word in layer.reason for word in words)
    assert way_out(layer.op, layer.reason) != way_out(layer.op)


@pytest.mark.parametrize("case", LONG, ids=lambda case: str(case[0]))
def test_a_long_row_takes_less_than_a_cycle_an_element(case):
    assert cycles_of(softmaxes(case)) <= np.prod(case[0])


@pytest.mark.parametrize(("dims", "axis"), [((1, 40, 18, 30), 3), ((1, 40, 18, 30), 2), ((1, 60, 50, 7), 2)])
def test_rows_that_lie_in_no_run_are_copied_into_one_where_that_is_cheaper(dims, axis):
    network = softmaxes((dims, axis))
    compiled = compile_layers(network, BASE)
    assert all(isinstance(layer, Layer) for layer in compiled.network.layers)
    inputs, (output,) = inputs_of(network), network.outputs
    ours, theirs = (run_network(each, inputs)[output.name].astype(int) for each in (compiled.network, network))
    assert np.abs(ours - theirs).max() <= 1
    assert len(np.unique(ours)) > 10
    assert cycles_of(network) <= 8 * np.prod(dims)      # 48 on the host core


def test_a_machine_without_the_unit_leaves_rows_to_the_host_core():
    network = softmaxes(*CASES)
    for machine in (preset("nano"), replace(BASE, value_tables=False)):
        assert all(isinstance(layer, CoreLayer) for layer in fit_network(network, machine)[0].layers)
    assert all(isinstance(layer, Layer) for layer in fit_network(network, BASE)[0].layers)


@pytest.mark.parametrize("machine", [preset("base"), preset("nano"), replace(SMALL, row_unit=False)], ids=str)
def test_a_machine_without_the_unit_says_that_it_would_take_the_rows_and_one_with_it_does(machine):
    network = softmaxes(((1, 65, 4, 13), 1), ((1, 1), 1))
    rows, single = with_row_layers(network, machine).layers
    assert rows.reason == NO_UNIT
    assert "row_unit=true" in way_out(rows.op, rows.reason)
    assert single.reason == network.layers[1].reason    # so few elements are the host core's on every machine
    equipped = replace(machine, row_unit=True)
    assert isinstance(with_row_layers(network, equipped).layers[0], Layer)
