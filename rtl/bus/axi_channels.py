"""AXI4 as the master sees it: its channels, and the fields of an address channel. Names are those of ARM IHI 0022."""

from amaranth import Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

__all__ = [
    "DATA_BYTES", "INCR", "NORMAL_BUFFERABLE", "OKAY", "SLVERR", "axi4_lite_signature", "axi4_read_signature",
    "axi4_signature", "axi4_write_signature", "check_data_bytes", "drive_address",
]

DATA_BYTES = (4, 8, 16, 32, 64)

INCR = 0b01
NORMAL_BUFFERABLE = 0b0011
"""AxCACHE: ordinary memory, which interconnects may merge and buffer, but not cache."""

OKAY, SLVERR = 0b00, 0b10
"""Responses: of success, and of a slave that refuses."""


def axi4_read_signature(data_bytes: int) -> wiring.Signature:
    """Return the AXI4 channels AR and R as seen by the master; members are named like the signals."""
    check_data_bytes(data_bytes)
    return wiring.Signature({
        **_address_members("ar"),
        "rid":     In(1),
        "rdata":   In(8 * data_bytes),
        "rresp":   In(2),
        "rlast":   In(1),
        "rvalid":  In(1),
        "rready":  Out(1),
    })


def axi4_write_signature(data_bytes: int) -> wiring.Signature:
    """Return the AXI4 channels AW, W and B as seen by the master; members are named like the signals."""
    check_data_bytes(data_bytes)
    return wiring.Signature({
        **_address_members("aw"),
        "wdata":   Out(8 * data_bytes),
        "wstrb":   Out(data_bytes),
        "wlast":   Out(1),
        "wvalid":  Out(1),
        "wready":  In(1),
        "bid":     In(1),
        "bresp":   In(2),
        "bvalid":  In(1),
        "bready":  Out(1),
    })


def axi4_signature(data_bytes: int) -> wiring.Signature:
    """Return all five AXI4 channels as seen by the master.

    A port ``m_axi`` of this signature becomes ``m_axi__araddr`` and so on in Verilog.
    """
    return wiring.Signature({
        **dict(axi4_read_signature(data_bytes).members.items()),
        **dict(axi4_write_signature(data_bytes).members.items()),
    })


def axi4_lite_signature(address_bits: int) -> wiring.Signature:
    """Return AXI4-Lite with words of 32 bits as seen by the master; members are named like the signals."""
    address = {"addr": Out(address_bits), "prot": Out(3), "valid": Out(1), "ready": In(1)}
    return wiring.Signature({
        **{f"{channel}{name}": member for channel in ("aw", "ar") for name, member in address.items()},
        "wdata":  Out(32),
        "wstrb":  Out(4),
        "wvalid": Out(1),
        "wready": In(1),
        "bresp":  In(2),
        "bvalid": In(1),
        "bready": Out(1),
        "rdata":  In(32),
        "rresp":  In(2),
        "rvalid": In(1),
        "rready": Out(1),
    })


def drive_address(axi: wiring.PureInterface, prefix: str, burst: Value, data_bytes: int) -> list[object]:
    """Return the assignments that put ``burst`` on the address channel ``ar`` or ``aw``."""
    return [
        getattr(axi, f"{prefix}addr").eq(burst.address),
        getattr(axi, f"{prefix}len").eq(burst.length),
        getattr(axi, f"{prefix}size").eq(data_bytes.bit_length() - 1),
        getattr(axi, f"{prefix}burst").eq(INCR),
        getattr(axi, f"{prefix}cache").eq(NORMAL_BUFFERABLE),
    ]


def check_data_bytes(data_bytes: int) -> None:
    """Refuse a bus of any other width."""
    if data_bytes not in DATA_BYTES:
        raise ValueError(f"AXI data_bytes must be one of {DATA_BYTES}, not {data_bytes!r}")


def _address_members(prefix: str) -> dict[str, wiring.Member]:
    return {
        f"{prefix}id":    Out(1),
        f"{prefix}addr":  Out(32),
        f"{prefix}len":   Out(8),
        f"{prefix}size":  Out(3),
        f"{prefix}burst": Out(2),
        f"{prefix}cache": Out(4),
        f"{prefix}prot":  Out(3),
        f"{prefix}valid": Out(1),
        f"{prefix}ready": In(1),
    }
