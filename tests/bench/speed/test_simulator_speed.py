"""Speed of a simulator: what is built and run is what is asked for, and the cache is left as it was."""

import os

import pytest

from tilewright.bench.speed import simulator_speed
from tilewright.tools.toolchain import cache_folder


@pytest.mark.slow
def test_a_simulator_is_built_anew_and_runs(monkeypatch, capsys):
    monkeypatch.delenv("TILEWRIGHT_CACHE", raising=False)
    kept = cache_folder()
    found = simulator_speed.measure("lenet5", "nano", runs=1)
    assert (cache_folder(), "TILEWRIGHT_CACHE" in os.environ) == (kept, False)
    assert found.cycles > 10_000
    assert found.build_seconds > 1  # what is in the cache would take none
    assert 0 < found.run_seconds < found.build_seconds
    monkeypatch.setattr(simulator_speed, "measure",
                        lambda *given, runs, profiled: {("lenet5", "nano", 1, False): found}[*given, runs, profiled])
    simulator_speed.main(["lenet5", "--machine", "nano", "--runs", "1"])
    assert f"{found.cycles:,} cycles" in capsys.readouterr().out
