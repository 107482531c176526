"""OrderNodes: the order of a graph's nodes follows from its structure, not from the file's order or names."""

import itertools
import random

import numpy as np
import pytest

from tests.fuzz.run import graph_of
from tilewright.compiler.compile import compile_layers
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.onnx_operators import OnnxBinary, OnnxUnary
from tilewright.compiler.graph.rewrite import PassError
from tilewright.compiler.passes.canonicalise.order_nodes import OrderNodes
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.isa.machine import preset


def _graph(nodes, outputs, inputs=("x",)):
    names = {*inputs, *(node.output for node in nodes)}
    return Graph("graph", tuple(nodes), {name: Tensor(name, (1, 4), "float32") for name in names}, {}, inputs,
                 tuple(outputs))


def _unary(source, output):
    return Node(OnnxUnary("Relu"), (source,), output)


def _binary(first, second, output):
    return Node(OnnxBinary("Add"), (first, second), output)


_BRANCHES = (_unary("x", "a"), _unary("x", "b"), _unary("b", "c"), _binary("c", "a", "d"), _unary("a", "e"),
             _binary("d", "e", "f"))


def test_what_a_node_reads_first_stands_just_before_it():
    ordered = OrderNodes().apply(_graph(_BRANCHES, ["f"]))
    assert [node.output for node in ordered.nodes] == ["a", "e", "b", "c", "d", "f"]


def test_every_order_of_a_file_gives_the_same():
    wanted = OrderNodes().apply(_graph(_BRANCHES, ["e", "f"])).nodes
    rng = random.Random(0)
    for _ in range(20):
        given = list(_BRANCHES)
        rng.shuffle(given)
        assert tuple(OrderNodes().apply(_graph(given, ["e", "f"])).nodes) == tuple(wanted)


def test_a_graph_in_order_stays_itself():
    graph = OrderNodes().apply(_graph(_BRANCHES, ["f"]))
    assert OrderNodes().apply(graph) is graph


def test_what_no_output_needs_stays_too():
    graph = _graph([_unary("x", "dead"), _unary("dead", "dead too"), _unary("x", "y")], ["y"])
    assert [node.output for node in OrderNodes().apply(graph).nodes] == ["y", "dead", "dead too"]


def test_a_node_before_its_input_is_a_fault():
    graph = _graph([_unary("a", "b"), _unary("x", "a")], ["b"])
    with pytest.raises(PassError, match="'b' must come after"):
        OrderNodes().ensures(graph)


def test_a_long_chain_needs_no_stack():
    names = ["x", *(f"t{number}" for number in range(20_000))]
    graph = _graph([_unary(source, output) for source, output in itertools.pairwise(names)], [names[-1]])
    assert len(OrderNodes().apply(graph).nodes) == 20_000


@pytest.mark.parametrize("number", [3, 12, 40])
def test_a_shuffled_file_gives_the_same_commands(number):
    """Whole way: nodes shuffled, each behind what it reads, and the program is the same word for word."""
    model = graph_of(number, "branches qdq").model
    programs = set()
    for seed in range(3):
        network = compile_network(_shuffled(model, np.random.default_rng(seed)))
        commands = compile_layers(network, preset("base")).program.commands()
        programs.add(tuple(map(str, commands)))
    assert len(programs) == 1


def _shuffled(model, rng):
    left, done = list(model.graph.node), []
    made = {name for node in left for name in node.output}
    while left:
        ready = [node for node in left if not made & set(node.input)]
        node = ready[rng.integers(len(ready))]
        left.remove(node)
        made -= set(node.output)
        done.append(node)
    changed = type(model)()
    changed.CopyFrom(model)
    del changed.graph.node[:]
    changed.graph.node.extend(done)
    return changed.SerializeToString()
