"""Nodes are found by what they write and read; changed copies leave the list before them as it was."""

import random
import time
from itertools import pairwise

from tilewright.compiler.graph.graph import Graph
from tilewright.compiler.graph.node import Node
from tilewright.compiler.graph.node_list import NodeList
from tilewright.compiler.graph.onnx_names import onnx_operator

RELU, ADD, NEG, ABS = (onnx_operator(name, {}) for name in ("Relu", "Add", "Neg", "Abs"))


def chain(*names):
    """Return a list in which every node reads what the one before it writes."""
    return NodeList(Node(RELU, (before,), after) for before, after in pairwise(names))


def outputs(nodes):
    return [node.output for node in nodes]


def test_producers_and_readers():
    nodes = NodeList([Node(RELU, ("x",), "a"), Node(ADD, ("x", "a"), "b"), Node(ADD, ("a", "a"), "c")])
    assert nodes.producer("b") is nodes[1]
    assert nodes.producer("x") is None
    assert outputs(nodes.readers("a")) == ["b", "c"]
    assert (nodes.uses("a"), nodes.uses("x"), nodes.uses("c")) == (3, 2, 0)
    assert outputs(nodes.in_order(["c", "a"])) == ["a", "c"]


def test_many_for_one_stand_at_its_place():
    nodes = chain("x", "a", "b", "c")
    new = [Node(NEG, ("a",), "one"), Node(NEG, ("one",), "two"), Node(NEG, ("two",), "b")]
    changed = nodes.replaced([nodes[1]], new)
    assert outputs(changed) == ["a", "one", "two", "b", "c"]
    assert outputs(nodes) == ["a", "b", "c"]
    assert outputs(nodes.readers("a")) == ["b"]
    assert outputs(changed.readers("a")) == ["one"]
    assert outputs(changed.replaced([changed[1]], [Node(ABS, ("a",), "zero"), new[0]])) == [
        "a", "zero", "one", "two", "b", "c"]


def test_one_for_many_stands_at_the_place_of_the_last():
    nodes = chain("x", "a", "b", "c")
    assert outputs(nodes.replaced([nodes[0], nodes[2]], [Node(NEG, ("x",), "c")])) == ["b", "c"]
    assert outputs(nodes.replaced([nodes[1]], [])) == ["a", "c"]


def test_all_uses_are_replaced():
    graph = Graph("g", [Node(RELU, ("x",), "a"), Node(ADD, ("a", "a"), "b"), Node(ADD, ("b", "a"), "c")],
                  {}, {}, ("x",), ("c",))
    assert [node.inputs for node in graph.replace_all_uses("a", "y").nodes] == [("x",), ("y", "y"), ("b", "y")]
    assert [(node.inputs, node.output) for node in graph.renamed("b", "z").nodes] == [
        (("x",), "a"), (("a", "a"), "z"), (("z", "a"), "c")]
    assert graph.nodes[1].output == "b"


def test_any_row_of_changes_gives_what_a_plain_list_gives():
    draw = random.Random(0)
    plain = list(chain("x", *(f"{number}" for number in range(8))))
    nodes, number = NodeList(plain), 8
    for _ in range(200):
        old = draw.choice(plain)
        new = [Node(NEG, (draw.choice("0123"),), f"{number + index}") for index in range(draw.choice((0, 1, 1, 2)))]
        number += 2
        if len(plain) > 2 or new:
            plain = [each for node in plain for each in (new if node is old else [node])]
            nodes = nodes.replaced([old], new)
        assert list(nodes) == plain
        for value in {name for node in plain for name in (*node.inputs, node.output)}:
            assert nodes.producer(value) is next((node for node in plain if node.output == value), None)
            assert list(nodes.readers(value)) == [node for node in plain if value in node.inputs]


def test_a_change_costs_no_more_in_a_long_list():
    """20,000 changes take seconds; to copy 20,000 nodes for each would take minutes."""
    names = [f"{number}" for number in range(20_001)]
    nodes = chain(*names)
    start = time.monotonic()
    for name in names[1:]:
        node = nodes.producer(name)
        assert node is not None
        nodes = nodes.replaced([node], [node.with_(operator=NEG)])
    assert time.monotonic() - start < 20
    assert len(nodes) == 20_000
