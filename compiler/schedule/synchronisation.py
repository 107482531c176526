"""Order the commands of different units by semaphores, with as few waits and signals as their accesses require.

Each unit takes its commands in order, so knowing that one is complete means knowing it of all before it. Every unit
is given a clock: for each queue of the others, the latest command known to be complete when its next one starts. A
command that touches what an earlier one of another unit has written (or writes what that one reads) needs that
one complete; if the clock does not say so already, the earlier one signals and the later one waits::

    load  --act_ready, wgt_ready-->  mac  --sums-->  post  --out_ready-->  store
                                     mac  <--act_ready-------------------  store
    load  <--act_free, wgt_free----  mac
    load  <--par_free------------------------------  post  <--out_free---  store
    load  <--res_free, mem_ready-----------------------------------------  store
    load  --res_ready----------------------------->  post

Behind a fence everything before it is complete. A call of the host core must stand behind one if it touches what the
coprocessor has written or read.

Waits come in the order of signals because both clocks and queues only move forward: the n-th wait meets the n-th
signal. Two units signal ``act_ready``: what the store hands over comes behind all loads that the array has waited for,
and no load behind it is let go before the array has taken it. An *early* load gives no ``act_ready``: the array learns
of it by ``wgt_ready`` of a load of weights behind it, so it need not wait for what the store hands over.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from tilewright.compiler.schedule.accesses import Access, Draft, Intervals, mesh
from tilewright.errors import InternalError
from tilewright.isa.encoding import KNOWN
from tilewright.isa.program import Call, Issue, issue

__all__ = ["PendingAccess", "ScheduleError", "Synchroniser", "merge", "synchronise"]

_QUEUES = ("lda", "ldw", "residual", "mac", "post", "store", "acknowledged", "copied")
"""Queues that a clock counts. Loads are three queues so that the array's waits tell inputs from weights; a store is
complete twice, when it has left the result buffer and when memory, or the activation buffer, has it."""

_LDA, _LDW, _RESIDUAL, _MAC, _POST, _STORE, _ACKNOWLEDGED, _COPIED = range(len(_QUEUES))

_SEMAPHORE = {
    (_LDA, _MAC): "act_ready", (_LDW, _MAC): "wgt_ready", (_RESIDUAL, _POST): "res_ready",
    (_MAC, _LDA): "act_free", (_MAC, _LDW): "wgt_free", (_POST, _LDW): "par_free",
    (_POST, _STORE): "out_ready", (_STORE, _POST): "out_free", (_STORE, _RESIDUAL): "res_free",
    (_ACKNOWLEDGED, _LDA): "mem_ready", (_ACKNOWLEDGED, _RESIDUAL): "mem_ready", (_COPIED, _MAC): "act_ready",
}
"""Semaphore by (queue that signals, queue that waits)."""

_LATEST_FIRST = (_ACKNOWLEDGED, _STORE, _POST, _MAC, _COPIED, _LDA, _LDW, _RESIDUAL)
"""Queues, the farthest down the pipeline first: it has waited for most, so waiting for it may cover the others."""

_MEM_READY_WAITS = 3
"""Stores of a tensor that are waited for one by one, before one wait for all that are left."""

_MOST_UNDER_WAY = 32
"""Signals of ``mem_ready`` that may be given before any of them is taken; from there on all stores are waited for at
once. The semaphore counts to 63."""

_Clock = list[int]
"""Per queue the index of the latest command known to be complete, -1 for none."""


class ScheduleError(InternalError, AssertionError):
    """The compiler has made a schedule that no semaphore can order: a mistake of the compiler, not of the model."""


@dataclass(slots=True)
class PendingAccess:
    """An access that later ones may have to wait for."""

    start: int
    stop: int
    queue: int
    index: int
    write: bool
    step: int = 0
    size: int = 0


@dataclass(slots=True)
class Synchroniser:
    """Adds flags to drafts, one after the other.

    ``copies`` are the stores to the activation buffer. ``fetched`` is the latest load and ``handed`` the latest store
    that has signalled ``act_ready``, ``taken_over`` the mac command that waits for the latter. ``under_way`` are the
    queues and commands that wait for ``mem_ready``, of which no store is known to come behind them.
    """

    issues: list[Issue | Call] = field(default_factory=list)
    flags: list[list[str]] = field(default_factory=list)
    ends: list[tuple[int, ...]] = field(default_factory=list)
    starts: dict[str, _Clock] = field(default_factory=lambda: {
        unit: [-1] * len(_QUEUES) for unit in ("load", "mac", "post", "store", "host")})
    post_end: _Clock = field(default_factory=lambda: [-1] * len(_QUEUES))
    spaces: dict[str, Intervals[PendingAccess]] = field(default_factory=dict)
    unpaired: list[int] = field(default_factory=list)
    paired: int = 0
    last_store: int = -1
    layer_ends: list[int] = field(default_factory=list)
    one_by_one: int = 0
    under_way: deque[tuple[int, int]] = field(default_factory=deque)
    copies: list[int] = field(default_factory=list)
    fetched: int = -1
    handed: int = -1
    taken_over: int = -1

    def add(self, draft: Draft) -> None:
        """Append ``draft``, waiting for what it needs."""
        index, unit = len(self.issues), _unit_of(draft)
        queue = _queue_of(draft, unit)
        self.issues.append(issue(draft.mnemonic, draft.variant, **draft.operands))
        self.flags.append([])
        if draft.variant == "fence":
            self._fence(index)
            return
        clock = self.starts[unit]
        takes_sums = (draft.mnemonic, draft.variant) == ("act", "run")
        if takes_sums:
            mac = self.unpaired[self.paired]
            self.paired += 1
            # An act starts on the first sums of its mac command, and so after that one's waits.
            merge(clock, self.ends[mac], but=_MAC)
        if draft.accesses:
            self._wait(index, unit, queue, self._needed(draft, unit, clock))
        if takes_sums:
            merge(self.post_end, self.ends[mac])
        self.ends.append(self._end(index, queue, clock))
        if draft.leaves_sums:
            self.unpaired.append(index)
        for access in draft.accesses:
            self._remember(access, queue, index, draft)
        if (draft.mnemonic, draft.variant) == ("sta", "memory"):
            self.last_store = index
        elif (draft.mnemonic, draft.variant) == ("sta", "status"):
            self.layer_ends.append(self.last_store)

    def add_call(self, call: Call) -> None:
        """Append what the host core computes itself."""
        for operand in call.operands:
            start, stop, write = operand.address, operand.address + operand.span_bytes, operand is call.output
            for entry in self.spaces.setdefault("memory", Intervals()).overlapping(start, stop):
                if (entry.write or write) and entry.index > self.starts["host"][entry.queue]:
                    raise ScheduleError(f"Call of {call} must come after a fence, because {self.issues[entry.index]} "
                                        f"touches the same memory")
        self.ends.append(tuple(self.starts["host"]))
        self.issues.append(call)
        self.flags.append([])

    def _fence(self, index: int) -> None:
        """Let everything be complete."""
        everything = [index] * len(_QUEUES)
        self.starts = {unit: everything.copy() for unit in self.starts}
        self.post_end = everything.copy()
        self.ends.append(tuple(everything))

    def _end(self, index: int, queue: int, clock: _Clock) -> tuple[int, ...]:
        """Return what is known once the command is complete."""
        if queue == _POST:
            merge(self.post_end, clock)
            clock = self.post_end
        end = clock.copy()
        end[queue] = index
        return tuple(end)

    def _needed(self, draft: Draft, unit: str, clock: _Clock) -> dict[int, int]:
        """Return the latest command per queue that must be complete first."""
        needed: dict[int, int] = {}
        for access in draft.accesses:
            write = access.write
            for entry in self.spaces.setdefault(access.space, Intervals()).overlapping(access.start, access.stop):
                queue = entry.queue
                if ((entry.write or write) and entry.index > clock[queue] and entry.index > needed.get(queue, -1)
                        and _UNIT_OF_QUEUE[queue] != unit and not mesh(entry, access)):
                    needed[queue] = entry.index
        if _queue_of(draft, unit) == _LDA and not draft.early and clock[_COPIED] < self.handed:
            needed[_MAC] = max(self.taken_over, needed.get(_MAC, -1))
        if unit == "load" and _COPIED in needed and (mac := self._told(needed[_COPIED])) is not None:
            needed[_MAC] = max(mac, needed.get(_MAC, -1))
            del needed[_COPIED]
        return needed

    def _told(self, copy: int) -> int | None:
        """Return the first command of the array that has waited for ``copy``, or a later one.

        Padding below an image may lie beside rows that no layer reads any more, so that no wait for a reader covers it.
        """
        macs = (index for index in range(copy, len(self.ends)) if self.ends[index][_MAC] == index)
        return next((index for index in macs if self.ends[index][_COPIED] >= copy), None)

    def _wait(self, index: int, unit: str, queue: int, needed: dict[int, int]) -> None:
        clock = self.starts[unit]
        for source in _LATEST_FIRST:
            if needed.get(source, -1) <= clock[source]:
                continue
            if (source, queue) not in _SEMAPHORE:
                raise ScheduleError(f"Command {self.issues[index]} of {_QUEUES[queue]} must wait for "
                                    f"{self.issues[needed[source]]}, but no semaphore leads there")
            name = _SEMAPHORE[source, queue]
            signaller = self._signaller(source, needed[source])
            if name == "act_ready":
                self._take_over(source, signaller, index)
            self.flags[signaller].append(f"signal_{name}")
            self.flags[index].append(f"wait_{name}")
            merge(clock, self.ends[signaller])
            clock[source] = signaller
            if source == _ACKNOWLEDGED:
                self.under_way.append((queue, index))
                # A store that signals mem_ready has waited for all before it, copies too.
                clock[_COPIED] = max(clock[_COPIED], signaller)

    def _take_over(self, source: int, signaller: int, index: int) -> None:
        """Note who signals ``act_ready`` to the mac command ``index``; make sure that the signals come in order."""
        if "wait_act_ready" in self.flags[index]:
            raise ScheduleError(f"Command {self.issues[index]} must wait for act_ready once, not for load and store")
        if source == _LDA and self.ends[signaller][_COPIED] < self.handed:
            raise ScheduleError(f"Command {self.issues[signaller]} may signal act_ready before "
                                f"{self.issues[self.handed]}, whose signal is to be taken first")
        if source == _COPIED:
            self.handed, self.taken_over = signaller, index
        else:
            self.fetched = signaller

    def _signaller(self, source: int, needed: int) -> int:
        """Return the command whose end tells that of ``needed``: itself or a later one of the same queue."""
        if source == _ACKNOWLEDGED:
            return self._for_memory(needed)
        if source == _COPIED:
            # The first that comes behind all loads whose signals were taken before.
            return next(index for index in self.copies if index >= needed and self.ends[index][_LDA] >= self.fetched)
        if source == _LDW:
            return next(index for index in range(needed, len(self.issues)) if _loads_weights(self.issues[index]))
        return needed

    def _for_memory(self, store: int) -> int:
        """Return ``store`` or its layer's last one, so that not too many signals are under way at a time."""
        self.one_by_one += 1
        if self._crowded(store):
            return self.last_store
        if self.one_by_one < _MEM_READY_WAITS:
            return store
        self.one_by_one = 0
        return next((end for end in self.layer_ends if end >= store), self.last_store)

    def _crowded(self, store: int) -> bool:
        """Tell whether, when ``store`` signals ``mem_ready``, as many signals as may be are not taken yet."""
        known = self.ends[store]
        while self.under_way and self.under_way[0][1] <= known[self.under_way[0][0]]:
            self.under_way.popleft()
        return len(self.under_way) >= _MOST_UNDER_WAY

    def _remember(self, access: Access, queue: int, index: int, draft: Draft) -> None:
        if queue == _STORE and access.write:
            queue = _ACKNOWLEDGED if access.space == "memory" else _COPIED
            if queue == _COPIED:
                self.copies.append(index)
        elif draft.early:
            queue = _LDW
        # What a write covers will be waited for through that write, what a read covers through a read of its queue.
        self.spaces[access.space].replace(
            PendingAccess(access.start, access.stop, queue, index, access.write, access.step, access.size),
            lambda entry: access.write or (entry.queue == queue and not entry.write))

    def result(self) -> list[Issue | Call]:
        """Return the commands with their flags, waits first, and the calls between them."""
        return [each if isinstance(each, Call) else
                Issue(each.mnemonic, each.variant, tuple(sorted(flags, reverse=True)), each.operands)
                for each, flags in zip(self.issues, self.flags, strict=True)]


_UNIT_OF_QUEUE = {_LDA: "load", _LDW: "load", _RESIDUAL: "load", _MAC: "mac", _POST: "post", _STORE: "store",
                 _ACKNOWLEDGED: "store", _COPIED: "store"}


def _loads_weights(command: Issue | Call) -> bool:
    return isinstance(command, Issue) and command.mnemonic == "ldw"


def _unit_of(draft: Draft) -> str:
    """Return the unit that takes the command."""
    return KNOWN[draft.mnemonic].variant(draft.variant).unit


def _queue_of(draft: Draft, unit: str) -> int:
    """Return the queue of the clocks in which the command counts."""
    if unit == "load":
        return _LDW if draft.mnemonic == "ldw" else _RESIDUAL if draft.variant == "residual" else _LDA
    return {"mac": _MAC, "post": _POST, "store": _STORE, "host": _STORE}[unit]


def merge(clock: _Clock, other: Iterable[int], but: int | None = None) -> None:
    """Take over into ``clock`` what ``other`` knows, except about the queue ``but``."""
    for queue, value in enumerate(other):
        if queue != but and value > clock[queue]:
            clock[queue] = value


def synchronise(drafts: Iterable[Draft | Call]) -> list[Issue | Call]:
    """Return the commands of ``drafts`` with the semaphores that order them, and the calls between them."""
    synchroniser = Synchroniser()
    for draft in drafts:
        if isinstance(draft, Call):
            synchroniser.add_call(draft)
        else:
            synchroniser.add(draft)
    return synchroniser.result()
