"""Tensors live from the layer that writes them to the last that reads them, and none over another."""

from itertools import combinations

from tilewright.compiler.compile import compile_file
from tilewright.compiler.explain import explain
from tilewright.compiler.tensor_lives import WEIGHTS
from tilewright.isa.machine import preset
from tilewright.runtime.model_source import find_model
from tilewright.tools.progress import Silence


def test_places_that_overlap_are_taken_at_different_times():
    found = explain(compile_file(find_model("resnet18-32", Silence()).path, preset("base")))
    assert found.lives[0].name == WEIGHTS
    assert len(found.lives) > 10
    assert all(each.first <= each.last < len(found.layers) for each in found.lives)
    for one, other in combinations(found.lives, 2):
        apart = one.address + one.size <= other.address or other.address + other.size <= one.address
        assert apart or one.last < other.first or other.last < one.first
    assert max(each.address + each.size for each in found.lives) - found.lives[0].address <= found.memory_bytes
