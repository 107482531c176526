"""Sums and functions of a view are those of the image that it is a view of, where that is one layer's alone."""

from dataclasses import replace

import numpy as np
import pytest

from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_operators import QAdd, QConv, QMaxPool, QTable
from tilewright.compiler.graph.move_operators import QAlias
from tilewright.compiler.graph.node import Node
from tilewright.compiler.passes.canonicalise.follow_views import FollowViews

ROWS, TOKENS, ELEMENTS = (1, 128, 1, 65), (1, 65, 128), (1, 64, 1, 130)
IMAGES = {"x": ROWS, "c": ROWS, "t": TOKENS, "e": ELEMENTS, "r": ELEMENTS, "s": ELEMENTS, "y": TOKENS}
TABLE = np.arange(-128, 128).astype(np.int8)


def graph_of(maker, *behind, outputs=("y",), **others):
    """Return a graph of ``maker``, two views of its result, what stands behind them, and a view of what that makes."""
    nodes = (Node(maker, ("x",), "c"), Node(QAlias(), ("c",), "t"), Node(QAlias(), ("t",), "e"), *behind,
             Node(QAlias(), ("s",), "y"))
    tensors = {name: Tensor(name, shape, "int8", np.float32(0.5), 3) for name, shape in IMAGES.items()} | others
    return Graph("g", nodes, tensors, {}, ("x", "r"), outputs)


SUM, FUNCTION = Node(QAdd(), ("r", "e"), "s"), Node(QTable(table=TABLE), ("e",), "s")


@pytest.mark.parametrize("node", [SUM, FUNCTION], ids=["sum", "function"])
def test_it_stands_right_behind_the_layer(node):
    graph = FollowViews().apply(graph_of(QConv(), node))
    (new,) = (each for each in graph.nodes if isinstance(each.operator, type(node.operator)))
    assert new.inputs[-1] == "c"
    assert {graph.tensors[name].shape for name in (*new.inputs, new.output)} == {ROWS}
    assert graph.tensors["y"].shape == TOKENS
    assert [graph.producer(name).operator for name in new.inputs[:-1]] == [QAlias()] * (len(new.inputs) - 1)


def test_it_does_so_where_the_views_shape_is_the_layers():
    same = {name: Tensor(name, ROWS, "int8", np.float32(0.5), 3) for name in ("e", "s")}
    graph = FollowViews().apply(graph_of(QConv(), FUNCTION, **same))
    assert [each.op for each in graph.nodes] == ["QConv", "QTable", "QAlias"]


@pytest.mark.parametrize("case", ["a pool", "read elsewhere", "another quantisation"])
def test_what_no_layer_takes_on_stays(case):
    outputs = ("y", "t") if case == "read elsewhere" else ("y",)
    graph = graph_of(QMaxPool() if case == "a pool" else QConv(), SUM, outputs=outputs)
    if case == "another quantisation":
        graph = graph.with_tensors(replace(graph.tensors["e"], scale=np.float32(0.25)))
    assert FollowViews().apply(graph) == graph
