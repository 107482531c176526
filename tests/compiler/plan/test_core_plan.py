"""Layers of the host core: both engines compute what the reference does, behind fences that are needed and suffice."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from tests.support.core_networks import NETWORKS, CoreStack, inputs_of
from tests.support.execute import execute as run_functional
from tests.support.machines import WINOGRAD_MACHINES
from tilewright.compiler.compile import Compiled, compile_layers, manifest_of
from tilewright.compiler.emit.c import program_text
from tilewright.compiler.emit.check_program import check_program
from tilewright.compiler.emit.manifest import ArtefactError, from_json, to_json
from tilewright.compiler.errors import UnsupportedNodeError
from tilewright.compiler.explain import explain
from tilewright.compiler.kernels.staging import can_be_staged, stage_of, staged_if_quicker
from tilewright.compiler.network.core_call import core_call
from tilewright.compiler.network.layers import Place
from tilewright.compiler.network.operands import from_memory, tensor_operand, to_memory
from tilewright.compiler.network.parts.part_of_network import slice_network
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.schedule.accesses import Access
from tilewright.compiler.schedule.races import RaceError, check
from tilewright.compiler.schedule.step_commands import Draft
from tilewright.compiler.schedule.synchronisation import ScheduleError, synchronise
from tilewright.errors import SimulationError
from tilewright.isa.assembler import EncodedCommand
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call, Operand, Program, ProgramError
from tilewright.isa.program import from_json as program_from_json
from tilewright.isa.program import to_json as program_to_json
from tilewright.runtime.execution.accounting import account
from tilewright.runtime.execution.engines import execute
from tilewright.runtime.execution.job import job_of_compiled
from tilewright.sim.fast_engine import run_fast
from tilewright.sim.values.core_calls import execute_call
from tilewright.sim.values.executor import ExecutionError
from tilewright.sim.values.main_memory import MainMemory
from tilewright.tools.progress import Silence

BASE = WINOGRAD_MACHINES["base"]


@pytest.fixture(params=NETWORKS)
def network(request):
    return NETWORKS[request.param]()


def actions(compiled: Compiled) -> list[EncodedCommand | Call]:
    return [each for _, each in compiled.program.actions()]


def is_fence(action: EncodedCommand | Call) -> bool:
    return not isinstance(action, Call) and action.variant.name == "fence"


@pytest.mark.parametrize("machine", ["nano", "base"])
@pytest.mark.parametrize("keep", [False, True])
def test_the_fast_engine_computes_what_the_reference_does(network, machine, keep):
    compiled = compile_layers(network, WINOGRAD_MACHINES[machine], keep_tensors=keep)
    check(actions(compiled), WINOGRAD_MACHINES[machine])
    inputs, job, timing = inputs_of(network), job_of_compiled(compiled, network.name), MemoryTiming.default(BASE)
    expected = run_network(network, inputs)
    execution = execute(job, "fast", inputs, job.lasting, timing, steps=Silence())
    assert {info.name for info in network.outputs} <= execution.tensors.keys()
    assert not keep or execution.tensors.keys() == expected.keys()
    for name, tensor in execution.tensors.items():
        assert tensor.dtype == expected[name].dtype
        np.testing.assert_array_equal(tensor, expected[name], strict=True)
    report = account(job, "fast", timing, execution)
    assert report.cycles == sum(layer.cycles for layer in report.layers) + report.tail_cycles
    for plan, layer in zip(compiled.plans, report.layers, strict=True):
        if layer.kind == "core":
            # Less where the layer before it was still being computed.
            assert plan.cost.cycles - 600 <= layer.cycles <= plan.cost.cycles + 200
            assert layer.reason == "a test wants it there"


def test_reports_count_what_the_core_moves_and_how_often_the_counters_wrap():
    network = NETWORKS["floats alone"]()
    compiled = compile_layers(network, BASE)
    inputs, job, timing = inputs_of(network), job_of_compiled(compiled, network.name), MemoryTiming.default(BASE)
    execution = execute(job, "fast", inputs, [], timing, steps=Silence())
    layer = account(job, "fast", timing, execution).layers[0]
    assert (layer.bytes_read, layer.bytes_written) == (4 * (120 + 6), 4 * 120)
    # Only cycles has 64 bits in the record: the counters of its causes have wrapped three times.
    records = [record | {"cycles": record["cycles"] + (3 << 32)} for record in execution.records]
    slow = account(job, "fast", timing,
                   replace(execution, records=records, cycles=execution.cycles + (9 << 32))).layers[0]
    assert slow.cycles == layer.cycles + (3 << 32)
    assert sum(slow.stalls.values()) == slow.cycles


def test_the_functional_engine_computes_the_same(network):
    compiled = compile_layers(network, BASE, keep_tensors=True)
    inputs = inputs_of(network)
    found = run_functional(compiled, inputs)
    for name, tensor in run_network(network, inputs).items():
        np.testing.assert_array_equal(found[name], tensor, strict=True)


# ---- fences


def test_fences_stand_where_the_core_needs_what_the_coprocessor_has_under_way(network):
    """One fence does for several calls in a row, and none is needed for what is of before the last one."""
    shown = "".join("c" if isinstance(each, Call) else "f" if is_fence(each) else ""
                    for each in actions(compile_layers(network, BASE)))
    expected = {"between convolutions": "fccf", "floats alone": "cccf", "core first and last": "cfcf",
                "parts of a tensor": "fccf"}
    assert shown == expected[network.name]


def test_a_missing_fence_is_a_race():
    found = 0
    for make in NETWORKS.values():
        commands = actions(compile_layers(make(), BASE))
        for index, each in enumerate(commands[:-1]):
            if is_fence(each):
                with pytest.raises(RaceError, match=r"Call of \w+ to 0x8.*same bytes"):
                    check([*commands[:index], *commands[index + 1:]], BASE)
                found += 1
    assert found == 3


def test_a_fence_orders_what_no_semaphore_does():
    """Without its semaphores a program with a fence behind every command has no race."""
    commands = actions(compile_layers(NETWORKS["between convolutions"](), BASE))
    fence = commands[-1]
    bare = [each if isinstance(each, Call) else replace(each, funct7=each.funct7 & ~0b1111) for each in commands]
    assert not any(each.flags for each in bare if not isinstance(each, Call))
    with pytest.raises(RaceError):
        check(bare, BASE)
    fenced: list[EncodedCommand | Call] = []
    for index, each in enumerate(bare):
        # An act takes the sums of the mac command before it: no fence may part the two.
        following = bare[index + 1] if index + 1 < len(bare) else None
        takes = following is not None and not isinstance(following, Call) and following.instruction.mnemonic == "act"
        fenced += [each] if takes else [each, fence]
    check(fenced, BASE)


def test_a_fence_that_is_never_passed_is_found():
    commands = actions(compile_layers(NETWORKS["between convolutions"](), BASE))
    place = next(index for index, each in enumerate(commands) if str(each).startswith("conv23.run"))
    with pytest.raises(RaceError, match=r"never passed: 1 commands"):
        check([*commands[:place + 1], commands[-1], *commands[place + 1:]], BASE)


def test_a_call_without_a_fence_is_a_mistake_of_the_schedule():
    store = Draft("sta", "memory", {}, (Access("memory", 0x8000_0100, 0x8000_0140, write=True),))
    reads = Call("Neg", (Operand(0x8000_0100, "int8", (4,), (1,)),), Operand(0x8000_0200, "int8", (4,), (1,)))
    with pytest.raises(ScheduleError, match="must come after a fence"):
        synchronise([store, reads])
    assert synchronise([store, Draft("sta", "fence"), reads])[-1] is reads


def test_weights_come_in_while_the_core_computes():
    commands = actions(compile_layers(NETWORKS["core first and last"](), BASE))
    call = next(index for index, each in enumerate(commands) if isinstance(each, Call))
    before = [str(each) for each in commands[:call]]
    assert sum(each.startswith("ldw.main") for each in before) == 2
    assert not any(each.startswith("lda") for each in before)


# ---- operands and constants


def test_constants_lie_in_the_image():
    network = NETWORKS["floats alone"]()
    compiled = compile_layers(network, BASE)
    (address, image), = compiled.images
    calls = [each for each in actions(compiled) if isinstance(each, Call)]
    for call, layer in zip(calls, network.layers, strict=True):
        for name, operand in zip(layer.inputs, call.inputs, strict=True):
            if name in network.constants:
                start = operand.address - address
                content = np.frombuffer(image[start:start + operand.span_bytes], "<f4")
                np.testing.assert_array_equal(content.reshape(operand.dims), network.constants[name])


@pytest.mark.parametrize(("dims", "dtype"), [((1, 3, 4, 5), "int8"), ((2, 3, 4, 5), "float32"), ((), "int64"),
                                             ((7,), "bool"), ((2, 3, 4, 5, 6), "int32"), (None, "int8")])
def test_tensors_go_to_memory_and_back(dims, dtype):
    stack = CoreStack((3, 4, 5))
    info = stack.tensors["input"] if dims is None else stack.tensor("x", dims, dtype)
    tensor = stack.rng.integers(0, 2, info.array_shape).astype(dtype)
    memory = to_memory(tensor, info)
    assert len(memory) == info.bytes == tensor_operand(info, 0).span_bytes
    np.testing.assert_array_equal(from_memory(memory, info), tensor, strict=True)


def test_channels_of_a_pixel_lie_together():
    info = CoreStack((3, 2, 2)).tensor("x", (1, 3, 2, 2), "int32")
    memory = np.frombuffer(to_memory(np.arange(12).reshape(1, 3, 2, 2), info), "<i4")
    assert memory.tolist() == [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]


def test_part_of_a_tensor_is_read_where_it_lies():
    place = Place(parent="whole", offset=4, row_step=100, pixel_step=10)
    info = replace(CoreStack((3, 2, 2)).tensors["input"], place=place)
    assert tensor_operand(info, 0x8000_0000).strides == (200, 1, 100, 10)
    values = np.arange(12, dtype=np.int8).reshape(3, 2, 2)
    np.testing.assert_array_equal(from_memory(to_memory(values, info), info), values)
    with pytest.raises(ValueError, match="four dimensions"):
        tensor_operand(replace(info, dims=(12,)), 0)


def test_what_the_core_cannot_compute_is_refused_by_name():
    stack = CoreStack((3, 4, 4))
    stack.core("NonMaxSuppression", ("input",), (1, 3, 4, 4), "int8")
    with pytest.raises(UnsupportedNodeError, match=r"'nonmaxsuppression0' .*has no kernel"):
        compile_layers(stack.network("n"), BASE)


def test_a_type_that_the_core_has_not_is_refused():
    stack = CoreStack((3, 4, 4))
    stack.core("Neg", ("input",), (1, 3, 4, 4), "float64")
    with pytest.raises(UnsupportedNodeError, match="has no numbers of type float64"):
        compile_layers(stack.network("n"), BASE)


# ---- C, manifest, plan


def test_c_is_one_function_per_call_with_the_tensors_as_parameters():
    compiled = compile_layers(NETWORKS["floats alone"](), BASE)
    text = program_text(compiled.program, "floats")
    assert "/* Mul: float32 1x6x5x4, float32 6x1x1 -> float32 1x6x5x4. */" in text
    assert "static __attribute__((noinline)) void layer0_mul0_mul(\n    const float *restrict in0, " in text
    assert re.search(r"    tw_copy\(\(stage \+ 0\), \(const uint32_t \*\)0x8\w+u, 480\);\n    tw_copy\(.*\n"
                     r"    layer0_mul0_mul\(\(const float \*\)\(stage \+ 0\), .*\);\n"
                     r"    tw_copy\(\(uint32_t \*\)0x8\w+u, \(stage \+ 128\), 480\);\n    __asm__ volatile", text)


def test_what_has_no_room_in_the_core_s_memory_is_computed_in_main_memory(monkeypatch):
    monkeypatch.setattr("tilewright.compiler.kernels.staging.STAGE_BYTES", 900)
    compiled = compile_layers(NETWORKS["floats alone"](), BASE)
    calls = [each for each in actions(compiled) if isinstance(each, Call)]
    assert [stage_of(call).bytes for call in calls] == [992, 976, 80]
    text = program_text(compiled.program, "floats")
    assert re.search(r"    layer0_mul0_mul\(\(const float \*\)0x8\w+u, .*\);\n    __asm__ volatile\(\"fence\"", text)
    assert "in main memory" in compiled.plans[0].summary()


def test_a_result_with_gaps_is_not_copied_back_as_a_whole():
    call = Call("Neg", (Operand(0, "int8", (1, 2, 8, 8), (128, 1, 16, 2)),), Operand(0, "int8", (1, 2, 8, 8),
                                                                                     (256, 1, 32, 4)))
    assert not can_be_staged(call)
    assert not can_be_staged(replace(call, output=replace(call.inputs[0], address=2)))
    whole = replace(call, output=call.inputs[0])
    assert can_be_staged(whole)
    assert staged_if_quicker(whole, MemoryTiming.default(BASE)).staged
    assert not staged_if_quicker(whole, MemoryTiming(latency_cycles=1)).staged


def test_the_manifest_says_which_layers_are_the_core_s(network):
    manifest = manifest_of(compile_layers(network, BASE))
    read = from_json(json.loads(json.dumps(to_json(manifest))))
    assert read.layers == manifest.layers
    assert read.tensors == dict(manifest.tensors)
    core = [layer for layer in read.layers if layer.algorithm == "core"]
    assert core
    assert all(layer.kind == "core" and layer.reason for layer in core)


@pytest.mark.parametrize(("change", "sentence"), [
    ({"dtype": "float16"}, r"Manifest dtype .*bool, int8"),
    ({"dims": [5]}, r"Manifest dims .*at most 8"),
    ({"dtype": "float32", "place": {"parent": "p", "offset": 0, "row_step": 1, "pixel_step": 1, "image_step": 0}},
     r"in part of another .*not float32$"),
    ({"place": {"parent": "p", "offset": -1, "row_step": 1, "pixel_step": 1, "image_step": 0}},
     r"^Manifest place offset must be in "),
    ({"place": {"parent": "p", "offset": 0, "row_step": 1 << 30, "pixel_step": 1, "image_step": 0}},
     r"^Manifest end of a tensor must"),
    ({"dims": [270], "place": {"parent": "p", "offset": 0, "row_step": 1, "pixel_step": 1, "image_step": 0}},
     r"Manifest .*cannot lie in memory"),
])
def test_a_tensor_that_makes_no_sense_is_refused(change, sentence):
    data = to_json(manifest_of(compile_layers(NETWORKS["between convolutions"](), BASE)))
    data["tensors"][0] |= change
    with pytest.raises(ArtefactError, match=sentence):
        from_json(data)


def test_the_plan_names_the_core_and_the_reason():
    explanation = explain(compile_layers(NETWORKS["between convolutions"](), BASE))
    layer = explanation.layers[1]
    assert (layer.algorithm, layer.bound, layer.fused) == ("core", "host core", ("Neg: a test wants it there",))
    assert layer.to_json().keys() == explanation.layers[0].to_json().keys()


def test_a_slice_takes_its_constants_along():
    network = NETWORKS["floats alone"]()
    part = slice_network(network, 1, 3)
    assert [info.name for info in part.inputs] == ["mul0", "y"]
    assert list(part.constants) == ["half"]
    compile_layers(part, BASE)


# ---- untrusted programs


def call_json() -> dict:
    program = compile_layers(NETWORKS["floats alone"](), BASE).program
    data = program_to_json(program)
    assert program_from_json(data) == program
    return data


@pytest.mark.parametrize(("change", "sentence"), [
    ({"call": 5}, r"Call .*an output, not 5"),
    ({"call": "Nothing"}, r"Call .*not 'Nothing'$"),
    ({"staged": 1}, r"Call .*staged, not 1$"),
    ({"output": None}, r"Call .*an output"),
    ({"inputs": []}, r"^Call of Mul cannot run: "),
    ({"inputs": [None, None]}, r"^Call of Mul cannot run: "),
    ({"attrs": {"x": {"y": 1}}}, r"Attribute .*a number, a string"),
    ({"attrs": {"x": [[[[[[[[[1]]]]]]]]]}}, r"Attribute .*at most 8 deep"),
    ({"output": {"dtype": "float64"}}, r"Operand .*a type of"),
    ({"output": {"address": -4}}, r"Operand .*an address"),
    ({"output": {"address": 1.5}}, r"Operand .*an address"),
    ({"output": {"address": True}}, r"Operand .*an address"),
    ({"output": {"address": 0x8000_0001}}, r"of type float32 .*not at 0x80000001"),
    ({"output": {"address": 0x9000_0000}}, r"Call of Mul .*not touch"),
    ({"output": {"address": 0x1000}}, r"Call of Mul .*not touch"),
    ({"output": {"strides": [120, 1]}}, r"Operand .*strides .*at most 8"),
    ({"output": {"dims": [1] * 9, "strides": [1] * 9}}, r"Operand .*strides .*at most 8"),
    ({"output": {"strides": [0, 0, 0, 0]}}, r"Operand .*no two elements"),
    ({"output": {"dims": [1 << 16, 1 << 15, 2, 1]}}, r"Operand .*inside the address space"),
    ({"output": {"dims": [1, 6, 5, 3]}}, r"^Call of Mul cannot run: "),
    ({"output": {"dtype": "int8"}}, r"^Call of Mul cannot run: "),
])
def test_a_call_that_makes_no_sense_is_refused(change, sentence):
    data = call_json()
    call = data[0]["body"][0]
    for key, value in change.items():
        call[key] = call[key] | value if isinstance(value, dict) and key == "output" else value
    with pytest.raises(ProgramError, match=sentence):
        check_program(program_from_json(data), 1 << 16, BASE)


def test_infinite_attributes_survive_json():
    call = Call("Clip", (), Operand(0, "float32", (), ()), {"a": float("inf"), "b": [1, -float("inf")], "c": "x"})
    program = Program((replace(compile_layers(NETWORKS["floats alone"](), BASE).program.functions[0], body=(call,)),))
    text = json.dumps(program_to_json(program), allow_nan=False)
    assert program_from_json(json.loads(text)) == program


def test_a_call_in_a_loop_is_refused():
    data = call_json()
    data[0]["body"] = [{"loop": "i", "count": 2, "body": data[0]["body"]}]
    with pytest.raises(ProgramError, match="must not be in a loop"):
        check_program(program_from_json(data), 1 << 16, BASE)


def test_the_fast_engine_needs_kernels():
    compiled = compile_layers(NETWORKS["floats alone"](), BASE)
    with pytest.raises(ExecutionError, match=r"Mul to 0x\w+.* no kernels"):
        run_fast(BASE, compiled.program, windows=compiled.windows, memory_bytes=compiled.memory_bytes)


def test_a_call_that_gives_something_else_is_stopped():
    compiled = compile_layers(NETWORKS["floats alone"](), BASE)
    call = next(each for each in actions(compiled) if isinstance(each, Call))
    memory = MainMemory(compiled.memory_bytes)

    def wrong(*_):
        raise ValueError("it is of another shape")

    with pytest.raises(ExecutionError, match="of another shape"):
        execute_call(call, memory, MemoryTiming.default(BASE), wrong)
    outside = replace(call, output=replace(call.output, address=0x9000_0000))
    with pytest.raises(ExecutionError, match=r"main memory.* 0x90000000"):
        execute_call(outside, memory, MemoryTiming.default(BASE), lambda *_: (np.zeros(()), 1))


def test_a_job_s_failing_call_is_a_run_error():
    network = NETWORKS["floats alone"]()
    job = job_of_compiled(compile_layers(network, BASE), "n")
    with pytest.raises(SimulationError, match="64 bytes of main memory"):
        execute(replace(job, memory_bytes=64, images=()), "fast", {}, [], MemoryTiming.default(BASE), steps=Silence())


def test_parameters_become_attributes():
    """A constant that a kernel wants goes into the call, and not into the image."""
    stack = CoreStack((3, 4, 4))
    stack.constants["low"] = np.float32(0)
    stack.tensor("x", (5,))
    stack.core("Clip", ("x", "low"), (5,))
    call = core_call(stack.layers[-1], stack.tensors, stack.constants)
    assert call.inputs[0].present
    assert ("min" in call.attrs) != call.inputs[1].present
