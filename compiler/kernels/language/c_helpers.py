"""The C functions that kernels share: those written as expressions, and the few that are written in C."""

from collections.abc import Iterable, Iterator

from tilewright.compiler.kernels.language import float_functions as functions
from tilewright.compiler.kernels.language.c_expression import c_function, called
from tilewright.compiler.kernels.language.expression import Expression, ScalarFunction
from tilewright.compiler.kernels.language.fixed_sums import FIXED_SUM_HELPERS

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

_ORDER = """\
/* An integer of the order of x: of both zeros 0, of a NaN beyond those of the infinities, which are +-0x7f800000. */
static inline __attribute__((always_inline)) int32_t tw_order(float x)
{
    const int32_t bits = tw_bits(x), sign = bits >> 31;
    return ((bits & 0x7fffffff) ^ sign) - sign;
}"""


_SLOW_SUM = """\
/* (float)x * s + b by soft floats. */
static __attribute__((noinline)) float tw_slow_sum(int32_t x, float s, float b)
{
    return (float)x * s + b;
}"""

_ZEROS = """\
/* Zeros before the first one of a byte. */
static const uint8_t tw_zeros[256] = {
    8, 7, 6, 6, 5, 5, 5, 5, 4, 4, 4, 4, 4, 4, 4, 4, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};"""

_SCALED_SUM = """\
/* (float)x * s + b, rounded as these three are: in one, since a soft float takes longest to be taken apart and put
 * together. What is 0, of more than 24 bits, or far from 1 is left to them. */
static inline __attribute__((always_inline)) float tw_scaled_sum(int32_t x, float s, float b)
{
    const uint32_t factor = (uint32_t)tw_bits(s), other = (uint32_t)tw_bits(b);
    const int32_t upper = (int32_t)(factor << 1 >> 24), lower = (int32_t)(other << 1 >> 24);
    uint32_t size = x < 0 ? 0 - (uint32_t)x : (uint32_t)x;
    if ((uint32_t)(upper - 32) > 191 || (uint32_t)(lower - 32) > 215 || size - 1 > 0xfffffe)
        return tw_slow_sum(x, s, b);
    const uint32_t shift = size >> 16 ? tw_zeros[size >> 16] : size >> 8 ? 8u + tw_zeros[size >> 8] :
                           16u + tw_zeros[size];
    size <<= 8 + shift;
    int32_t exponent = upper + 23 - (int32_t)shift;
    const uint64_t product = (uint64_t)size * (factor << 8 | 0x80000000u);
    uint32_t fraction = (uint32_t)(product >> 32) | ((uint32_t)product != 0);
    if (fraction >> 31)
        exponent++;
    else
        fraction = fraction << 1 | (fraction & 1);
    /* The product, of 24 bits. */
    uint32_t kept = fraction >> 8;
    kept += (fraction & 255) + (kept & 1) > 128;
    uint32_t a = (((uint32_t)x ^ factor) & 0x80000000u) | ((((uint32_t)exponent - 1) << 23) + kept), c = other;
    /* The sum, the larger first; bit 30 leads, and seven bits are to spare below. */
    if (c << 1 > a << 1) {
        c = a;
        a = other;
    }
    exponent = (int32_t)(a << 1 >> 24);
    const int32_t distance = exponent - (int32_t)(c << 1 >> 24);
    if (distance > 25)
        return tw_float((int32_t)a);
    const uint32_t large = (a << 8 | 0x80000000u) >> 1, whole = (c << 8 | 0x80000000u) >> 1;
    uint32_t small = whole >> distance;
    small |= small << distance != whole;
    if ((a ^ c) >> 31) {
        fraction = (large - small) << 1;
        if (!(fraction >> 31)) {
            if (!fraction)
                return 0.0f;
            do {
                fraction <<= 1;
                exponent--;
            } while (!(fraction >> 31));
        }
    } else {
        fraction = large + small;
        if (fraction >> 31)
            exponent++;
        else
            fraction <<= 1;
    }
    kept = fraction >> 8;
    kept += (fraction & 255) + (kept & 1) > 128;
    return tw_float((int32_t)((a & 0x80000000u) | ((((uint32_t)exponent - 1) << 23) + kept)));
}"""


def _comparison(name: str, sign: str) -> str:
    """Return a comparison of float32 in integers: a third of the cycles of a soft float's, and none to call it."""
    return f"""\
/* Whether a {sign} b; of a NaN it is not. */
static inline __attribute__((always_inline)) int tw_{name}(float a, float b)
{{
    const int32_t x = tw_order(a), y = tw_order(b);
    return x >= -0x7f800000 && x {sign} y && y <= 0x7f800000;
}}"""


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
    "tw_greatest": _GREATEST, "tw_order": _ORDER, "tw_scaled_sum": _SCALED_SUM,
    "tw_slow_sum": _SLOW_SUM, "tw_zeros": _ZEROS,
    **{f"tw_{name}": _comparison(name, sign) for name, sign in (("less", "<"), ("less_equal", "<="), ("equal", "=="))},
    **{f"tw_greatest_{name}x4": _greatest_of_four(name) for name in ("int8", "uint8")},
    **FIXED_SUM_HELPERS,
    "tw_high_int32": _high("int32", "int64"), "tw_high_uint32": _high("uint32", "uint64"),
    **{f"tw_divide_{name}": _divide(name) for name in ("int8", "int16", "int32", "int64")},
    **{f"tw_divide_{name}": _divide_unsigned(name) for name in ("uint8", "uint16", "uint32", "uint64")},
}
"""Text by name of the functions that are C by nature."""

_NEEDS = {"tw_sqrt": ("tw_bits", "tw_float"), "tw_order": ("tw_bits",),
          "tw_larger_exponent": ("tw_bits",), "tw_fixed": ("tw_bits",),
          "tw_scaled_sum": ("tw_bits", "tw_float", "tw_slow_sum", "tw_zeros"),
          **dict.fromkeys(("tw_less", "tw_less_equal", "tw_equal"), ("tw_order",))}

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
