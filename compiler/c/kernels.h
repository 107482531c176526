/* The layers of a quantised network in plain C, for a 32-bit core without SIMD: the baseline of every speed-up.
 *
 * Tensors are int8, height x width x channels. Each function is inlined where a layer calls it with constants, so that
 * all dimensions are known to the compiler. A convolution keeps the sums of a block of pixels and output channels
 * in registers: each activation and each weight that is loaded serves several multiplications. */
#pragma once
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("clang loop unroll(full)")

/* A loop body eight times in a row: a taken branch costs as much as three multiplications. */
#define STEPS _Pragma("clang loop unroll_count(8)")

/* Finish `value`, or all memory accesses, before going on. Left alone, clang moves the unrolled loads and
 * multiplications ahead until their results no longer fit into registers. Neither is an instruction. */
#define FINISH(value) __asm__ volatile("" : "+r"(value))
#define FINISH_ACCESSES() __asm__ volatile("" : : : "memory")

#ifndef MEMORY
#define MEMORY ((uint8_t *)0x80000000u)
#endif

/* Per output channel: the bias, and the scale as mantissa * 2**-shift, the mantissa of at most 31 bits. */
struct channel {
    uint32_t bias;
    int32_t mantissa;
    uint32_t shift;
};

/* From a sum to int8: the shift of all scales, or 0 if they differ too much to share one; the output's zero point; and
 * bounds that hold the ReLU or clip that follows. */
struct output {
    uint32_t shift;
    int32_t zero_point;
    int32_t low;
    int32_t high;
#ifdef INTEGERS
    int32_t integer; /* 1: (sum * mantissa + the channel's shift) >> shift takes the place of the scale; 2 or 3:
                        sum * mantissa >> the channel's shift, rounded once or twice */
#endif
};

/* Height, width and channels. */
struct shape {
    int32_t height;
    int32_t width;
    int32_t channels;
};

/* ---- arithmetic ---- */

/* value * 2**-shift rounded to an integer, halves to even. */
INLINE uint64_t round_shift(uint64_t value, uint32_t shift)
{
    if (shift == 0)
        return value;
    if (shift > 63)
        return 0; /* no value here has more than 57 bits */
    uint64_t quotient = value >> shift;
    uint64_t remainder = value & ((UINT64_C(1) << shift) - 1);
    uint64_t half = UINT64_C(1) << (shift - 1);
    return quotient + (remainder > half || (remainder == half && (quotient & 1)));
}

/* value rounded to 24 significant bits, as float32 does. */
INLINE uint64_t round_float32(uint64_t value)
{
    uint32_t excess = 0;
    while (value >> excess >> 24)
        excess++;
    return round_shift(value, excess) << excess;
}

/* sum * scale as float32 computes it, then rounded to an integer; beyond int8 some number that is too. */
static __attribute__((noinline)) int32_t scale_exactly(int32_t sum, int32_t mantissa, uint32_t shift)
{
    uint32_t magnitude = sum < 0 ? -(uint32_t)sum : (uint32_t)sum;
    uint64_t product = round_float32(round_float32(magnitude) * (uint32_t)mantissa);
    uint64_t rounded = round_shift(product, shift);
    int32_t bounded = rounded < 1024 ? (int32_t)rounded : 1024;
    return sum < 0 ? -bounded : bounded;
}

/* The same, usually with one multiplication.
 *
 * The upper half of the exact product has `point` fraction bits. float32 rounds twice on the way; below 512, beyond
 * which everything saturates, that moves the value by less than 2**-15. So the upper half decides, unless its
 * fraction is nearer to one half than that, or than its own last bit: about once in 2**(point - 1) sums. */
INLINE int32_t scale(int32_t sum, int32_t mantissa, uint32_t shift)
{
    uint32_t point = shift - 32;
    if (point - 1 > 28) /* only for scales of 1/2 and more, and minute ones */
        return scale_exactly(sum, mantissa, shift);
    int32_t one = 1 << point, doubt = 1 + (one >> 15);
    int32_t rounded = (int32_t)(((int64_t)sum * mantissa) >> 32) + (one >> 1);
    if (((rounded + doubt) & (one - 1)) < 2 * doubt)
        return scale_exactly(sum, mantissa, shift);
    return rounded >> point;
}

/* The larger and the smaller of two: cv.max and cv.min where the core has them. */
#if defined(XPULP) && defined(__riscv)
INLINE int32_t larger(int32_t a, int32_t b)
{
    int32_t result;
    __asm__(".insn r 0x2b, 3, 0x2d, %0, %1, %2" : "=r"(result) : "r"(a), "r"(b));
    return result;
}
INLINE int32_t smaller(int32_t a, int32_t b)
{
    int32_t result;
    __asm__(".insn r 0x2b, 3, 0x2b, %0, %1, %2" : "=r"(result) : "r"(a), "r"(b));
    return result;
}
#else
INLINE int32_t larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}
INLINE int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}
#endif

#ifdef INTEGERS
/* sum * mantissa >> shift of the channel, rounded halves up, or twice: isa.integers.long_requantise. */
INLINE int64_t rounded_product(int32_t sum, const struct channel *channel, int32_t twice)
{
    uint64_t product = (uint64_t)(sum < 0 ? -(uint32_t)sum : (uint32_t)sum) * (uint32_t)channel->mantissa;
    product += (twice && channel->shift > 31 ? 1u << 30 : 0) - (uint64_t)(sum < 0);
    int64_t magnitude = (int64_t)(product >> channel->shift) + (int64_t)(product >> (channel->shift - 1) & 1);
    return sum < 0 ? -magnitude : magnitude;
}

/* From a sum to int8 in whole numbers: isa.integers.shift_requantise, or long_requantise. */
INLINE int8_t shifted(uint32_t sum, const struct channel *channel, struct output to)
{
    int64_t value = to.zero_point;
    value += to.integer > 1 ? rounded_product((int32_t)sum, channel, to.integer > 2)
                            : ((int64_t)(int32_t)sum * channel->mantissa + channel->shift) >> to.shift;
    return (int8_t)(value > to.high ? to.high : value < to.low ? to.low : value);
}
#endif

/* From a sum to int8, exactly as ONNX Runtime does: isa.numerics.requantize. */
INLINE int8_t requantize(uint32_t sum, const struct channel *channel, struct output to)
{
#ifdef INTEGERS
    if (to.integer)
        return shifted(sum, channel, to);
#endif
    int32_t value = scale((int32_t)sum, channel->mantissa, to.shift ? to.shift : channel->shift);
#ifdef XPULP
    return (int8_t)(smaller(larger(value, to.low - to.zero_point), to.high - to.zero_point) + to.zero_point);
#else
    if (value > to.high - to.zero_point)
        return (int8_t)to.high;
    if (value < to.low - to.zero_point)
        return (int8_t)to.low;
    return (int8_t)(value + to.zero_point);
#endif
}

/* ---- layers ---- */

/* Copy x into the middle of y, with `value` around it. */
INLINE void pad(const int8_t *x, int8_t *y, struct shape in, struct shape out, int32_t top, int32_t left, int8_t value)
{
    int32_t row = out.width * out.channels, before = left * out.channels, copied = in.width * in.channels;
    for (int32_t i = 0; i < top * row; i++)
        *y++ = value;
    for (int32_t h = 0; h < in.height; h++) {
        for (int32_t i = 0; i < before; i++)
            *y++ = value;
        for (int32_t i = 0; i < copied; i++)
            *y++ = *x++;
        for (int32_t i = before + copied; i < row; i++)
            *y++ = value;
    }
    for (int32_t i = (top + in.height) * row; i < out.height * row; i++)
        *y++ = value;
}

/* A convolution of an input that is padded already.
 *
 * The receptive field of an output pixel is `rows` times `runs` runs of `bytes` contiguous bytes. Weights come in
 * blocks of `block` output channels (the last of a group may be narrower): for each byte, one weight of each. */
struct conv {
    struct shape out;
    int32_t groups;
    int32_t rows, row_step;
    int32_t runs, run_step;
    int32_t bytes;
    int32_t group_step;              /* from a group's input channels to the next group's */
    int32_t pixel_step, line_step;   /* in the input, from an output pixel to the next and to the one below */
    int32_t weight;                  /* bytes of a weight, 1 or 2 */
    int32_t block, pixels;
    struct output to;
};

#define MAX_BLOCK 8
#define MAX_PIXELS 3

/* Receptive fields of up to so many bytes need no loop. */
#define FEW_TERMS 54

/* One byte of the receptive field: all products of an activation per pixel and a weight per channel, of `size` bytes. */
INLINE void conv_step(uint32_t sums[MAX_PIXELS][MAX_BLOCK], const int8_t *x, const int8_t *w, int32_t size,
                      int32_t pixel_step, int32_t pixels, int32_t outputs)
{
    int32_t weights[MAX_BLOCK];
    UNROLL for (int32_t o = 0; o < outputs; o++)
        weights[o] = size == 1 ? w[o] : ((const int16_t *)w)[o];
    UNROLL for (int32_t p = 0; p < pixels; p++) {
        int32_t activation = x[p * pixel_step];
        UNROLL for (int32_t o = 0; o < outputs; o++)
            sums[p][o] += (uint32_t)(activation * weights[o]);
    }
    UNROLL for (int32_t p = 0; p < pixels; p++)
        UNROLL for (int32_t o = 0; o < outputs; o++)
            FINISH(sums[p][o]);
    FINISH_ACCESSES();
}

/* `pixels` neighbouring pixels of `outputs` channels. */
INLINE void conv_block(const int8_t *x, const int8_t *w, const struct channel *channels, int8_t *y, struct conv s,
                       int32_t pixels, int32_t outputs)
{
    uint32_t sums[MAX_PIXELS][MAX_BLOCK];
    UNROLL for (int32_t p = 0; p < pixels; p++)
        UNROLL for (int32_t o = 0; o < outputs; o++)
            sums[p][o] = channels[o].bias;
    if (s.runs == 1 && s.rows * s.bytes <= FEW_TERMS) {
        UNROLL for (int32_t row = 0; row < s.rows; row++)
            UNROLL for (int32_t i = 0; i < s.bytes; i++) {
                conv_step(sums, x + row * s.row_step + i, w, s.weight, s.pixel_step, pixels, outputs);
                w += outputs * s.weight;
            }
    } else {
        for (int32_t row = 0; row < s.rows; row++)
            for (int32_t run = 0; run < s.runs; run++) {
                const int8_t *field = x + row * s.row_step + run * s.run_step;
                STEPS for (int32_t i = 0; i < s.bytes; i++) {
                    conv_step(sums, field + i, w, s.weight, s.pixel_step, pixels, outputs);
                    w += outputs * s.weight;
                }
            }
    }
    UNROLL for (int32_t p = 0; p < pixels; p++)
        UNROLL for (int32_t o = 0; o < outputs; o++)
            y[p * s.out.channels + o] = requantize(sums[p][o], &channels[o], s.to);
}

/* One line of the output, `outputs` channels of it. */
INLINE void conv_line(const int8_t *x, const int8_t *w, const struct channel *channels, int8_t *y, struct conv s,
                      int32_t outputs)
{
    for (int32_t i = 0; i < s.out.width / s.pixels; i++) {
        conv_block(x, w, channels, y, s, s.pixels, outputs);
        x += s.pixels * s.pixel_step;
        y += s.pixels * s.out.channels;
    }
    if (s.out.width % s.pixels)
        conv_block(x, w, channels, y, s, s.out.width % s.pixels, outputs);
}

INLINE void conv(const int8_t *x, const int8_t *w, const struct channel *channels, int8_t *y, struct conv s)
{
    int32_t terms = s.rows * s.runs * s.bytes, outputs = s.out.channels / s.groups, rest = outputs % s.block;
    for (int32_t line = 0; line < s.out.height; line++) {
        for (int32_t group = 0; group < s.groups; group++) {
            const int8_t *field = x + line * s.line_step + group * s.group_step;
            int32_t first = group * outputs, o = first;
            for (; o + s.block <= first + outputs; o += s.block)
                conv_line(field, w + o * terms * s.weight, channels + o, y + o, s, s.block);
            if (rest)
                conv_line(field, w + o * terms * s.weight, channels + o, y + o, s, rest);
        }
        y += s.out.width * s.out.channels;
    }
}

/* A window over an input: its size, its steps, and where the first one begins. */
struct window {
    int32_t height, width;
    int32_t stride_y, stride_x;
    int32_t dilation_y, dilation_x;
    int32_t top, left;
};

/* The sum of a window of each channel, requantised; the input is padded already. */
INLINE void average(const int8_t *x, const struct channel *channels, int8_t *y, struct shape in, struct shape out,
                    struct window s, struct output to)
{
    int32_t row = in.width * in.channels;
    for (int32_t h = 0; h < out.height; h++) {
        for (int32_t v = 0; v < out.width; v++) {
            const int8_t *first = x + h * s.stride_y * row + v * s.stride_x * in.channels;
            for (int32_t c = 0; c < in.channels; c++) {
                uint32_t sum = channels[c].bias;
                for (int32_t i = 0; i < s.height; i++)
                    for (int32_t j = 0; j < s.width; j++)
                        sum += (uint32_t)first[i * s.dilation_y * row + j * s.dilation_x * in.channels + c];
                *y++ = requantize(sum, &channels[c], to);
            }
        }
    }
}

/* Each value plus its channel's bias, requantised. */
INLINE void rescale(const int8_t *x, const struct channel *channels, int8_t *y, struct shape out, struct output to)
{
    for (int32_t i = 0; i < out.height * out.width; i++)
        for (int32_t c = 0; c < out.channels; c++)
            *y++ = requantize(channels[c].bias + (uint32_t)*x++, &channels[c], to);
}

/* Each value less x_zero times its channel's factor less zero, or times its negative, requantised. */
INLINE void multiply(const int8_t *x, const int8_t *factors, const struct channel *channels, int8_t *y,
                     struct shape out, int32_t x_zero, int32_t zero, int32_t sign, struct output to)
{
    for (int32_t i = 0; i < out.height * out.width; i++)
        for (int32_t c = 0; c < out.channels; c++)
            *y++ = requantize((uint32_t)((*x++ - x_zero) * sign * (factors[c] - zero)), &channels[c], to);
}

/* The products of pixels with the rows of a matrix, `row` bytes apart; zero points and sign as for multiply. */
INLINE void multiply_matrix(const int8_t *x, int32_t inputs, const int8_t *matrix, int32_t row,
                            const struct channel *channels, int8_t *y, struct shape out, int32_t x_zero, int32_t zero,
                            int32_t sign, struct output to)
{
    for (int32_t i = 0; i < out.height * out.width; i++) {
        for (int32_t c = 0; c < out.channels; c++) {
            int32_t sum = 0;
            for (int32_t k = 0; k < inputs; k++)
                sum += (x[k] - x_zero) * (matrix[c * row + k] - zero);
            *y++ = requantize((uint32_t)(sign * sum), &channels[c], to);
        }
        x += inputs;
    }
}

/* The sum of two tensors, looked up: entry 256 * (y + 128) + other + 128. */
INLINE void add_residual(int8_t *y, const int8_t *other, const int8_t *table, int32_t count)
{
    const int8_t *zero = table + 128 * 256 + 128;
    for (int32_t i = 0; i < count; i++)
        y[i] = zero[256 * y[i] + other[i]];
}

/* Each value, looked up: entry y + 128. */
INLINE void map_values(int8_t *y, const int8_t *table, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        y[i] = table[y[i] + 128];
}

/* A tensor from one place to another, each with its bytes between rows and between pixels. */
INLINE void place(const int8_t *x, int8_t *y, struct shape s, int32_t x_row, int32_t x_pixel, int32_t y_row,
                  int32_t y_pixel)
{
    for (int32_t h = 0; h < s.height; h++)
        for (int32_t w = 0; w < s.width; w++)
            for (int32_t c = 0; c < s.channels; c++)
                y[h * y_row + w * y_pixel + c] = x[h * x_row + w * x_pixel + c];
}

/* The maximum over a window of each channel; what lies outside the image never wins. */
INLINE void max_pool(const int8_t *x, int8_t *y, struct shape in, struct shape out, struct window s)
{
    int32_t row = in.width * in.channels;
    int clipped = s.top || s.left || (out.height - 1) * s.stride_y + s.height > in.height
                  || (out.width - 1) * s.stride_x + s.width > in.width;
    for (int32_t h = 0; h < out.height; h++) {
        for (int32_t v = 0; v < out.width; v++) {
            int32_t top = h * s.stride_y - s.top, bottom = top + s.height;
            int32_t left = v * s.stride_x - s.left, right = left + s.width;
            if (clipped) {
                top = top < 0 ? 0 : top;
                left = left < 0 ? 0 : left;
                bottom = bottom > in.height ? in.height : bottom;
                right = right > in.width ? in.width : right;
            }
            for (int32_t c = 0; c < in.channels; c++) {
                int32_t largest = -128;
                for (int32_t i = top; i < bottom; i++)
                    for (int32_t j = left; j < right; j++) {
                        int32_t value = x[i * row + j * in.channels + c];
                        largest = value > largest ? value : largest;
                    }
                *y++ = (int8_t)largest;
            }
        }
    }
}

/* ---- measurement ---- */

/* What a layer took. */
struct record {
    uint32_t cycles;
    uint32_t instructions;
};

#ifdef __riscv
#define COUNTER(name) __extension__({ uint32_t now; __asm__ volatile("csrr %0, " name : "=r"(now) : : "memory"); now; })
#else
#define COUNTER(name) 0u
#endif

/* Run a layer and note its cycles and instructions. */
INLINE void measure(void (*layer)(void), struct record *record)
{
    uint32_t cycles = COUNTER("mcycle"), instructions = COUNTER("minstret");
    layer();
    record->instructions = COUNTER("minstret") - instructions;
    record->cycles = COUNTER("mcycle") - cycles;
}
