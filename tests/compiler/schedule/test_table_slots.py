"""Value tables: what they compute, when they are loaded, and who may touch a slot."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.execute import execute
from tests.support.machines import MACHINES, TINY
from tests.support.random_layers import network_of, with_tables
from tests.support.stacks import resnet, vgg
from tilewright.compiler.compile import compile_layers, layer_comment
from tilewright.compiler.errors import CompileError
from tilewright.compiler.explain import fused
from tilewright.compiler.network.layers import Layer, Network, Requantisation
from tilewright.compiler.network.reference import run_layer, run_network
from tilewright.compiler.plan.planner import plan_layer
from tilewright.compiler.plan.roofline import least_bytes
from tilewright.compiler.schedule.races import RaceError, check
from tilewright.isa.assembler import EncodedCommand, command
from tilewright.isa.encoding import EncodingError
from tilewright.isa.machine import PRESETS, TABLE_BYTES, TABLE_SLOTS

VGG = with_tables(vgg(24, ((8, 2), (16, 2), (24, 1)), (20, 10)))
RESNET = with_tables(resnet(24, (8, 16, 24), (2, 1, 1)), every=2)


def lone_table(table: np.ndarray, shape: tuple[int, int, int] = (5, 7, 6)) -> Layer:
    """Return a layer that does nothing else."""
    channels = shape[0]
    return Layer(name="lone", kind="pass", onnx_nodes=("lone",), input="x", output="y", in_shape=shape,
                 conv_shape=shape, out_shape=shape, weights=None, bias=np.zeros(channels, np.int32), groups=channels,
                 requantisation=Requantisation(scale=np.ones(channels, np.float32), zero_point=0), table=table)


def commands_of(network: Network, machine=TINY) -> list[EncodedCommand]:
    return [each for _, each in compile_layers(network, machine).program.commands()]


@pytest.mark.parametrize("machine", MACHINES.values(), ids=lambda machine: machine.name)
def test_a_lone_sigmoid_is_a_table(machine):
    """QDQ Sigmoid with x = q / 16 and y = (q + 128) / 256, from its definition."""
    q = np.arange(-128, 128)
    sigmoid = np.clip(np.rint(256 / (1 + np.exp(-q / 16.0))) - 128, -128, 127).astype(np.int8)
    x = np.random.default_rng(4).integers(-128, 128, (5, 7, 6), dtype=np.int8)
    expected = np.vectorize(lambda value: np.clip(round(256 / (1 + np.exp(-value / 16.0))) - 128, -128, 127))(x)
    network = network_of(lone_table(sigmoid))
    compiled = compile_layers(network, machine)
    np.testing.assert_array_equal(execute(compiled, {"x": x})["y"], expected)


@pytest.mark.parametrize("network", [VGG, RESNET], ids=lambda network: network.name)
@pytest.mark.parametrize("machine", [TINY, PRESETS["base"]], ids=lambda machine: machine.name)
def test_networks_with_more_tables_than_slots_equal_the_reference(network, machine):
    assert sum(layer.table is not None for layer in network.layers) > TABLE_SLOTS
    compiled = compile_layers(network, machine, keep_tensors=True)
    check((each for _, each in compiled.program.commands()), machine)
    rng = np.random.default_rng(5)
    inputs = {info.name: rng.integers(-128, 128, info.shape, dtype=np.int8) for info in network.inputs}
    tensors, expected = execute(compiled, inputs), run_network(network, inputs)
    for layer in network.layers:
        np.testing.assert_array_equal(tensors[layer.output], expected[layer.output], err_msg=layer.name)


def test_the_table_comes_behind_the_residual_and_before_the_pooling():
    table = np.arange(127, -129, -1).astype(np.int8)  # falls, so the maximum of what it gives is not the mapped maximum
    layer = next(layer for layer in VGG.layers if layer.pool)
    x = np.random.default_rng(6).integers(-128, 128, layer.in_shape, dtype=np.int8)
    plain, mapped = (run_layer(replace(layer, table=each, pool=None), x) for each in (None, table))
    np.testing.assert_array_equal(mapped, -1 - plain)
    pooled = run_layer(replace(layer, table=table), x)
    assert (pooled >= -1 - run_layer(replace(layer, table=None), x)).all()
    assert (pooled[:, 0, 0] == mapped[:, :2, :2].max(axis=(1, 2))).all()


def test_each_layer_loads_its_table_once():
    compiled = compile_layers(RESNET, TINY)
    ((start, image),) = compiled.images
    loads = [each for _, each in compiled.program.commands() if each.variant.name == "table"]
    bus = TINY.bus_bytes
    assert {each.operands["base"] * bus for each in loads} == {TABLE_BYTES * slot for slot in range(TABLE_SLOTS)}
    assert all(each.operands["words"] * bus == TABLE_BYTES for each in loads)
    tables = [layer.table.tobytes() for layer in RESNET.layers if layer.table is not None]
    assert [image[each.operands["address"] - start:][:TABLE_BYTES] for each in loads] == tables


@pytest.mark.parametrize("table", [np.zeros(256, np.int16), np.zeros(255, np.int8), np.zeros((16, 16), np.int8)])
def test_a_table_of_another_kind_is_refused(table):
    sentence = r"^Layer 'lone': the table must be int8 of shape \(256,\), not "
    with pytest.raises(CompileError, match=sentence):
        compile_layers(network_of(lone_table(table)), TINY)


def test_people_are_told_of_a_table():
    layer = lone_table(np.zeros(TABLE_BYTES, np.int8))
    assert fused(layer) == ("table",)
    assert "value table" in layer_comment(plan_layer(layer, TINY))
    assert least_bytes(layer) == 2 * 5 * 7 * 6 + TABLE_BYTES


# ---- races


def test_a_table_that_comes_too_late_or_too_early_is_found():
    commands = commands_of(VGG)
    assert check(commands, TINY) == len(commands)
    cleared = 0
    for index, load in enumerate(commands):
        for flag in set(load.flags) & {"wait_par_free", "signal_wgt_ready"} if load.variant.name == "table" else ():
            changed = replace(load, funct7=load.funct7 & ~load.variant.flag_bits(flag))
            with pytest.raises(RaceError):
                check([*commands[:index], changed, *commands[index + 1:]], TINY)
            cleared += 1
    assert cleared > TABLE_SLOTS


def test_a_slot_that_is_being_loaded_is_found():
    commands = commands_of(VGG)
    loads = [index for index, each in enumerate(commands) if each.variant.name == "table"]
    uses = [index for index, each in enumerate(commands) if each.operands.get("table")]
    act = commands[uses[0]]
    assert uses[0] < loads[1]
    early = command("act", "run", tuple(act.flags), **{**act.operands, "table_slot": 1})
    with pytest.raises(RaceError, match="same bytes of table"):
        check([*commands[:uses[0]], early, *commands[uses[0] + 1:]], TINY)


def test_slots_beyond_the_last_are_refused():
    words = TABLE_BYTES // TINY.bus_bytes
    with pytest.raises(RaceError, match=r"1024 bytes of table.* 1024\.\.1280"):
        check([command("ldw", "table", address=0x80000000, base=TABLE_SLOTS * words, words=words)], TINY)
    with pytest.raises(EncodingError, match="table_slot"):
        command("act", "run", rows=1, channels=1, table=1, table_slot=TABLE_SLOTS)
