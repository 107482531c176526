"""Max pooling of bytes whose channels lie next to each other: a loop over channels, its taps one after the other.

Channels are taken by words of four where dims and addresses allow it, and compared without a branch. A window's rows
beyond the image stand for the nearest row inside, which changes no maximum; each column at the border has a loop of its
own with fewer taps. So the work is the same for all values and rows, and its cycles follow from the shape.
"""

from collections.abc import Iterator

from tilewright.compiler.kernels.language.core_cycles import START
from tilewright.compiler.kernels.operators.sliding_windows import SlidingWindow, WindowAxis
from tilewright.isa.machine import MemoryTiming
from tilewright.isa.program import Call

__all__ = ["byte_pooling_cycles", "byte_pooling_helpers", "byte_pooling_lines", "pools_bytes"]

_WORD_TAP, _BYTE_TAP, _OUTPUT, _PIXEL, _CALL = 14.8, 5.1, 2.6, 13, 240
"""Cycles of a tap of four channels and of one, around the taps of an output and the channels of a pixel, and of a call.

Fitted to 43 windows in RTL; with copies in the core's own memory the estimate meets them within 6 %,
most within 2 %."""

_WAITED_TAP, _WAITED_OUTPUT = 0.65, 0.5
"""Share of main memory's latency that a tap and an output wait for, since several accesses are under way."""

_MOST_TAPS = 36


def pools_bytes(call: Call, window: SlidingWindow) -> bool:
    """Return whether ``call`` is a max pooling of int8 or uint8 over two dims with its channels side by side."""
    source, out = call.inputs[0], call.output
    assert source is not None
    return (source.dtype in ("int8", "uint8") and len(window.axes) == 2 and len(source.strides) == 4
            and all(axis.dilation == 1 for axis in window.axes) and window.axes[0].kernel * window.axes[1].kernel
            <= _MOST_TAPS and (source.dims[1] == 1 or source.strides[1] == out.strides[1] == 1))


def _by_words(call: Call) -> bool:
    """Return whether four channels are taken at a time."""
    strides = [stride for each in call.operands for axis, stride in enumerate(each.strides) if axis != 1]
    return call.output.dims[1] % 4 == 0 and all(number % 4 == 0 for number in (
        *strides, *(each.address for each in call.operands)))


def byte_pooling_helpers(call: Call, window: SlidingWindow) -> tuple[str, ...]:
    """Return the name of the shared C function that compares, if any window has two taps."""
    compares = window.axes[0].kernel * max(taps for *_, taps in _columns(window.axes[1])) > 1
    return (_greatest(call),) if compares else ()


def _greatest(call: Call) -> str:
    return f"tw_greatest_{call.output.dtype}x4" if _by_words(call) else "tw_greatest"


def byte_pooling_lines(call: Call, window: SlidingWindow) -> list[str]:
    """Return the statements of the pooling, as `Kernel.c_body` does."""
    source, out = call.inputs[0], call.output
    assert source is not None
    rows, kind = window.axes[0], f"{source.dtype}_t"
    elements = source.dims[1] // 4 if _by_words(call) else source.dims[1]
    image = f"in0 + {source.strides[0]} * i0 + {source.strides[2]}"
    lines = [f"uint32_t channels = {elements};",
             '__asm__("" : "+r"(channels)); /* The loops stay loops. */',
             f"for (int32_t i0 = 0; i0 < {source.dims[0]}; i0++) {{",
             f"    for (int32_t i2 = 0; i2 < {rows.outputs}; i2++) {{",
             f"        {kind} *to = out + {out.strides[0]} * i0 + {out.strides[2]} * i2;"]
    for tap in range(rows.kernel):
        lines += [f"        {line}" for line in _row(rows, tap)]
        lines.append(f"        const {kind} *row{tap} = {image} * y{tap};")
    for count, first, taps in _columns(window.axes[1]):
        lines += [f"        for (uint32_t i3 = 0; i3 < {count}; i3++) {{" if count > 1 else "        {",
                  *(f"            {line}" for line in _pixel(call, window, first, taps, loop=count > 1)), "        }"]
    return [*lines, "    }", "}"]


def _row(rows: WindowAxis, tap: int) -> list[str]:
    """Return the C of ``y<tap>``, the row of the image that a tap reads."""
    place, last = f"y{tap}", rows.size - 1
    lines = [f"int32_t {place} = {rows.stride} * i2 + {tap - rows.before};"]
    lines += [f"if ({place} < 0)", f"    {place} = 0;"] * (tap < rows.before)
    beyond = (rows.outputs - 1) * rows.stride - rows.before + tap > last
    lines += [f"if ({place} > {last})", f"    {place} = {last};"] * beyond
    return lines if len(lines) > 1 else [f"const {lines[0]}"]


def _pixel(call: Call, window: SlidingWindow, first: int, taps: int, *, loop: bool) -> list[str]:
    """Return the C of an output pixel whose window begins at column ``first``, or of one of a row of them."""
    source, out = call.inputs[0], call.output
    assert source is not None
    size = 4 if _by_words(call) else 1
    kind, step = "uint32_t" if size == 4 else f"{source.dtype}_t", source.strides[3]
    rows = range(window.axes[0].kernel)
    at = f" + {step * window.axes[1].stride} * i3" if loop else ""
    values = [f"from{row}[{step * tap // size}]" for row in rows for tap in range(taps)]
    body = [f"{kind if size == 4 else 'int32_t'} total = {values[0]};",
            *(f"total = {_greatest(call)}(total, {value});" for value in values[1:])]
    nexts = ", ".join(f"from{row}++" for row in rows)
    return [*(f"    const {kind} *from{row} = (const {kind} *)(const void *)(row{row} + {step * first}{at});"
              for row in rows),
            f"    {kind} *next = ({kind} *)(void *)to;",
            f"    for (uint32_t i1 = 0; i1 < channels; i1++, {nexts}) {{",
            *(f"        {each}" for each in body), f"        *next++ = ({kind})total;", "    }",
            f"    to += {out.strides[3]};"]


def _columns(window: WindowAxis) -> Iterator[tuple[int, int, int]]:
    """Yield runs of outputs along a row: how many, where the first one's window begins in the image, and its taps."""
    output = 0
    while output < window.outputs:
        start = output * window.stride - window.before
        first, last = max(0, start), min(window.size, start + window.kernel)
        count = 1
        if last - first == window.kernel:
            count = min(window.outputs - output, (window.size - window.kernel - start) // window.stride + 1)
        yield count, first, last - first
        output += count


def byte_pooling_cycles(call: Call, window: SlidingWindow, memory: MemoryTiming) -> int:
    """Return the cycles of the core; those of main memory's latency are within 10 %."""
    channels, wait = call.output.dims[1], memory.latency_cycles - 1
    rows, columns = window.axes
    tap, elements = (_WORD_TAP, channels // 4) if _by_words(call) else (_BYTE_TAP, channels)
    tap, output = tap + _WAITED_TAP * wait, _OUTPUT + _WAITED_OUTPUT * wait
    row = sum(count * (_PIXEL + elements * (output + rows.kernel * taps * tap)) for count, _, taps in _columns(columns))
    return START + _CALL + int(call.output.dims[0] * rows.outputs * row)
