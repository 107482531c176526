/* The same layers for a core with the SIMD instructions of PULP (CV32E40P, "XPULP"): four bytes to a word.
 *
 * As in PULP-NN (Garofalo et al., Phil. Trans. R. Soc. A 378, 2020) a block of pixels times channels stays in registers:
 * with 4 x 4 of them, 8 loads serve 16 instructions of four multiply-accumulates each. Loads that increment their address and
 * hardware loops are not used: addresses are constant offsets, and loops are unrolled until their branches do not count. */
#pragma once
#include "kernels.h"

/* Read where bytes lie, not always at a multiple of four, which costs the core a cycle. */
typedef uint32_t __attribute__((may_alias)) word;

#ifdef __riscv
/* cv.sdotsp.b: sum += the four products of signed bytes. */
#define DOT(sum, a, b) __asm__ volatile(".insn r 0x7b, 1, 0x54, %0, %1, %2" : "+r"(sum) : "r"(a), "r"(b))

/* cv.max.b: the larger of each pair of signed bytes. */
INLINE word larger_bytes(word a, word b)
{
    word result;
    __asm__(".insn r 0x7b, 1, 0x18, %0, %1, %2" : "=r"(result) : "r"(a), "r"(b));
    return result;
}
#else
INLINE uint32_t products(word a, word b)
{
    uint32_t sum = 0;
    for (int32_t i = 0; i < 32; i += 8)
        sum += (uint32_t)((int8_t)(a >> i) * (int8_t)(b >> i));
    return sum;
}
#define DOT(sum, a, b) ((sum) += products(a, b))

INLINE word larger_bytes(word a, word b)
{
    word result = 0;
    for (int32_t i = 0; i < 32; i += 8)
        result |= (word)(uint8_t)larger((int8_t)(a >> i), (int8_t)(b >> i)) << i;
    return result;
}
#endif

INLINE word load(const int8_t *x)
{
    return *(const word *)x;
}

#define MAX_SIMD_PIXELS 4

/* Receptive fields of up to so many words need no loop. */
#define FEW_WORDS 14

/* One word of the receptive field. An activation is loaded two pixels ahead: who uses a load at once waits for it. */
INLINE void simd_step(uint32_t sums[MAX_SIMD_PIXELS][MAX_BLOCK], const int8_t *x, const int8_t *w, int32_t pixel_step,
                      int32_t pixels, int32_t outputs)
{
    word weights[MAX_BLOCK], ahead[2];
    ahead[0] = load(x);
    if (pixels > 1)
        ahead[1] = load(x + pixel_step);
    UNROLL for (int32_t o = 0; o < outputs; o++)
        weights[o] = load(w + 4 * o);
    FINISH_ACCESSES();
    UNROLL for (int32_t p = 0; p < pixels; p++) {
        UNROLL for (int32_t o = 0; o < outputs; o++)
            DOT(sums[p][o], ahead[p % 2], weights[o]);
        if (p + 2 < pixels)
            ahead[p % 2] = load(x + (p + 2) * pixel_step);
        FINISH_ACCESSES();
    }
}

/* `pixels` neighbouring pixels of `outputs` channels. */
INLINE void simd_block(const int8_t *x, const int8_t *w, const struct channel *channels, int8_t *y, struct conv s,
                       int32_t pixels, int32_t outputs)
{
    int32_t words = (s.bytes + 3) / 4;
    uint32_t sums[MAX_SIMD_PIXELS][MAX_BLOCK];
    UNROLL for (int32_t p = 0; p < pixels; p++)
        UNROLL for (int32_t o = 0; o < outputs; o++)
            sums[p][o] = channels[o].bias;
    if (s.runs == 1 && s.rows * words <= FEW_WORDS) {
        UNROLL for (int32_t row = 0; row < s.rows; row++)
            UNROLL for (int32_t i = 0; i < words; i++) {
                simd_step(sums, x + row * s.row_step + 4 * i, w, s.pixel_step, pixels, outputs);
                w += 4 * outputs;
            }
    } else {
        for (int32_t row = 0; row < s.rows; row++)
            for (int32_t run = 0; run < s.runs; run++) {
                const int8_t *field = x + row * s.row_step + run * s.run_step;
                STEPS for (int32_t i = 0; i < words; i++) {
                    simd_step(sums, field, w, s.pixel_step, pixels, outputs);
                    field += 4;
                    w += 4 * outputs;
                }
            }
    }
    UNROLL for (int32_t p = 0; p < pixels; p++)
        UNROLL for (int32_t o = 0; o < outputs; o++)
            y[p * s.out.channels + o] = requantize(sums[p][o], &channels[o], s.to);
}

/* One line of the output, `outputs` channels of it. */
INLINE void simd_line(const int8_t *x, const int8_t *w, const struct channel *channels, int8_t *y, struct conv s,
                      int32_t outputs)
{
    for (int32_t i = 0; i < s.out.width / s.pixels; i++) {
        simd_block(x, w, channels, y, s, s.pixels, outputs);
        x += s.pixels * s.pixel_step;
        y += s.pixels * s.out.channels;
    }
    if (s.out.width % s.pixels)
        simd_block(x, w, channels, y, s, s.out.width % s.pixels, outputs);
}

/* A convolution of one group. Weights come in blocks of output channels: for each word of the input, one word of each of
 * them; a run that ends within a word has weights of zero there. */
INLINE void conv_simd(const int8_t *x, const int8_t *w, const struct channel *channels, int8_t *y, struct conv s)
{
    int32_t terms = s.rows * s.runs * ((s.bytes + 3) / 4 * 4), rest = s.out.channels % s.block;
    int32_t height = s.out.height, blocked = s.out.channels - rest;
    /* How often these loops turn is kept from clang: it would write another program for a part of the layer. */
    FINISH(height);
    FINISH(blocked);
    for (int32_t line = 0; line < height; line++) {
        int32_t o = 0;
        for (; o < blocked; o += s.block)
            simd_line(x, w + o * terms, channels + o, y + o, s, s.block);
        if (rest)
            simd_line(x, w + o * terms, channels + o, y + o, s, rest);
        x += s.line_step;
        y += s.out.width * s.out.channels;
    }
}

/* pad() of a multiple of four channels. */
INLINE void pad_simd(const int8_t *x, int8_t *y, struct shape in, struct shape out, int32_t top, int32_t left,
                     int8_t value)
{
    word *to = (word *)y, four = (uint8_t)value * 0x01010101u;
    const word *from = (const word *)x;
    int32_t row = out.width * out.channels / 4, before = left * out.channels / 4, copied = in.width * in.channels / 4;
    for (int32_t i = 0; i < top * row; i++)
        *to++ = four;
    for (int32_t h = 0; h < in.height; h++) {
        for (int32_t i = 0; i < before; i++)
            *to++ = four;
        STEPS for (int32_t i = 0; i < copied; i++)
            *to++ = *from++;
        for (int32_t i = before + copied; i < row; i++)
            *to++ = four;
    }
    for (int32_t i = (top + in.height) * row; i < out.height * row; i++)
        *to++ = four;
}

/* max_pool() of a multiple of four channels. */
INLINE void max_pool_simd(const int8_t *x, int8_t *y, struct shape in, struct shape out, struct window s)
{
    word *to = (word *)y;
    int32_t row = in.width * in.channels;
    int clipped = s.top || s.left || (out.height - 1) * s.stride_y + s.height > in.height
                  || (out.width - 1) * s.stride_x + s.width > in.width;
    for (int32_t h = 0; h < out.height; h++) {
        for (int32_t v = 0; v < out.width; v++) {
            int32_t top = h * s.stride_y - s.top, bottom = top + s.height;
            int32_t left = v * s.stride_x - s.left, right = left + s.width;
            if (clipped) {
                top = larger(top, 0);
                left = larger(left, 0);
                bottom = smaller(bottom, in.height);
                right = smaller(right, in.width);
            }
            for (int32_t c = 0; c < in.channels; c += 4) {
                word largest = 0x80808080u;
                for (int32_t i = top; i < bottom; i++)
                    for (int32_t j = left; j < right; j++)
                        largest = larger_bytes(largest, load(x + i * row + j * in.channels + c));
                *to++ = largest;
            }
        }
    }
}
