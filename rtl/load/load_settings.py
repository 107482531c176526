"""Settings of `lda` and `ldw`, each kept until the next of its kind: the form of a row, steps, padding."""

from amaranth import Module, Mux, Signal, Value

from tilewright.rtl.stream.commands import Command, is_command, views

__all__ = ["LoadSettings"]


class LoadSettings:
    """Registers that commands set, one command in a cycle.

    The bytes of padding are there two cycles later, in time for the earliest first step of the next command.

    Parameters
    ----------
    blocked : bool
        Whether there are rows in the blocked layout, whose pixels have a size.
    coded : bool
        Whether there are coded weights.
    """

    def __init__(self, *, blocked: bool, coded: bool) -> None:
        self._blocked, self._coded = blocked, coded
        # Counts are 1 after reset: a command before its settings ends soon.
        self.chunk_bytes = Signal(16, init=1)
        self.chunks = Signal(12, init=1)
        self.one_chunk = Signal(init=1)
        self.memory_chunk_step = Signal(32)
        self.memory_row_step = Signal(32)
        self.row_step = Signal(20)
        self.chunk_step = Signal(20)
        self.pixel = Signal(12)  # bytes of a pixel, that is channels, less one
        self.has_left = Signal()
        self.has_right = Signal()
        self.left_bytes = Signal(18)
        self.right_bytes = Signal(18)
        self.value = Signal(8)
        self.coded_words = Signal(16, init=1)

    def keep(self, m: Module, command: Command, takes: Value) -> None:
        """Set the registers that ``command`` sets, in a cycle in which the unit ``takes`` it."""
        layout_set = takes & is_command(command, "lda", "set_layout")
        step, padding = views(command, "lda", "set_layout")
        self._multiply(m, layout_set, "left", padding.left, padding.channels, self.left_bytes)
        self._multiply(m, layout_set, "right", padding.right, padding.channels, self.right_bytes)
        with m.If(takes & is_command(command, "lda", "set_row")):
            rs1, rs2 = views(command, "lda", "set_row")
            m.d.sync += [
                self.chunk_bytes.eq(rs1.chunk_bytes),
                self.chunks.eq(rs1.chunks),
                self.one_chunk.eq(rs1.chunks == 1),
                self.memory_chunk_step.eq(rs2.memory_chunk_step),
            ]
        if self._coded:
            with m.If(takes & is_command(command, "ldw", "set_coded")):
                m.d.sync += self.coded_words.eq(views(command, "ldw", "set_coded")[0].words)
        with m.If(takes & is_command(command, "lda", "set_step")):
            rs1, rs2 = views(command, "lda", "set_step")
            m.d.sync += [self.memory_row_step.eq(rs1.memory_row_step), self.row_step.eq(rs2.row_step)]
        with m.If(layout_set):
            m.d.sync += [
                self.chunk_step.eq(step.chunk_step),
                *([self.pixel.eq(padding.channels - 1)] if self._blocked else []),
                self.has_left.eq(padding.left != 0),
                self.has_right.eq(padding.right != 0),
                self.value.eq(padding.value),
            ]

    @staticmethod
    def _multiply(m: Module, enable: Value, name: str, pixels: Value, channels: Value, product: Signal) -> None:
        """Make ``product`` = pixels * channels by adders, two cycles after ``enable``: DSP blocks are for the array."""
        digits = []  # of the pixels to the base 4, times the channels
        for place in range(0, len(pixels), 2):
            digit = Signal(len(channels) + 2, name=f"{name}_digit_{place}")
            with m.If(enable):
                m.d.sync += digit.eq(Mux(pixels[place], channels, 0) + (Mux(pixels[place + 1], channels, 0) << 1))
            digits.append(digit << place)
        m.d.sync += product.eq(sum(digits))
