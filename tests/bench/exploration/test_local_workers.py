"""Processes of this machine: one that dies costs its design alone."""

import os
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

import pytest

from tilewright.bench.exploration.design_cost import DesignOutcome, Verdict
from tilewright.bench.exploration.local_workers import LocalWorkers
from tilewright.isa.machine import Machine
from tilewright.runtime.design.design import Design


@dataclass(frozen=True)
class Deadly:
    """An evaluator whose process ends at a design of one lane."""

    def evaluate(self, design):
        if design.machine.lanes == 1:
            os._exit(9)
        return DesignOutcome(Verdict.good, {"pid": os.getpid()})


def test_a_process_that_dies_is_started_again_and_the_other_lives():
    workers = LocalWorkers(Deadly(), 2)
    try:
        good, bad = Design(machine=Machine()), Design(machine=Machine(lanes=1, post_lanes=1))
        first, second = workers.submit(bad), workers.submit(good)
        other = second.result(60).measures["pid"]
        with pytest.raises(BrokenProcessPool):
            first.result(60)
        third, fourth = workers.submit(good), workers.submit(good)
        pids = {third.result(60).measures["pid"], fourth.result(60).measures["pid"]}
        assert other in pids
        assert len(pids) == 2
    finally:
        workers.close()
