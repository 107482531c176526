"""One module for each kind of block: a design is converted to RTLIL module by module, and equal ones are one.

`amaranth.back.rtlil` joins bits that cross a border into ports by the cell that drives them and numbers those that are
then no signal, such as ``port$8119$0``; it also writes a module again for each place where it stands. Here each module
is converted alone, those below it are instances, and so its ports are the signals that cross its border.
"""

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from amaranth.back import rtlil
from amaranth.hdl import _ast
from amaranth.hdl._ir import Design, Fragment, Instance, PortDirection
from amaranth.hdl._mem import MemoryInstance
from amaranth.lib import wiring
from amaranth.lib.wiring import Component

from tilewright.sim.verilog.modular.borders import Crossing, ModuleBorders, kind_of, members_of
from tilewright.sim.verilog.modular.memories import MemoryShape, counted, memory_instance, shape_of
from tilewright.sim.verilog.modular.unique_names import UniqueNames

__all__ = ["Modules", "modules_of"]

_DRAFT = "module"
"""Name of a module until it is known which it is equal to."""


@dataclass(slots=True)
class Modules:
    """A design: RTLIL of its modules, the top last, and what each module's class says about itself.

    ``memories`` are those that are instances of `MEMORY`, by their shapes.
    """

    rtlil: str = ""
    contracts: dict[str, str] = field(default_factory=dict)
    memories: dict[MemoryShape, int] = field(default_factory=dict)


def modules_of(component: Component, name: str, *, memories_apart: bool = False) -> Modules:
    """Return the modules of ``component``, whose own is ``name``; ``memories_apart`` those of `modular.memories`, too.

    A module has the name of the top and that of its class, ``top_row_writer`` for ``RowWriter``, since Verilog has one
    space for all; another text of the same class adds in what it stands first: ``top_product_in_lane``. A signal keeps
    its name; in the module around, a port of the instance ``front`` is ``front__x``. Two that would be the same have
    numbers, counted in each module alone. So names do not depend on what else is in the design.
    """
    ports = list(_top_ports(component))
    design = Fragment.get(component, None).prepare(ports=[(port.name, port.signal, port.direction) for port in ports],
                                                   hierarchy=(name,))
    return _Conversion(design, memories_apart).run(name)


def _top_ports(component: Component) -> Iterator[Crossing]:
    """Yield the members of a signature, as `rtlil.convert` has them."""
    for path, member, value in component.signature.flatten(component):
        yield Crossing("__".join(map(str, path)), _ast.Value.cast(value), member.flow == wiring.Out)


class _Conversion:
    """Modules of a design, from those without others up to the top."""

    def __init__(self, design: Design, memories_apart: bool) -> None:
        self._design = design
        self._memories_apart = memories_apart
        self._border = ModuleBorders(design)
        self._made: dict[str, str] = {}
        self._names = UniqueNames()
        self._contracts: dict[str, str] = {}
        self._top = ""

    def run(self, name: str) -> Modules:
        ports = [Crossing(port, signal, direction is not PortDirection.Input)
                 for port, signal, direction in self._design.ports]
        self._top = self._names.take(name)
        top = self._text(self._design.fragment, ports)
        texts = [_named(text, each) for text, each in self._made.items()]
        memories = counted(self._design.fragments) if self._memories_apart else {}
        return Modules("\n".join([*texts, _named(top, name, top=True)]), self._contracts, memories)

    def _module(self, fragment: Fragment, around: str) -> tuple[str, list[Crossing]]:
        """Return the name of a module in ``around`` that is written now or has been, and its ports."""
        ports = self._border.crossings(fragment)
        text = self._text(fragment, ports)
        if text not in self._made:
            own = f"{self._top}_{self._own_name(fragment)}"
            name = self._names.take(own, f"{own}_in_{around}")
            self._made[text] = name
            if (kind := kind_of(fragment)) is not None:
                self._contracts[name] = inspect.getdoc(kind) or ""
        return self._made[text], ports

    def _own_name(self, fragment: Fragment) -> str:
        kind = kind_of(fragment)
        return _snake(kind.__name__ if kind else self._design.fragments[fragment].name[-1])

    def _text(self, fragment: Fragment, ports: list[Crossing]) -> str:
        """Return RTLIL of one module, its name still open."""
        alone = Fragment()
        alone.statements, alone.domains, alone.attrs = fragment.statements, fragment.domains, fragment.attrs
        names = _SignalNames(ports)
        for number, (below, given, _) in enumerate(fragment.subfragments):
            part, name = below, names.instance(given or f"{self._own_name(below)}_{number}")
            if type(below) is Fragment:
                module, inner = self._module(below, self._own_name(fragment))
                names.add_instance(name, inner, self._border.driven(below), members_of(below))
                part = Instance(module, *(("o" if port.is_output else "i", port.name, port.signal) for port in inner))
            elif isinstance(below, MemoryInstance):
                names.add_memory(name, below)
                shape = shape_of(below) if self._memories_apart else None
                part = below if shape is None else memory_instance(below, shape, fragment.domains)
            alone.add_subfragment(part, name)
        design = Design(alone, [(port.name, port.signal, port.direction) for port in ports], hierarchy=(_DRAFT,))
        info = design.fragments[alone]
        info.signal_names = names.of(info.used_signals)
        for below, name, _ in alone.subfragments:
            design.fragments[below].name = (_DRAFT, name)
        return rtlil.convert_fragment(design, emit_src=False)[0]


class _SignalNames:
    """Names inside a module: ports, then what belongs to its instances, then its own."""

    def __init__(self, ports: list[Crossing]) -> None:
        self._taken = UniqueNames()
        self._names = _ast.SignalDict()
        for port in ports:
            self._names[port.signal] = self._taken.take(port.name)

    def instance(self, name: str) -> str:
        return self._taken.take(name)

    def add_instance(self, name: str, ports: list[Crossing], driven: _ast.SignalSet, members: _ast.SignalDict) -> None:
        for port in ports:
            if port.signal not in self._names and (port.signal in driven or port.signal in members):
                self._names[port.signal] = self._taken.take(f"{name}__{port.name}")

    def add_memory(self, name: str, memory: MemoryInstance) -> None:
        for letter, ports in (("r", memory._read_ports), ("w", memory._write_ports)):
            for port in ports:
                for part, value in (("addr", port._addr), ("data", port._data), ("en", port._en)):
                    if isinstance(value, _ast.Signal) and value not in self._names:
                        self._names[value] = self._taken.take(f"{name}__{letter}_{part}")

    def of(self, signals: _ast.SignalDict) -> _ast.SignalDict:
        for signal in signals:
            if signal not in self._names and signal.name != "":
                self._names[signal] = self._taken.take(signal.name)
        return self._names


def _named(text: str, name: str, *, top: bool = False) -> str:
    """Return a module's text with its name; `rtlil` marks each as the top."""
    text = text if top else text.replace("attribute \\top 1\n", "", 1)
    return text.replace(f"\nmodule \\{_DRAFT}\n", f"\nmodule \\{name}\n", 1)


def _snake(name: str) -> str:
    """Return ``row_writer`` for ``_RowWriter``, ``headed_fifo`` for ``HeadedFIFO``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).strip("_").lower()
