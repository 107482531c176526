"""Boards as data: what a network on an FPGA board must know of it; pins, device and oscillator from amaranth-boards.

A new board is a record here; docs/first-change.md says how. Places on a board have their names in amaranth-boards:
resource, number and, where there are several, the one meant (``uart:0:rx``); or connector, number and pin (``io:0:1``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from tilewright.errors import InputError, nearest

__all__ = ["BAUD", "BOARDS", "Board", "BoardPin", "require_board"]

BAUD = 115_200
"""Of the serial line of every board."""

_CONNECTOR_IO = "LVCMOS33"
"""Voltage at connectors."""

_NEXTPNR_PACKAGES = {"BG381": "CABGA381", "MG285": "CSFBGA285"}
"""Lattice's short names of packages, in part numbers, and nextpnr's."""


@dataclass(frozen=True, slots=True)
class BoardPin:
    """A pin of the device.

    Attributes
    ----------
    port : str
        Of the top module ``board_top``.
    site : str
        Its ball.
    low : bool
        True if low means pressed or lit.
    attributes : tuple of (str, str)
        Of its buffer, as in Lattice's preference files.
    """

    port: str
    site: str
    low: bool
    attributes: tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Board:
    """An FPGA board with an ECP5 that runs a network.

    Attributes
    ----------
    name : str
        On the command line, and of the bitstream's file.
    title : str
    platform : str
        Module and class in amaranth-boards.
    clock_divider : int
        Power of two by which flip-flops divide the oscillator's frequency: so the system meets its clock.
    button : str
        Place of the button that resets.
    uart_rx, uart_tx : str
        Places of the serial line's pins, to the FPGA and from it.
    leds : mapping of str to tuple of int
        Place of each LED, and the lamps of ``board_soc`` that it shows: it is lit when one of them is.
    high : tuple of str
        Places that must always be high.
    pack : tuple of str
        Options of ecppack.
    load : tuple of str
        Commands that put ``{file}`` on the board.
    """

    name: str
    title: str
    platform: str
    clock_divider: int
    button: str
    uart_rx: str
    uart_tx: str
    leds: Mapping[str, tuple[int, ...]]
    high: tuple[str, ...] = ()
    pack: tuple[str, ...] = ()
    load: tuple[str, ...]

    @cached_property
    def _platform(self) -> Any:
        module, name = self.platform.split(".")
        return getattr(import_module(f"amaranth_boards.{module}"), name)()

    @property
    def device(self) -> str:
        """Return the device's name without package and speed."""
        return str(self._platform.device)

    @property
    def part(self) -> str:
        """Return the device's whole part number."""
        platform = self._platform
        return f"{platform.device}-{platform.speed}{platform.package}{platform.grade}"

    @property
    def nextpnr_options(self) -> tuple[str, ...]:
        """Return the options that tell nextpnr-ecp5 the device."""
        family, size = self.device.removesuffix("F").split("-")
        kind = f"{family.removeprefix('LFE5').lower()}-" if family != "LFE5U" else ""
        return (f"--{kind}{size}k", "--package", _NEXTPNR_PACKAGES[self._platform.package],
                "--speed", self._platform.speed)

    @property
    def oscillator_hz(self) -> int:
        """Return the frequency at the clock pin."""
        return round(self._platform.resources[self._platform.default_clk, 0].clock.frequency)

    @property
    def clock_hz(self) -> int:
        """Return the system's frequency."""
        return self.oscillator_hz // self.clock_divider

    @property
    def cycles_per_bit(self) -> int:
        """Return how many cycles of the system a bit of the serial line takes."""
        return round(self.clock_hz / BAUD)

    @cached_property
    def pins(self) -> tuple[BoardPin, ...]:
        """Return the pins of ``board_top``, whose ``outputs`` are the LEDs and then what must always be high."""
        clock = f"{self._platform.default_clk}:0"
        outputs = {f"outputs[{i}]": place for i, place in enumerate((*self.leds, *self.high))}
        places = {"oscillator": clock, "button": self.button, "uart_rx": self.uart_rx, "uart_tx": self.uart_tx,
                  **outputs}
        return tuple(self._pin(port, place) for port, place in places.items())

    def _pin(self, port: str, place: str) -> BoardPin:
        first, number, *rest = place.split(":")
        # A line that nobody drives is idle, which is high.
        attributes = {"PULLMODE": "UP"} if port.startswith("uart_") else {}
        connector = self._platform.connectors.get((first, int(number)))
        if connector is not None:
            attributes["IO_TYPE"] = _CONNECTOR_IO
            return BoardPin(port, connector.mapping[rest[0]], False, tuple(attributes.items()))
        found = self._platform.resources[first, int(number)]
        attributes |= found.attrs
        if rest:
            (found,) = (each for each in found.ios if each.name == rest[0])
            attributes |= found.attrs
        (pins,) = found.ios
        (site,) = pins.names
        return BoardPin(port, site, pins.invert, tuple(attributes.items()))

    @property
    def button_pressed(self) -> int:
        """Return the level of the button's pin while it is pressed."""
        return int(not next(pin.low for pin in self.pins if pin.port == "button"))

    @property
    def lit(self) -> tuple[int, ...]:
        """Return the level of each LED's pin while it is lit."""
        return tuple(int(not pin.low) for pin in self.pins if pin.port.startswith("outputs["))[:len(self.leds)]

    @property
    def parameters(self) -> dict[str, str]:
        """Return those parameters of ``board_top`` that are the board's, as Verilog writes them."""
        shown = [sum(1 << lamp for lamp in lamps) for lamps in self.leds.values()]
        outputs = len(shown) + len(self.high)
        # What must be high is lit by no lamp, and off is high.
        levels = sum(level << i for i, level in enumerate(self.lit))
        masks = sum(mask << 8 * i for i, mask in enumerate(shown))
        return {"CLOCK_DIVIDER": f"{self.clock_divider}", "CYCLES_PER_BIT": f"{self.cycles_per_bit}",
                "BUTTON_PRESSED": f"1'b{self.button_pressed}", "OUTPUTS": f"{outputs}",
                "LIT": f"{outputs}'h{levels:x}", "SHOWN": f"{8 * outputs}'h{masks:x}"}


BOARDS = {board.name: board for board in (
    Board(name="ulx3s", title="ULX3S with LFE5U-85F", platform="ulx3s.ULX3S_85F_Platform", clock_divider=1,
          button="button_fire:0", uart_rx="uart:0:rx", uart_tx="uart:0:tx",
          leds={f"led:{lamp}": (lamp,) for lamp in range(8)},
          high=("esp32:0:gpio0",),  # or the ESP32 may take the board over
          load=("openFPGALoader -b ulx3s {file}",)),
    # The Feather's pins 0 and 1 are its serial line, as in litex-boards (gsd_orangecrab.py, by the board's author);
    # so are the options of ecppack, and of dfu-suffix, with amaranth-boards. 48 MHz are too fast for the core.
    Board(name="orangecrab", title="OrangeCrab r0.2 with LFE5U-85F",
          platform="orangecrab_r0_2.OrangeCrabR0_2_85FPlatform",
          clock_divider=2, button="button:0", uart_rx="io:0:0", uart_tx="io:0:1",
          leds={"rgb_led:0:r": (6, 7), "rgb_led:0:g": (4,), "rgb_led:0:b": (5,)},
          pack=("--freq", "38.8"),
          load=("dfu-suffix -v 1209 -p 5af0 -a {file}", "dfu-util -a 0 -D {file}")),
)}
"""All boards, by name."""


def require_board(name: str) -> None:
    """Raise InputError unless there is a board of this name; it tells where to begin if amaranth-boards knows it."""
    if name in BOARDS:
        return
    import amaranth_boards

    known = name in {each.name for each in iter_modules(amaranth_boards.__path__)}
    pins = "amaranth-boards has its pins, and " if known else ""
    raise InputError(f"Board must be one of {', '.join(sorted(BOARDS))}, not {name!r}{nearest(name, BOARDS)}; {pins}"
                     "docs/first-change.md says under \"A board\" how one is added")
