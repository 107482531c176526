"""Commands that no hardware could execute, each refused in a sentence and with a typed reason."""


import pytest

from tests.support.coprocessor_state import CLAMP, CONV, OUTPUT, engine_of, run, set_conv, set_store
from tests.support.machines import WINOGRAD_MACHINES
from tilewright.isa.memory import MAIN_BASE
from tilewright.isa.semantics.command_errors import (
    OutsideBufferError,
    SettingMissingError,
    SumsMismatchError,
    SumsMissingError,
    ZeroOperandError,
    ZeroSettingError,
)
from tilewright.sim.values.executor import CommandFailedError, ExecutionError

READY = (("lda.set_row", {"chunk_bytes": 16, "chunks": 1}), ("lda.set_step", {"row_step": 16}),
         ("lda.set_layout", {"chunk_step": 40, "channels": 3, "left": 2, "right": 1, "value": -7}))
END = WINOGRAD_MACHINES["base"].activation_bytes
RESULT_END = WINOGRAD_MACHINES["base"].result_bytes
OUTPUT_SET = (("act.set_output", OUTPUT), ("act.set_clamp", CLAMP))


@pytest.mark.parametrize(("commands", "message"), [
    ([("lda.linear", {"address": MAIN_BASE, "rows": 1}, "wait_act_free"), ],
     r"waits for act_free, "),
    ([("sta.memory", {"address": MAIN_BASE, "rows": 1}, "wait_out_ready")], r"waits for out_ready, which no command "),
    ([("lda.linear", {"address": MAIN_BASE, "rows": 1})], r"chunks of lda set before"),
    ([*READY, ("lda.linear", {"address": MAIN_BASE})], r"rows .*not 0$"),
    ([*READY, ("lda.linear", {"address": MAIN_BASE, "rows": 2, "base": END - 30})],
     rf"not reach activation byte {END - 30 + 16 + 24} "),
    ([*READY, ("lda.fill_blocked", {"rows": 1, "base": END - 16})],
     r"chunk_bytes .*not 16$"),
    ([*READY, ("lda.residual", {"address": MAIN_BASE, "rows": 1, "base": RESULT_END - 15})],
     rf"not reach result byte {RESULT_END} "),
    ([("ldw.main", {"address": MAIN_BASE, "base": 8190, "words": 3})], r"not reach main byte 65543 of 65536$"),
    ([("ldw.ninths", {"address": MAIN_BASE, "base": 1023, "words": 2})], r"not reach ninths byte 8199 of 8192$"),
    ([("ldw.parameters", {"address": MAIN_BASE, "base": 1024, "words": 1})],
     r"not reach parameters byte 8199 of 8192$"),
    ([("ldw.table", {"address": MAIN_BASE, "base": 127, "words": 2})], r"not reach table byte 1031 of 1024$"),
    ([("ldw.main", {"address": MAIN_BASE})], r"words .*not 0$"),
    ([*set_conv(CONV), ("conv.run", {"tiles_y": 1, "groups": 1, "weight_base": 4090})],
     r"not reach weight word 4137 of 4096$"),
    ([*set_conv(CONV), ("conv23.run", {"tiles_y": 1, "groups": 1, "weight_base": 4})],
     r"weight_base .*multiple of 8, not 4$"),
    ([*set_conv(CONV), ("conv23.run", {"tiles_y": 1, "groups": 1, "weight_base": 4088, "base": 0}),
      ("conv23.run", {"tiles_y": 1, "groups": 9, "weight_base": 4088})],
     r"not reach kernel 8247 of 8192$"),
    ([*set_conv(CONV), ("conv.run", {"tiles_y": 1, "groups": 1, "hold": 1})],
     r"4 tiles, .*not 1 and 5$"),
    ([*set_conv(CONV | {"tiles_x": 4}), ("conv.run", {"tiles_y": 1, "groups": 1, "accumulate": 1})],
     r"sums of its own tiles"),
    ([*set_conv(CONV | {"runs": 0}), ("conv.run", {"tiles_y": 1, "groups": 1})],
     r"runs of conv .*not 0$"),
    ([*OUTPUT_SET, ("act.run", {"rows": 1, "channels": 1})], r"sums that a mac command"),
    ([*set_conv(CONV), ("conv.run", {"tiles_y": 1, "groups": 1}), *OUTPUT_SET, ("act.run", {"rows": 1, "channels": 5})],
     r"1, 5, 8\), .*not \(1, 5, 4\), winograd 0$"),
    ([*set_conv(CONV), ("conv.run", {"tiles_y": 2, "groups": 1}), *OUTPUT_SET, ("act.run", {"rows": 1, "channels": 4})],
     r"1, 5, 4\), .*not \(2, 5, 4\), winograd 0$"),
    ([*set_conv(CONV), ("conv.run", {"tiles_y": 1, "groups": 1}), *OUTPUT_SET,
      ("act.run", {"rows": 1, "channels": 4, "base": RESULT_END - 50})],
     rf"not reach result byte {RESULT_END + 5} of "),
    ([*set_conv(CONV), ("conv.run", {"tiles_y": 1, "groups": 1}), *OUTPUT_SET,
      ("act.run", {"rows": 1, "channels": 4, "residual": 1, "pooled": 1})], r"residual and pooled together"),
    ([*set_store(9, 100), ("sta.linear", {"rows": 1, "base": 0, "target": END - 24})],
     rf"not reach activation byte {END} "),
    ([*set_store(640, 640), ("sta.blocked", {"rows": 1, "base": 0, "target": END - 16})],
     "not reach activation byte "),
    ([*set_store(9, 100), ("sta.memory", {"rows": 1, "address": MAIN_BASE, "base": RESULT_END - 46})],
     rf"not reach result byte {RESULT_END}"),
])
def test_what_no_hardware_could_do(commands, message):
    engine = engine_of(WINOGRAD_MACHINES["base"])
    with pytest.raises(ExecutionError, match=message) as caught:
        run(engine, *commands)
    assert str(caught.value).startswith(f"Command {commands[-1][0]} ")


@pytest.mark.parametrize(("commands", "reason"), [
    ([("lda.linear", {"address": MAIN_BASE, "rows": 1})], SettingMissingError("lda", "chunks")),
    ([*READY, ("lda.linear", {"address": MAIN_BASE})], ZeroOperandError("rows")),
    ([*READY, ("lda.residual", {"address": MAIN_BASE, "rows": 1, "base": RESULT_END - 15})],
     OutsideBufferError("result byte", RESULT_END, RESULT_END)),
    ([*set_conv(CONV | {"runs": 0}), ("conv.run", {"tiles_y": 1, "groups": 1})], ZeroSettingError("conv", "runs")),
    ([*set_conv(CONV), ("conv.run", {"tiles_y": 2, "groups": 1}), *OUTPUT_SET, ("act.run", {"rows": 1, "channels": 4})],
     SumsMismatchError((1, 5, 4), False, (2, 5, 4), False)),
])
def test_the_reason_is_typed(commands, reason):
    with pytest.raises(CommandFailedError) as caught:
        run(engine_of(WINOGRAD_MACHINES["base"]), *commands)
    assert caught.value.reason == reason
    assert str(caught.value.command).startswith(commands[-1][0])


def test_no_sums_are_a_reason_of_their_own():
    with pytest.raises(CommandFailedError) as caught:
        run(engine_of(WINOGRAD_MACHINES["base"]), *OUTPUT_SET, ("act.run", {"rows": 1, "channels": 1}))
    assert isinstance(caught.value.reason, SumsMissingError)


def test_a_semaphore_counts_to_63():
    engine = engine_of(WINOGRAD_MACHINES["base"])
    signal = ("ldw.main", {"address": MAIN_BASE, "words": 1}, "signal_wgt_ready")
    run(engine, *[signal] * 63)
    message = r"^Command ldw\.main .* must keep the semaphore wgt_ready below 64, and overflows it$"
    with pytest.raises(ExecutionError, match=message):
        run(engine, signal)
