"""Hosts of both ports: they send a program word by word, stop or abort whatever it holds up, and wait for its end."""

import logging
from collections.abc import Callable, Sequence
from functools import cache

from cocotb.triggers import FallingEdge, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

from tilewright.isa.assembler import EncodedCommand, encode_word
from tilewright.isa.assembler import command as make
from tilewright.isa.command_port import BY_REGISTER

FENCE = encode_word(make("sta", "fence"), 0, 0)
ABORT, ERASE = 1, 4


class AxiLiteHost:
    """A core that makes one access at a time, and another master beside it."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.core = _master(dut)

    async def send(self, commands: Sequence[EncodedCommand]) -> None:
        for command in commands:
            for name, value in (("rs1", command.rs1), ("rs2", command.rs2), ("command", encode_word(command, 10, 11))):
                await self.core.write(BY_REGISTER[name].offset, value.to_bytes(4, "little"))

    async def stop(self) -> None:
        await self._control("stop")

    async def abort(self, *, erase: bool = False) -> None:
        await self._control("abort", *(["erase"] if erase else []))

    async def _control(self, *names: str) -> None:
        register = BY_REGISTER["control"]
        self.core.init_write(register.offset, sum(register.field(name).mask for name in names).to_bytes(4, "little"))

    async def until_quiet(self) -> None:
        while not await self._read("status") & BY_REGISTER["status"].field("quiet").mask:
            pass

    async def fault_code(self) -> int:
        return await self._read("result") & BY_REGISTER["result"].field("fault_code").mask

    async def _read(self, name: str) -> int:
        done = await self.core.read(BY_REGISTER[name].offset, 4)
        assert done.resp == AxiResp.OKAY
        return int.from_bytes(done.data, "little")


@cache
def _master(dut) -> AxiLiteMaster:
    """Return the one master of a simulation: it wakes in each cycle until the end, as would one for each program."""
    master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axi_"), dut.clk, dut.rst)
    for interface in (master.write_if, master.read_if):
        interface.log.setLevel(logging.WARNING)
    return master


class XifHost:
    """A core that issues, commits and retires an instruction, one after the other; an interrupt withdraws an offer."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.number = 0
        for name in ("issue_valid", "commit_valid", "commit_kill", "issue_rs1", "issue_rs2", "issue_instr", "issue_id",
                     "commit_id", "stop_request"):
            getattr(dut, name).value = 0
        dut.issue_rs_valid.value = 3
        dut.result_ready.value = 1

    async def send(self, commands: Sequence[EncodedCommand]) -> None:
        try:
            for command in commands:
                await self._issue(encode_word(command, 10, 11), command.rs1, command.rs2)
        finally:
            self.dut.issue_valid.value = 0

    async def _issue(self, word: int, rs1: int = 0, rs2: int = 0) -> None:
        dut = self.dut
        dut.issue_instr.value, dut.issue_rs1.value, dut.issue_rs2.value = word, rs1, rs2
        dut.issue_id.value, dut.issue_valid.value = self.number, 1
        while True:
            await FallingEdge(dut.clk)
            ready = dut.issue_ready.value
            await RisingEdge(dut.clk)
            if ready:
                break
        dut.issue_valid.value = 0
        dut.commit_id.value, dut.commit_valid.value = self.number, 1
        self.number = (self.number + 1) % 16
        await RisingEdge(dut.clk)
        dut.commit_valid.value = 0

    async def stop(self) -> None:
        self.dut.stop_request.value = 1
        await RisingEdge(self.dut.clk)
        self.dut.stop_request.value = 0

    async def abort(self, *, erase: bool = False) -> None:
        await self._issue(FENCE, ABORT | erase * ERASE)

    async def until_quiet(self) -> None:
        await self._issue(FENCE)

    async def fault_code(self) -> int:
        return int(self.dut.fault_code.value)


HOSTS: dict[str, Callable[..., AxiLiteHost | XifHost]] = {"axi4lite": AxiLiteHost, "cvxif": XifHost}
