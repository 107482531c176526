"""JoinParts: convolutions of one tensor, side by side in a concatenation, are one layer with the same numbers."""

from dataclasses import replace

import numpy as np
import pytest

from tests.fuzz.twins.judge import judge
from tests.fuzz.twins.rewriting import Step, twin_of
from tests.fuzz.twins.sources import plain_model
from tilewright.compiler.graph.graph import Graph, Tensor
from tilewright.compiler.graph.integer_operators import ExactWindow, QConv
from tilewright.compiler.graph.move_operators import QConcat
from tilewright.compiler.graph.node import Node
from tilewright.compiler.passes.fuse.join_parts import JoinParts
from tilewright.compiler.passes.pass_order import compile_network

_WINDOW = ExactWindow(kernel=(3, 3), pads=(1, 1, 1, 1))


def _tensor(name, channels, scale=0.5):
    return Tensor(name, (1, channels, 4, 4), "int8", np.float32(scale), 0)


def _graph(channels=(2, 3, 4), *, joined=None, outputs=("y",), **changes):
    """Return convolutions of ``x`` with that many channels, and their concatenation ``y``.

    ``changes`` are those of the second's node, tensor or operator.
    """
    names = [f"part{index}" for index in range(len(channels))]
    rng, nodes, constants = np.random.default_rng(0), [], {}
    tensors = {"x": _tensor("x", 5), "y": _tensor("y", sum(channels))}
    for name, count in zip(names, channels, strict=True):
        constants |= {f"{name}w": rng.integers(-9, 9, (count, 5, 3, 3)).astype(np.int8),
                      f"{name}s": np.float32(0.1) if name == "part0" else rng.random(count).astype(np.float32),
                      f"{name}b": rng.integers(-9, 9, count).astype(np.int32)}
        nodes.append(Node(QConv(window=_WINDOW), ("x", f"{name}w", f"{name}s", f"{name}b"), name, (name,)))
        tensors[name] = _tensor(name, count)
    if "operator" in changes:
        nodes[1] = nodes[1].with_operator(**changes["operator"])
    if "tensor" in changes:
        tensors["part1"] = replace(tensors["part1"], **changes["tensor"])
    nodes.append(Node(QConcat(axis=0), tuple(joined or names), "y"))
    return Graph("graph", tuple(nodes), tensors, constants, ("x",), outputs)


def test_all_parts_of_a_concatenation_become_one_layer():
    before = _graph()
    (node,) = JoinParts().apply(before).nodes
    after = JoinParts().apply(before)
    weights, scale, bias = (after.constants[name] for name in node.inputs[1:])
    assert (node.output, node.inputs[0], node.onnx_nodes) == ("y", "x", ("part0", "part1", "part2"))
    assert after.tensors["y"].shape == (1, 9, 4, 4)
    for start, name, count in ((0, "part0", 2), (2, "part1", 3), (5, "part2", 4)):
        np.testing.assert_array_equal(weights[start:start + count], before.constants[f"{name}w"])
        np.testing.assert_array_equal(scale[start:start + count], np.broadcast_to(before.constants[f"{name}s"], count))
        np.testing.assert_array_equal(bias[start:start + count], before.constants[f"{name}b"])


@pytest.mark.parametrize("changes", [
    {"operator": {"low": 0}}, {"operator": {"window": ExactWindow(kernel=(3, 3), pads=(0, 0, 0, 0))}},
    {"operator": {"table": np.zeros(256, np.int8)}}, {"tensor": {"scale": np.float32(0.25)}},
    {"tensor": {"zero_point": 3}}, {"outputs": ("y", "part1")}])
def test_a_part_that_differs_or_is_seen_elsewhere_stays(changes):
    graph = JoinParts().apply(_graph((2, 3), **changes))
    assert [node.output for node in graph.nodes] == ["part0", "part1", "y"]


def test_neighbours_are_joined_and_the_rest_stays():
    graph = JoinParts().apply(_graph((2, 3, 4), joined=["x", "part0", "part2", "x", "part1"]))
    assert [len(node.inputs) for node in graph.nodes if isinstance(node.operator, QConcat)] == [4]
    joined = next(node for node in graph.nodes if node.onnx_nodes == ("part0", "part2"))
    assert graph.tensors[joined.output].shape == (1, 6, 4, 4)


def test_a_tensor_that_stands_twice_in_a_concatenation_stays():
    graph = _graph((2, 3), joined=["part0", "part0", "part1", "part1"])
    assert JoinParts().apply(graph) is graph


@pytest.mark.parametrize("source", ["lenet5", "mlperf-resnet8"])
def test_a_network_split_by_output_channels_has_its_layers_and_cycles(source):
    plain, steps = plain_model(source), [Step("split by outputs", 4)]
    twin = twin_of(plain, steps)
    counts = [len(compile_network(each.SerializeToString()).layers) for each in (plain, twin.model)]
    assert counts[0] == counts[1]
    finding, applied = judge(source, steps)
    assert (finding.outcome, applied) == ("equal", tuple(steps))
