"""Semaphores around a command: waits take, signals add."""

from tests.support.coprocessor_state import CONV, engine_of, run, set_conv
from tests.support.machines import WINOGRAD_MACHINES

READY = (("lda.set_row", {"chunk_bytes": 16, "chunks": 1}), ("lda.set_step", {"row_step": 16}),
         ("lda.set_layout", {"chunk_step": 40, "channels": 3, "left": 2, "right": 1, "value": -7}))


def test_waits_take_and_signals_add():
    engine = engine_of(WINOGRAD_MACHINES["base"])
    fill = ("lda.fill_linear", {"rows": 1})
    run(engine, *READY, (*fill, "signal_act_ready"), (*fill, "signal_act_ready"))
    assert engine.state.semaphores["act_ready"] == 2
    cfg = CONV | {"tiles_x": 1}
    run(engine, *set_conv(cfg), ("conv.run", {"tiles_y": 1, "groups": 1}, "wait_act_ready", "signal_act_free"))
    assert (engine.state.semaphores["act_ready"], engine.state.semaphores["act_free"]) == (1, 1)
