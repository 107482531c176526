/* IEEE float32 for a core with no FPU and no clz: what the compiler calls for +, -, *, /, comparisons and from int32.
 *
 * All results are rounded to nearest, halves to even; subnormal numbers are numbers. A NaN that is computed is the
 * positive quiet one without payload. Each function has a fast path for normal operands, which is what costs. The
 * linker takes these in place of compiler-rt's. Cycles on CV32E40X, here and there: a sum 69 and 92, a product 52 and
 * 58, a quotient 96 and 107, a comparison 22 and 32, int32 to float32 41 and 63. */
#include <stdint.h>

#ifndef NAME
#define NAME(name) name
#endif

#define SIGN 0x80000000u
#define INFINITE 0x7f800000u
#define NOT_A_NUMBER 0x7fc00000u
#define FRACTION 0x007fffffu
#define HIDDEN 0x00800000u
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
#define INLINE static inline __attribute__((always_inline))
#define APART static __attribute__((noinline))

typedef union {
    float value;
    uint32_t bits;
} word;

INLINE uint32_t bits_of(float value) { return (word){.value = value}.bits; }
INLINE float float_of(uint32_t bits) { return (word){.bits = bits}.value; }

/* Shift `*fraction`, which is not 0, up until bit 31 is set, and return by how much. */
INLINE int32_t normalise(uint32_t *fraction)
{
    uint32_t x = *fraction;
    int32_t by = 0;
    if (!(x >> 16)) { x <<= 16; by = 16; }
    if (!(x >> 24)) { x <<= 8; by += 8; }
    if (!(x >> 28)) { x <<= 4; by += 4; }
    if (!(x >> 30)) { x <<= 2; by += 2; }
    if (!(x >> 31)) { x <<= 1; by += 1; }
    *fraction = x;
    return by;
}

/* x shifted right; what is lost leaves the last bit set. */
INLINE uint32_t shift_sticky(uint32_t x, uint32_t by)
{
    return by > 31 ? x != 0 : x >> by | (by && x << (32 - by));
}

/* The number fraction * 2**(exponent - 158) (bit 31 of the fraction is set) rounded, where it may not be normal. */
APART float round_extreme(uint32_t sign, int32_t exponent, uint32_t fraction)
{
    if (exponent >= 255)
        return float_of(sign | INFINITE);
    if (exponent < 1) {
        fraction = shift_sticky(fraction, (uint32_t)(1 - exponent));
        exponent = 1;
    }
    uint32_t kept = fraction >> 8, rest = fraction & 255;
    kept += rest > 128 || (rest == 128 && (kept & 1));
    return float_of(sign | ((((uint32_t)exponent - 1) << 23) + kept)); /* carries go on into the exponent */
}

/* The same where the result is most often normal. */
INLINE float round_to(uint32_t sign, int32_t exponent, uint32_t fraction)
{
    if (!LIKELY((uint32_t)(exponent - 1) < 253))
        return round_extreme(sign, exponent, fraction);
    uint32_t kept = fraction >> 8, up = (fraction & 255) + (kept & 1) > 128;
    return float_of((sign | ((uint32_t)exponent - 1) << 23) + kept + up); /* carries go on into the exponent */
}

/* ---- sums ---- */

/* A difference of neighbouring exponents may lose any number of bits, but is exact. */
APART float add_cancelling(uint32_t sign, int32_t exponent, uint32_t fraction)
{
    if (!fraction)
        return float_of(0);
    exponent -= normalise(&fraction);
    return round_to(sign, exponent, fraction);
}

/* The sum where not both are normal; |a| >= |b|. */
APART float add_special(uint32_t a, uint32_t b)
{
    uint32_t sign = a & SIGN, large = a & ~SIGN, small = b & ~SIGN;
    if (large >= INFINITE)
        return float_of(large > INFINITE || (small == INFINITE && a != b) ? NOT_A_NUMBER : a);
    if (!small)
        return float_of(large ? a : a & b); /* of two zeros, -0 only if both are */
    /* b is subnormal: bits below its last are 0 in both, so that the sum is exact unless a is larger by much. */
    int32_t exponent = (int32_t)(large >> 23);
    large = (large & FRACTION) | (exponent ? HIDDEN : 0);
    exponent += !exponent;
    large <<= 7;
    small = shift_sticky(small << 7, (uint32_t)(exponent - 1));
    uint32_t fraction = (a ^ b) & SIGN ? large - small : large + small;
    return fraction >> 31 ? round_to(sign, exponent + 1, fraction) : add_cancelling(sign, exponent, fraction << 1);
}

INLINE float add_bits(uint32_t a, uint32_t b)
{
    /* The larger operand first. */
    if (b << 1 > a << 1) {
        uint32_t other = a;
        a = b;
        b = other;
    }
    int32_t exponent = a << 1 >> 24, lower = b << 1 >> 24;
    if (!LIKELY(lower != 0 && exponent != 255))
        return add_special(a, b);
    int32_t distance = exponent - lower;
    if (distance > 25)
        return float_of(a);
    uint32_t sign = a & SIGN, different = a ^ b;
    /* Bit 30 leads, and seven bits are to spare below. */
    uint32_t large = (a << 8 | SIGN) >> 1, whole = (b << 8 | SIGN) >> 1;
    uint32_t small = whole >> distance;
    small |= small << distance != whole;
    if (!(different >> 31)) {
        uint32_t fraction = large + small;
        if (fraction >> 31)
            return round_to(sign, exponent + 1, fraction);
        return round_to(sign, exponent, fraction << 1);
    }
    uint32_t fraction = (large - small) << 1;
    if (fraction >> 31)
        return round_to(sign, exponent, fraction);
    if (distance > 1)
        return round_to(sign, exponent - 1, fraction << 1);
    return add_cancelling(sign, exponent, fraction);
}

float NAME(__addsf3)(float a, float b) { return add_bits(bits_of(a), bits_of(b)); }

float NAME(__subsf3)(float a, float b) { return add_bits(bits_of(a), bits_of(b) ^ SIGN); }

/* ---- products and quotients ---- */

/* Take a number that is not 0, infinite or NaN apart: its fraction with bit 31 set; returns its exponent. */
INLINE int32_t take_apart(uint32_t a, uint32_t *fraction)
{
    int32_t exponent = a << 1 >> 24;
    *fraction = a << 8;
    if (exponent) {
        *fraction |= SIGN;
        return exponent;
    }
    return 1 - normalise(fraction);
}

INLINE float multiply_fractions(uint32_t sign, int32_t exponent, uint32_t a, uint32_t b)
{
    uint64_t product = (uint64_t)a * b;
    uint32_t fraction = (uint32_t)(product >> 32) | ((uint32_t)product != 0);
    if (fraction >> 31)
        return round_to(sign, exponent + 1, fraction);
    /* Bits of the lower word are far below the last that is kept. */
    return round_to(sign, exponent, fraction << 1 | (fraction & 1));
}

APART float multiply_special(uint32_t a, uint32_t b)
{
    uint32_t sign = (a ^ b) & SIGN, large = a & ~SIGN, small = b & ~SIGN;
    if (large < small) {
        uint32_t other = large;
        large = small;
        small = other;
    }
    if (large > INFINITE || (large == INFINITE && !small))
        return float_of(NOT_A_NUMBER);
    if (large == INFINITE || !small)
        return float_of(sign | (small ? INFINITE : 0));
    uint32_t x, y;
    int32_t exponent = take_apart(large, &x) + take_apart(small, &y);
    return multiply_fractions(sign, exponent - 127, x, y);
}

float NAME(__mulsf3)(float x, float y)
{
    uint32_t a = bits_of(x), b = bits_of(y);
    int32_t exponent = a << 1 >> 24, other = b << 1 >> 24;
    if (!LIKELY((uint32_t)(exponent - 1) < 254 && (uint32_t)(other - 1) < 254))
        return multiply_special(a, b);
    return multiply_fractions((a ^ b) & SIGN, exponent + other - 127, a << 8 | SIGN, b << 8 | SIGN);
}

INLINE float divide_fractions(uint32_t sign, int32_t exponent, uint32_t a, uint32_t b)
{
    /* 24 bits each. The first bit of the quotient is 1; each division gives eight more. */
    a >>= 8;
    b >>= 8;
    if (a < b) {
        a <<= 1;
        exponent--;
    }
    uint32_t quotient = 1, rest = a - b;
    for (int digit = 0; digit < 3; digit++) {
        rest <<= 8;
        quotient = quotient << 8 | rest / b;
        rest %= b;
    }
    return round_to(sign, exponent, quotient << 7 | (rest != 0));
}

APART float divide_special(uint32_t a, uint32_t b)
{
    uint32_t sign = (a ^ b) & SIGN;
    a &= ~SIGN;
    b &= ~SIGN;
    if (a > INFINITE || b > INFINITE || (a == b && (!a || a == INFINITE)))
        return float_of(NOT_A_NUMBER);
    if (a == INFINITE || !b)
        return float_of(sign | INFINITE);
    if (!a || b == INFINITE)
        return float_of(sign);
    uint32_t x, y;
    int32_t exponent = take_apart(a, &x);
    exponent -= take_apart(b, &y);
    return divide_fractions(sign, exponent + 127, x, y);
}

float NAME(__divsf3)(float x, float y)
{
    uint32_t a = bits_of(x), b = bits_of(y);
    int32_t exponent = a << 1 >> 24, other = b << 1 >> 24;
    if (!LIKELY((uint32_t)(exponent - 1) < 254 && (uint32_t)(other - 1) < 254))
        return divide_special(a, b);
    return divide_fractions((a ^ b) & SIGN, exponent - other + 127, a << 8 | SIGN, b << 8 | SIGN);
}

/* ---- comparisons: -1, 0, 1, and `unordered` with a NaN ---- */

INLINE int32_t compare(uint32_t a, uint32_t b, int32_t unordered)
{
    if (a << 1 > INFINITE << 1 || b << 1 > INFINITE << 1)
        return unordered;
    /* As integers that have the order of the floats; both zeros are 0. */
    int32_t x = a & SIGN ? (int32_t)(SIGN - a) : (int32_t)a;
    int32_t y = b & SIGN ? (int32_t)(SIGN - b) : (int32_t)b;
    return (x > y) - (x < y);
}

int32_t NAME(__ltsf2)(float a, float b) { return compare(bits_of(a), bits_of(b), 1); }
int32_t NAME(__lesf2)(float a, float b) { return compare(bits_of(a), bits_of(b), 1); }
int32_t NAME(__gtsf2)(float a, float b) { return compare(bits_of(a), bits_of(b), -1); }
int32_t NAME(__gesf2)(float a, float b) { return compare(bits_of(a), bits_of(b), -1); }

INLINE int32_t differ(uint32_t a, uint32_t b)
{
    if (a << 1 > INFINITE << 1)
        return 1;
    return a != b && ((a | b) << 1) != 0;
}

int32_t NAME(__eqsf2)(float a, float b) { return differ(bits_of(a), bits_of(b)); }
int32_t NAME(__nesf2)(float a, float b) { return differ(bits_of(a), bits_of(b)); }

int32_t NAME(__unordsf2)(float a, float b)
{
    return bits_of(a) << 1 > INFINITE << 1 || bits_of(b) << 1 > INFINITE << 1;
}

/* ---- integers ---- */

INLINE float from_magnitude(uint32_t sign, uint32_t magnitude)
{
    if (!magnitude)
        return float_of(0);
    int32_t by = normalise(&magnitude);
    return round_to(sign, 158 - by, magnitude);
}

float NAME(__floatsisf)(int32_t a)
{
    return from_magnitude((uint32_t)a & SIGN, a < 0 ? 0 - (uint32_t)a : (uint32_t)a);
}

float NAME(__floatunsisf)(uint32_t a) { return from_magnitude(0, a); }
