"""Bus words of ldw against docs/datapath.md, byte by byte."""

import pytest

from tests.support.coprocessor_state import MACHINES, engine_of, run, weight
from tilewright.isa.memory import MAIN_BASE


@MACHINES
@pytest.mark.parametrize("variant", ["main", "ninths"])
def test_bus_words_go_to_the_clusters_in_turn(machine, variant):
    engine = engine_of(machine)
    bus, base, words = machine.bus_bytes, 13, 37
    source = engine.memory.bytes[640:640 + words * bus].copy()
    run(engine, (f"ldw.{variant}", {"address": MAIN_BASE + 640, "base": base, "words": words}))
    for index in range(words):
        i = base + index
        part, place = i % (16 // bus), i // (16 // bus)
        word, cluster = divmod(place, machine.clusters)
        for byte in range(bus):
            assert weight(engine, cluster, word, part * bus + byte, variant == "ninths") == source[index * bus + byte]
