"""Timing of a DRAM's banks and data pins: the arithmetic of sim/verilator/harness/dram.h, in picoseconds."""

from dataclasses import dataclass

from tilewright.isa.dram.dram import DramNumbers

__all__ = ["DramBanks"]


@dataclass(slots=True)
class _Bank:
    row: int = -1
    open_after: int = 0
    command_after: int = 0
    close_after: int = 0


class DramBanks:
    """Rows stay open until another row of the bank is needed or all banks are refreshed.

    Neighbouring rows of memory lie in neighbouring banks. A burst lies in one row.

    Attributes
    ----------
    free_at : int
        From when on the controller may decide what comes next: so early that another bank's row can be opened
        meanwhile.
    """

    def __init__(self, numbers: DramNumbers) -> None:
        self.numbers = numbers
        self.free_at = 0
        self._banks = [_Bank() for _ in range(numbers.banks)]
        self._pins_free = 0
        self._refresh_due = numbers.refi
        self._activated: list[int] = []
        self._last = ""

    def serve(self, write: bool, address: int, size: int, now: int) -> tuple[int, int]:
        """Move a burst of ``size`` bytes, decided upon at ``now``; return when its data begin and end on the pins."""
        t = self.numbers
        if now >= self._refresh_due:
            self._refresh(now)
        index = address // t.row_bytes
        bank = self._banks[index % t.banks]
        if bank.row != index // t.banks:
            self._open(bank, index // t.banks, now)
        start = max(max(now, bank.command_after) + (t.cwl if write else t.cl), self._pins_free)
        if write and self._last == "read":
            start = max(start, self._pins_free + t.rtw)
        elif not write and self._last == "write":
            start = max(start, self._pins_free + t.wtr + t.cl)
        end = start + -(-(address % t.access_bytes + size) // t.access_bytes) * t.access
        bank.close_after = max(bank.close_after, end + t.wr if write else end - t.access - t.cl + t.rtp)
        self._pins_free = end
        self._last = "write" if write else "read"
        self.free_at = max(now, end - (t.rp + t.rcd + t.cl))
        return start, end

    def _open(self, bank: _Bank, row: int, now: int) -> None:
        t, activated = self.numbers, self._activated
        begin = max(now, bank.open_after) if bank.row < 0 else max(now, bank.close_after) + t.rp
        if activated:
            begin = max(begin, activated[-1] + t.rrd)
        if len(activated) == 4:
            begin = max(begin, activated.pop(0) + t.faw)
        activated.append(begin)
        bank.row = row
        bank.command_after = begin + t.rcd
        bank.close_after = begin + t.ras

    def _refresh(self, now: int) -> None:
        """Refresh all banks; refreshes that were due before had time enough."""
        t = self.numbers
        due = self._refresh_due + (now - self._refresh_due) // t.refi * t.refi
        opened = [bank.close_after for bank in self._banks if bank.row >= 0]
        end = max(due, self._pins_free, *opened, 0) + (t.rp if opened else 0) + t.rfc
        self._banks = [_Bank(open_after=end) for _ in self._banks]
        self._refresh_due = due + t.refi
