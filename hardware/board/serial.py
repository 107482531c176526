"""A host at the serial port of a real board: sends a frame, waits for the line that answers it."""

import os
import select
import termios
import time
from pathlib import Path

from tilewright.errors import InputError, ToolError
from tilewright.tools.files import reason

__all__ = ["ask"]

_MAX_LINE_BYTES = 4096


def ask(port: Path, frame: bytes, *, seconds: float = 10.0) -> str:
    """Return the line that a board answers to ``frame``, without its end.

    Parameters
    ----------
    port
        The serial device; it is set to 115,200 baud, eight data bits, no parity.
    frame
    seconds
        How long to wait for the answer.

    Raises
    ------
    InputError
        If the device cannot be used.
    ToolError
        If no whole line comes in time.
    """
    try:
        device = os.open(port, os.O_RDWR | os.O_NOCTTY)
    except OSError as error:
        raise InputError(f"Serial port {str(port)!r} cannot be opened: {reason(error)}") from error
    try:
        _set_up(device)
        _write(device, frame)
        return _line(device, time.monotonic() + seconds, seconds)
    except termios.error as error:
        raise InputError(f"Serial port {str(port)!r} must be one, and is not: {error.args[-1]}") from error
    finally:
        os.close(device)


def _set_up(device: int) -> None:
    """Make the device hand every byte through as it is, at the board's rate, and forget what came before."""
    settings = termios.tcgetattr(device)
    settings[0] = 0                                                        # input: no translation, no flow control
    settings[1] = 0                                                        # output: the same
    settings[2] = termios.CS8 | termios.CREAD | termios.CLOCAL
    settings[3] = 0                                                        # no lines, no echo
    settings[4] = settings[5] = termios.B115200
    termios.tcsetattr(device, termios.TCSANOW, settings)
    termios.tcflush(device, termios.TCIOFLUSH)


def _write(device: int, data: bytes) -> None:
    while data:
        data = data[os.write(device, data):]


def _line(device: int, deadline: float, seconds: float) -> str:
    line = b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([device], [], [], max(0.0, deadline - time.monotonic()))
        if not ready or len(line) > _MAX_LINE_BYTES:
            said = f"said {line[:80].decode(errors='replace')!r}" if line else "was silent"
            raise ToolError(f"Board must answer with a line within {seconds:g} s, and {said}: is the bitstream loaded, "
                            f"and is this its port?")
        line += os.read(device, 1)
    return line.rstrip(b"\r\n").decode(errors="replace")
