"""A Ray cluster of two nodes, one of which is killed: every design is tried, once, and none fails because of it."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.bench.exploration.synthetic import setup_for, space_of
from tilewright.bench.exploration.design_cost import DesignOutcome, Verdict
from tilewright.bench.exploration.exploration import explore
from tilewright.bench.exploration.exploration_study import ExplorationStudy

pytestmark = pytest.mark.slow

SPACE = space_of(lanes=(1, 2, 4), bus_bytes=(4, 8, 16), activation_bytes=(16384, 32768, 65536, 131072))
TRIALS = 16


@dataclass(frozen=True)
class Slow:
    """An evaluator that takes a while, and tells on which node it was."""

    log: str

    def evaluate(self, design):
        # Here, because it is the worker's that is asked.
        import ray

        node = ray.get_runtime_context().get_node_id()
        with open(self.log, "a", encoding="utf-8") as file:
            file.write(f"{design.machine.name} {node} {os.getpid()}\n")
        time.sleep(1)
        size = design.machine
        return DesignOutcome(Verdict.good, {"cycles": 1e6 / size.lanes / size.bus_bytes, "area": float(size.lanes),
                                            "time": 1.0, "energy": 1.0, "energy-delay": 1.0, "lut4": 1.0})


@pytest.fixture
def cluster(monkeypatch):
    ray = pytest.importorskip("ray")
    cluster_utils = pytest.importorskip("ray.cluster_utils")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    # Of a node that says nothing any more the head takes a minute to be sure.
    monkeypatch.setenv("RAY_health_check_period_ms", "500")
    monkeypatch.setenv("RAY_health_check_failure_threshold", "3")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]), prepend=os.pathsep)
    found = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    second = found.add_node(num_cpus=1)
    yield found, second
    ray.shutdown()
    found.shutdown()


def test_a_node_that_is_killed_costs_no_trial(cluster, tmp_path):
    from tilewright.bench.exploration.ray_workers import RayWorkers

    nodes, second = cluster
    study, log = ExplorationStudy(tmp_path, setup_for(SPACE)), tmp_path / "log"
    workers = RayWorkers(Slow(str(log)), nodes.address)
    assert workers.width == 2
    lost, done, killed = second.node_id, set(), []

    def places():
        return [line.split() for line in log.read_text().splitlines()]

    def show(trial):
        done.add(f"trial-{trial.number}")
        under_way = [(name, int(pid)) for name, node, pid in places() if node == lost and name not in done]
        if len(done) >= 4 and under_way and not killed:
            # As if the power had failed: Ray itself would let the worker end what it does.
            for name, pid in under_way:
                os.kill(pid, signal.SIGKILL)
                killed.append(name)
            nodes.remove_node(second, allow_graceful=False)

    try:
        explore(study, workers, TRIALS, show)
    finally:
        workers.close()
    finished = study.finished()
    study.close()
    assert [each.number for each in finished] == list(range(TRIALS))
    assert len({SPACE.key(each.choice) for each in finished}) == TRIALS
    assert {each.outcome.verdict for each in finished} == {Verdict.good}
    assert killed
    begun = places()
    assert [[name for name, *_ in begun].count(each) for each in killed] == [2]  # begun again elsewhere
    assert begun[-1][1] != lost
