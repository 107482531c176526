"""The C functions that kernels share: those written as expressions, and the few that are written in C."""

from collections.abc import Iterable, Iterator

from tilewright.compiler.kernels.language import float_functions as functions
from tilewright.compiler.kernels.language.c_expression import c_function, called
from tilewright.compiler.kernels.language.expression import Expression, ScalarFunction

__all__ = ["helper_names", "helper_text"]

_BITS = """\
/* The bits of a float. */
static int32_t tw_bits(float x)
{
    int32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}"""

_FLOAT = """\
/* The float of some bits. */
static float tw_float(int32_t bits)
{
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}"""

_SQRT = """\
/* Square root, rounded to nearest: digit by digit, as in Sun's fdlibm (e_sqrtf.c). */
static float tw_sqrt(float x)
{
    const int32_t bits = tw_bits(x);
    if (x != x || x == 0.0f || bits == 0x7f800000)
        return x;
    if (bits < 0)
        return __builtin_nanf("");
    int32_t exponent = bits >> 23;
    uint32_t rest = (uint32_t)bits & 0x7fffff;
    if (exponent == 0) {
        for (exponent = 1; !(rest & 0x800000); exponent--)
            rest <<= 1;
    } else {
        rest |= 0x800000;
    }
    exponent -= 127;
    rest <<= 1 + (exponent & 1);
    uint32_t root = 0, doubled = 0;
    for (uint32_t digit = 0x1000000; digit; digit >>= 1) {
        const uint32_t trial = doubled + digit;
        if (trial <= rest) {
            doubled = trial + digit;
            rest -= trial;
            root += digit;
        }
        rest <<= 1;
    }
    if (rest)
        root += root & 1;
    return tw_float((int32_t)((root >> 1) + 0x3f000000u + ((uint32_t)(exponent >> 1) << 23)));
}"""


_MOVE = """\
/* Copy bytes, by words where both sides allow it. */
static void tw_move(void *target, const void *source, uint32_t bytes)
{
    uint8_t *to = target;
    const uint8_t *from = source;
    if ((((uintptr_t)to ^ (uintptr_t)from) & 3) == 0) {
        for (; ((uintptr_t)to & 3) && bytes; bytes--)
            *to++ = *from++;
        for (; bytes >= 4; bytes -= 4, to += 4, from += 4)
            *(uint32_t *)(void *)to = *(const uint32_t *)(const void *)from;
    }
    for (; bytes; bytes--)
        *to++ = *from++;
}"""


_GREATEST = """\
/* The greater of two bytes, in the same time for all; with the empty statement no compiler makes it a branch. */
static inline int32_t tw_greatest(int32_t a, int32_t b)
{
    const int32_t lead = a - b;
    int32_t behind = lead >> 31;
    __asm__("" : "+r"(behind));
    return a - (lead & behind);
}"""


def _greatest_of_four(name: str) -> str:
    """Return a function for the greater of each byte of two words; equal signs leave it to the seven bits below."""
    above = "(y & ~x)" if name == "int8" else "(x & ~y)"
    return f"""\
/* The greater of each of four bytes. */
static inline uint32_t tw_greatest_{name}x4(uint32_t x, uint32_t y)
{{
    const uint32_t low = (x | 0x80808080u) - (y & 0x7f7f7f7fu);
    const uint32_t least = ({above} | (low & ~(x ^ y))) & 0x80808080u;
    return y ^ ((x ^ y) & ((least << 1) - (least >> 7)));
}}"""


def _high(name: str, wide: str) -> str:
    return f"""\
/* The upper half of a product. */
static {name}_t tw_high_{name}({name}_t a, {name}_t b)
{{
    return ({name}_t)(({wide}_t)a * b >> 32);
}}"""


def _divide(name: str) -> str:
    return f"""\
/* Quotient towards zero; x / 0 is 0, and the smallest value over -1 is itself. */
static {name}_t tw_divide_{name}({name}_t a, {name}_t b)
{{
    if (b == 0)
        return 0;
    return b == -1 ? ({name}_t)(0 - (u{name}_t)a) : a / b;
}}"""


def _divide_unsigned(name: str) -> str:
    return f"""\
/* Quotient; x / 0 is 0. */
static {name}_t tw_divide_{name}({name}_t a, {name}_t b)
{{
    return b == 0 ? 0 : a / b;
}}"""


_PLAIN: dict[str, str] = {
    "tw_bits": _BITS, "tw_float": _FLOAT, "tw_sqrt": _SQRT, "tw_move": _MOVE,
    "tw_greatest": _GREATEST,
    **{f"tw_greatest_{name}x4": _greatest_of_four(name) for name in ("int8", "uint8")},
    "tw_high_int32": _high("int32", "int64"), "tw_high_uint32": _high("uint32", "uint64"),
    **{f"tw_divide_{name}": _divide(name) for name in ("int8", "int16", "int32", "int64")},
    **{f"tw_divide_{name}": _divide_unsigned(name) for name in ("uint8", "uint16", "uint32", "uint64")},
}
"""Text by name of the functions that are C by nature."""

_NEEDS = {"tw_sqrt": ("tw_bits", "tw_float")}

_FUNCTIONS: dict[str, ScalarFunction] = {
    each.name: each for each in vars(functions).values() if isinstance(each, ScalarFunction)}
"""Functions written as expressions, by their name in C."""


def helper_names(*expressions: Expression) -> tuple[str, ...]:
    """Return the names of all C functions that ``expressions`` need, callees first."""
    names: dict[str, None] = {}
    for expression in expressions:
        for each in called(expression):
            names.update(dict.fromkeys(_with_needs(each if isinstance(each, str) else each.name)))
    return tuple(names)


def helper_text(names: Iterable[str]) -> str:
    """Return the definitions of the C functions ``names`` and of those they call, each once, callees first."""
    ordered = dict.fromkeys(each for name in names for each in _with_needs(name))
    return "\n\n".join(_PLAIN[name] if name in _PLAIN else c_function(_FUNCTIONS[name]) for name in ordered)


def _with_needs(name: str) -> Iterator[str]:
    if name in _FUNCTIONS:
        yield from helper_names(_FUNCTIONS[name].body)
    for need in _NEEDS.get(name, ()):
        yield from _with_needs(need)
    yield name
