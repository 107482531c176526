"""DRAM parts for main memory: geometry and times in nanoseconds, as their data sheets state them."""

from dataclasses import dataclass

__all__ = ["PARTS", "DramPart", "part_named"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DramPart:
    """A DRAM device and the grade at which it runs.

    Attributes
    ----------
    name : str
        As ``--memory dram=`` takes it.
    device : str
        Whose data sheet the values are from.
    banks : int
        Banks, each with one row open at most.
    row_bytes : int
        Bytes of a row of one bank (a page).
    access_bytes : int
        Bytes that one read or write command moves: burst length times width.
    access_ns : float
        How long they take on the data pins.
    t_cl, t_cwl : float
        From a read or write command to the first of its data.
    t_rcd, t_rp, t_ras : float
        From activating a row to its first command; from closing a row to activating another; the least time open.
    t_rtp, t_wr : float
        From a read command, or the end of written data, until the row may be closed.
    t_wtr, t_rtw : float
        From the end of written data to a read command; between data read and data written.
    t_rrd, t_faw : float
        Between activations of two banks, and of five (0: no limit).
    t_refi, t_rfc : float
        Between refreshes of all banks, and how long one takes.
    """

    name: str
    device: str
    banks: int
    row_bytes: int
    access_bytes: int
    access_ns: float
    t_cl: float
    t_cwl: float
    t_rcd: float
    t_rp: float
    t_ras: float
    t_rtp: float
    t_wr: float
    t_wtr: float
    t_rtw: float
    t_rrd: float
    t_faw: float
    t_refi: float
    t_rfc: float


PARTS = {part.name: part for part in (
    # CL 3 at 7.5 ns, bursts of 8; a read may be closed CL - 1 clocks before its last word; tWTR, tRTW one clock.
    DramPart(name="sdr-133x16", device="Micron MT48LC16M16A2-75, 256 Mb SDR SDRAM", banks=4, row_bytes=1024,
             access_bytes=16, access_ns=60, t_cl=22.5, t_cwl=0, t_rcd=20, t_rp=20, t_ras=44, t_rtp=45, t_wr=15,
             t_wtr=7.5, t_rtw=7.5, t_rrd=15, t_faw=0, t_refi=7812.5, t_rfc=66),
    # CL 3 at 5 ns, bursts of 8; tDQSS one clock; a read may be closed after its burst of 4 clocks; tWTR two clocks.
    DramPart(name="lpddr-400x16", device="Micron MT46H64M16LF-5, 1 Gb mobile LPDDR", banks=4, row_bytes=2048,
             access_bytes=16, access_ns=20, t_cl=15, t_cwl=5, t_rcd=15, t_rp=15, t_ras=40, t_rtp=20, t_wr=15,
             t_wtr=10, t_rtw=5, t_rrd=10, t_faw=0, t_refi=7812.5, t_rfc=72),
    # CL 11 and CWL 8 at 1.25 ns, bursts of 8; tRTW two clocks of turnaround; tRRD and tFAW of pages of 2 KB.
    DramPart(name="ddr3l-1600x16", device="Micron MT41K64M16-125, 1 Gb DDR3L", banks=8, row_bytes=2048,
             access_bytes=16, access_ns=5, t_cl=13.75, t_cwl=10, t_rcd=13.75, t_rp=13.75, t_ras=35, t_rtp=7.5, t_wr=15,
             t_wtr=7.5, t_rtw=2.5, t_rrd=7.5, t_faw=40, t_refi=7800, t_rfc=110),
)}


def part_named(name: str) -> DramPart:
    """Return the part called ``name``.

    Raises
    ------
    ValueError
        If there is none; the message lists those there are.
    """
    if name not in PARTS:
        raise ValueError(f"Memory dram must be one of {', '.join(PARTS)}, not {name!r}")
    return PARTS[name]
