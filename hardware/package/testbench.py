"""The Verilog package's testbench: commands of a small compiled network, memory before and after.

The network is cut from a built-in one: convolutions by Winograd, one with max pooling if the machine has it, and the
classifier, on the digit that a run takes by default. Memory after it is what the functional engine leaves, and the
results in it are compared with the integer reference, which equals ONNX Runtime, before anything is written.
"""

import textwrap
from dataclasses import dataclass

import numpy as np

from tilewright.compiler.compile import Compiled, compile_layers
from tilewright.compiler.network.layers import Network
from tilewright.compiler.network.memory_map import tensor_bytes
from tilewright.compiler.network.operands import from_memory, to_memory
from tilewright.compiler.network.parts.part_of_network import given, slice_network
from tilewright.compiler.network.reference import run_network
from tilewright.compiler.passes.pass_order import compile_network
from tilewright.errors import InternalError
from tilewright.hardware.package.top import Bus, Top, vector
from tilewright.isa.assembler import EncodedCommand, encode_word
from tilewright.isa.command_port import REGISTERS, HardwarePort
from tilewright.isa.machine import Machine
from tilewright.isa.memory import MAIN_BASE, WINDOWS
from tilewright.isa.registers.capability import capability
from tilewright.isa.registers.host_registers import BY_HOST_REGISTER, window_register
from tilewright.models import builtin
from tilewright.models.data import samples
from tilewright.runtime.oracle.conversion import quantise_input
from tilewright.sim.values.executor import Executor
from tilewright.sim.values.main_memory import MainMemory

__all__ = ["MODEL", "Exercise", "command_lines", "exercise", "memory_lines", "placeholders", "settings_lines"]

MODEL = "lenet5_accel"
_PREFIX: dict[Bus, str] = {"axi4": "m_axi_", "axi4-own-clock": "m_axi_", "wishbone": "wb_"}
_PORT_PREFIX: dict[HardwarePort, str] = {"cvxif": "xif_", "cvxif-1.0": "xif_", "axi4lite": "s_axi_"}
_HOST: dict[HardwarePort, str] = {"cvxif": "xif_host", "cvxif-1.0": "split_xif_host", "axi4lite": "axilite_host"}
_RANGES = {True: ((2, 4), (7, 8)), False: ((2, 3), (7, 8))}
"""Layers of the model that are run, by whether the machine has max pooling: conv2a, conv2b, which is pooled, fc2."""


@dataclass(frozen=True, slots=True)
class Setting:
    """An access to a register for the host: a write of ``value``, or a read that must give it."""

    register: str
    value: int
    is_write: bool


@dataclass(frozen=True, slots=True)
class Exercise:
    """Commands of the testbench, and memory before and after them.

    Attributes
    ----------
    compiled : Compiled
    commands : tuple of EncodedCommand
        In the order of the program; the last is a fence.
    before, after : ndarray
        int8, main memory from its start, a whole number of bus words.
    settings : tuple of Setting
        What the host does before the commands, where there are registers for it.
    """

    compiled: Compiled
    commands: tuple[EncodedCommand, ...]
    before: np.ndarray
    after: np.ndarray
    settings: tuple[Setting, ...]


def exercise(machine: Machine) -> Exercise:
    """Compile the network for ``machine``, and run it in the functional engine.

    Raises
    ------
    InternalError
        If the results are not those of the reference.
    """
    whole = compile_network(builtin(MODEL))
    (tensor,) = whole.inputs
    values = run_network(whole, {tensor.name: quantise_input(tensor, samples().images[:1])})
    parts = [slice_network(whole, *each) for each in _RANGES[machine.max_pooling]]
    network = _together(parts)
    inputs = {name: value for part in parts for name, value in given(part, values).items()}
    compiled = compile_layers(network, machine)
    size = -(-compiled.memory_bytes // machine.bus_bytes) * machine.bus_bytes
    memory = MainMemory(size, compiled.windows)
    for address, content in compiled.images:
        memory.put(address, content)
    for name, value in inputs.items():
        info, address = compiled.tensors[name]
        memory.put(address, to_memory(value, info))
    before = memory.bytes.copy()
    # Status records tell the time, which is the memory's doing.
    commands = tuple(each for _, each in compiled.program.commands()
                     if (each.instruction.mnemonic, each.variant.name) != ("sta", "status"))
    Executor(machine, memory).run(commands)
    for info in network.outputs:
        found = from_memory(memory.get(compiled.tensors[info.name][1], tensor_bytes(info)), info)
        if not np.array_equal(found, values[info.name]):
            raise InternalError(f"Tensor {info.name!r} of the testbench must be what the reference computes, and is "
                                "not")
    return Exercise(compiled, commands, before, memory.bytes, _settings(machine, compiled))


def command_lines(commands: tuple[EncodedCommand, ...]) -> str:
    """Return instruction word, rs1 and rs2 of each command in hexadecimal, for ``$readmemh``, with what it is."""
    return "".join(f"{encode_word(each, 10, 11):08x}_{each.rs1:08x}_{each.rs2:08x} // {each}\n" for each in commands)


def settings_lines(settings: tuple[Setting, ...]) -> str:
    """Return each setting in hexadecimal, for ``$readmemh``: whether it is a write, offset, value; and its name."""
    return "".join(f"{each.is_write:01x}_{BY_HOST_REGISTER[each.register].offset:03x}_{each.value:08x} "
                   f"// {each.register}\n" for each in settings)


def memory_lines(memory: np.ndarray, bus_bytes: int) -> str:
    """Return memory in hexadecimal, a bus word on a line, for ``$readmemh``."""
    words = memory.view(np.uint8).reshape(-1, bus_bytes)[:, ::-1]
    return "".join(f"{word.tobytes().hex()}\n" for word in words)


def placeholders(machine: Machine, work: Exercise, bus: Bus, port: HardwarePort, top: Top) -> dict[str, object]:
    """Return the values for the names in braces in the templates of the testbench."""
    pins = [f"    .window{index}_base({_hex(base)}), .window{index}_limit({_hex(limit)}),\n"
               f"    .window{index}_readable(1'b{readable}), .window{index}_writable(1'b{writable}),"
               for index, (base, limit, readable, writable) in enumerate(_windows(work.compiled))]
    memory, host = "wishbone_memory" if bus == "wishbone" else "axi_memory", _HOST[port]
    clock = "bus_clk" if bus == "axi4-own-clock" else "clk"
    bus_wires, bus_ports, bus_pins = _connections(top, _PREFIX[bus])
    port_wires, port_ports, port_pins = _connections(top, _PORT_PREFIX[port])
    return {
        "BUS_BYTES": str(machine.bus_bytes),
        "COMMANDS": str(len(work.commands)),
        "WORDS": str(work.before.size // machine.bus_bytes),
        "BASE": _hex(MAIN_BASE),
        "CYCLES_LIMIT": "1000000",
        "ORIGIN": f"The network: layers of {MODEL}, {', '.join(layer.name for layer in work.compiled.network.layers)}.",
        "WINDOWS": "\n".join(pins) if top.windows == "pins" else "",
        "SETTINGS": len(work.settings) if top.windows == "registers" else 0,
        "BUS_WIRES": bus_wires,
        "BUS_PORTS": bus_ports,
        "PORT_WIRES": port_wires,
        "PORT_PORTS": port_ports,
        "HOST": f"  {host} #(.COMMANDS(COMMANDS)) host (\n"
                + _wrapped("    ", f".clk(clk), .rst(rst), .index(index), .done(done), .broken(refused){port_pins}")
                + "\n  );",
        "HOST_FILE": f"{host}.v",
        "REGISTERS": {register.name.upper(): f"{register.offset:03x}" for register in REGISTERS
                      if register.name in ("rs1", "rs2", "command", "result")},
        "BUS_CLOCK": clock if clock != "clk" else "",
        "MEMORY": f"  {memory} #(.BUS_BYTES(BUS_BYTES), .WORDS(WORDS), .BASE(BASE)) memory (\n"
                  + _wrapped("    ", f".clk({clock}), .rst(rst), .broken(broken){bus_pins}") + "\n  );",
        "MEMORY_FILE": f"{memory}.v",
    }


def _connections(top: Top, prefix: str) -> tuple[str, str, str]:
    """Return the wires of the ports with a prefix, their connections, and those of a model's pins, named without it."""
    ports = [port for port in top.ports if port.name.startswith(prefix)]
    return ("\n".join(f"  wire {vector(port.width):>7} {port.name};" for port in ports),
            _wrapped("    ", "".join(f".{port.name}({port.name}), " for port in ports)),
            "".join(f", .{port.name.removeprefix(prefix)}({port.name})" for port in ports))


def _together(parts: list[Network]) -> Network:
    """Return networks that share no tensor as one."""
    return Network(name=f"parts of {MODEL}", layers=tuple(layer for part in parts for layer in part.layers),
                   inputs=tuple(each for part in parts for each in part.inputs),
                   outputs=tuple(each for part in parts for each in part.outputs),
                   tensors={name: info for part in parts for name, info in part.tensors.items()})


def _windows(compiled: Compiled) -> list[tuple[int, int, int, int]]:
    """Return base, limit, readable and writable of all four windows."""
    used = [(each.base, each.limit, int(each.readable), int(each.writable)) for each in compiled.windows]
    return used + [(0, 0, 0, 0)] * (WINDOWS - len(used))


def _settings(machine: Machine, compiled: Compiled) -> tuple[Setting, ...]:
    """Return what a driver does first: it looks what is there, sets the windows, reads and locks them."""
    found = [Setting(name, value, is_write=False) for name, value in capability(machine).items()]
    values = {window_register(index, part): value
              for index, (base, limit, readable, writable) in enumerate(_windows(compiled))
              for part, value in (("base", base), ("limit", limit), ("rights", readable | writable << 1))}
    written = [Setting(name, value, is_write=True) for name, value in (*values.items(), ("lock", 1))]
    return (*found, *written, *(Setting(name, value, is_write=False) for name, value in (*values.items(), ("lock", 1))))


def _wrapped(indent: str, text: str) -> str:
    """Return connections of an instance on lines of at most 120 characters."""
    return "\n".join(textwrap.wrap(text, 120, initial_indent=indent, subsequent_indent=indent))


def _hex(value: int) -> str:
    return f"32'h{value:08x}"
