"""The back end: from a network of fused layers to a program and its memory map, and from a model to an artefact."""

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tilewright.compiler.batch.chains_apart import chains_apart
from tilewright.compiler.batch.in_batch import in_batch
from tilewright.compiler.channels.fewer_channels import ChannelSavings, fewer_channels
from tilewright.compiler.channels.wider_depthwise import wider_depthwise
from tilewright.compiler.emit.artefact import Artefact, write_artefact
from tilewright.compiler.emit.c import program_text
from tilewright.compiler.emit.elf import compile_elf, port_flags, wait_flags
from tilewright.compiler.emit.loops import roll
from tilewright.compiler.emit.manifest import LayerEntry, Manifest
from tilewright.compiler.errors import UnsupportedModelError
from tilewright.compiler.fused_rows import with_fused_rows
from tilewright.compiler.network.factors.factor_images import with_factor_images
from tilewright.compiler.network.factors.matrix_images import with_matrix_images
from tilewright.compiler.network.layers import AnyLayer, CoreLayer, Network, TensorInfo
from tilewright.compiler.network.layout import LayerLayouts
from tilewright.compiler.network.memory_map import MemoryPlan, plan_memory
from tilewright.compiler.network.options import BEST, Options
from tilewright.compiler.network.parts.needed_pixels import with_needed_pixels
from tilewright.compiler.network.rows.row_layers import with_row_layers
from tilewright.compiler.onnx.reader import self_contained
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.compiler.plan.alike_layers import plan_once
from tilewright.compiler.plan.core_plan import CorePlan, pack_constants, placed, plan_core
from tilewright.compiler.plan.flat_tables import with_flat_tables
from tilewright.compiler.plan.float_bytes import with_float_bytes
from tilewright.compiler.plan.planner import DoesNotFitError, LayerPlan
from tilewright.compiler.plan.split_channels import split_channels
from tilewright.compiler.plan.split_units import split_units
from tilewright.compiler.program_commands import schedule
from tilewright.compiler.schedule.bands import in_bands
from tilewright.compiler.schedule.chaining import AnyPlan, computed_together, on_chip_only
from tilewright.compiler.schedule.steps import CoreCall
from tilewright.compiler.schedule.weight_image import pack_network, with_computed
from tilewright.compiler.weights.lasting_weights import all_fit, with_all_weights_kept, with_lasting_weights
from tilewright.compiler.words.word_layers import with_word_layers
from tilewright.isa.command_port import PortName, WaitName
from tilewright.isa.emit_c import header
from tilewright.isa.extension import extension_of
from tilewright.isa.machine import Machine
from tilewright.isa.memory import AddressWindow
from tilewright.isa.program import Call, Function, Issue, Program
from tilewright.isa.rows.row_norm import RowNorm

__all__ = [
    "Compiled", "compile_file", "compile_layers", "compile_model", "emit_artefact", "emit_elf", "fit_network",
    "layer_comment", "manifest_of", "network_in_batch", "without_idle_channels",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """A network as the machine takes it.

    Attributes
    ----------
    network, machine
        The compiled network, and its machine.
    program : Program
        One function per layer, and one that waits for the end.
    images : tuple of (address, bytes)
        Contents of main memory before the start, inputs aside.
    plans : tuple of LayerPlan or CorePlan
        How each layer is computed.
    memory : MemoryPlan
        Addresses of tensors and records, and the windows.
    keeps_tensors : bool
        Every tensor has a place of its own.
    options : Options
        Options of the compilation.
    savings : ChannelSavings or None
        What is saved by channels that are not computed.
    """

    network: Network
    machine: Machine
    program: Program
    images: tuple[tuple[int, bytes], ...]
    plans: tuple[AnyPlan, ...]
    memory: MemoryPlan
    keeps_tensors: bool
    options: Options = BEST
    savings: ChannelSavings | None = None

    @property
    def tensors(self) -> Mapping[str, tuple[TensorInfo, int]]:
        """Every tensor in main memory and its address."""
        return {name: (self.network.tensors[name], address) for name, address in self.memory.tensors.items()}

    @property
    def windows(self) -> tuple[AddressWindow, ...]:
        """The addresses that the coprocessor may reach."""
        return self.memory.windows

    @property
    def memory_bytes(self) -> int:
        """Bytes of main memory from its start that anything uses."""
        return self.memory.memory_bytes


def compile_layers(network: Network, machine: Machine, *, keep_tensors: bool = False,
                   options: Options = BEST, loops: bool = True) -> Compiled:
    """Compile ``network`` for ``machine``.

    Parameters
    ----------
    keep_tensors
        Store every tensor, and give it a place of its own, so that all of them can be read when the program has ended.
    options
        ``fuse_pool`` is the front end's, and not looked at here.
    loops
        Fold what repeats into loops, which makes the program short and changes no command of it.

    Raises
    ------
    CompileError
        If a layer does not fit the machine.
    """
    if not network.layers:
        raise UnsupportedModelError(f"Network {network.name!r} must have a layer to compile, and has none")
    network, savings = without_idle_channels(network, machine, options, keep_tensors=keep_tensors)
    network = network_in_batch(network, machine, options, keep_tensors=keep_tensors)
    network, plans = _planned(network, machine, options, keep_tensors=keep_tensors)
    datapath = {index: plan for index, plan in enumerate(plans) if isinstance(plan, LayerPlan)}
    core = {index: plan for index, plan in enumerate(plans) if isinstance(plan, CorePlan)}
    image, blocks = pack_network(datapath, machine)
    image, offsets = pack_constants(image, core, network)
    memory = plan_memory(network, len(image), keep_tensors=keep_tensors, on_chip=on_chip_only(plans, network),
                         together=computed_together(plans), constants=offsets,
                         keep_weights=_keeps_weights(network, options))
    blocks = with_computed(blocks, datapath, memory, machine)
    addresses = {**memory.tensors, **{name: memory.weights + offset for name, offset in offsets.items()}}
    calls = {index: CoreCall(placed(plan, network, addresses), plan.cost.cycles) for index, plan in core.items()}
    flat = schedule(datapath, calls, blocks, memory, machine)
    bodies: list[list[Issue | Call]] = [[] for _ in range(len(plans) + 1)]
    for layer, each in flat.layers:
        bodies[layer].append(each)
    functions = [Function(_function_name(index, plan.layer), _plan_comment(plan, network),
                          roll(bodies[index]) if loops else tuple(bodies[index]))
                 for index, plan in enumerate(plans)]
    functions.append(Function("finish", "Wait until all results are in memory.", tuple(bodies[-1])))
    return Compiled(network=network, machine=machine, program=Program(tuple(functions), flat.opening),
                    images=((memory.weights, image),) if image else (), plans=plans, memory=memory,
                    keeps_tensors=keep_tensors, options=options, savings=savings)


def without_idle_channels(network: Network, machine: Machine, options: Options = BEST, *,
                          keep_tensors: bool = False) -> tuple[Network, ChannelSavings | None]:
    """Return ``network``, of one image, without channels that need no computation, and what that saves.

    With ``keep_tensors`` only constants are left out, which whoever looks at a tensor fills in. Without, depthwise
    layers may get channels that the machine can do with more of (`wider_depthwise`).
    """
    one, savings = replace(options, batch=1), None

    def price(each: Network) -> list[int]:
        return [plan.cost.cycles for plan in fit_network(each, machine, one)[1]]

    if options.narrow:
        network, savings = fewer_channels(network, machine, price, keep_tensors=keep_tensors)
    return network if keep_tensors else wider_depthwise(network, machine, price), savings


def _planned(network: Network, machine: Machine, options: Options, *,
             keep_tensors: bool) -> tuple[Network, tuple[AnyPlan, ...]]:
    """Return ``network`` as it fits ``machine``, and how each layer is computed, with what stays on chip."""
    network, plans = fit_network(network, machine, options)
    return network, in_bands(plans, network, machine, options, keep_tensors=keep_tensors)


def network_in_batch(network: Network, machine: Machine, options: Options, *, keep_tensors: bool = False) -> Network:
    """Return ``network`` for the batch of ``options``: image by image where that is predicted faster.

    Raises
    ------
    CompileError
        If a layer does not fit the machine, or the network cannot be computed in batches.
    """
    if options.batch == 1:
        return network
    network = split_units(network, machine)     # whose parts have the shapes of an image
    whole = in_batch(network, options.batch)
    found, plans = _planned(network, machine, options, keep_tensors=keep_tensors)
    also, batch = _planned(whole, machine, options, keep_tensors=keep_tensors)
    if not len(found.layers) == len(also.layers) == len(network.layers):
        return whole
    apart = chains_apart(plans, batch, options.batch)
    return in_batch(network, options.batch, apart) if apart else whole


def fit_network(network: Network, machine: Machine, options: Options = BEST) -> tuple[Network, tuple[AnyPlan, ...]]:
    """Return ``network`` with layers that need too much of ``machine`` cut into parts, and how each is computed.

    Before products by computed vectors and matrices stand the layers that write these as weights, and tables of floats
    are those of their bytes.

    Raises
    ------
    CompileError
        If a layer does not fit even so, or the host core cannot compute it.
    """
    network = with_word_layers(network, machine, options)
    network = with_needed_pixels(with_row_layers(split_units(network, machine), machine))
    network = with_fused_rows(network, machine, options)
    network = with_float_bytes(with_flat_tables(network, machine), machine)
    # Bytes of a bias are looked up, which a machine without value tables leaves to its core.
    network = with_matrix_images(split_units(with_factor_images(network, machine), machine), machine)
    try:
        plans = _plan_network(network, machine, options)
    except DoesNotFitError:
        network = split_channels(network, machine, options)
        plans = _plan_network(network, machine, options)
    keeps = _keeps_weights(network, options)
    if keeps:
        whole = with_all_weights_kept(network)
        planned = _plan_network(whole, machine, options)
        if all_fit(planned, machine):
            return whole, planned
    lasting = with_lasting_weights(network, plans, machine, between_calls=keeps)
    return (network, plans) if lasting is network else (lasting, _plan_network(lasting, machine, options))


def _keeps_weights(network: Network, options: Options) -> bool:
    """Tell whether weights are to stay on the chip between calls."""
    return bool(network.state) if options.keep_weights is None else options.keep_weights


def _plan_network(network: Network, machine: Machine, options: Options = BEST) -> tuple[AnyPlan, ...]:
    """Return how each layer of ``network`` is computed, on the datapath or on the host core.

    Raises
    ------
    CompileError
        If a layer does not fit the machine, or the host core cannot compute it.
    """
    return tuple(plan_core(layer, network, machine) if isinstance(layer, CoreLayer) else
                 plan_once(layer, machine, options, LayerLayouts.of(layer, network.tensors))
                 for layer in network.layers)


def _function_name(index: int, layer: AnyLayer) -> str:
    """Return a C identifier that no other layer has."""
    words = re.sub(r"[^0-9a-zA-Z]+", "_", layer.name).strip("_").lower()[:40]
    return f"layer{index}_{words}" if words else f"layer{index}"


def _plan_comment(plan: AnyPlan, network: Network) -> str:
    """Return what stands above a layer's function."""
    if isinstance(plan, LayerPlan):
        return layer_comment(plan)
    layer = plan.layer
    names = ", ".join(name or "nothing" for name in layer.inputs)
    return "\n".join((
        ", ".join(layer.onnx_nodes) or layer.name,
        f"{layer.op} of {names or 'nothing'} {plan.summary()}",
        f"About {plan.cost.cycles} cycles."))


def layer_comment(plan: LayerPlan) -> str:
    """Return the comment above a layer's function: its nodes, its shapes and its algorithm."""
    layer = plan.layer
    shapes = " -> ".join("x".join(map(str, shape)) for shape in dict.fromkeys(
        (layer.in_shape, layer.conv_shape, layer.out_shape)))
    kernel = f"kernel {layer.kernel[0]}x{layer.kernel[1]}, stride {layer.strides[0]}x{layer.strides[1]}"
    kernel += f", {layer.groups} groups" if layer.groups > 1 and layer.kind == "conv" else ""
    kernel += f", plus {layer.residual.tensor}" if layer.residual else ""
    kernel += ", value table" if layer.table is not None else ""
    kernel += "" if layer.rows is None else ", normalisation of each pixel's channels" if isinstance(
        layer.rows, RowNorm) else ", softmax of each pixel's channels"
    kernel += f", max pool {layer.pool.kernel[0]}x{layer.pool.kernel[1]}" if layer.pool else ""
    return "\n".join((
        ", ".join(layer.onnx_nodes) or layer.name,
        f"{layer.kind}: {shapes}, {kernel}",
        plan.summary(),
        f"About {plan.cost.cycles} cycles and {plan.cost.bytes} bytes, with its weights fetched in time."))


def compile_file(model: Path | str, machine: Machine, *, keep_tensors: bool = False,
                 options: Options = BEST) -> Compiled:
    """Compile an ONNX file; the network is called like the file.

    Raises
    ------
    CompileError
        If the model cannot be compiled for ``machine``.
    """
    network = replace(compile_network(model, options, extension_of(machine)), name=Path(model).stem)
    return compile_layers(network, machine, keep_tensors=keep_tensors, options=options)


def compile_model(model: Path | str, machine: Machine, folder: Path | str, *, keep_tensors: bool = False,
                  options: Options = BEST, port: PortName = "cvxif") -> Artefact:
    """Compile an ONNX file to an artefact in ``folder``; see :func:`compile_file` and :func:`emit_artefact`."""
    return emit_artefact(compile_file(model, machine, keep_tensors=keep_tensors, options=options), model, folder,
                         port=port)


def emit_artefact(compiled: Compiled, model: Path | str, folder: Path | str, *, port: PortName = "cvxif",
                  wait: WaitName = "poll", state: Mapping[str, str] | None = None) -> Artefact:
    """Write what was compiled from the ONNX file ``model`` as an artefact in ``folder``.

    The ELF sends its commands to ``port`` and waits at fences as ``wait`` says; the C is the same for all. ``state``
    maps inputs to the outputs that they are in the next call, besides those of which the model says so.

    Raises
    ------
    ArtefactError
        If ``folder`` cannot be written.
    ToolchainError
        If the C compiler fails.
    """
    model = Path(model)
    with tempfile.TemporaryDirectory(prefix="tilewright-") as scratch:
        elf = emit_elf(compiled, model.name, Path(scratch), port=port, wait=wait)
        source, content = elf.with_suffix(".c").read_bytes(), elf.read_bytes()
    contents = {"weights.bin": b"".join(data for _, data in compiled.images), "model.c": source,
                "tilewright.h": header(extension_of(compiled.machine)).encode(), "model.elf": content,
                "model.onnx": self_contained(model)}
    return write_artefact(Path(folder), manifest_of(compiled, port, state), compiled.program,
                          contents)


def emit_elf(compiled: Compiled, title: str, folder: Path, *, port: PortName = "cvxif",
             wait: WaitName = "poll") -> Path:
    """Write the program as C to ``folder``, compile it there, and return the ELF.

    Raises
    ------
    ToolchainError
        If the C compiler fails.
    """
    source, elf = folder / "model.c", folder / "model.elf"
    text = program_text(compiled.program, f"{title} for machine {compiled.machine.name}",
                        extension_of(compiled.machine))
    source.write_text(text, encoding="utf-8")
    (folder / "tilewright.h").write_text(header(extension_of(compiled.machine)), encoding="utf-8")
    compile_elf(source, elf, library=any(isinstance(plan, CorePlan) for plan in compiled.plans),
                flags=(*port_flags(port), *wait_flags(wait)))
    return elf


def manifest_of(compiled: Compiled, port: PortName = "cvxif", state: Mapping[str, str] | None = None) -> Manifest:
    """Return the manifest of a compiled network with an ELF that sends its commands to ``port``, and its ``state``."""
    memory, network = compiled.memory, compiled.network
    layers = tuple(
        _layer_entry(plan, network, function.name, record, _group_of(compiled.plans, index))
        for index, (plan, function, record) in enumerate(
            zip(compiled.plans, compiled.program.functions, memory.records, strict=False)))
    return Manifest(model=network.name, machine=compiled.machine, options=compiled.options, tensors=compiled.tensors,
                    inputs=tuple(tensor.name for tensor in network.inputs), outputs=network.outputs,
                    windows=memory.windows, layers=layers, weights_address=memory.weights,
                    memory_bytes=memory.memory_bytes, keeps_tensors=compiled.keeps_tensors, port=port,
                    on_chip=tuple(sorted(on_chip_only(compiled.plans, compiled.network))), unread=network.unread,
                    defaults=network.defaults, state={**network.state, **(state or {})},
                    opening=memory.opening if compiled.program.opening else None)


def _group_of(plans: Sequence[AnyPlan], index: int) -> str:
    """Return the name of the first of the layers that take turns with that one; empty if there are none."""
    group = next((each for each in computed_together(plans) if index in each), None)
    return "" if group is None else plans[group.start].layer.name


def _layer_entry(plan: AnyPlan, network: Network, function: str, record: int, group: str) -> LayerEntry:
    """Return what the manifest says of a layer."""
    layer = plan.layer
    if isinstance(layer, CoreLayer):
        return LayerEntry(name=layer.name, kind="core", algorithm="core", onnx_nodes=layer.onnx_nodes, macs=layer.macs,
                          function=function, inputs=tuple(name for name in layer.reads if name in network.tensors),
                          outputs=layer.writes, record=record, plan=plan.summary(), predicted_cycles=plan.cost.cycles,
                          reason=layer.reason, operator=layer.op, exact=layer.exact)
    assert isinstance(plan, LayerPlan)
    return LayerEntry(name=layer.name, kind=layer.kind, algorithm=plan.nest.algorithm.value,
                      onnx_nodes=layer.onnx_nodes, macs=layer.macs, function=function, inputs=layer.reads,
                      outputs=layer.writes, record=record, plan=plan.summary(), predicted_cycles=plan.cost.cycles,
                      exact=layer.exact, group=group)
