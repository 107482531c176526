/* The reference decoder of coded weights in C; weight_code.py describes the code. C99, no allocation, no library. */

#include <stddef.h>
#include <stdint.h>

enum { GROUP = 4, MOST_WIDTH = 8, WIDTHS = 4, CHOICE_BITS = 2, WIDTHS_BITS = 16, MOST_LANES = 16, MOST_WORD_BYTES = 16 };

struct words {
    const uint8_t *bytes;
    size_t left, word_bytes;
};

struct lane {
    uint8_t nibbles[4 * MOST_WORD_BYTES]; /* as many as two words hold */
    unsigned held;
};

/* Take the next bus word; zeros behind the last whole one. */
static void take(struct words *from, uint8_t word[MOST_WORD_BYTES])
{
    for (size_t i = 0; i < from->word_bytes; i++)
        word[i] = from->left >= from->word_bytes ? from->bytes[i] : 0;
    if (from->left >= from->word_bytes) {
        from->bytes += from->word_bytes;
        from->left -= from->word_bytes;
    }
}

static void refill(struct words *from, struct lane *lane)
{
    uint8_t word[MOST_WORD_BYTES];
    take(from, word);
    for (size_t i = 0; i < 2 * from->word_bytes; i++)
        lane->nibbles[lane->held++] = word[i / 2] >> 4 * (i % 2) & 15;
}

/* Write the four weights of a group of `width` planes, and drop its nibbles. */
static void write_group(struct lane *lane, unsigned width, int8_t *weights)
{
    for (unsigned each = 0; each < GROUP; each++) {
        unsigned u = 0;
        for (unsigned plane = 0; plane < width; plane++)
            u |= (lane->nibbles[plane] >> each & 1u) << plane;
        weights[each] = (int8_t)(u & 1 ? -(int)(u >> 1) - 1 : (int)(u >> 1));
    }
    lane->held -= width;
    for (unsigned i = 0; i < lane->held; i++)
        lane->nibbles[i] = lane->nibbles[i + width];
}

/* Decode `steps` steps of `lanes` groups into `weights`, 4 * lanes * steps of them. Every stream decodes to something.
 * Return 0, or 1 if there is no such code: at most 16 lanes, and words of 4 to 16 bytes that hold a step's choices. */
int tw_decode_weights(const uint8_t *stream, size_t stream_bytes, size_t word_bytes, unsigned lanes, size_t steps,
                      int8_t *weights)
{
    struct words from = {stream, stream_bytes, word_bytes};
    struct lane queues[MOST_LANES] = {{{0}, 0}};
    uint8_t choices[MOST_WORD_BYTES] = {0};
    unsigned widths[WIDTHS] = {0}, at = 0, left = 0, first = 1;

    if (lanes == 0 || lanes > MOST_LANES || word_bytes < 4 || word_bytes > MOST_WORD_BYTES
        || 8 * word_bytes < WIDTHS_BITS + CHOICE_BITS * lanes)
        return 1;
    unsigned width[MOST_LANES] = {0}, next[MOST_LANES] = {0};
    for (size_t step = 0; step <= steps; step++) { /* the step before the first has no nibbles */
        const int asked = step < steps && left == 0;
        if (asked) {
            take(&from, choices);
            at = 0;
            left = (unsigned)(8 * word_bytes - (first ? WIDTHS_BITS : 0)) / (CHOICE_BITS * lanes);
            for (unsigned k = 0; first && k < WIDTHS; k++) {
                const unsigned bits = choices[word_bytes - WIDTHS_BITS / 8 + k / 2] >> 4 * (k % 2) & 15;
                widths[k] = bits < MOST_WIDTH ? bits : MOST_WIDTH;
            }
            first = 0;
        }
        for (unsigned lane = 0; step < steps && lane < lanes; lane++, at += CHOICE_BITS)
            next[lane] = widths[choices[at / 8] >> at % 8 & (WIDTHS - 1)];
        left -= step < steps;
        if (step > 0) {
            int taken = asked;
            for (unsigned lane = 0; lane < lanes; lane++)
                if (queues[lane].held < width[lane]) {
                    refill(&from, &queues[lane]);
                    taken = 1;
                }
            for (unsigned lane = 0; !taken && lane < lanes; lane++)
                if (queues[lane].held <= 2 * word_bytes) {
                    refill(&from, &queues[lane]);
                    taken = 1;
                }
            for (unsigned lane = 0; lane < lanes; lane++)
                write_group(&queues[lane], width[lane], weights + GROUP * (lanes * (step - 1) + lane));
        }
        for (unsigned lane = 0; lane < lanes; lane++)
            width[lane] = next[lane];
    }
    return 0;
}
