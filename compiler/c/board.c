/* A network behind a serial line: takes images in frames, runs the network on each, answers with a line of text.
 *
 * A frame is 'T' 'W', the number of bytes that follow (16 bits), the input as it lies in memory, and a CRC (16 bits) of
 * number and input: polynomial 0x1021, from 0xffff, the highest bit first. Numbers have their low byte first. Answers:
 *
 *     class 7 cycles 13300 values -12 -40 ...     the largest value's place; clock cycles of the network; all values
 *     ready lenet5 on nano, 1024 bytes a frame    after a reset, and to a frame of no bytes
 *     error ...                                   a sentence; the next frame is taken as if nothing had been
 *
 * After a frame of the wrong length or CRC the line must first be silent for as long as SILENCE characters take; so
 * must it be for a frame that is cut short. Everything before 'T' 'W' is passed over. */
#include <stdint.h>

#include "board_model.h"
#include "tilewright.h"

#define REGISTER(offset) (*(volatile uint32_t *)(0x20000000u + (offset)))
#define UART_DATA REGISTER(0x00)
#define UART_STATUS REGISTER(0x04)
#define UART_DIVIDER REGISTER(0x08)
#define LAMPS REGISTER(0x0c)
#define FAULT_ADDRESS REGISTER(0x14)
#define WINDOW(i, word) REGISTER(0x40 + 16 * (i) + 4 * (word))

#define RECEIVED 1u
#define CAN_SEND 2u

#define LAMP_READY 0x10u
#define LAMP_RUNNING 0x20u
#define LAMP_ERROR 0x40u

#define SILENCE 1024u /* characters of ten bits: 89 ms at 115,200 baud */
#define SILENT (-1)
#define REFUSED (-1)

int run_network(void); /* the main function of the compiled model */
void serve(void) __attribute__((noreturn));
void report_trap(uint32_t pc, uint32_t cause) __attribute__((noreturn));

static uint32_t cycles(void)
{
    uint32_t value;
    __asm__ volatile("csrr %0, mcycle" : "=r"(value));
    return value;
}

/* ---- sending ---- */

static void put(char character)
{
    while (!(UART_STATUS & CAN_SEND))
        ;
    UART_DATA = (uint8_t)character;
}

static void print(const char *text)
{
    while (*text)
        put(*text++);
}

static void print_number(int32_t value)
{
    char digits[10];
    uint32_t rest = value < 0 ? 0u - (uint32_t)value : (uint32_t)value;
    int count = 0;
    if (value < 0)
        put('-');
    do {
        digits[count++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    while (count)
        put(digits[--count]);
}

static void print_hexadecimal(uint32_t value)
{
    print("0x");
    for (int shift = 28; shift >= 0; shift -= 4)
        put("0123456789abcdef"[value >> shift & 15]);
}

/* ---- receiving ---- */

static uint8_t receive(void)
{
    while (!(UART_STATUS & RECEIVED))
        ;
    return (uint8_t)UART_DATA;
}

/* The next byte, or SILENT if none comes in time. */
static int receive_soon(void)
{
    uint32_t start = cycles();
    while (!(UART_STATUS & RECEIVED))
        if (cycles() - start > SILENCE * 10 * CYCLES_PER_BIT)
            return SILENT;
    return (uint8_t)UART_DATA;
}

static void wait_for_silence(void)
{
    while (receive_soon() != SILENT)
        ;
}

/* The CRC of what `crc` is of, and `byte`. */
static uint16_t crc_with(uint16_t crc, uint8_t byte)
{
    uint32_t x = (crc >> 8 ^ byte) & 0xff;
    x ^= x >> 4;
    return (uint16_t)((uint32_t)crc << 8 ^ x << 12 ^ x << 5 ^ x);
}

/* Sixteen bits, or SILENT. */
static int receive_number(void)
{
    int low = receive_soon();
    int high = low == SILENT ? SILENT : receive_soon();
    return high == SILENT ? SILENT : high << 8 | low;
}

static void wait_for_start(void)
{
    uint8_t last = 0;
    for (;;) {
        uint8_t byte = receive();
        if (last == 'T' && byte == 'W')
            return;
        last = byte;
    }
}

static int refuse_cut_short(int received)
{
    print("error the frame ends after ");
    print_number(received);
    print(" of its bytes\n");
    return REFUSED;
}

static const struct {
    uint32_t address, bytes;
} inputs[] = INPUTS, outputs[] = OUTPUTS;

/* Put the bytes of the next frame into main memory and return how many they are; a frame that is not right is REFUSED. */
static int receive_frame(void)
{
    uint32_t part = 0, left = inputs[0].bytes;
    volatile uint8_t *input = (volatile uint8_t *)inputs[0].address;
    wait_for_start();
    int length = receive_number();
    if (length == SILENT)
        return refuse_cut_short(0);
    if (length != INPUT_BYTES && length != 0) {
        wait_for_silence();
        print("error a frame must have " TEXT(INPUT_BYTES) " bytes, not ");
        print_number(length);
        put('\n');
        return REFUSED;
    }
    uint16_t crc = crc_with(crc_with(0xffff, (uint8_t)length), (uint8_t)(length >> 8));
    for (int i = 0; i < length; i++) {
        int byte = receive_soon();
        if (byte == SILENT)
            return refuse_cut_short(i);
        if (left == 0) {
            part++;
            input = (volatile uint8_t *)inputs[part].address;
            left = inputs[part].bytes;
        }
        *input++ = (uint8_t)byte;
        left--;
        crc = crc_with(crc, (uint8_t)byte);
    }
    int sent = receive_number();
    if (sent == SILENT)
        return refuse_cut_short(length);
    if (sent != crc) {
        wait_for_silence();
        print("error the CRC of the frame must be ");
        print_number(crc);
        print(", not ");
        print_number(sent);
        put('\n');
        return REFUSED;
    }
    return length;
}

/* ---- the network ---- */

static void set_windows(void)
{
    static const uint32_t windows[][3] = WINDOWS;
    for (uint32_t i = 0; i < sizeof windows / sizeof windows[0]; i++)
        for (uint32_t word = 0; word < 3; word++)
            WINDOW(i, word) = windows[i][word];
}

static void answer(uint32_t taken)
{
    volatile const int8_t *values = (volatile const int8_t *)outputs[0].address;
    uint32_t largest = 0;
    for (uint32_t i = 1; i < outputs[0].bytes; i++)
        if (values[i] > values[largest])
            largest = i;
    LAMPS = LAMP_READY | (largest & 15);
    print("class ");
    print_number((int32_t)largest);
    print(" cycles ");
    print_number((int32_t)taken);
    print(" values");
    for (uint32_t part = 0; part < sizeof outputs / sizeof outputs[0]; part++) {
        values = (volatile const int8_t *)outputs[part].address;
        for (uint32_t i = 0; i < outputs[part].bytes; i++) {
            put(' ');
            print_number(values[i]);
        }
    }
    put('\n');
}

static void infer(void)
{
    LAMPS = LAMP_READY | LAMP_RUNNING;
    uint32_t start = cycles();
    int fault = run_network();
    uint32_t taken = cycles() - start;
    if (fault == 0) {
        answer(taken);
        return;
    }
    LAMPS = LAMP_ERROR;
    print("error the coprocessor has stopped with fault ");
    print_number(fault);
    print(" at ");
    print_hexadecimal(FAULT_ADDRESS);
    put('\n');
    tw_sta_abort(); /* the next frame finds it as after a reset */
}

static void greet(void)
{
    LAMPS = LAMP_READY;
    print("ready " MODEL_NAME " on " MACHINE_NAME ", " TEXT(INPUT_BYTES) " bytes a frame\n");
}

void serve(void)
{
    UART_DIVIDER = CYCLES_PER_BIT;
    set_windows();
    greet();
    for (;;) {
        int length = receive_frame();
        if (length == REFUSED)
            LAMPS = LAMP_READY | LAMP_ERROR;
        else if (length == 0)
            greet();
        else
            infer();
    }
}

void report_trap(uint32_t pc, uint32_t cause)
{
    LAMPS = LAMP_ERROR;
    print("error the core has trapped with cause ");
    print_number((int32_t)cause);
    print(" at ");
    print_hexadecimal(pc);
    put('\n');
    for (;;)
        ;
}
