"""Operators between tensors of 16 bits are layers of the datapath, on a machine of wide words.

The front end knows no machine, and leaves them to the host core. Here each group that the datapath can compute
(`word_groups`) becomes a layer, and each of its tensors of words two planes of bytes (`word_tensors`). What the model's
border quantises to words is quantised to planes there. Where the host core reads or writes the same tensor, it has
its words one behind the other, and layers that copy bytes stand between.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from tilewright.compiler.errors import CompileError
from tilewright.compiler.network.layers import (
    AnyLayer,
    ChannelFactor,
    CoreLayer,
    Layer,
    Network,
    Place,
    Requantisation,
    TensorInfo,
    WordPlanes,
)
from tilewright.compiler.network.layout import LayerLayouts
from tilewright.compiler.network.options import Options
from tilewright.compiler.plan.alike_layers import plan_once
from tilewright.compiler.words.word_functions import function_at
from tilewright.compiler.words.word_graph import VIEWS, WordGraph
from tilewright.compiler.words.word_group import WordGroup
from tilewright.compiler.words.word_groups import group_at
from tilewright.compiler.words.word_joins import joined
from tilewright.compiler.words.word_softmaxes import with_word_softmaxes
from tilewright.compiler.words.word_tensors import WORDS, WordPart, lower_name, part_tensors, plane_tensors, upper_name
from tilewright.isa.machine import Machine

__all__ = ["NO_WORDS", "with_word_layers"]

NO_WORDS = "the machine has no wide words, which would take it: choose one that has them, as with wide_words=true"
"""Reason of operators between words on the host core of a machine without the unit."""


def with_word_layers(network: Network, machine: Machine, options: Options) -> Network:
    """Return ``network`` with what ``machine`` can compute in words of 16 bits as layers of the datapath.

    Without that unit they stay on the host core, with the unit as the reason where it would take them.
    """
    if not any(info.dtype in WORDS for info in network.tensors.values()) or any(
            info.images > 1 for info in network.tensors.values()):
        return network
    network = with_word_softmaxes(network)
    graph = WordGraph(network)
    groups = _groups_of(graph, curves=machine.bends_words)
    if not machine.wide_words:
        reasons = {group.members[0]: NO_WORDS for group in groups if group.layers}
        return replace(network, layers=tuple(replace(layer, reason=reasons[index]) if index in reasons and isinstance(
            layer, CoreLayer) else layer for index, layer in enumerate(network.layers)))
    chosen = _joined_groups(graph, [group for group in groups if group.layers and _fits(
        group, network, machine, options)], lambda group: _fits(group, network, machine, options))
    reasons = {group.members[0]: group.reason for group in groups if group.reason}
    return _Rewrite(graph, {group.members[-1]: group for group in chosen}, reasons).network()


def _groups_of(graph: WordGraph, *, curves: bool) -> list[WordGroup]:
    """Return the groups of a network; those of the datapath first, where there is a choice."""
    found, functions = [group_at(graph, index) for index in range(len(graph.layers))], set[int]()
    for index, group in enumerate(found):
        if group is None or not group.layers:
            if (made := function_at(graph, index, curves=curves)) is not None:
                found[index] = made
                functions.add(index)
    # A function may reach over results of other groups, which nothing else needs then.
    within = {number for index, group in enumerate(found) if group is not None and index in functions
              for number in group.members[:-1]}
    return [group for group in found if group is not None and group.members[-1] not in within]


def _joined_groups(graph: WordGraph, groups: list[WordGroup], fits: Callable[[WordGroup], bool]) -> list[WordGroup]:
    """Return groups of which those that scale what others made for them alone stand for these, too."""
    found: dict[str, WordGroup] = {}
    for group in groups:
        makers = [found[name] for name in group.sources if name in found]
        made = joined(graph, makers, group) if makers else None
        if made is not None and fits(made):
            for each in makers:
                if set(each.members) <= set(made.members):
                    del found[each.target]
        found[group.target] = made if made is not None and fits(made) else group
    return list(found.values())


def _fits(group: WordGroup, network: Network, machine: Machine, options: Options) -> bool:
    """Tell whether some tile of each layer of a group fits the machine."""
    tensors = {**network.tensors, **{info.name: info for info in group.inner}}
    for layer in group.layers:
        if isinstance(layer, CoreLayer):
            continue
        planned, infos = _with_planes(layer, tensors, {part.name: part for part in group.parts})
        tensors |= infos
        try:
            plan_once(planned, machine, options, LayerLayouts.of(planned, tensors))
        except CompileError:
            return False
    return True


def _with_planes(layer: Layer, tensors: Mapping[str, TensorInfo],
                 parts: Mapping[str, WordPart]) -> tuple[Layer, dict[str, TensorInfo]]:
    """Return a layer on the planes of its tensors of words and of parts of them, and these tensors."""
    added, infos = layer.words.addend, dict[str, TensorInfo]()
    ends: dict[str, tuple[str, str]] = {}
    for name in (layer.input, layer.output, *([added.upper] if added is not None else ())):
        part = parts.get(name)
        info = tensors[name if part is None else part.parent]
        ends[name] = (name, "")
        if info.dtype in WORDS:
            whole = planes_name(info.name)
            infos |= {each.name: each for each in plane_tensors(replace(info, name=whole))}
            ends[name] = upper_name(whole), lower_name(whole)
        if part is not None:
            infos |= {each.name: each for each in part_tensors(part, info, ends[name])}
            ends[name] = (name, "") if info.dtype not in WORDS else (upper_name(name), lower_name(name))
    factor = layer.factor
    if isinstance(factor, ChannelFactor) and factor.tensor not in tensors:
        # A plane of a vector of words.
        vector, plane = factor.tensor.rsplit(":", 1)
        whole = planes_name(vector)
        infos |= {each.name: each for each in plane_tensors(replace(tensors[vector], name=whole))}
        factor = replace(factor, tensor=f"{whole}:{plane}")
    (source, lower_source), (target, lower_target) = ends[layer.input], ends[layer.output]
    if added is not None:
        upper, lower = ends[added.upper]
        added = replace(added, upper=upper, lower=lower)
    return replace(layer, input=source, output=target, factor=factor, words=WordPlanes(
        lower_input=lower_source, lower_output=lower_target, addend=added)), infos


def _call_of_planes(layer: CoreLayer, tensors: Mapping[str, TensorInfo]) -> tuple[CoreLayer, dict[str, TensorInfo]]:
    """Return a layer of the host core on planes of tensors of words, and these tensors."""
    infos = {each.name: each for name in (layer.inputs[0], layer.output)
             for each in plane_tensors(replace(tensors[name], name=planes_name(name)))}
    return replace(layer, inputs=(planes_name(layer.inputs[0]), *layer.inputs[1:]),
                   output=planes_name(layer.output)), infos


def planes_name(name: str) -> str:
    """Return the name of the planes of a tensor of words."""
    return f"{name}:planes"


@dataclass(slots=True)
class _Rewrite:
    """A network whose ``groups``, by the number of their last layer, become layers of the datapath."""

    graph: WordGraph
    groups: Mapping[int, WordGroup]
    reasons: Mapping[int, str]
    tensors: dict[str, TensorInfo] = field(init=False)
    aliases: dict[str, str] = field(default_factory=dict)
    split: set[str] = field(default_factory=set)
    """Words of the host core that are made planes for the model's border."""

    def __post_init__(self) -> None:
        self.tensors = dict(self.graph.tensors)

    def network(self) -> Network:
        """Return the network."""
        graph, members = self.graph, {each for group in self.groups.values() for each in group.members}
        inputs, taken_in = self._inputs(members)
        outputs, taken_out = self._outputs()
        gone = members | taken_in | taken_out
        gone |= self._unread(gone)
        layers: list[AnyLayer] = []
        planar = {group.target for group in self.groups.values()} | set(self.aliases) | {
            info.name.removesuffix(":planes") for info in inputs if info.words}
        natural = {name for index, layer in enumerate(graph.layers) if index not in gone for name in layer.reads}
        for name in sorted(planar & natural):       # of the border, before anything
            if name not in {group.target for group in self.groups.values()}:
                layers += self._joined(name)
        for index, layer in enumerate(graph.layers):
            if index in self.groups:
                layers += self._group(self.groups[index], natural)
            elif index not in gone:
                layers.append(replace(layer, reason=self.reasons[index]) if index in self.reasons and isinstance(
                    layer, CoreLayer) else layer)
                layers += self._split_behind(layer.writes, planar)
        return self._finished(layers, inputs, outputs)

    def _group(self, group: WordGroup, natural: set[str]) -> Iterator[AnyLayer]:
        """Yield the layers of a group, and what gives its result to the host core."""
        self.tensors |= {info.name: info for info in group.inner}
        parts = {part.name: replace(part, parent=self.aliases.get(part.parent, part.parent)) for part in group.parts}
        for layer in group.layers:
            made, infos = (_call_of_planes(self._called(layer), self.tensors) if isinstance(layer, CoreLayer)
                           else _with_planes(self._renamed(layer), self.tensors, parts))
            self.tensors |= {name: info for name, info in infos.items() if name not in self.tensors}
            yield made
        if group.target in natural and self.tensors[group.target].dtype in WORDS:
            yield from self._joined(group.target)

    def _called(self, layer: CoreLayer) -> CoreLayer:
        """Return the same of one of the host core."""
        return replace(layer, inputs=tuple(self.aliases.get(name, name) for name in layer.inputs))

    def _renamed(self, layer: Layer) -> Layer:
        """Return a layer that reads what lies as its inputs, where these are names of it."""
        added, words = layer.words.addend, layer.words
        if added is not None and added.upper in self.aliases:
            words = replace(words, addend=replace(added, upper=self.aliases[added.upper]))
        factor = layer.factor
        if isinstance(factor, ChannelFactor):
            vector, *plane = factor.tensor.rsplit(":", 1) if factor.tensor not in self.tensors else (factor.tensor,)
            factor = replace(factor, tensor=":".join((self.aliases.get(vector, vector), *plane)))
        if layer.input not in self.aliases:
            return replace(layer, words=words, factor=factor)
        source = self.aliases[layer.input]
        return replace(layer, input=source, in_shape=self.tensors[source].shape, words=words, factor=factor)

    def _split_behind(self, names: tuple[str, ...], planar: set[str]) -> Iterator[AnyLayer]:
        """Yield what makes planes of words that the host core has written, if a layer of the datapath reads them."""
        wanted = {self.aliases.get(name, name) for group in self.groups.values() for name in group.sources}
        wanted |= self.split
        for name in names:
            if name in wanted - planar and self.tensors[name].dtype in WORDS:
                yield from self._copied(name, back=True)

    def _joined(self, name: str) -> Iterator[AnyLayer]:
        yield from self._copied(name, back=False)

    def _copied(self, name: str, *, back: bool) -> Iterator[Layer]:
        """Yield the layers that make words of planes byte by byte, or ``back`` planes of words."""
        info = self.tensors[name]
        channels, height, width = info.shape
        self.tensors |= {each.name: each for each in plane_tensors(replace(info, name=planes_name(name)))
                         if each.name not in self.tensors}
        shape = 1, height * width, channels
        for byte, plane in ((1, upper_name(planes_name(name))), (0, lower_name(planes_name(name)))):
            lies = self.tensors[plane].place
            assert lies is not None
            flat = TensorInfo(name=f"{plane} bytes", shape=shape, scale=np.float32(1), zero_point=0, place=replace(
                lies, row_step=channels, pixel_step=1))
            apart = TensorInfo(name=f"{name} byte {byte}", shape=shape, scale=np.float32(1), zero_point=0, place=Place(
                parent=name, offset=byte, row_step=2 * channels, pixel_step=2))
            self.tensors |= {flat.name: flat, apart.name: apart}
            first, second = (apart, flat) if back else (flat, apart)
            # A lower byte is 128 less, and so is the upper one of a uint16.
            turns = byte == 0 or info.dtype == "uint16"
            yield Layer(
                name=f"{name}: {'planes' if back else 'words'}, byte {byte}", kind="pass", onnx_nodes=(),
                input=first.name, output=second.name, in_shape=shape, conv_shape=shape, out_shape=shape, weights=None,
                bias=np.zeros(1, np.int32), groups=1, table=_TURNED if turns else None,
                requantisation=Requantisation(scale=np.ones(1, np.float32), zero_point=0))

    def _inputs(self, members: set[int]) -> tuple[tuple[TensorInfo, ...], set[int]]:
        """Return the inputs, of which those that are quantised to words are planes, and the layers they replace."""
        graph, found, gone = self.graph, list[TensorInfo](), set[int]()
        wanted = {name for group in self.groups.values() for name in group.sources}
        for info in graph.network.inputs:
            chains = [self._chain(index) for index in graph.readers.get(info.name, ())]
            new = [each for each in (self._border(info, chain, wanted) for chain in chains) if each is not None]
            if len(new) < len(chains) or not chains:
                found.append(info)
            for planes, layers in new:
                found.append(planes[0])
                gone |= layers
                self.tensors |= {each.name: each for each in planes}
        return tuple(found), gone

    def _chain(self, index: int) -> list[int]:
        """Return layer ``index`` and the views that follow it, each the only reader of the one before."""
        graph, chain = self.graph, [index]
        while True:
            readers = graph.readers.get(graph.layers[chain[-1]].writes[0], [])
            if len(readers) != 1 or graph.core(readers[0], *VIEWS) is None:
                return chain
            chain.append(readers[0])

    def _border(self, info: TensorInfo, chain: list[int],
                wanted: set[str]) -> tuple[tuple[TensorInfo, ...], set[int]] | None:
        """Return the planes that stand for an input of the model, and the layers that made words of it."""
        graph = self.graph
        quantise = graph.core(chain[0], "QuantizeLinear")
        kind = None if quantise is None else graph.quantisation(quantise)
        target = graph.layers[chain[-1]].writes[0]
        if kind is None or target not in wanted or graph.tensors[target].dtype not in WORDS \
                or info.dtype != "float32":
            return None
        words = graph.tensors[target]
        return plane_tensors(replace(
            words, name=planes_name(target), scale=kind[0], zero_point=kind[1], unsigned=words.dtype == "uint16",
            onnx_name=info.onnx_name, onnx_dtype=info.onnx_dtype, onnx_shape=info.onnx_shape,
            preparation=info.preparation)), set(chain)

    def _outputs(self) -> tuple[tuple[TensorInfo, ...], set[int]]:
        """Return the outputs, of which those that are dequantised words are planes, and the layers they replace."""
        graph, found, gone = self.graph, list[TensorInfo](), set[int]()
        made = {group.target for group in self.groups.values()}
        for info in graph.network.outputs:
            index = graph.made_by(info.name)
            layer = None if index is None else graph.core(index, "DequantizeLinear")
            kind = None if layer is None else graph.quantisation(layer)
            words = None if layer is None else graph.tensors.get(layer.inputs[0])
            if words is None or index is None or kind is None or words.dtype not in WORDS \
                    or graph.made_by(words.name) is None:
                found.append(info)
                continue
            if words.name not in made:
                self.split.add(words.name)
            planes = plane_tensors(replace(
                words, name=planes_name(words.name), scale=kind[0], zero_point=kind[1],
                unsigned=words.dtype == "uint16", onnx_name=info.onnx_name, onnx_dtype=info.onnx_dtype,
                onnx_shape=info.onnx_shape))
            self.tensors |= {each.name: each for each in planes}
            found.append(planes[0])
            if not graph.readers.get(info.name):
                gone.add(index)
        return tuple(found), gone

    def _unread(self, gone: set[int]) -> set[int]:
        """Return further layers whose results nobody reads any more; views of what lies as before become names."""
        graph, dead = self.graph, set[int]()
        sources = {name for group in self.groups.values() for name in group.sources}
        targets = {group.target for group in self.groups.values()}
        kept = {info.name for info in graph.network.outputs}
        for index in reversed(range(len(graph.layers))):
            layer = graph.layers[index]
            if index in gone or not isinstance(layer, CoreLayer):
                continue
            name = layer.output
            readers = [each for each in graph.readers.get(name, ()) if each not in gone | dead]
            if readers or name in kept:
                continue
            if name not in sources:
                if layer.op == "DequantizeLinear":
                    dead.add(index)
            elif layer.op in VIEWS and layer.inputs[0] in targets and graph.tensors[name].dtype in WORDS \
                    and graph.tensors[layer.inputs[0]].shape == graph.tensors[name].shape:
                self.aliases[name] = layer.inputs[0]
                dead.add(index)
        return dead

    def _finished(self, layers: list[AnyLayer], inputs: tuple[TensorInfo, ...],
                  outputs: tuple[TensorInfo, ...]) -> Network:
        """Return the network with the tensors that are left."""
        used = {name for layer in layers for name in (*layer.reads, *layer.writes)} | {
            info.name for info in (*inputs, *outputs)}
        used |= {place.parent for name in used
                 if name in self.tensors and (place := self.tensors[name].place) is not None}
        constants = {name: value for group in self.groups.values() for name, value in group.constants.items()}
        return replace(self.graph.network, layers=tuple(layers), inputs=inputs, outputs=outputs,
                       constants={**self.graph.constants, **constants},
                       tensors={name: info for name, info in self.tensors.items() if name in used})


_TURNED = np.arange(256).astype(np.uint8).view(np.int8)
"""A table by which a byte has its upper bit changed: element 128 + q is q + 128, wrapped."""
